"""Headers and entries for tests of the log: small, distinct, and easy to recognise."""

from __future__ import annotations

from functools import cache

from penstock.ports.log import Entry, Header


def header(execution_id: str = "run-1", **fields: object) -> Header:
    values: dict[str, object] = {
        "kind": "playbook",
        "name": "orders",
        "path": "orders.yaml",
        "digest": "d1",
        "status": "running",
        "started_at": 1000.0,
    }
    return Header(execution_id, **{**values, **fields})  # type: ignore[arg-type]


def entry(seq: int, payload: bytes = b"{}", **fields: object) -> Entry:
    values = Entry(
        seq=seq,
        ts=1000.0 + seq,
        type="task.done",
        scope=f"s1/i{seq}",
        task=f"load#{seq}",
        clock=f"[1,{seq}]",
        cause=str(seq - 1) if seq > 1 else None,
        source="worker",
        worker="w1",
        payload=payload,
    )
    return values._replace(**fields)  # type: ignore[arg-type]


_plain = cache(entry)


def entries(first: int, last: int) -> list[Entry]:
    return [_plain(seq) for seq in range(first, last + 1)]
