"""Briefings: all that a worker on another machine needs to take up a scope, and how it says what happened there.

A briefing holds no secret: the worker resolves the keychain where it runs. What is large lies in the result store, and the
briefing has a reference. A run that was begun elsewhere is described as far as it came, so that what is done is not done again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, fields
from typing import Any, cast

import msgspec

from penstock.kernel.patches import Gathered, SharedContext, Staged
from penstock.kernel.places import Place
from penstock.kernel.shards import ElementRange
from penstock.kernel.state import RUNNING, Bitmap, Execution, Loop, Pipeline, State, StepRun, Subjob
from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import BlobStore, ResultRef, is_ref
from penstock.ports.leases import Lease, RangeLease, Setting
from penstock.ports.log import Entry
from penstock.ports.loop_results import LoopResults, keep_result
from penstock.ports.results import Load, decode, encode, loader, thawed
from penstock.ports.wire import to_clock

LARGEST = 128 * 1024
VERSION = 1


@dataclass(frozen=True, slots=True)
class Briefing:
    """A briefing as a worker reads it; `scope` and `run` are states of its own to work on."""

    kind: str
    execution_id: str
    document: Json
    scope: Execution
    iter_parent: Any
    depth: int
    the_run: StepRun | None = None
    """Of a step run, or of the loop that a range belongs to."""
    shards: ElementRange | None = None
    collection: Json = None
    opened_at: int = 0
    lanes: int = 1
    emits: bool = False
    region: str = ""
    """Of a sub-job: its place."""
    history: ResultRef | None = None
    iterator: str = ""
    elements: ElementRange | None = None
    """Of some iterations of an iterator in that sub-job: of which, and which."""
    outputs: frozenset[tuple[str, str]] = frozenset()
    sample: int | None = None

    @property
    def run(self) -> StepRun:
        assert self.the_run is not None
        return self.the_run


def brief_run(lease: Lease, document: Json, blobs: BlobStore) -> bytes:
    data = _common("run", lease.setting, lease.run, document)
    run = lease.run
    if run.pipeline is not None and (run.pipeline.counter > run.counter or run.pipeline.task_runs or run.continued):
        data["pipeline"] = _pipeline(run.pipeline, run.ctx)
    if isinstance(run.fan, Loop):
        data["loop"] = _loop(run.fan, run.ctx, blobs)
    return _packed(data, blobs)


def brief_range(lease: RangeLease, document: Json, blobs: BlobStore) -> bytes:
    data = _common("range", lease.setting, lease.run, document)
    shards = lease.shards
    data["shards"] = {one.name: getattr(shards, one.name) for one in fields(shards)}
    data["collection"] = _narrowed(lease)
    data["opened_at"] = lease.opened_at
    data["lanes"] = lease.lanes
    data["emits"] = lease.emits
    return _packed(data, blobs)


def brief_subjob(
    lease: Lease,
    document: Json,
    history: ResultRef,
    blobs: BlobStore,
    iterator: str = "",
    elements: ElementRange | None = None,
) -> bytes:
    """`history`: what the log has of the job so far. `elements`: of the sub-job only these iterations of an iterator."""
    setting = lease.setting
    scope = setting.scope
    data: JsonMap = {
        "v": VERSION,
        "kind": "subjob",
        "execution_id": setting.execution_id,
        "document": document,
        "scope": {"place": _place(scope.place)},
        "workload": setting.workload,
        "iter_parent": setting.iter_parent,
        "depth": setting.depth,
        "region": lease.key,
        "history": history.as_json(),
        "outputs": [list(one) for one in sorted(setting.outputs)],
        "sample": setting.sample,
        "stretch": None if elements is None else [iterator, elements.lo, elements.hi],
    }
    return _packed(data, blobs)


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def pack_entries(entries: list[Entry]) -> bytes:
    return _pack([list(entry) for entry in entries])


def unpack_entries(data: bytes) -> list[Entry]:
    return [Entry(*values) for values in _unpack(data)]


def _narrowed(lease: RangeLease) -> Json:
    """Of elements that are at hand only those of the range travel."""
    found, shards = lease.collection, lease.shards
    if isinstance(found, dict) and isinstance(found.get("items"), list) and shards.hi is not None:
        items = cast("list[Json]", found["items"])
        return {"kind": "list", "items": items[shards.lo : shards.hi], "first": shards.lo}
    return found


def _common(kind: str, setting: Setting, run: StepRun, document: Json) -> JsonMap:
    scope = setting.scope
    return {
        "v": VERSION,
        "kind": kind,
        "execution_id": setting.execution_id,
        "document": document,
        "scope": {
            "place": _place(scope.place),
            "name": scope.name,
            "digest": scope.digest,
            "started_at": scope.started_at,
            "resumed_at": scope.resumed_at,
            "trace_id": scope.trace_id,
            "results": scope.results,
        },
        "workload": setting.workload,
        "iter_parent": setting.iter_parent,
        "depth": setting.depth,
        "run": {
            "step": run.step,
            "path": list(run.path),
            "visit": run.visit,
            "place": _place(run.place),
            "args": run.args,
            "ctx": run.ctx,
            "scheduled_at": run.scheduled_at,
            "counter": run.counter,
            "started_at": run.started_at,
            "loop_id": run.loop_name,
        },
    }


def _packed(data: JsonMap, blobs: BlobStore) -> bytes:
    whole = encode(data)
    if len(whole) <= LARGEST:
        return whole
    return encode(blobs.put([whole], schema_hint={"type": "object"}).as_json())


def unpacked(payload: bytes, blobs: BlobStore) -> Briefing:
    load = loader(blobs)
    data = cast(JsonMap, decode(payload))
    if is_ref(data):
        data = cast(JsonMap, decode(blobs.get(ResultRef.from_json(data))))
    if data["kind"] == "subjob":
        return _unpacked_subjob(data, load)
    data = cast(JsonMap, thawed(data, load))
    scope = _scope(data)
    run = _run(cast(JsonMap, data["run"]), scope)
    if "pipeline" in data:
        run.pipeline = _read_pipeline(cast(JsonMap, data["pipeline"]), run.ctx)
    elif data["kind"] == "run" and "loop" not in data:
        run.pipeline = Pipeline(run.place, run.ctx, counter=run.counter)
    if "loop" in data:
        run.fan = _read_loop(cast(JsonMap, data["loop"]), run.ctx, blobs)
        run.pipeline = None
    shards = data.get("shards")
    return Briefing(
        str(data["kind"]),
        str(data["execution_id"]),
        data["document"],
        scope,
        iter_parent=data.get("iter_parent"),
        depth=cast(int, data["depth"]),
        the_run=run,
        shards=ElementRange(**cast(Any, shards)) if shards is not None else None,
        collection=data.get("collection"),
        opened_at=cast(int, data.get("opened_at", 0)),
        lanes=cast(int, data.get("lanes", 1)),
        emits=bool(data.get("emits", False)),
    )


def _unpacked_subjob(data: JsonMap, load: Load) -> Briefing:
    history = ResultRef.from_json(cast(JsonMap, data.pop("history")))
    data = cast(JsonMap, thawed(data, load))
    place = _read_place(cast(JsonMap, data["scope"])["place"])
    held = cast("tuple[str, int, int] | None", data.get("stretch"))
    outputs = frozenset((str(name), str(port)) for name, port in cast("list[list[str]]", data["outputs"]))
    return Briefing(
        "subjob",
        str(data["execution_id"]),
        data["document"],
        Execution(place=place, workload=data["workload"]),
        data.get("iter_parent"),
        cast(int, data["depth"]),
        region=str(data["region"]),
        history=history,
        iterator=str(held[0]) if held else "",
        elements=ElementRange(0, held[1], held[2]) if held else None,
        outputs=outputs,
        sample=cast("int | None", data["sample"]),
    )


def _scope(data: JsonMap) -> Execution:
    seen = cast(JsonMap, data["scope"])
    run = cast(JsonMap, data["run"])
    return Execution(
        place=_read_place(seen["place"]),
        name=str(seen["name"]),
        digest=str(seen["digest"]),
        workload=data["workload"],
        status="running",
        started_at=cast(float, seen["started_at"]),
        resumed_at=cast(float, seen.get("resumed_at", 0.0)),
        ctx=SharedContext(cast(JsonMap, run["ctx"])),
        results=cast(JsonMap, seen["results"]),
        trace_id=cast("str | None", seen["trace_id"]),
    )


def _run(data: JsonMap, scope: Execution) -> StepRun:
    return StepRun(
        _read_place(data["place"]),
        Subjob(scope.name, 0, scope.place, scope, RUNNING),
        counter=cast(int, data["counter"]),
        started_at=cast(float, data["started_at"]),
        step=str(data["step"]),
        path=tuple(cast("list[int]", data["path"])),
        visit=cast(int, data["visit"]),
        args=cast(JsonMap, data["args"]),
        ctx=cast(JsonMap, data["ctx"]),
        scheduled_at=cast(float, data["scheduled_at"]),
        loop_name=str(data["loop_id"] or cast(Any, data["place"])[0]),
    )


def state_of(briefing: Briefing) -> State:
    """The part of the execution that is this worker's: one scope with one run."""
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
    data["staged"] = loop.staged.as_writes()
    data["indexes"] = cast(Json, loop.staged.indexes)
    if loop.ctx is not ctx:
        data["ctx"] = loop.ctx
    if isinstance(loop.results, LoopResults):
        data["kept"] = blobs.put(loop.results.dumped(), "application/octet-stream").as_json()
    return data


def _read_loop(data: JsonMap, ctx: JsonMap, blobs: BlobStore) -> Loop:
    values: Any = {name: data[name] for name in COUNTED}
    bits, low = cast("tuple[str, int]", data["settled"])
    loop = Loop(ctx=cast(JsonMap, data.get("ctx", ctx)), **values)
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
