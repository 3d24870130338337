"""`loop`: the collection, the iterator, and how iterations run.

`in` is a template, a list, or a description: `{range: …}`, `{lines: …}` and so on, which is never written out. What is written in
a description is checked here; templates in it when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.dialects.playbook.drafts import (
    ExecutorDraft,
    FanoutDraft,
    LoopDraft,
    Site,
    StepDraft,
    TaskDraft,
    Where,
    without_engine_words,
    without_policy,
)
from penstock.dialects.playbook.policy import refuse_control
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.words import CONNECTION, LOOP_POSITIONS, SQL_KINDS
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean, is_template, listed
from penstock.dialects.schema import NOUNS, types_of
from penstock.dialects.source.node import SourceNode, to_json
from penstock.dialects.words import TEMPLATE, Word
from penstock.kernel.net import Emit, FailureMode, Fanout, LoopMode
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import Json, JsonMap, Template

CLAIM = "claim"
_RANGE_WORDS = ("start", "stop", "step")
_OWN_NAMES = ("index", "parent", "loop_id", "shard_id", "iter_key")


def read_loop(reading: Reading, node: SourceNode | None, sites: list[Site]) -> LoopDraft | None:
    loop = reading.mapping(node, "`loop`")
    if loop is None:
        return None
    reading.words(loop, "loop")
    given, named = loop.get("in"), loop.get("iterator")
    iterator = None if named is None else reading.name(named, "the name of an iterator")
    if iterator in _OWN_NAMES and named is not None:
        reading.findings.error(
            "P0602", f"`iter.{iterator}` has a meaning already", named.position, hint="choose another iterator"
        )
    collection = None if given is None else _read_collection(reading, given, sites)
    draft = LoopDraft(loop.position, collection, iterator or "item")
    spec = reading.section(loop, "spec", "loop_spec")
    if spec is not None:
        _read_spec(reading, spec, draft)
    if draft.max_in_flight is not None and draft.mode is LoopMode.SEQUENTIAL:
        hint = "add `mode: parallel`, or leave `max_in_flight` out"
        reading.findings.warning("P0605", "a sequential loop has one iteration in flight", loop.position, hint=hint)
    return draft


def _read_collection(reading: Reading, node: SourceNode, sites: list[Site]) -> Template:
    sites.append(Site(node, Where.CLAIM if CLAIM in node.entries else Where.COLLECTION))
    if node.kind == "sequence" or is_template(node):
        return to_json(node)
    if node.kind == "mapping" and _check_description(reading, node):
        return to_json(node)
    if node.kind != "mapping":
        hint = "it is a template that gives a list, a list, or a description such as `{range: 10}`"
        reading.findings.error("P0603", f"`loop.in` is {node.noun}, not a collection", node.position, hint=hint)
    return None


def _check_description(reading: Reading, node: SourceNode) -> bool:
    kinds = reading.language.scopes["collection"].words
    if len(node.entries) > 1:
        hint = f"one key says what it is: {listed(kinds)}"
        second = list(node.keys.values())[1]
        reading.findings.error("P0603", "a collection is of one kind, and has one key", second, hint=hint)
        return False
    for key, value in node.entries.items():
        if key == "range":
            _check_range(reading, value)
        elif key in kinds:
            check_paged(reading, key, value, node.keys[key])
        else:
            hint = f"it is one of {listed(kinds)}; a mapping of your own is given by a template"
            label = did_you_mean(key, kinds)
            reading.findings.error(
                "P0603", f"`{key}` is not a kind of collection", node.keys[key], label=label, hint=hint
            )
            return False
        return True
    reading.findings.error(
        "P0603", "`loop.in` is an empty mapping", node.position, hint=f"it has one of {listed(kinds)}"
    )
    return False


def _check_range(reading: Reading, bounds: SourceNode) -> None:
    values = {"stop": bounds} if bounds.kind != "mapping" else bounds.entries
    for key, value in values.items():
        if key not in _RANGE_WORDS:
            hint = "a range has `start`, `stop` and `step`"
            reading.findings.error("P0604", f"`{key}` is not a bound of a range", bounds.keys[key], hint=hint)
        elif not is_template(value):
            number = reading.whole(value, f"`{key}`", least=-(2**63))
            if key == "step" and number == 0:
                reading.findings.error("P0604", "a range cannot step by 0", value.position)
    if "stop" not in values:
        reading.findings.error("P0604", "a range has no `stop`", bounds.position)


def _read_spec(reading: Reading, spec: SourceNode, draft: LoopDraft) -> None:
    value = to_json(spec)
    plain: JsonMap = value if isinstance(value, dict) else {}
    draft.spec = without_engine_words(without_policy(plain))
    draft.fanout = read_fanout(reading, spec, None)
    reading.warn_unrendered(spec, "`spec`", skip="policy")
    policy = reading.mapping(spec.get("policy"), "`policy`")
    layers = [spec]
    if policy is not None:
        reading.words(policy, "loop_policy", skip=refuse_control(reading, policy, "a loop's policy"))
        reading.choice(policy.get("exec"), "a place to run iterations", ("local", "distributed"))
        failure = reading.section(policy, "failure", "failure")
        if failure is not None:
            draft.failure = reading.enum(failure.get("mode"), "a failure mode", FailureMode)
        reducers = policy.get("reducers")
        draft.reducers = None if reducers is None or reducers.is_null else read_reducers(reading, reducers)
        layers.insert(0, policy)
    for layer in layers:
        draft.mode = reading.enum(layer.get("mode"), "a loop mode", LoopMode) or draft.mode
        draft.max_in_flight = reading.whole(layer.get("max_in_flight"), "`max_in_flight`") or draft.max_in_flight


# ---- `loop_mode: fanout`: what the executor and the step configure, and the settings that result
#
# A step's word goes before the executor's, and what its `loop.spec` says before both, key by key (F1.1). What none of them
# says follows from the loop's failure mode, so that the same playbook comes to the same end whichever way its loop runs.


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
    draft = FanoutDraft(reading.choice(spec.get("loop_mode"), "a loop mode", LOOP_POSITIONS))
    if draft.mode is not None:
        draft.positions["loop_mode"] = spec.keys["loop_mode"]
    for key, position, node in _given(reading, spec, policy):
        name = _SAME.get(key, key)
        value = None if node.is_null else _read(reading, key, node)
        if value is None:
            continue
        if draft.given.setdefault(name, value) != value:
            hint = f"the other one is on line {draft.positions[name].line}"
            reading.findings.error("P0108", f"`fanout.{name}` is said twice, and differently", position, hint=hint)
        draft.positions.setdefault(name, position)
    if draft.given.get("fail_fast") and draft.given.get("allow_partial"):
        message = "`fail_fast` stops at the first failure, and `allow_partial` goes on after it"
        later = max((draft.positions[name] for name in ("fail_fast", "allow_partial")), key=lambda one: one.line)
        reading.findings.error("P0608", message, later, hint="keep one of the two")
    _read_pool(reading, spec.get("pool"))
    return draft


def dotted(node: SourceNode) -> list[str]:
    """The keys of a mapping that are written `fanout.x`."""
    return [key for key in node.entries if key.startswith(PREFIX)]


def _given(reading: Reading, spec: SourceNode, policy: SourceNode | None) -> Iterator[tuple[str, Position, SourceNode]]:
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
        node.position,
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
    """It stays in the step's `spec`, where the dispatcher reads it."""
    limits = reading.mapping(node, "`concurrency`")
    for name, value in limits.entries.items() if limits is not None else ():
        if not name.strip():
            reading.findings.error("P0101", "a limit of `concurrency` has no name", value.position)
        if value.is_null:
            reading.wrong_shape(value, f"the limit `{name}`", "a whole number")
        reading.whole(value, f"the limit `{name}`", most=2**31 - 1)


# ---- checking


def check_fanout(reading: Reading, step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft) -> None:
    if step.loop is None:
        for name in ("loop_mode", "fanout"):
            if name in step.spec:
                position = step.fanout.positions.get(name) or next(iter(step.fanout.positions.values()), step.position)
                message = f"step `{step.name}` has no loop, so there is nothing to fan out"
                reading.findings.warning("P0609", message, position, hint="give it a `loop`, or leave this out")
                return
        return
    if _mode(step, executor) != "fanout":
        return
    opening = [task for task in tasks if task.kind in _OPENING]
    if opening:
        _report_local(reading, step, opening[0])
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
                reading.findings.warning("P0614", message, task.position, hint=hint)
                return


def _report_local(reading: Reading, step: StepDraft, task: TaskDraft) -> None:
    message = f"the loop of step `{step.name}` runs on one worker: its task `{task.label}` runs a {task.kind}"
    hint = "the result is the same; only the place differs"
    if step.fanout.mode is not None:
        reading.findings.warning("P0606", message, step.fanout.positions["loop_mode"], hint=hint)
    else:
        reading.findings.note("P0606", message, task.kind_position or task.position, hint=hint)


# ---- the settings that result


def _mode(step: StepDraft, executor: ExecutorDraft) -> str:
    return step.fanout.mode or executor.fanout.mode or "local"


def laid_over(outer: FanoutDraft, inner: FanoutDraft) -> FanoutDraft:
    """What two layers come to."""
    return FanoutDraft(
        inner.mode or outer.mode, _overlaid(outer.given, inner.given), {**outer.positions, **inner.positions}
    )


def _fanout_spec(step: StepDraft, executor: ExecutorDraft) -> JsonMap:
    """The settings of a step: its own over the executor's."""
    return _overlaid(executor.fanout.given, step.fanout.given)


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
    given: dict[str, Any] = _fanout_spec(step, executor)
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
    """The failure mode of a loop that cannot be fanned out: the one of a local loop that is closest to the configured one."""
    if _mode(step, executor) != "fanout" or not any(task.kind in _OPENING for task in tasks):
        return failure
    given = _fanout_spec(step, executor)
    if given.get("allow_partial"):
        return FailureMode.BEST_EFFORT
    return FailureMode.FAIL_FAST if given.get("fail_fast") else failure


# ---- Collections that are read page by page: the parameters of each kind, and their types


def check_paged(reading: Reading, kind: str, node: SourceNode, position: Position) -> None:
    """`{lines: orders.csv}` or `{lines: {path: orders.csv, skip: 1}}`."""
    scope_name = f"collection_{kind}"
    scope = reading.language.scopes[scope_name]
    if node.kind == "mapping":
        reading.words(node, scope_name)
        for name, word in scope.words.items():
            value = node.get(name)
            if value is not None:
                _check_value(reading, f"{scope.title}.{name}", word, value)
        if kind in ("sql", CLAIM):
            _check_connection(reading, node)
        reading.refuse_template_keys(node)
        return
    required = [name for name, word in scope.words.items() if word.required]
    hint = f"`{kind}` takes {listed(scope.words)}"
    if len(required) > 1:
        shown = ", ".join(f"{name}: …" for name in required)
        reading.wrong_shape(node, f"`{kind}`", "a mapping", hint=f"write `{{{shown}}}`")
    elif node.is_null or not (node.text() or "").strip():
        reading.wrong_shape(node, f"`{kind}`", f"its `{required[0]}`, or a mapping", hint=hint)


def _check_value(reading: Reading, what: str, word: Word, node: SourceNode) -> None:
    if is_template(node):
        return
    schema = _plain(word.schema)
    if node.is_null:
        if word.required:
            reading.wrong_shape(node, f"`{what}`", "given")
        return
    values = schema.get("enum")
    if isinstance(values, list):
        reading.choice(node, f"a value of `{what}`", [str(value) for value in values])
        return
    types = schema.get("type")
    allowed = types if isinstance(types, list) else [types] if types else []
    if allowed and types_of(node).isdisjoint(map(str, allowed)):
        expected = " or ".join(NOUNS[str(name)] for name in allowed)
        reading.wrong_shape(node, f"`{what}`", expected)
        return
    least = schema.get("minimum")
    if isinstance(least, int) and isinstance(node.value, int):
        reading.whole(node, f"`{what}`", least)


def _plain(schema: JsonMap) -> JsonMap:
    """The schema of a value that is written out."""
    several = schema.get("anyOf")
    if isinstance(several, list):
        return next((one for one in several if isinstance(one, dict) and one != TEMPLATE), {})
    return schema


def _check_connection(reading: Reading, node: SourceNode) -> None:
    """Each database's tool has its own parameters for the connection."""
    kind = node.get("kind")
    description = (
        None if kind is None or kind.text() not in SQL_KINDS else reading.describe(str(kind.value), kind.position)
    )
    if kind is None or description is None:
        return
    takes = [name for name in CONNECTION if name in description.params]
    for name, position in node.keys.items():
        if name in CONNECTION and name not in takes:
            hint = f"to connect, `{kind.value}` takes {listed(takes)}"
            reading.findings.error("P0102", f"`{name}` says nothing to `{kind.value}`", position, hint=hint)
