"""`loop_mode: fanout` and how a loop is fanned out: what the executor and the step say, and what it comes to.

A step's word goes before the executor's, and what its `loop.spec` says before both, key by key (F1.1). What none of them says
follows from the loop's failure mode, so that the same playbook comes to the same end whichever way its loop runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.dialects.playbook.drafts import ExecutorDraft, FanoutDraft, StepDraft, TaskDraft
from penstock.dialects.playbook.reader import Reading, listed
from penstock.dialects.playbook.word import LOOP_PLACES
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import SourceNode
from penstock.kernel.net import Emit, FailureMode, Fanout
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import Json, JsonMap

PREFIX = "fanout."
_SAME = {"max_concurrent_shards": "max_concurrent"}
_FLAGS = ("fail_fast", "allow_partial", "shared")
_SECONDS = ("queue_ttl_s", "lease_s")
LEAST_S = 0.1
# Tools that run an execution of their own, which only the server may start and only for a step run.
_OPENING = ("playbook", "job")


# ---- reading


def read_fanout(reading: Reading, spec: SourceNode, policy: SourceNode | None) -> FanoutDraft:
    """All that one `spec` says about fan-out, wherever in it that stands."""
    draft = FanoutDraft(reading.choice(spec.get("loop_mode"), "a loop mode", LOOP_PLACES))
    if draft.mode is not None:
        draft.places["loop_mode"] = spec.keys["loop_mode"]
    for key, place, node in _given(reading, spec, policy):
        name = _SAME.get(key, key)
        value = None if node.is_null else _read(reading, key, node)
        if value is None:
            continue
        if draft.said.setdefault(name, value) != value:
            hint = f"the other one is on line {draft.places[name].line}"
            reading.findings.error("P0108", f"`fanout.{name}` is said twice, and differently", place, hint=hint)
        draft.places.setdefault(name, place)
    if draft.said.get("fail_fast") and draft.said.get("allow_partial"):
        message = "`fail_fast` stops at the first failure, and `allow_partial` goes on after it"
        later = max((draft.places[name] for name in ("fail_fast", "allow_partial")), key=lambda one: one.line)
        reading.findings.error("P0608", message, later, hint="keep one of the two")
    _read_pool(reading, spec.get("pool"))
    return draft


def dotted(node: SourceNode) -> list[str]:
    """The keys of a mapping that are written `fanout.x`."""
    return [key for key in node.entries if key.startswith(PREFIX)]


def _given(reading: Reading, spec: SourceNode, policy: SourceNode | None) -> Iterator[tuple[str, Place, SourceNode]]:
    for word in ("reducers", "shared"):
        if word in spec.entries:
            yield word, spec.keys[word], spec.entries[word]
    for around in (spec, policy):
        if around is None:
            continue
        section = reading.section(around, "fanout", "fanout")
        plain = _undotted(around)
        reading.words(plain, "fanout")
        for node in (section, plain):
            for key, value in node.entries.items() if node is not None else ():
                if key in reading.language.scopes["fanout"].words and node is not None:
                    yield key, node.keys[key], value


def _undotted(node: SourceNode) -> SourceNode:
    """`fanout.x: 1, fanout.y: 2` as the mapping `{x: 1, y: 2}`."""
    keys = dotted(node)
    return SourceNode(
        "mapping",
        node.place,
        entries={key.removeprefix(PREFIX): node.entries[key] for key in keys},
        keys={key.removeprefix(PREFIX): node.keys[key] for key in keys},
    )


def _read(reading: Reading, key: str, node: SourceNode) -> Json:
    what = f"`{key}`"
    if key in _FLAGS:
        return reading.flag(node, what, False)
    if key in _SECONDS:
        return reading.number(node, what, LEAST_S)
    if key == "emit":
        emit = reading.enum(node, "a way to tell of elements", Emit)
        return None if emit is None else emit.value
    if key == "reducers":
        return read_reducers(reading, node)
    return reading.whole(node, what, least=0 if key == "max_job_retries" else 1)


def read_reducers(reading: Reading, node: SourceNode) -> Json:
    """`true`, or a mapping from keys to operations."""
    if isinstance(node.value, bool):
        return node.value
    if node.kind != "mapping":
        reading.wrong_shape(node, "`reducers`", "`true`, or a mapping such as `{total: sum}`")
        return None
    found: JsonMap = {}
    for key, value in node.entries.items():
        operation = reading.choice(value, "a reducer", OPERATIONS, code="P0610")
        if operation is not None:
            found[key] = operation
    return found


def _read_pool(reading: Reading, node: SourceNode | None) -> None:
    """Text names a pool of workers. A mapping is a knob of the SQL tools, which is theirs to read."""
    if node is not None and not node.is_null and node.kind != "mapping" and not (node.text() or "").strip():
        reading.wrong_shape(node, "`pool`", "the name of a worker pool")


def read_concurrency(reading: Reading, node: SourceNode | None) -> None:
    """It stays in the step's `spec`, where whoever hands out its work finds it."""
    limits = reading.mapping(node, "`concurrency`")
    for name, value in limits.entries.items() if limits is not None else ():
        if not name.strip():
            reading.findings.error("P0101", "a limit of `concurrency` has no name", value.place)
        if value.is_null:
            reading.wrong_shape(value, f"the limit `{name}`", "a whole number")
        reading.whole(value, f"the limit `{name}`", most=2**31 - 1)


# ---- checking


def check_fanout(reading: Reading, step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft) -> None:
    if step.loop is None:
        for name in ("loop_mode", "fanout"):
            if name in step.spec:
                place = step.fanout.places.get(name) or next(iter(step.fanout.places.values()), step.place)
                message = f"step `{step.name}` has no loop, so there is nothing to fan out"
                reading.findings.warning("P0609", message, place, hint="give it a `loop`, or leave this out")
                return
        return
    if _mode(step, executor) != "fanout":
        return
    opening = [task for task in tasks if task.kind in _OPENING]
    if opening:
        _told_local(reading, step, opening[0])
        return
    for task in tasks:
        for writes in (task.on_ok, *(rule.then.writes for rule in task.rules or ())):
            if writes.ctx:
                message = (
                    f"task `{task.label}` of a fanned-out loop writes {listed(f'ctx.{key}' for key in writes.ctx)}"
                )
                hint = (
                    "elements do not see each other, and different values for one key are a conflict; "
                    "use `set_shared` or `append_ctx`"
                )
                reading.findings.warning("P0614", message, task.place, hint=hint)
                return


def _told_local(reading: Reading, step: StepDraft, task: TaskDraft) -> None:
    message = f"the loop of step `{step.name}` runs on one worker: its task `{task.label}` runs a {task.kind}"
    hint = "the result is the same; only the place differs"
    if step.fanout.mode is not None:
        reading.findings.warning("P0606", message, step.fanout.places["loop_mode"], hint=hint)
    else:
        reading.findings.note("P0606", message, task.kind_place or task.place, hint=hint)


# ---- what it comes to


def _mode(step: StepDraft, executor: ExecutorDraft) -> str:
    return step.fanout.mode or executor.fanout.mode or "local"


def laid_over(outer: FanoutDraft, inner: FanoutDraft) -> FanoutDraft:
    """What two layers come to."""
    return FanoutDraft(inner.mode or outer.mode, _overlaid(outer.said, inner.said), {**outer.places, **inner.places})


def _said(step: StepDraft, executor: ExecutorDraft) -> JsonMap:
    """The settings of a step: its own over the executor's."""
    return _overlaid(executor.fanout.said, step.fanout.said)


def _overlaid(around: JsonMap, inner: JsonMap) -> JsonMap:
    outer = dict(around)
    for one, other in (("fail_fast", "allow_partial"), ("allow_partial", "fail_fast")):
        # What the inner layer asks for undoes what the outer one does, also where that is written in another word.
        if inner.get(one) is True and other not in inner:
            outer.pop(other, None)
    return {**outer, **inner}


def fanout_of(step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft, failure: FailureMode) -> Fanout | None:
    if _mode(step, executor) != "fanout" or any(task.kind in _OPENING for task in tasks):
        return None
    given: dict[str, Any] = _said(step, executor)
    is_fail_fast = failure is FailureMode.FAIL_FAST
    fail_fast = given.get("fail_fast", is_fail_fast and not given.get("allow_partial", False))
    retries = given.get("max_job_retries")
    defaults = Fanout()
    return Fanout(
        fail_fast=fail_fast,
        allow_partial=given.get("allow_partial", not is_fail_fast and not fail_fast),
        retries=retries or 0,
        losses=defaults.losses if retries is None else retries,
        max_shards=given.get("max_shards", defaults.max_shards),
        max_concurrent=given.get("max_concurrent"),
        queue_ttl_s=given.get("queue_ttl_s"),
        lease_s=given.get("lease_s"),
        range_size=given.get("range_size"),
        emit=Emit(given.get("emit", defaults.emit.value)),
    )


def local_failure(
    step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft, failure: FailureMode
) -> FailureMode:
    """How a loop fails that was to be fanned out and cannot be: as near to what was asked for as a local loop comes."""
    if _mode(step, executor) != "fanout" or not any(task.kind in _OPENING for task in tasks):
        return failure
    given = _said(step, executor)
    if given.get("allow_partial"):
        return FailureMode.BEST_EFFORT
    return FailureMode.FAIL_FAST if given.get("fail_fast") else failure
