"""The values of a run at a moment: variables, inputs, results and outcomes, each as much of it as a page can show.

Law: values are as the log has them, so that what was hidden there stays hidden. A large value is cut: a list or mapping to some
of its entries, where an entry that is itself large becomes `{"$more": {"kind", "total"}}`; a path into the value gets that part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.kernel.errors import PenstockError, Refused
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import LazyResult, Load, decode, encode, materialised, thawed
from penstock.views.contexts import globals_of
from penstock.views.folded import entries_between, entry_at
from penstock.views.model import Execution, Group, Run
from penstock.views.run_view import Readable

WHOLE_BYTES = 16 * 1024
ENTRY_BYTES = 2 * 1024
TEXT_CHARACTERS = 8_000
LARGEST = 64 * 1024 * 1024
"""Of a stored result that is read for this."""
MOST_RUNS = 100
MOST_ATTEMPTS = 10
MOST_READ = 200_000
MORE = "$more"


@dataclass(frozen=True, slots=True)
class Value:
    id: str
    title: str
    get: Callable[[], Any]
    """Raises PenstockError when the value is no longer there."""


@dataclass(frozen=True, slots=True)
class Values:
    node: str | None
    run: str | None
    runs: list[str]
    values: list[Value]


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a value is asked for. `path` is a JSON pointer."""

    path: str = ""
    offset: int = 0
    limit: int = 100


# ---- which values there are


@dataclass(frozen=True, slots=True)
class Source:
    """The log that a view was folded from, up to entry `seq`."""

    log: Readable
    execution_id: str
    seq: int
    load: Load

    def payload(self, seq: int | None) -> Any:
        entry = entry_at(self.log, self.execution_id, seq) if seq and seq <= self.seq else None
        return decode(entry.payload) if entry is not None else {}

    def between(self, after: int, upto: int | None) -> Iterator[Entry]:
        last = min(self.seq, after + MOST_READ, self.seq if upto is None else upto)
        return entries_between(self.log, self.execution_id, after, last)


def values_of(execution: Execution, net: Net | None, node: str | None, source: Source) -> Values:
    """Of a node, one of its runs (`fetch@2`) or an iteration; without one, of the execution alone."""
    own = _of_execution(execution)
    if node is None:
        return Values(None, None, [], own)
    asked = node.removeprefix(execution.scope)
    if execution.kind == "job":
        return _of_component(execution, net, asked, source, own)
    return _of_step(execution, net, asked, source, own)


def _of_execution(execution: Execution) -> list[Value]:
    found = [Value("workload", "inputs", lambda: execution.workload)]
    if execution.kind == "job":
        found.append(Value("globals", "globals", lambda: globals_of(execution)))
    else:
        found.append(Value("ctx", "ctx", lambda: execution.ctx.values))
        found.append(Value("results", "results of steps", lambda: execution.results))
    if execution.status == "completed" and execution.kind == "playbook":
        found.append(Value("outcome", "result of the execution", lambda: execution.result))
    if execution.error is not None:
        found.append(Value("execution_error", "error of the execution", lambda: execution.error))
    return found


def _of_step(execution: Execution, net: Net | None, node: str, source: Source, own: list[Value]) -> Values:
    bare, _, index = node.partition("[")
    runs = execution.of_node(bare.partition("@")[0])
    run = execution.runs.get(bare) or (max(runs, key=lambda one: one.created_seq) if runs and "@" not in bare else None)
    step = bare.partition("@")[0]
    if run is None:
        _check_known(net, step, node)
        return Values(step, None, [one.id for one in runs[::-1][:MOST_RUNS]], own)
    known = run
    ids = [one.id for one in sorted(runs, key=lambda one: -one.created_seq)[:MOST_RUNS]]
    if index:
        scope = f"{run.id}[{index}"
        return Values(run.node, scope, ids, [*_of_iteration(known, scope, source), *own])
    found = [Value("args", "inputs of the step run", lambda: source.payload(known.scheduled_seq).get("args"))]
    for number, one in enumerate(known.attempts[-MOST_ATTEMPTS:]):
        title = f"{one.task}, attempt {one.number}"
        found.append(_outcome(f"attempt:{number}", title, one.end_seq, source))
    if run.end_seq is not None:
        found += [
            Value("result", "result", lambda: source.payload(known.end_seq).get("result")),
            Value("writes", "what it wrote to ctx", lambda: source.payload(known.end_seq).get("writes") or None),
        ]
    if run.error is not None:
        found.append(Value("error", "error", lambda: known.error))
    return Values(run.node, run.id, ids, [*found, *own])


def _outcome(id: str, title: str, seq: int, source: Source) -> Value:
    return Value(id, title, lambda: source.payload(seq).get("outcome"))


def _of_iteration(run: Run, scope: str, source: Source) -> list[Value]:
    item: Any = None
    found: list[Value] = []
    for entry in source.between(run.created_seq, run.end_seq):
        if entry.scope != scope:
            continue
        if entry.type == "loop.iteration.started":
            data: Any = decode(entry.payload)
            item = data.get("item")
        elif entry.type == "task.done":
            data = decode(entry.payload)
            title = f"{data['task']}, attempt {data['attempt']}"
            found.append(_outcome(f"attempt:{len(found)}", title, entry.seq, source))
        elif entry.type.startswith("loop.iteration."):
            break
    return [Value("item", "element", lambda: item), *found]


def _of_component(execution: Execution, net: Net | None, node: str, source: Source, own: list[Value]) -> Values:
    group = execution.groups.get(node)
    if group is not None:
        return Values(node, node, [], [*_of_group(group), *own])
    runs = [one for one in execution.runs.values() if one.node == node]
    run = execution.runs.get(node) or max(runs, key=lambda one: one.created_seq, default=None)
    ids = [one.id for one in sorted(runs, key=lambda one: -one.created_seq)[:MOST_RUNS]]
    if run is None:
        _check_known(net, node, node)
        return Values(node, None, ids, own)
    known = run
    found: list[Value] = []
    around = run.name.rfind("].")
    iteration = execution.groups.get(run.name[: around + 1]) if around >= 0 else None
    if iteration is not None:
        found.append(_item(iteration))
    if run.end_seq is not None and run.started_at is not None:
        found += [
            Value("after", "after-variables", lambda: decode(known.after.encode())),
            Value("result", "result", lambda: source.payload(known.end_seq).get("result")),
        ]
    if run.rows_in or run.rows_out:
        found.append(Value("rows", "rows", lambda: {"in": dict(known.rows_in), "out": dict(known.rows_out)}))
    if run.error is not None:
        found.append(Value("error", "error", lambda: known.error))
    return Values(run.node, run.id, ids, [*found, *own])


def _of_group(group: Group) -> list[Value]:
    """Of an iteration or a sub-job."""
    found = [_item(group)] if group.iterator is not None else []
    return found if group.error is None else [*found, Value("error", "error", lambda: group.error)]


def _item(group: Group) -> Value:
    return Value("item", f"element of {group.scope}", lambda: group.item)


def _check_known(net: Net | None, node: str, asked: str) -> None:
    if net is not None and node not in net.nodes:
        raise Refused(f"there is no step or component `{asked}`")


# ---- how much of a value is shown


def shown_values(found: Values, load: Load, only: str | None, part: Part) -> JsonMap:
    wanted = [one for one in found.values if only in (None, one.id)]
    if not wanted and only is not None:
        raise Refused(f"there is no value `{only}` at this moment")
    shown: list[Any] = []
    for one in wanted:
        value = _shown(one, load, part if only is not None else Part(limit=part.limit))
        if value["value"] is not None or only is not None:
            shown.append(value)
    return {"node": found.node, "run": found.run, "runs": [*found.runs], "values": shown}


def _shown(one: Value, load: Load, part: Part) -> JsonMap:
    try:
        value = _at(_loaded(one.get(), load), part.path, load)
        value = materialised(value, LARGEST)
    except PenstockError as error:
        return {"id": one.id, "title": one.title, "value": error.message, "size": 0, "is_whole": False, "total": None}
    size = len(encode(value))
    kept, total = cut(value, part, size)
    is_whole = size <= WHOLE_BYTES and part.offset == 0
    return {"id": one.id, "title": one.title, "value": kept, "size": size, "is_whole": is_whole, "total": total}


def _loaded(value: Any, load: Load) -> Any:
    return thawed(value, load)


def _at(value: Any, path: str, load: Load) -> Any:
    """What a JSON pointer leads to."""
    for step in path.split("/")[1:] if path else ():
        key = step.replace("~1", "/").replace("~0", "~")
        value = _loaded(value.loaded(), load) if isinstance(value, LazyResult) else value
        try:
            value = value[key] if isinstance(value, Mapping) else value[int(key)]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise Refused(f"there is nothing at `{path}`") from error
    return value


def cut(value: Any, part: Part, size: int) -> tuple[Any, int | None]:
    """The part of a value that is shown, and how many entries it has in all."""
    if isinstance(value, str):
        if size <= WHOLE_BYTES and part.offset == 0:
            return value, len(value)
        return value[part.offset : part.offset + TEXT_CHARACTERS], len(value)
    if isinstance(value, dict):
        if size <= WHOLE_BYTES and part.offset == 0:
            return value, len(value)
        keys = list(value)[part.offset : part.offset + part.limit]
        return {key: _entry(value[key]) for key in keys}, len(value)
    if isinstance(value, list):
        if size <= WHOLE_BYTES and part.offset == 0:
            return value, len(value)
        return [_entry(one) for one in value[part.offset : part.offset + part.limit]], len(value)
    return value, None


def _entry(value: Any) -> Any:
    if isinstance(value, (str, dict, list)) and len(encode(value)) > ENTRY_BYTES:
        kind = {str: "text", dict: "mapping", list: "list"}[type(value)]
        return {MORE: {"kind": kind, "total": len(value)}}
    return value
