"""Leases that were lost with their workers, as the messages of a dispatch tell it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from penstock.adapters.sqlite.control import MemoryControl
from penstock.kernel.errors import Unavailable
from penstock.ports.control import ControlStore, Loss
from penstock.ports.dispatch import Message, MessageKind
from penstock.server.losses import MOST, note, noted

_numbers = count(1)


def said(kind: MessageKind, attempt: int, worker: str, key: str = "run-1/load@0") -> Message:
    return Message(next(_numbers), "run-1", key, attempt, worker, kind)


def take_in(control: ControlStore, *messages: Message) -> None:
    note(control, noted(messages), 5.0)


def test_a_loss_is_noted_once_however_often_its_message_is_shown() -> None:
    control = MemoryControl()
    lost = said(MessageKind.LOST, 1, "w1#a")
    take_in(control, lost)
    take_in(control, lost)
    assert control.losses() == [Loss("run-1", "run-1/load@0", 1, lost.number, 5.0, "w1#a")]
    assert control.losses()[0].scope == "load@0"


def test_who_ends_it_under_a_later_attempt_has_taken_it() -> None:
    control = MemoryControl()
    take_in(control, said(MessageKind.LOST, 1, "w1#a"), said(MessageKind.DONE, 1, "w1#a"))
    assert control.losses()[0].taken_by is None
    take_in(control, said(MessageKind.DONE, 2, "w2#b"))
    assert (control.losses()[0].taken_by, control.losses()[0].is_done) == ("w2#b", True)


def test_a_lease_that_is_lost_again_is_another_loss() -> None:
    control = MemoryControl()
    take_in(
        control,
        said(MessageKind.LOST, 1, "w1#a"),
        said(MessageKind.LOST, 2, "w2#b"),
        said(MessageKind.DONE, 3, "w3#c"),
    )
    found = [(one.attempt, one.taken_by, one.is_done) for one in control.losses()]
    assert found == [(2, "w3#c", True), (1, "w2#b", False)]


def test_a_step_that_runs_again_may_lose_its_first_attempt_again() -> None:
    control = MemoryControl()
    take_in(control, said(MessageKind.LOST, 1, "w1#a"), said(MessageKind.DONE, 2, "w2#b"))
    take_in(control, said(MessageKind.LOST, 1, "w3#c"), said(MessageKind.DONE, 2, "w4#d"))
    assert [(one.worker, one.taken_by) for one in control.losses()] == [("w3#c", "w4#d"), ("w1#a", "w2#b")]


def test_only_the_newest_are_kept() -> None:
    control = MemoryControl()
    take_in(control, *(said(MessageKind.LOST, 1, "w1#a", f"run-1/load@{number}") for number in range(MOST + 10)))
    assert len(control.losses(2 * MOST)) == MOST
    assert control.losses(1)[0].scope == f"load@{MOST + 9}"


def test_ordinary_messages_are_passed_over_without_a_look_at_the_store() -> None:
    ordinary = [
        said(MessageKind.REPORTED, 1, "w1#a"),
        said(MessageKind.REPORTED, 2, "w1#a"),
        said(MessageKind.ASKED, 1, "w1#a"),
        said(MessageKind.DONE, 1, "w1#a"),
        said(MessageKind.STALE, 1, ""),
    ]
    assert noted(ordinary) == []


class Away(MemoryControl):
    def _changes(self, statement: str, values: object) -> bool:
        raise Unavailable("the database is away")


def test_a_store_that_is_away_keeps_no_message_from_its_effect() -> None:
    messages: Iterable[Message] = noted([said(MessageKind.LOST, 1, "w1#a")])
    note(Away(), messages, 5.0)
