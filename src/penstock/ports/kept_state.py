"""What documents keep between runs, as the log stores it beside the executions.

Law: it changes with the end of a run, in the same commit. A run that began from the value that is still stored replaces it.
If another run has changed it in the meantime, the higher of two watermarks stays; other stored values stay as they are, and
the value that was not taken is remembered beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from penstock.kernel.kept import later, part
from penstock.kernel.values import Json, frozen

Kind = Literal["value", "watermark"]
KINDS: dict[str, Kind] = {"values": "value", "watermarks": "watermark"}

_VERSION = re.compile(r"@\d+(?=/|$)")


@frozen
class Kept:
    """`run`: the run that set it; None when a person did. `lost_run` ended with `lost_value`, which was not taken."""

    document: str
    kind: Kind
    key: str
    value: Json
    run: str | None
    changed_at: float
    lost_run: str | None = None
    lost_value: Json = None


@frozen
class Change:
    document: str
    kind: Kind
    key: str
    before: Json
    after: Json


def changes_of(state: Json) -> Iterator[Change]:
    """What the end of an execution asks to be kept."""
    if not isinstance(state, dict):
        return
    for name, kind in KINDS.items():
        for key, pair in part(state, name).items():
            assert isinstance(pair, list)
            yield Change(str(state["document"]), kind, key, pair[0], pair[1])


def settled(there: Kept | None, change: Change, run: str, at: float) -> Kept:
    """What is kept once `run` has ended with `change`."""
    value = None if there is None else there.value
    taken = Kept(change.document, change.kind, change.key, change.after, run, at)
    if value == change.before or there is None:
        return taken
    if value == change.after:
        return there
    if change.kind == "watermark":
        return taken if later(value, change.after) == change.after else there
    return Kept(
        there.document,
        there.kind,
        there.key,
        value=there.value,
        run=there.run,
        changed_at=there.changed_at,
        lost_run=run,
        lost_value=change.after,
    )


def document_key(file: str) -> str:
    """The identity of a document: its file, or its path in the catalog, whatever the version."""
    return _VERSION.sub("", file) if file.startswith("catalog:") else file
