"""What every control store keeps to about schedules and hooks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.kernel.errors import Refused
from penstock.ports.control import (
    HIDDEN,
    Alert,
    ControlStore,
    Delivery,
    Hook,
    Loss,
    Missed,
    Overlap,
    Schedule,
    Slot,
    SlotState,
)
from tests.cases import cases
from tests.contracts.control_scenes import ANY_TEXT, NIGHTLY, PUSHED, ControlScenes, at_once


class SchedulesContract(ControlScenes):
    def test_a_schedule_is_there_as_it_was_put(self, control: ControlStore, other: ControlStore) -> None:
        whole = Schedule(
            "über 🚰",
            "*/5 * * * *",
            "a/b",
            "Europe/Zurich",
            3,
            {"day": "{{ x }}", "deep": [{"n": 1.5, "big": 2**62, "none": None}], "any": ANY_TEXT},
            "prod",
            Missed.ALL,
            False,
            1_700_000_000.125,
            1_700_000_000.0,
            "run",
            "error",
            Overlap.CANCEL,
            90.5,
        )
        control.put_schedule(whole)
        control.put_schedule(NIGHTLY)
        for store in (control, other):
            assert store.schedule("über 🚰") == whole
            assert store.schedule("nightly") == NIGHTLY
            assert store.schedules() == [NIGHTLY, whole]
            assert store.schedule("none") is None

    def test_what_a_schedule_says_can_be_changed(self, control: ControlStore) -> None:
        control.put_schedule(replace(NIGHTLY, version=2, context="test", payload={"a": 1}))
        changed = replace(NIGHTLY, cron="@daily", path="other", zone="Asia/Tokyo", missed=Missed.NONE, is_on=False)
        changed = replace(changed, overlap=Overlap.QUEUE, deadline_s=60.0)
        control.put_schedule(changed)
        assert control.schedules() == [changed]

    def test_what_is_put_forgets_nothing_that_was_fired(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        assert control.fired("nightly", 0.0, 200.0, slot=200.0, run="r1")
        other.put_schedule(replace(NIGHTLY, cron="@hourly", fired_to=100.0))
        expected = replace(NIGHTLY, cron="@hourly", fired_to=200.0, last_slot=200.0, last_run="r1")
        assert control.schedule("nightly") == expected
        other.put_schedule(replace(NIGHTLY, fired_to=300.0, last_run="made up", last_error="made up"))
        assert control.schedule("nightly") == replace(expected, cron=NIGHTLY.cron, fired_to=300.0)

    def test_a_dropped_schedule_is_gone(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        control.fired("nightly", 0.0, 200.0)
        assert other.drop_schedule("nightly")
        assert not other.drop_schedule("nightly")
        assert control.schedules() == []
        assert not control.fired("nightly", 200.0, 300.0)
        control.put_schedule(NIGHTLY)
        assert control.schedules() == [NIGHTLY]

    def test_what_was_fired_is_moved_from_where_it_was(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        assert control.fired("nightly", 0.0, 100.1)
        assert not other.fired("nightly", 0.0, 150.0)
        assert not other.fired("nightly", 100.0, 150.0)
        assert other.fired("nightly", 100.1, 150.0)
        assert control.schedule("nightly") == replace(NIGHTLY, fired_to=150.0)

    def test_what_was_fired_never_moves_back(self, control: ControlStore) -> None:
        control.put_schedule(replace(NIGHTLY, fired_to=100.0))
        assert not control.fired("nightly", 100.0, 99.0, slot=99.0, run="r")
        assert control.schedule("nightly") == replace(NIGHTLY, fired_to=100.0)

    def test_what_became_of_the_last_slot_is_kept(self, control: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        steps = [
            ({"slot": 10.0, "run": "r1"}, (10.0, "r1", None)),
            ({"slot": 20.0, "error": ANY_TEXT}, (20.0, None, ANY_TEXT)),
            ({}, (20.0, None, ANY_TEXT)),
            ({"slot": 35.0}, (20.0, None, ANY_TEXT)),
            ({"error": "no such zone"}, (20.0, None, "no such zone")),
            ({"slot": 40.0, "run": "r2"}, (40.0, "r2", None)),
        ]
        for number, (said, expected) in enumerate(steps):
            assert control.fired("nightly", float(number), number + 1.0, **said)  # type: ignore[arg-type]
            found = control.schedule("nightly")
            assert found is not None
            assert (found.last_slot, found.last_run, found.last_error) == expected

    def test_an_error_may_be_kept_without_moving(self, control: ControlStore) -> None:
        control.put_schedule(replace(NIGHTLY, fired_to=5.0))
        assert control.fired("nightly", 5.0, 5.0, error="bad cron")
        assert control.schedule("nightly") == replace(NIGHTLY, fired_to=5.0, last_error="bad cron")

    def test_of_those_who_fire_at_once_one_has_moved_it(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        for turn in range(5):
            moved = at_once(
                6, lambda n: (control, other)[n % 2].fired("nightly", float(turn), turn + 1.0, slot=1.0, run=f"{n}")
            )
            assert moved.count(True) == 1
            found = control.schedule("nightly")
            assert found is not None
            assert (found.fired_to, found.last_run) == (turn + 1.0, f"{moved.index(True)}")

    def test_who_reads_a_schedule_can_change_nothing_by_it(self, control: ControlStore) -> None:
        control.put_schedule(replace(NIGHTLY, payload={"a": {"b": 1}}))
        for _ in range(2):
            found = control.schedule("nightly")
            assert found is not None
            assert found.payload == {"a": {"b": 1}}
            found.payload["a"]["b"] = 2  # type: ignore[index,call-overload]

    @cases(
        "wrong",
        [
            replace(NIGHTLY, name=""),
            replace(NIGHTLY, path=""),
            replace(NIGHTLY, name="a\tb"),
            replace(NIGHTLY, version=0),
            replace(NIGHTLY, version=2**40),
            replace(NIGHTLY, cron="\ud800"),
            replace(NIGHTLY, payload={"a": "\ud800"}),
            replace(NIGHTLY, payload={"a": object()}),  # type: ignore[dict-item]
            replace(NIGHTLY, fired_to=float("nan")),
            replace(NIGHTLY, fired_to=float("inf")),
            replace(NIGHTLY, deadline_s=0.0),
            replace(NIGHTLY, deadline_s=float("nan")),
        ],
    )
    def test_a_schedule_that_cannot_be_kept_is_refused(self, control: ControlStore, wrong: Schedule) -> None:
        with pytest.raises(Refused):
            control.put_schedule(wrong)
        assert control.schedules() == []


class SlotsContract(ControlScenes):
    def test_the_first_decision_about_a_slot_stands(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        first = Slot("nightly", 100.5, SlotState.SKIPPED, note=ANY_TEXT)
        assert control.claim_slot(first) == first
        assert other.claim_slot(Slot("nightly", 100.5, SlotState.DUE)) == first
        assert other.slots("nightly", 100.5, 100.5) == [first]

    def test_of_those_who_decide_at_once_all_hear_the_same(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        for turn in range(5):
            heard = at_once(
                6,
                lambda n: (control, other)[n % 2].claim_slot(Slot("nightly", float(turn), SlotState.DUE, note=f"{n}")),
            )
            assert len(set(heard)) == 1

    def test_a_slot_is_changed_by_who_knew_it_last(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        slot = control.claim_slot(Slot("nightly", 1.0, SlotState.QUEUED, backfill="b", at_once=3))
        started = replace(slot, state=SlotState.STARTED, run="r", attempt=2, is_late=True)
        assert other.change_slot(started)
        assert not control.change_slot(replace(slot, note="too late"))
        assert control.slots("nightly", 0.0, 2.0) == [replace(started, revision=1)]
        assert control.change_slot(replace(started, revision=1, ended="failed"))
        assert not control.change_slot(Slot("nightly", 9.0, SlotState.DUE))

    def test_open_slots_are_those_that_wait_or_run(self, control: ControlStore, other: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        control.put_schedule(replace(NIGHTLY, name="b"))
        for number, state in enumerate(SlotState):
            control.claim_slot(Slot("nightly", float(number), state, run="r"))
        control.claim_slot(Slot("b", 1.0, SlotState.STARTED, "r", ended="completed"))
        control.claim_slot(Slot("b", 0.0, SlotState.QUEUED))
        found = [(one.schedule, one.state.value) for one in other.open_slots()]
        assert found == [("b", "queued"), ("nightly", "due"), ("nightly", "queued"), ("nightly", "started")]

    def test_slots_are_listed_and_forgotten_from_the_oldest_on(self, control: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        for number in range(6):
            state = SlotState.QUEUED if number == 1 else SlotState.MISSED
            control.claim_slot(Slot("nightly", float(number), state))
        assert [one.at for one in control.slots("nightly", 1.0, 4.0, 2)] == [3.0, 4.0]
        assert control.slots("nightly", 0.0, 9.0, 0) == []
        control.trim_slots("nightly", 2)
        assert [one.at for one in control.slots("nightly", 0.0, 9.0)] == [1.0, 4.0, 5.0]

    def test_the_slots_of_a_schedule_go_with_it(self, control: ControlStore) -> None:
        control.put_schedule(NIGHTLY)
        control.claim_slot(Slot("nightly", 1.0, SlotState.DUE))
        control.drop_schedule("nightly")
        assert control.open_slots() == []
        with pytest.raises(Refused, match="nightly"):
            control.claim_slot(Slot("nightly", 1.0, SlotState.DUE))
        control.put_schedule(NIGHTLY)
        assert control.slots("nightly", 0.0, 9.0) == []


class AlertsContract(ControlScenes):
    def test_alerts_are_there_as_they_were_put_and_go_with_all_they_told(
        self, control: ControlStore, other: ControlStore
    ) -> None:
        mail = Alert(
            "ä", ("failed", "late"), "nightly", "a/b", "l", ANY_TEXT, "f", "h", 25, "tls", None, "e", False, 7.5
        )
        hook = Alert("hook", ("missed",), url="http://x")
        for alert in (mail, replace(mail, label="m"), mail, hook):
            control.put_alert(alert)
        assert other.alerts() == [hook, mail]
        assert control.raise_alert(Delivery("hook", "a", {"text": ANY_TEXT}, next_at=1.0, at=1.0))
        assert other.drop_alert("hook")
        assert not other.drop_alert("hook")
        assert (control.alerts(), control.deliveries()) == ([mail], [])

    def test_what_is_to_be_told_is_told_once_by_one(self, control: ControlStore, other: ControlStore) -> None:
        control.put_alert(Alert("x", ("failed",), url="http://x"))
        assert not control.raise_alert(Delivery("nobody", "a", {}))
        found = Delivery("x", "failed:r1", {"run": "r1"}, next_at=5.0, at=5.0)
        raised = at_once(6, lambda n: (control, other)[n % 2].raise_alert(found))
        assert raised.count(True) == 1
        assert other.deliveries("x", is_pending=True) == [found]
        held = at_once(6, lambda n: (control, other)[n % 2].change_delivery(replace(found, next_at=9.0, attempts=1)))
        assert held.count(True) == 1
        done = replace(found, state="delivered", error=None, at=6.0, revision=1)
        assert control.change_delivery(done)
        assert (control.deliveries(is_pending=True), other.deliveries()) == ([], [replace(done, revision=2)])

    def test_the_oldest_of_what_was_told_is_forgotten(self, control: ControlStore) -> None:
        control.put_alert(Alert("x", ("failed",), url="http://x"))
        for number in range(5):
            state = "pending" if number == 0 else "delivered"
            control.raise_alert(Delivery("x", f"{number}", {}, state, at=float(number)))
        control.trim_deliveries("x", 2)
        assert [one.about for one in control.deliveries("x")] == ["4", "3", "0"]
        assert [one.about for one in control.deliveries("x", limit=1)] == ["4"]


class HooksContract(ControlScenes):
    def test_a_hook_is_there_as_it_was_put(self, control: ControlStore, other: ControlStore) -> None:
        whole = Hook("über 🚰", "a/b", 3, ANY_TEXT, {"any": ANY_TEXT, "deep": [{"n": 1}]}, False, "prod")
        control.put_hook(whole)
        control.put_hook(PUSHED)
        for store in (control, other):
            assert store.hook("über 🚰") == whole
            assert store.hook("pushed") == PUSHED
            assert store.hook("none") is None

    def test_a_list_of_hooks_shows_no_secrets(self, control: ControlStore) -> None:
        control.put_hook(replace(PUSHED, secret="s3cret-s3cret"))
        control.put_hook(Hook("open", "a"))
        assert control.hooks() == [Hook("open", "a"), replace(PUSHED, secret=HIDDEN)]
        assert "s3cret" not in repr(control.hook("pushed"))

    def test_a_hook_can_be_changed_and_its_secret_taken_away(self, control: ControlStore) -> None:
        control.put_hook(replace(PUSHED, secret="one", version=1, payload={"a": 1}))
        control.put_hook(replace(PUSHED, secret="two", is_on=False, context="dev"))
        assert control.hook("pushed") == replace(PUSHED, secret="two", is_on=False, context="dev")
        control.put_hook(replace(PUSHED, secret=HIDDEN, is_on=False))
        assert control.hook("pushed") == replace(PUSHED, secret="two", is_on=False)
        control.put_hook(PUSHED)
        assert control.hooks() == [PUSHED]

    def test_what_is_put_as_it_was_listed_keeps_its_secret(self, control: ControlStore, other: ControlStore) -> None:
        control.put_hook(replace(PUSHED, secret="one"))
        (listed,) = other.hooks()
        other.put_hook(replace(listed, path="elsewhere", is_on=False))
        assert control.hook("pushed") == Hook("pushed", "elsewhere", secret="one", is_on=False)

    def test_a_secret_that_is_not_there_cannot_be_kept(self, control: ControlStore) -> None:
        with pytest.raises(Refused, match="pushed"):
            control.put_hook(replace(PUSHED, secret=HIDDEN))
        assert control.hooks() == []
        control.put_hook(PUSHED)
        with pytest.raises(Refused, match="pushed"):
            control.put_hook(replace(PUSHED, secret=HIDDEN, is_on=False))
        assert control.hooks() == [PUSHED]

    def test_a_dropped_hook_is_gone(self, control: ControlStore, other: ControlStore) -> None:
        control.put_hook(PUSHED)
        assert other.drop_hook("pushed")
        assert not other.drop_hook("pushed")
        assert control.hook("pushed") is None

    @cases(
        "wrong",
        [
            replace(PUSHED, name=""),
            replace(PUSHED, path="\n"),
            replace(PUSHED, version=0),
            replace(PUSHED, secret="\ud800"),
            replace(PUSHED, secret=""),
        ],
    )
    def test_a_hook_that_cannot_be_kept_is_refused(self, control: ControlStore, wrong: Hook) -> None:
        with pytest.raises(Refused):
            control.put_hook(wrong)
        assert control.hooks() == []


class LossesContract(ControlScenes):
    def test_losses_are_there_for_every_server_the_newest_first(
        self, control: ControlStore, other: ControlStore
    ) -> None:
        first = Loss("run-1", "run-1/load@0", 1, 2**40, 10.5, "anna#1")
        second = Loss("run-1", "run-1/über 🚰@1[3]", 2, 2**40 + 1, 11.0, None, "bert#2", True)
        for loss in (first, second, first):
            control.add_loss(loss, 10)
        assert control.losses() == other.losses() == [second, first]
        assert other.losses(1) == [second]

    def test_the_latest_loss_before_an_attempt_is_taken(self, control: ControlStore, other: ControlStore) -> None:
        losses = [Loss("run-1", "run-1/load@0", attempt, attempt, float(attempt), "anna#1") for attempt in (1, 2)]
        for loss in losses:
            control.add_loss(loss, 10)
        assert not control.take_loss("run-1/load@0", 1, "bert#2", is_done=True)
        assert not control.take_loss("run-1/save@1", 3, "bert#2", is_done=True)
        assert control.take_loss("run-1/load@0", 2, "bert#2", is_done=False)
        assert other.take_loss("run-1/load@0", 3, "cora#3", is_done=True)
        assert other.take_loss("run-1/load@0", 3, "cora#3", is_done=False)
        assert control.losses() == [
            replace(losses[1], taken_by="cora#3", is_done=True),
            replace(losses[0], taken_by="bert#2"),
        ]

    def test_of_losses_the_newest_are_kept(self, control: ControlStore) -> None:
        for number in range(7):
            control.add_loss(Loss("run-1", f"run-1/load@{number % 2}", number, number, 1.0, None), 3)
        assert [one.number for one in control.losses()] == [6, 5, 4]
