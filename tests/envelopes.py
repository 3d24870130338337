"""The events of a run as readers of its log get them, checked for what holds in every run (P9.2, D22, D63)."""

from __future__ import annotations

from collections import Counter

from penstock.kernel.values import JsonMap
from penstock.ports.log import EventLog
from penstock.ports.wire import envelope

ENVELOPE = {
    "event_id": str,
    "event_type": str,
    "ts": str,
    "execution_id": str,
    "seq": int,
    "source": str,
    "worker_id": (str, type(None)),
    "step": (str, type(None)),
    "step_run_id": (str, type(None)),
    "task_run_id": (str, type(None)),
    "trace_id": (str, type(None)),
    "parent_id": str,
    "cause": (str, type(None)),
    "clock": list,
    "payload": dict,
}


def assert_whole(event: JsonMap) -> None:
    """P9.2"""
    for name, kind in ENVELOPE.items():
        assert isinstance(event[name], kind), (name, event)


def assert_consistent(events: list[JsonMap]) -> None:
    """D22, D63: ids and clocks are their events' own, and what caused an event is there."""
    ids = Counter(str(event["event_id"]) for event in events)
    clocks = Counter(repr(event["clock"]) for event in events)
    assert max(ids.values(), default=1) == 1, [name for name, count in ids.items() if count > 1]
    assert max(clocks.values(), default=1) == 1, [
        (event["clock"], event["event_type"], event["scope"]) for event in events if clocks[repr(event["clock"])] > 1
    ]
    unknown = [event for event in events if event["cause"] is not None and event["cause"] not in ids]
    assert not unknown, [(event["event_id"], event["event_type"], event["cause"]) for event in unknown]


def checked_events(log: EventLog, execution_id: str) -> list[JsonMap]:
    """Every envelope of a run, once it is seen that they are whole and agree with each other."""
    header = log.header(execution_id)
    assert header is not None
    events = [envelope(entry, header) for entry in log.read(execution_id)]
    for event in events:
        assert_whole(event)
    assert_consistent(events)
    return events
