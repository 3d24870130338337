"""Logs of every release fold for ever: what was recorded then is read now, to the same end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.kernel.evolve import Execution, evolve
from penstock.ports.log import Entry
from penstock.ports.wire import to_fact

HERE = Path(__file__).parent
HISTORIES = sorted(path.relative_to(HERE).as_posix() for path in HERE.glob("*/*.ndjson"))

ENDS = {
    "branches": ("completed", {"all": ["a", "b", "c"]}, 30),
    "mended": ("completed", {"last": 2}, {"total": 3, "done": 3, "failed": 0}),
}


def test_there_is_a_history_for_this_release() -> None:
    from penstock import __version__

    assert [name for name in HISTORIES if name.startswith(f"{__version__}/")]


@pytest.mark.parametrize("history", HISTORIES)
def test_a_recorded_history_folds_to_the_end_it_had(history: str) -> None:
    tree = Execution()
    for line in (HERE / history).read_text(encoding="utf-8").splitlines():
        *fields, payload = json.loads(line)
        entry = Entry(*fields, payload.encode())
        evolve(tree, to_fact(entry, None), entry.ts)
    status, ctx, result = ENDS[Path(history).stem]
    assert (tree.root.status, tree.root.ctx.values) == (status, ctx)
    found = tree.root.result
    assert ({key: found[key] for key in result} if isinstance(result, dict) else found) == result
    assert not tree.root.runs
    assert not tree.root.tokens
