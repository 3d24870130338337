"""The ports of a job that gave rows out in a run: how many rows, whether they were kept, whether they are rejects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.kernel.net import Net, On
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.views.folded import entries_between, entry_at
from penstock.views.model import OK, Execution
from penstock.views.run_view import Readable

AT_ONCE = 1_000
REJECT = "reject"
_OF_REJECTS = frozenset({"error_code", "error_message"})


def ports_of(log: Readable, execution_id: str, execution: Execution, net: Net | None) -> list[Any]:
    """In the order of the document."""
    totals = execution.totals()
    known: dict[tuple[str, str], None] = {}
    for name in dict.fromkeys([*(net.nodes if net is not None else ()), *totals]):
        for link in net.links if net is not None else ():
            if link.source == name and link.on is On.DATA and not link.target.startswith(f"{name}.__"):
                known[name, link.port] = None
        if name in totals:
            known.update(dict.fromkeys((name, port) for port in totals[name].rows_out))
    outputs = recorded_outputs(log, execution_id, execution)
    found: list[Any] = []
    for name, port in known:
        rows = totals[name].rows_out.get(port) if name in totals else None
        output = outputs.get(name, {}).get(port, {})
        names = {str(column.get("name")) for column in output.get("schema") or ()}
        found.append(
            {
                "component": name,
                "port": port,
                "rows": None if rows is None else rows[1],
                "is_kept": isinstance(output.get("stored"), dict),
                "is_reject": port == REJECT or names >= _OF_REJECTS,
            }
        )
    return found


def recorded_outputs(log: Readable, execution_id: str, execution: Execution) -> dict[str, Mapping[str, Any]]:
    """Component -> port -> what the log says of the rows that its latest run gave out there."""
    latest: dict[str, int] = {}
    for run in execution.runs.values():
        if run.status == OK and run.outputs and run.end_seq is not None:
            latest[run.node] = max(run.end_seq, latest.get(run.node, 0))
    found: dict[str, Mapping[str, Any]] = {}
    entries = _entries(log, execution_id, sorted(latest.values()))
    for node, seq in latest.items():
        payload: Any = decode(entries[seq].payload) if seq in entries else {}
        found[node] = {port: one for port, one in payload.get("outputs", {}).items() if isinstance(one, dict)}
    return found


def _entries(log: Readable, execution_id: str, seqs: list[int]) -> dict[int, Entry]:
    """In one go if they lie close together: reading one entry costs as much as reading a thousand."""
    if seqs and seqs[-1] - seqs[0] <= AT_ONCE * len(seqs):
        wanted = set(seqs)
        between = entries_between(log, execution_id, seqs[0] - 1, seqs[-1])
        return {entry.seq: entry for entry in between if entry.seq in wanted}
    each = (entry_at(log, execution_id, seq) for seq in seqs)
    return {entry.seq: entry for entry in each if entry is not None}


def ends_of(log: Readable, execution_id: str, execution: Execution, name: str, last: int) -> Iterator[Entry]:
    """The entries that say what came out of a component: of one run, or of all runs of a node. Where runs are no longer kept, all
    entries are looked at."""
    runs = [run for run in execution.runs.values() if name in (run.name, run.node) and run.end_seq]
    if any(run.node in execution.gone for run in runs) or name in execution.gone or not runs:
        yield from log.read(execution_id)
        return
    for run in sorted(runs, key=lambda run: run.end_seq or 0):
        entry = entry_at(log, execution_id, run.end_seq) if (run.end_seq or 0) <= last else None
        if entry is not None:
            yield entry
