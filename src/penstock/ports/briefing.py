"""Briefings: everything that a worker on another machine needs to run a scope, and how it reports what happened there.

A briefing holds no secret: the worker resolves the keychain where it runs. Large values are in the result store, and the
briefing refers to them. A run that was begun elsewhere is described up to where it got, so that finished work is not
repeated.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, fields
from typing import Any, cast

import msgspec

from penstock.kernel.patches import Gathered, SharedContext, Staged
from penstock.kernel.places import Place
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import (
    RUNNING,
    Bitmap,
    Claimed,
    Execution,
    Loop,
    Pipeline,
    State,
    StepRun,
    Subjob,
    root_subjob,
)
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef, is_ref
from penstock.ports.leases import FanRange, Lease, ScopeContext
from penstock.ports.log import Entry
from penstock.ports.loop_results import LoopResults, keep_result
from penstock.ports.results import decode, encode, loader, thawed
from penstock.ports.wire import to_clock

LARGEST = 128 * 1024
VERSION = 1


@dataclass(frozen=True, slots=True)
class Briefing:
    """A briefing as a worker reads it; `scope` and `part` are copies of the state that it may change."""

    kind: str
    execution_id: str
    document: Json
    scope: Execution
    iter_parent: Any
    depth: int
    part: StepRun | FanRange | None = None
    """None for a job: its part is found once its history has been folded."""
    region: str = ""
    """For a sub-job: its place."""
    history: ResultRef | None = None
    iterator: str = ""
    elements: ElementRange | None = None
    """For some iterations of an iterator in that sub-job: the iterator and the elements."""
    outputs: frozenset[tuple[str, str]] = frozenset()
    sample: int | None = None

    @property
    def run(self) -> StepRun:
        run = self.part.run if isinstance(self.part, FanRange) else self.part
        assert isinstance(run, StepRun)
        return run


def brief(lease: Lease, document: Json, blobs: BlobStore, history: ResultRef | None = None) -> bytes:
    """`history`: the entries of a job so far."""
    context, part = lease.context, lease.part
    data: JsonMap = {
        "v": VERSION,
        "execution_id": context.execution_id,
        "document": document,
        "workload": context.workload,
        "iter_parent": context.iter_parent,
        "depth": context.depth,
    }
    if history is not None:
        data |= _of_job(lease, history)
    else:
        data |= _of_step(context, lease.run)
        data |= _of_range(part) if isinstance(part, FanRange) else _of_run(lease.run, blobs)
    return _packed(data, blobs)


def _of_run(run: StepRun, blobs: BlobStore) -> JsonMap:
    data: JsonMap = {"kind": "run"}
    if run.pipeline is not None and (run.pipeline.counter > run.counter or run.pipeline.task_runs or run.continued):
        data["pipeline"] = _pipeline(run.pipeline, run.ctx)
    if isinstance(run.fan, Loop):
        data["loop"] = _loop(run.fan, run.ctx, blobs)
    return data


def _of_range(part: FanRange) -> JsonMap:
    elements = part.elements
    return {
        "kind": "range",
        "shards": {one.name: getattr(elements, one.name) for one in fields(elements)},
        "collection": _narrowed(part.collection, elements),
        "opened_at": part.opened_at,
        "lanes": part.lanes,
        "emits": part.emits,
    }


def _of_job(lease: Lease, history: ResultRef) -> JsonMap:
    """The briefing of a sub-job, or of some iterations of an iterator in it."""
    context, part = lease.context, lease.part
    of = part if isinstance(part, FanRange) else None
    return {
        "kind": "subjob",
        "scope": {"place": _place(context.scope.place)},
        "region": lease.key if of is None else root_subjob(of.run).place.id,
        "history": history.as_json(),
        "outputs": [list(one) for one in sorted(context.outputs)],
        "sample": context.sample,
        "stretch": None if of is None else [of.run.place.id, of.elements.lo, of.elements.hi],
    }


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def pack_entries(entries: list[Entry]) -> bytes:
    return _pack([list(entry) for entry in entries])


def unpack_entries(data: bytes) -> list[Entry]:
    return [Entry(*values) for values in _unpack(data)]


def _narrowed(collection: Json, elements: ElementRange) -> Json:
    """Of elements given by value, only those of the range are sent."""
    if isinstance(collection, dict) and isinstance(collection.get("items"), list) and elements.hi is not None:
        items = cast("list[Json]", collection["items"])
        return {"kind": "list", "items": items[elements.lo : elements.hi], "first": elements.lo}
    return collection


SCOPE = ("name", "digest", "started_at", "resumed_at", "trace_id", "results")
RUN = ("step", "path", "visit", "args", "ctx", "scheduled_at", "counter", "started_at")


def _of_step(context: ScopeContext, run: StepRun) -> JsonMap:
    scope = context.scope
    return {
        "scope": {"place": _place(scope.place), **{name: getattr(scope, name) for name in SCOPE}},
        "run": {"place": _place(run.place), "loop_id": run.loop_name, **{name: getattr(run, name) for name in RUN}},
    }


def _packed(data: JsonMap, blobs: BlobStore) -> bytes:
    whole = encode(data)
    if len(whole) <= LARGEST:
        return whole
    return encode(blobs.put([whole], schema_hint={"type": "object"}).as_json())


def unpacked(payload: bytes, blobs: BlobStore) -> Briefing:
    data: Any = decode(payload)
    if is_ref(data):
        data = decode(blobs.get(ResultRef.from_json(data)))
    history = data.pop("history", None)  # Read by the worker that folds the history.
    data = thawed(data, loader(blobs))
    common = (str(data["kind"]), str(data["execution_id"]), data["document"])
    around = {"iter_parent": data.get("iter_parent"), "depth": data["depth"]}
    if history is not None:
        held = data.get("stretch")
        return Briefing(
            *common,
            Execution(place=_read_place(data["scope"]["place"]), workload=data["workload"]),
            **around,
            region=str(data["region"]),
            history=ResultRef.from_json(history),
            iterator=str(held[0]) if held else "",
            elements=ElementRange(0, held[1], held[2]) if held else None,
            outputs=frozenset((str(name), str(port)) for name, port in data["outputs"]),
            sample=data["sample"],
        )
    scope = _scope(data)
    run = _run(data["run"], scope)
    if data["kind"] == "range":
        elements, how = ElementRange(**data["shards"]), {"lanes": data["lanes"], "emits": data["emits"]}
        return Briefing(
            *common, scope, **around, part=FanRange(run, elements, data["opened_at"], data["collection"], **how)
        )
    if "loop" in data:
        run.fan = _read_loop(data["loop"], run.ctx, blobs)
    elif "pipeline" in data:
        run.pipeline = _read_pipeline(data["pipeline"], run.ctx)
    else:
        run.pipeline = Pipeline(run.place, run.ctx, counter=run.counter)
    return Briefing(*common, scope, **around, part=run)


def _scope(data: Any) -> Execution:
    values = {name: data["scope"][name] for name in SCOPE if name in data["scope"]}
    place, ctx = _read_place(data["scope"]["place"]), SharedContext(data["run"]["ctx"])
    return Execution(place=place, workload=data["workload"], status="running", ctx=ctx, **values)


def _run(data: Any, scope: Execution) -> StepRun:
    values = {name: data[name] for name in RUN}
    values["path"], place = tuple(values["path"]), _read_place(data["place"])
    values["loop_name"] = data["loop_id"] or place.id
    return StepRun(place, Subjob(scope.name, 0, scope.place, scope, RUNNING), **values)


def state_of(briefing: Briefing) -> State:
    """This worker's part of the execution: one scope with one run."""
    scope, run = briefing.scope, briefing.run
    state = State(
        root=scope,
        executions={scope.id: scope},
        scopes={scope.id: scope},
        runs={run.place.id: run},
        on_iteration_closed=keep_result,
    )
    scope.runs[run.place.id] = run.subjob.members[run.place.id] = run
    scope.subjobs[scope.id] = run.subjob
    for pipeline in run.fan.open.values() if run.fan is not None else ():
        pipeline.opener = run
        state.pipelines[pipeline.place.id] = pipeline
    if run.pipeline is not None:
        state.pipelines[run.place.id] = run.pipeline
    return state


# ---- states, as far as a worker needs them


def _place(place: Place) -> Json:
    return [place.id, cast(Json, list(place.clock))]


def _read_place(data: Json) -> Place:
    name, clock = cast("tuple[str, Json]", data)
    return Place(name, to_clock(clock))


PLAIN = (
    "iter",
    "counter",
    "cursor",
    "attempt",
    "prev",
    "results",
    "task_runs",
    "ordinals",
    "under_way",
    "effect",
    "due",
)


def _pipeline(pipeline: Pipeline, ctx: JsonMap) -> JsonMap:
    data: JsonMap = {name: getattr(pipeline, name) for name in (*PLAIN, "ended", "error")}
    data["place"] = _place(pipeline.place)
    data["staged"] = pipeline.staged.as_writes()
    if pipeline.ctx is not ctx:
        data["ctx"] = pipeline.ctx
    return data


def _read_pipeline(data: JsonMap, ctx: JsonMap) -> Pipeline:
    staged = Staged()
    staged.add(cast(JsonMap, data["staged"]))
    values: Any = {name: data[name] for name in (*PLAIN, "ended", "error")}
    return Pipeline(_read_place(data["place"]), cast(JsonMap, data.get("ctx", ctx)), staged=staged, **values)


COUNTED = (
    "opened_at",
    "total",
    "claims",
    "parallel",
    "isolated",
    "next_index",
    "waiting",
    "ok",
    "failed",
    "first_error",
    "first_failed",
    "writers",
    "reducers",
    "shared",
    "collection",
)


def _loop(loop: Loop, ctx: JsonMap, blobs: BlobStore) -> JsonMap:
    data: JsonMap = {name: getattr(loop, name) for name in COUNTED}
    data["settled"] = [b64encode(bytes(loop.settled.bits)).decode(), loop.settled.low]
    for name in ("open", "failed_open"):
        data[name] = {str(index): _pipeline(one, ctx) for index, one in getattr(loop, name).items()}
    data["claimed"] = _claims(loop.claimed)
    data["staged"] = loop.staged.as_writes()
    data["indexes"] = cast(Json, loop.staged.indexes)
    if loop.ctx is not ctx:
        data["ctx"] = loop.ctx
    if isinstance(loop.results, LoopResults):
        data["kept"] = blobs.put(loop.results.dumped(), "application/octet-stream").as_json()
    return data


def _claims(claimed: dict[int, Claimed]) -> Json:
    """Each claim with the indexes of its elements that are still wanted."""
    claims: dict[int, tuple[Claimed, list[Json]]] = {}
    for index, one in claimed.items():
        claims.setdefault(id(one), (one, []))[1].append(index)
    return [[one.lo, one.items, one.keys, indexes] for one, indexes in claims.values()]


def _read_claims(data: Json) -> dict[int, Claimed]:
    claimed: dict[int, Claimed] = {}
    for lo, items, keys, indexes in cast("list[tuple[int, Json, Json, list[int]]]", data):
        claimed.update(dict.fromkeys(indexes, Claimed(lo, items, keys)))
    return claimed


def _read_loop(data: JsonMap, ctx: JsonMap, blobs: BlobStore) -> Loop:
    values: Any = {name: data[name] for name in COUNTED}
    bits, low = cast("tuple[str, int]", data["settled"])
    loop = Loop(ctx=cast(JsonMap, data.get("ctx", ctx)), **values)
    loop.claimed = _read_claims(data["claimed"])
    loop.settled = Bitmap(bytearray(b64decode(bits)), low)
    for name in ("open", "failed_open"):
        held = cast(JsonMap, data[name])
        setattr(loop, name, {int(key): _read_pipeline(cast(JsonMap, one), ctx) for key, one in held.items()})
    staged = Gathered(indexes=cast(Any, data["indexes"]))
    staged.add(cast(JsonMap, data["staged"]))
    loop.staged = staged
    kept: Any = data.get("kept")
    if kept is not None:
        loop.results = LoopResults.restored(blobs.get(kept.ref))
    return loop
