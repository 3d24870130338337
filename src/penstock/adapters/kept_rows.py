"""What documents keep between runs, between values and rows: the columns are the same in every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.ports.kept_state import Kept
from penstock.ports.results import decode, encode


def kept_values(kept: Kept) -> dict[str, object]:
    return {
        "document": kept.document,
        "kind": kept.kind,
        "key": kept.key,
        "value": encode(kept.value).decode(),
        "run": kept.run,
        "changed_at": float(kept.changed_at),
        "lost_run": kept.lost_run,
        "lost_value": encode(kept.lost_value).decode(),
    }


def kept_of(row: Sequence[Any]) -> Kept:
    document, kind, key, value, run, changed_at, lost_run, lost_value = row
    return Kept(document, kind, key, decode(value.encode()), run, changed_at, lost_run, decode(lost_value.encode()))
