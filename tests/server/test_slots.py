"""When schedules fire: time zones, changes of the clocks, and what becomes of what was missed."""

from __future__ import annotations

import random
import sys
import zoneinfo
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from penstock.kernel.errors import Refused
from penstock.ports.control import Missed, Schedule
from penstock.server.cron import Due, due, iso, next_slot, slots, timetable, upcoming
from tests.cases import cases
from tests.depth import times

ZURICH = "Europe/Zurich"  # 29 March 2026, 02:00 → 03:00; 25 October 2026, 03:00 → 02:00
LORD_HOWE = "Australia/Lord_Howe"  # 5 April 2026, 02:00 → 01:30; 4 October 2026, 02:00 → 02:30


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def schedule(cron: str, zone: str = "UTC", **more: object) -> Schedule:
    return replace(Schedule("s", cron, "p", zone), **more)  # type: ignore[arg-type]


def between(cron: str, zone: str, after: str, until: str) -> list[str]:
    """Both ways of finding them find the same."""
    found = slots(schedule(cron, zone), at(after), at(until))
    coming = upcoming(schedule(cron, zone), at(after), len(found) + 1)
    assert coming[: len(found)] == found
    assert all(slot > at(until) for slot in coming[len(found) :])
    return [iso(slot)[:16].replace("T", " ") for slot in found]


# ---- slots

PLAIN = {
    ("0 2 * * *", "UTC", "2026-01-01T00:00Z", "2026-01-03T02:00Z"): [
        "2026-01-01 02:00",
        "2026-01-02 02:00",
        "2026-01-03 02:00",
    ],
    ("0 2 * * *", "Asia/Tokyo", "2026-01-01T00:00Z", "2026-01-02T00:00Z"): ["2026-01-01 17:00"],
    ("30 9 * * MON-FRI", "UTC", "2026-01-02T00:00Z", "2026-01-06T00:00Z"): ["2026-01-02 09:30", "2026-01-05 09:30"],
    ("0 0 L * *", "UTC", "2026-01-15T00:00Z", "2026-03-15T00:00Z"): ["2026-01-31 00:00", "2026-02-28 00:00"],
    ("0 0 * * 1#1", "UTC", "2026-01-15T00:00Z", "2026-03-15T00:00Z"): ["2026-02-02 00:00", "2026-03-02 00:00"],
    ("0 0 13 * FRI", "UTC", "2026-02-11T00:00Z", "2026-02-21T00:00Z"): ["2026-02-13 00:00", "2026-02-20 00:00"],
    ("@hourly", "UTC", "2026-01-01T00:00Z", "2026-01-01T02:00Z"): ["2026-01-01 01:00", "2026-01-01 02:00"],
    ("@daily", "Asia/Kolkata", "2026-01-01T00:00Z", "2026-01-02T00:00Z"): ["2026-01-01 18:30"],
    ("@midnight", "UTC", "2026-01-01T00:00Z", "2026-01-02T00:00Z"): ["2026-01-02 00:00"],
    ("@weekly", "UTC", "2026-01-01T00:00Z", "2026-01-08T00:00Z"): ["2026-01-04 00:00"],
    ("@monthly", "UTC", "2026-01-01T00:00Z", "2026-02-08T00:00Z"): ["2026-02-01 00:00"],
    ("@yearly", "UTC", "2026-01-01T00:00Z", "2027-01-01T00:00Z"): ["2027-01-01 00:00"],
    ("@ANNUALLY", "UTC", "2026-01-01T00:00Z", "2027-01-01T00:00Z"): ["2027-01-01 00:00"],
    ("  0   2 * * * ", "UTC", "2026-01-01T00:00Z", "2026-01-01T03:00Z"): ["2026-01-01 02:00"],
    ("0 2 29 2 *", "UTC", "2026-01-01T00:00Z", "2032-12-31T00:00Z"): ["2028-02-29 02:00", "2032-02-29 02:00"],
}


@cases("case, expected", PLAIN.items())
def test_slots_are_those_of_the_expression_in_its_zone(case: tuple[str, str, str, str], expected: list[str]) -> None:
    assert between(*case) == expected


CHANGES = {
    "a time of day that is skipped is fired at the first moment after": (
        ("30 2 * * *", ZURICH, "2026-03-28T00:00Z", "2026-03-31T00:00Z"),
        ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"],
    ),
    "so is one with seconds": (
        ("15 30 2 * * *", ZURICH, "2026-03-28T12:00Z", "2026-03-30T12:00Z"),
        ["2026-03-29 01:00", "2026-03-30 00:30"],
    ),
    "several that are skipped are fired once": (
        ("0,15,30,45 2 * * *", ZURICH, "2026-03-29T00:00Z", "2026-03-29T12:00Z"),
        ["2026-03-29 01:00"],
    ),
    "one that is skipped and one just after the gap are fired once": (
        ("0 2,3 * * *", ZURICH, "2026-03-29T00:00Z", "2026-03-29T12:00Z"),
        ["2026-03-29 01:00"],
    ),
    "an interval leaves out what is skipped, and goes on without a pause": (
        ("*/30 * * * *", ZURICH, "2026-03-29T00:00Z", "2026-03-29T02:00Z"),
        ["2026-03-29 00:30", "2026-03-29 01:00", "2026-03-29 01:30", "2026-03-29 02:00"],
    ),
    "an interval of hours goes by the clock on the wall": (
        ("0 */2 * * *", ZURICH, "2026-03-28T22:30Z", "2026-03-29T05:00Z"),
        ["2026-03-28 23:00", "2026-03-29 02:00", "2026-03-29 04:00"],
    ),
    "a time of day that comes twice is fired the first time": (
        ("30 2 * * *", ZURICH, "2026-10-24T00:00Z", "2026-10-27T00:00Z"),
        ["2026-10-24 00:30", "2026-10-25 00:30", "2026-10-26 01:30"],
    ),
    "an interval is fired in both hours": (
        ("*/30 * * * *", ZURICH, "2026-10-25T00:00Z", "2026-10-25T02:00Z"),
        ["2026-10-25 00:30", "2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00"],
    ),
    "also when it is looked at between the two": (
        ("*/15 2 * * *", ZURICH, "2026-10-25T00:40Z", "2026-10-25T01:20Z"),
        ["2026-10-25 00:45", "2026-10-25 01:00", "2026-10-25 01:15"],
    ),
    "and when it is looked at in the second": (
        ("*/15 2 * * *", ZURICH, "2026-10-25T01:20Z", "2026-10-25T12:00Z"),
        ["2026-10-25 01:30", "2026-10-25 01:45"],
    ),
    "a time of day that was fired in the first hour is not fired in the second": (
        ("30 2 * * *", ZURICH, "2026-10-25T01:10Z", "2026-10-26T12:00Z"),
        ["2026-10-26 01:30"],
    ),
    "where clocks are set back by half an hour nothing is lost": (
        ("0 */2 * * *", LORD_HOWE, "2026-04-04T12:00Z", "2026-04-04T18:00Z"),
        ["2026-04-04 13:00", "2026-04-04 15:30", "2026-04-04 17:30"],
    ),
    "and a gap of half an hour ends after half an hour": (
        ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00Z", "2026-10-04T18:00Z"),
        ["2026-10-03 15:30", "2026-10-04 15:15"],
    ),
    "a day that a zone leaves out has its slot at the beginning of the next": (
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00Z", "2011-12-31T12:00Z"),
        ["2011-12-29 22:00", "2011-12-30 10:00", "2011-12-30 22:00"],
    ),
}


@cases("case", [pytest.param(case, id=name) for name, case in CHANGES.items()])
def test_where_clocks_are_changed(case: tuple[tuple[str, str, str, str], list[str]]) -> None:
    asked, expected = case
    assert between(*asked) == expected


ZONES = [ZURICH, LORD_HOWE, "America/New_York", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo", "UTC"]


@pytest.mark.parametrize("zone", ZONES)
def test_an_interval_fires_whenever_the_clock_on_the_wall_says_so(zone: str) -> None:
    """Against the slow way: every minute is looked at."""
    chance = random.Random(zone)
    for cron in ("*/7 * * * *", "13 * * * *", "*/20 1 * * 0", "15 */3 * * *", "* 2 29 3 *"):
        after = float(chance.randrange(1_200_000_000, 1_800_000_000))
        until = after + chance.randrange(3, 8) * 86_400
        fields = CronSim(cron, datetime(2000, 1, 1))
        expected = []
        for moment in range(int(after) // 60 * 60 + 60, int(until) + 1, 60):
            wall = datetime.fromtimestamp(moment, ZoneInfo(zone))
            is_hit = wall.second == 0 and wall.minute in fields.minutes and wall.hour in fields.hours
            if is_hit and wall.month in fields.months and fields.match_day(wall.date()):
                expected.append(float(moment))
        assert slots(schedule(cron, zone), after, until, 10**6) == expected


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_of_day_fires_once_a_day_wherever_one_looks_from(zone: str) -> None:
    chance = random.Random(zone)
    whole = upcoming(schedule("30 1 * * *", zone), at("2024-01-01T00:00Z"), 800)
    days = [datetime.fromtimestamp(slot, ZoneInfo(zone)).date() for slot in whole]
    assert days == sorted(set(days))
    assert (days[-1] - days[0]).days == 799
    for _ in range(times(40)):
        after = chance.uniform(whole[0], whole[-2])
        expected = [slot for slot in whole if slot > after][:1]
        assert upcoming(schedule("30 1 * * *", zone), after) == expected


def test_a_slot_is_after_the_one_and_up_to_the_other_end() -> None:
    every = schedule("* * * * *")
    assert slots(every, 60.0, 180.0) == [120.0, 180.0]
    assert slots(every, 60.5, 179.9) == [120.0]
    assert slots(every, 180.0, 180.0) == slots(every, 200.0, 100.0) == []
    assert upcoming(every, 60.0, 2) == [120.0, 180.0]
    assert upcoming(every, 59.999, 1) == [60.0]


def test_seconds_come_first_in_six_fields() -> None:
    assert slots(schedule("*/20 1 0 * * *"), 0.0, 3600.0) == [60.0, 80.0, 100.0]


def test_of_too_many_slots_there_are_the_newest() -> None:
    found = slots(schedule("* * * * * *"), 0.0, 1_700_000_000.0)
    assert found == [1_700_000_000.0 - 999 + number for number in range(1000)]
    assert slots(schedule("@hourly"), 0.0, 1_700_000_000.0, 2) == [1_699_995_600.0, 1_699_999_200.0]


def test_the_end_of_the_calendar_is_the_end_of_all_schedules() -> None:
    for moment in (250_000_000_000.0, 1e18, float("inf")):
        assert upcoming(schedule("* * * * *", ZURICH), moment) == []
        assert slots(schedule("* * * * *", ZURICH), 0.0, moment) == []
    assert slots(schedule("* * * * *", ZURICH), -1e12, -1.0) == []


WRONG = {
    "": "wrong number of fields",
    "daily": "wrong number of fields",
    "@reboot": "wrong number of fields",
    "* * * *": "wrong number of fields",
    "* * * * * * *": "wrong number of fields",
    "60 * * * *": "bad minute",
    "* 24 * * *": "bad hour",
    "* * 0 * *": "bad day-of-month",
    "* * 30 2 *": "bad day-of-month",
    "* * * 13 *": "bad month",
    "* * * * 8": "bad day-of-week",
    "61 * * * * *": "bad second",
    "*/0 * * * *": "bad minute",
    "5-1 * * * *": "bad minute",
    "1 " * 200: "characters",
}


@cases("cron, reason", WRONG.items())
def test_what_is_no_cron_expression_is_refused_with_its_reason(cron: str, reason: str) -> None:
    with pytest.raises(Refused, match="is not a cron expression") as raised:
        timetable(schedule(cron))
    assert reason in raised.value.message
    assert "`" in (raised.value.hint or "")


@cases("zone", ["", "Mars/Olympus", "/etc/passwd", "../../etc/passwd", "America", "\0", "x" * 5000])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(Refused, match="there is no time zone"):
        timetable(schedule("@daily", zone))


def test_a_time_zone_that_was_meant_is_named() -> None:
    with pytest.raises(Refused) as raised:
        timetable(schedule("@daily", "Europe/Zurch"))
    assert raised.value.hint == "did you mean `Europe/Zurich`?"


# ---- what is due

HOUR = 3600.0
NOON = at("2026-01-01T12:00Z")


def hourly(missed: Missed, fired_to: float, **more: object) -> Schedule:
    return schedule("@hourly", missed=missed, fired_to=fired_to, **more)


@cases("missed", Missed)
def test_a_slot_is_due_when_its_time_has_come_and_not_before(missed: Missed) -> None:
    one = hourly(missed, NOON - HOUR)
    assert due(one, NOON - 0.001) == Due([], NOON - HOUR)
    assert due(one, NOON) == due(one, NOON + 9.0) == Due([NOON], NOON)
    assert due(replace(one, fired_to=NOON), NOON + 9.0) == Due([], NOON)


MISSED = {
    # policy, now: what is fired of 09:00, 10:00, 11:00, 12:00
    (Missed.ALL, 30 * 60.0): [-3, -2, -1, 0],
    (Missed.LAST, 30 * 60.0): [0],
    (Missed.NONE, 30 * 60.0): [],
    (Missed.ALL, 5.0): [-3, -2, -1, 0],
    (Missed.LAST, 5.0): [0],
    (Missed.NONE, 5.0): [0],
}


@cases("case, hours", MISSED.items())
def test_what_was_missed_is_fired_as_the_policy_says(case: tuple[Missed, float], hours: list[int]) -> None:
    missed, late = case
    found = due(hourly(missed, NOON - 4 * HOUR), NOON + late)
    assert found == Due([NOON + hour * HOUR for hour in hours], NOON)


def test_slots_within_the_grace_are_all_in_time() -> None:
    for missed in Missed:
        often = schedule("*/2 * * * * *", missed=missed, fired_to=NOON)
        assert due(often, NOON + 7.0).to_fire == [NOON + 2, NOON + 4, NOON + 6]


def test_after_years_of_absence_all_is_a_thousand() -> None:
    found = due(schedule("* * * * *", missed=Missed.ALL, fired_to=1.0), NOON)
    assert found == Due([NOON - 60 * number for number in reversed(range(1000))], NOON)


def test_a_clock_that_was_set_back_makes_nothing_due() -> None:
    for missed in Missed:
        assert due(hourly(missed, NOON), NOON - 5 * HOUR) == Due([], NOON)


def test_a_schedule_that_has_not_begun_begins_now_and_has_missed_nothing() -> None:
    for missed in Missed:
        assert due(hourly(missed, 0.0), NOON + 5.0) == Due([], NOON + 5.0)


def test_slots_of_a_schedule_that_is_off_are_let_go() -> None:
    for missed in Missed:
        assert due(hourly(missed, NOON - 4 * HOUR, is_on=False), NOON + 5.0) == Due([], NOON)
        assert due(hourly(missed, NOON, is_on=False), NOON + 5.0) == Due([], NOON)


def test_the_next_slot_is_after_what_was_fired() -> None:
    assert next_slot(hourly(Missed.LAST, NOON), NOON + 5.0) == NOON + HOUR
    assert next_slot(hourly(Missed.LAST, NOON + HOUR), NOON + 5.0) == NOON + 2 * HOUR
    assert next_slot(hourly(Missed.LAST, NOON, is_on=False), NOON) is None
    assert next_slot(schedule("0 0 LW * */7"), NOON) is None


def test_a_machine_without_data_about_time_zones_says_so_and_still_knows_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["tzdata", *(name for name in sys.modules if name.startswith("tzdata."))]:
        monkeypatch.setitem(sys.modules, name, None)
    known = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(())
    ZoneInfo.clear_cache()
    try:
        assert upcoming(schedule("17 3 * * *"), at("2024-01-01T00:00Z")) == [at("2024-01-01T03:17Z")]
        with pytest.raises(Refused, match="this machine has no data about time zones") as refused:
            upcoming(schedule("18 3 * * *", "Europe/Zurich"), at("2024-01-01T00:00Z"))
        assert "pip install tzdata" in str(refused.value.hint)
    finally:
        zoneinfo.reset_tzpath(known)
