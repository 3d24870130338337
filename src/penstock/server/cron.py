"""When a schedule fires: its slots, computed from its cron expression and time zone alone. No clock, no store.

Law: the same schedule has the same slots on every machine, and no two slots are the same moment. When the clocks change:

    time of day     neither minute nor hour begins with `*`: `30 2 * * *`. Every day has exactly one slot. A time that the
                    clocks skip fires at the first moment after the gap; one that occurs twice fires the first time.
    interval        `*/15 * * * *`, `0 * * * *`, `0 */6 * * *`. It follows the wall clock: times that the clocks skip do not
                    fire, and times that occur twice fire twice, so that no hour is left out.

Expressions have five fields, or six with seconds first, and the extensions of cronsim: names of days and months, `L`, `LW`,
`5L`, `1#2`. If both day fields are given, either may match, as with cron.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, takewhile
from math import floor
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from penstock.dialects.problems import closest
from penstock.kernel.errors import Refused
from penstock.ports.control import Missed, Schedule

GRACE_S = 10.0
"""A slot no older than this counts as fired in time, whatever happens to missed ones."""
MOST_CAUGHT_UP = 1000
"""How many of the newest missed slots a schedule that wants all of them gets after a long absence."""
LONGEST_CRON = 200

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400.0
# Beyond this, the search for the next slot runs off the end of the calendar.
LAST_MOMENT = 250_000_000_000.0


class Due(NamedTuple):
    """The slots to fire, oldest first, and the time up to which all slots are then fired or passed over."""

    to_fire: list[float]
    fired_to: float


def slots(schedule: Schedule, after: float, until: float, most: int = MOST_CAUGHT_UP) -> list[float]:
    """The slots after `after` and up to `until`, oldest first; if there are more than `most`, the newest of them."""
    newest = takewhile(lambda slot: slot > after, timetable(schedule).backwards(until))
    return list(islice(newest, most))[::-1]


def upcoming(schedule: Schedule, after: float, count: int = 1) -> list[float]:
    """The next slots after that moment; fewer than `count` if the calendar has no more within fifty years."""
    return list(islice(timetable(schedule).forwards(after), count))


def next_slot(schedule: Schedule, now: float) -> float | None:
    """When the schedule fires next, if ever."""
    if not schedule.is_on:
        return None
    return next(iter(upcoming(schedule, max(now, schedule.fired_to))), None)


def due(schedule: Schedule, now: float, grace_s: float = GRACE_S) -> Due:
    """What has to be fired at this moment. A clock that was set back makes nothing due: fired slots stay fired."""
    if schedule.fired_to <= 0.0:
        return Due([], now)  # It starts now, and has missed nothing.
    most = MOST_CAUGHT_UP if schedule.missed is Missed.ALL else floor(grace_s) + 2
    passed = slots(schedule, schedule.fired_to, now, most)
    if not passed:
        return Due([], schedule.fired_to)
    in_time = [slot for slot in passed if slot >= now - grace_s]
    if not schedule.is_on:
        wanted: list[float] = []
    elif schedule.missed is Missed.ALL:
        wanted = passed
    elif schedule.missed is Missed.LAST:
        wanted = in_time or passed[-1:]
    else:
        wanted = in_time
    return Due(wanted, passed[-1])


def let_go(schedule: Schedule, plan: Due) -> list[float]:
    """The slots that `plan` passes over; only the newest if there are very many. A schedule that is off has none."""
    if not schedule.is_on or schedule.fired_to <= 0.0:
        return []
    fired = set(plan.to_fire)
    return [slot for slot in slots(schedule, schedule.fired_to, plan.fired_to) if slot not in fired]


def timetable(schedule: Schedule) -> Timetable:
    """Refused if the expression or the time zone is invalid."""
    return _timetable(schedule.cron, schedule.zone)


@dataclass(frozen=True, slots=True)
class Timetable:
    cron: str
    """Accepts five or six fields."""
    zone: tzinfo
    is_time_of_day: bool

    def forwards(self, after: float) -> Iterator[float]:
        """The slots after that moment."""
        if after < LAST_MOMENT:
            # When the clocks are set back within a day, the repeated times begin earlier on the wall clock.
            shown = floor(after) + min(self._offset(after), self._offset(after + _DAY))
            for slot in self._in_order(CronSim(self.cron, _wall(shown)), 1):
                if slot > after:
                    yield slot

    def backwards(self, until: float) -> Iterator[float]:
        """The slots up to that moment, newest first."""
        if 0.0 <= until < LAST_MOMENT:
            shown = floor(until) + max(self._offset(until), self._offset(until - _DAY))
            for slot in self._in_order(CronSim(self.cron, _wall(shown + 1), reverse=True), -1):
                if slot <= until:
                    yield slot

    def _in_order(self, walls: Iterator[datetime], sign: int) -> Iterator[float]:
        """The moments at which a wall clock shows these times. When an hour comes twice, its times are met once in the
        input, and those of the other pass wait for their turn."""
        waiting: deque[float] = deque()
        last: float | None = None
        for wall in walls:
            here, *there = self._moments(wall)[::sign] or (None,)
            if here is None:
                continue
            while waiting and sign * waiting[0] < sign * here:
                yield waiting.popleft()
            if here != last:
                yield here
            last = here
            waiting.extend(there)
        yield from waiting

    def _moments(self, wall: datetime) -> list[float]:
        first = wall.replace(tzinfo=self.zone, fold=0).timestamp()
        second = wall.replace(tzinfo=self.zone, fold=1).timestamp()
        if first == second:
            return [first]
        if first < second:
            return [first] if self.is_time_of_day else [first, second]
        return [self._change(second, first)] if self.is_time_of_day else []

    def _change(self, before: float, after: float) -> float:
        """The first second at which the UTC offset is the one in force at `after`."""
        low, high = floor(before), floor(after)
        offset = self._offset(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._offset(middle) == offset else (middle, high)
        return float(high)

    def _offset(self, moment: float) -> float:
        return (datetime.fromtimestamp(moment, self.zone).utcoffset() or timedelta()).total_seconds()


def _wall(shown: float) -> datetime:
    return _EPOCH + timedelta(seconds=shown)


@lru_cache(maxsize=1000)
def _timetable(cron: str, zone: str) -> Timetable:
    said = " ".join(cron.split())
    fields = ALIASES.get(said.lower(), said)
    try:
        if len(fields) > LONGEST_CRON:
            raise CronSimError(f"it has {len(fields)} characters")
        CronSim(fields, _EPOCH)
    except CronSimError as error:
        raise Refused(f"`{said[:LONGEST_CRON]}` is not a cron expression: {_words(error)}", _hint(said)) from None
    minute, hour = fields.split()[-5:-3]
    return Timetable(fields, _zone(zone), not minute.startswith("*") and not hour.startswith("*"))


def _words(error: CronSimError) -> str:
    words = str(error)
    return words[:1].lower() + words[1:]


def _hint(said: str) -> str:
    if said.startswith("@"):
        return f"known are {', '.join(f'`{name}`' for name in ALIASES)}"
    return "write `MINUTE HOUR DAY MONTH WEEKDAY`, as in `30 2 * * MON-FRI`, with seconds in front if they are wanted"


def _zone(name: str) -> tzinfo:
    if name == "UTC":  # UTC needs no time zone data, and small machines have none.
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        known = sorted(available_timezones())
        if not known:
            raise Refused(
                f"the time zone `{name[:100]}` is not known here: this machine has no data about time zones",
                "`pip install tzdata`, or install the system's package of that name; `UTC` works without",
            ) from None
        meant = closest(name, known)
        hint = (
            f"did you mean `{meant}`?" if meant else "write a name such as `UTC`, `Europe/Zurich`, `America/New_York`"
        )
        raise Refused(f"there is no time zone `{name[:100]}`", hint) from None


def iso(slot: float) -> str:
    """A slot as it is written: `2026-03-29T01:00:00Z`."""
    return datetime.fromtimestamp(slot, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str, zone: str, *, is_end: bool = False) -> float:
    """A date or time as people write it: `2026-03-29`, `2026-03-29T06:00`, `2026-03-29T06:00:00+02:00`. Without an offset it
    is in `zone`. A date means its first moment, or its last if it is the end of a period."""
    try:
        found = datetime.fromisoformat(text.strip())
        if is_end and len(text.strip()) <= len("2026-03-29"):
            found = found.replace(hour=23, minute=59, second=59)
        return max((found if found.tzinfo is not None else found.replace(tzinfo=_zone(zone))).timestamp(), 0.0)
    except (ValueError, OverflowError):
        raise Refused(
            f"`{text[:100]}` is not a date or a time",
            "write `2026-03-29`, or `2026-03-29T06:00`, with `Z` or `+02:00` behind",
        ) from None
