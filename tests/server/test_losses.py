"""Leases that were lost with their workers, as the messages of a dispatch tell it."""

from __future__ import annotations

from penstock.ports.dispatch import Message, MessageKind
from penstock.server.losses import MOST, Losses


def said(kind: MessageKind, attempt: int, worker: str, key: str = "run-1/load@0") -> Message:
    return Message(1, "run-1", key, attempt, worker, kind)


def test_a_loss_is_noted_once_however_often_its_message_is_shown() -> None:
    losses = Losses(lambda: 5.0)
    losses.note([said(MessageKind.LOST, 1, "w1#a")])
    losses.note([said(MessageKind.LOST, 1, "w1#a")])
    (loss,) = losses.newest(10)
    assert (loss.execution_id, loss.scope, loss.at, loss.worker) == ("run-1", "load@0", 5.0, "w1#a")
    assert (loss.taken_by, loss.is_done) == (None, False)


def test_who_reports_under_a_later_attempt_has_taken_it() -> None:
    losses = Losses(lambda: 5.0)
    losses.note([said(MessageKind.LOST, 1, "w1#a"), said(MessageKind.REPORTED, 1, "w1#a")])
    assert losses.newest(1)[0].taken_by is None
    losses.note([said(MessageKind.REPORTED, 2, "w2#b")])
    assert (losses.newest(1)[0].taken_by, losses.newest(1)[0].is_done) == ("w2#b", False)
    losses.note([said(MessageKind.DONE, 2, "w2#b")])
    assert losses.newest(1)[0].is_done


def test_a_lease_that_is_lost_again_is_another_loss() -> None:
    losses = Losses(lambda: 5.0)
    losses.note(
        [said(MessageKind.LOST, 1, "w1#a"), said(MessageKind.LOST, 2, "w2#b"), said(MessageKind.DONE, 3, "w3#c")]
    )
    assert [(one.attempt, one.taken_by) for one in losses.newest(10)] == [(2, "w3#c"), (1, "w2#b")]


def test_only_the_newest_are_kept() -> None:
    losses = Losses(lambda: 5.0)
    losses.note(said(MessageKind.LOST, 1, "w1#a", f"run-1/load@{number}") for number in range(MOST + 10))
    assert len(losses.newest(2 * MOST)) == MOST
    assert losses.newest(1)[0].scope == f"load@{MOST + 9}"
