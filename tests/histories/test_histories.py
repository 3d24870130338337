"""Logs of every release fold for ever: what was recorded then is read now, to the same end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.kernel.evolve import evolve
from penstock.kernel.state import State
from penstock.ports.log import Entry, Header
from penstock.ports.wire import envelope, to_fact

HERE = Path(__file__).parent
HISTORIES = sorted(path.relative_to(HERE).as_posix() for path in HERE.glob("*/*.ndjson"))

ENDS = {
    "branches": ("completed", {"all": ["a", "b", "c"]}, 30),
    "mended": ("completed", {"last": 2}, {"total": 3, "done": 3, "failed": 0}),
    "fanned_out": ("completed", {"k": 0, "c": 40}, {"total": 40, "done": 40, "failed": 0}),
    "joblets": ("completed", {}, None),
}


def test_there_is_a_history_for_this_release() -> None:
    from penstock import __version__

    assert [name for name in HISTORIES if name.startswith(f"{__version__}/")]


def entries(history: str) -> Iterator[Entry]:
    for line in (HERE / history).read_text(encoding="utf-8").splitlines():
        *fields, payload = json.loads(line)
        yield Entry(*fields, payload.encode())


@pytest.mark.parametrize("history", HISTORIES)
def test_events_of_a_recorded_history_have_ids_of_their_own_and_causes_that_are_there(history: str) -> None:
    """D63, also where clocks of the first release were the same: in the ranges of a fan-out."""
    header = Header("run", "playbook", "", "", "", "completed", 0.0)
    events = [envelope(entry, header) for entry in entries(history)]
    ids = [event["event_id"] for event in events]
    assert len(set(map(str, ids))) == len(ids)
    assert all(event["cause"] in ids for event in events if event["cause"] is not None)


@pytest.mark.parametrize("history", HISTORIES)
def test_a_recorded_history_folds_to_the_end_it_had(history: str) -> None:
    tree = State()
    for entry in entries(history):
        evolve(tree, to_fact(entry, None), entry.ts)
    status, ctx, result = ENDS[Path(history).stem]
    assert (tree.root.status, tree.root.ctx.values) == (status, ctx)
    found = tree.root.result
    assert ({key: found[key] for key in result} if isinstance(result, dict) else found) == result
    assert not [run for run in tree.root.runs.values() if run.status == "RUNNING"]
    assert not tree.root.tokens
