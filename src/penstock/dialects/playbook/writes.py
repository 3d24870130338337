"""Assignments: `set_ctx`, `set_iter`, `append_ctx`, `set_shared`; and `set`, whose keys name their target by a prefix."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.playbook.drafts import ExecutorDraft, Shared, Site, StepDraft, TaskDraft, Where
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.refused import yaml_text
from penstock.dialects.problems import Position
from penstock.dialects.reader import did_you_mean
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.kept import STATE
from penstock.kernel.net import Writes
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import Json, JsonMap, Template, merge_deeply

_READ_ONLY = ("workload", "keychain", "args", "event", "execution", "outcome", "output")


def read_then_writes(reading: Reading, then: SourceNode, sites: list[Site], shared: list[Shared]) -> Writes:
    """The writes of a rule. What `set` and the longer words both name is written as the longer words say."""
    into = SharedWrites()
    found = _split(reading, then.get("set"), Where.POLICY, sites, bare="iter", shared=into)
    read_shared(reading, then.get("set_shared"), Where.POLICY, sites, into)
    shared += into.drafts
    return Writes(
        iter={**found.iter, **_plain(reading, then, "set_iter", "iter", sites)},
        ctx={**found.ctx, **_plain(reading, then, "set_ctx", "ctx", sites)},
        append=_plain(reading, then, "append_ctx", "ctx", sites),
        shared=into.templates,
    )


def read_task_set(reading: Reading, task: SourceNode, sites: list[Site], shared: list[Shared]) -> Writes:
    """What a task writes after an ok outcome."""
    into = SharedWrites()
    found = _split(reading, task.get("set"), Where.ON_OK, sites, bare="iter", shared=into)
    read_shared(reading, task.get("set_shared"), Where.ON_OK, sites, into)
    shared += into.drafts
    return Writes(iter=found.iter, ctx=found.ctx, shared=into.templates)


def read_step_set(reading: Reading, node: SourceNode | None, sites: list[Site]) -> Writes:
    """A step's iterations are over when it is done, so a key without prefix goes to ctx."""
    return _split(reading, node, Where.ON_DONE, sites, bare="ctx")


def read_arc_set(reading: Reading, node: SourceNode | None, sites: list[Site]) -> tuple[Writes, dict[str, Template]]:
    """On an arc, `ctx.x` writes ctx and every other key is one of the token's args."""
    mapping = reading.mapping(node, "`set`")
    if mapping is None:
        return Writes(), {}
    sites.append(Site(mapping, Where.ARC))
    _refuse_templates(reading, mapping)
    ctx: dict[str, Template] = {}
    args: JsonMap = {}
    for key, value in mapping.entries.items():
        head, _, rest = key.partition(".")
        if head == "ctx" and rest:
            ctx[rest] = to_json(value)
        elif head == STATE and rest and _is_kept(reading, rest, mapping.keys[key], "the args of the token"):
            ctx[key] = to_json(value)
        elif head == "shared" and rest:
            _refuse_shared(reading, "an arc", mapping.keys[key])
        else:
            path = rest if head in ("args", "iter") and rest else key
            args = merge_deeply(args, _nested(path, to_json(value)))
    return Writes(ctx=ctx), args


def _is_kept(reading: Reading, path: str, position: Position, otherwise: str) -> bool:
    """Does a key `state.…` name what the document keeps between runs? In one that keeps nothing it is a key like any other."""
    name = path.partition(".")[0]
    if reading.state is None:
        hint = (
            f"declare it: `state: {{{name}: null}}` at the root; or write `ctx.state.{path}` if it is for this run only"
        )
        message = (
            f"`state.{path}` goes into {otherwise}, for this run only: the document does not say that it keeps anything"
        )
        reading.findings.warning("P0831", message, position, hint=hint)
        return False
    if name not in reading.state:
        hint = f"declare it with the value of the first run: `state: {{{name}: null}}`"
        label = did_you_mean(name, reading.state)
        reading.findings.error("P0830", f"`state` does not declare `{name}`", position, label=label, hint=hint)
    return True


def _refuse_templates(reading: Reading, mapping: SourceNode) -> None:
    for key, position in mapping.keys.items():
        if "{{" in key:
            reading.findings.error(
                "P0408",
                "the name of what is written cannot be a template",
                position,
                hint='write a mapping as the value: `ctx.seen: "{{ {key: value} }}"`, or collect with `append_ctx`',
            )


def _nested(path: str, value: Template) -> JsonMap:
    head, _, rest = path.partition(".")
    return {head: _nested(rest, value) if rest else value}


def _plain(reading: Reading, then: SourceNode, word: str, prefix: str, sites: list[Site]) -> dict[str, Template]:
    mapping = reading.mapping(then.get(word), f"`{word}`")
    if mapping is None:
        return {}
    sites.append(Site(mapping, Where.POLICY))
    _refuse_templates(reading, mapping)
    return {key.removeprefix(f"{prefix}."): to_json(value) for key, value in mapping.entries.items()}


def _refuse_shared(reading: Reading, what: str, position: Position) -> None:
    hint = "it is a task of the loop that shares: put it on the task, or into `then` of one of its rules"
    reading.findings.error("P0613", f"{what} cannot share: by then all iterations are over", position, hint=hint)


def _split(
    reading: Reading,
    node: SourceNode | None,
    where: Where,
    sites: list[Site],
    bare: str,
    shared: SharedWrites | None = None,
) -> Writes:
    mapping = reading.mapping(node, "`set`")
    if mapping is None:
        return Writes()
    sites.append(Site(mapping, where))
    _refuse_templates(reading, mapping)
    writes = Writes()
    targets = {"ctx": writes.ctx, "iter": writes.iter}
    for key, value in mapping.entries.items():
        head, _, rest = key.partition(".")
        if head in _READ_ONLY and rest:
            reading.findings.error(
                "P0408",
                f"`{head}` cannot be written",
                mapping.keys[key],
                hint="write to `ctx.…`, or to `iter.…` within a pipeline",
            )
        elif head in targets and rest:
            targets[head][rest] = to_json(value)
        elif head == STATE and rest and _is_kept(reading, rest, mapping.keys[key], f"`{bare}`"):
            writes.ctx[key] = to_json(value)
        elif head == "shared" and rest:
            if shared is None:
                _refuse_shared(reading, "a step", mapping.keys[key])
            else:
                shared.add(reading, rest, mapping.keys[key], value)
        else:
            targets[bare][key] = to_json(value)
    return writes


# ---- `set_shared`: values that the iterations of a loop compute together, each through a reducer
#
#     {total: {sum: "{{ … }}"}}                      the reducer is the key
#     {total: {op: sum, value: "{{ … }}"}}           `reduce` is the same as `op`
#     [{key: total, op: sum, value: "{{ … }}"}]
#     {total: "{{ … }}"}                             where `reducers: {total: sum}` says how


_NAMES_IT = ("op", "reduce")


class SharedWrites:
    """What one place in the document shares: key -> template, and how each comes together."""

    def __init__(self) -> None:
        self.templates: dict[str, Template] = {}
        self.drafts: list[Shared] = []

    def add(self, reading: Reading, key: str, position: Position, node: SourceNode) -> None:
        """One `key: value`, in whichever of the spellings the value is."""
        operation, value = _taken_apart(reading, node)
        self._put(reading, key, position, operation, value)

    def _put(self, reading: Reading, key: str, position: Position, operation: str | None, value: Json) -> None:
        if "{{" in key:
            hint = "share a mapping with `merge`, whose keys may come from a template"
            reading.findings.error("P0408", "the name of what is shared cannot be a template", position, hint=hint)
            return
        if key in self.templates:
            hint = "one write for each key; add up before you share"
            reading.findings.error("P0108", f"`{key}` is shared twice here", position, hint=hint)
            return
        self.templates[key] = value
        self.drafts.append(Shared(key, operation, position))


def read_shared(reading: Reading, node: SourceNode | None, where: Where, sites: list[Site], into: SharedWrites) -> None:
    """`set_shared` itself: a mapping, or a list of `{key, op, value}`."""
    if node is None or node.is_null:
        return
    if node.kind == "scalar":
        hint = 'write `{total: {sum: "{{ … }}"}}`'
        reading.wrong_shape(node, "`set_shared`", "a mapping", hint=hint)
        return
    sites.append(Site(node, where))
    for key, value in node.entries.items():
        into.add(reading, key.removeprefix("shared."), node.keys[key], value)
    for item in node.items:
        entry = reading.mapping(item, "an entry of `set_shared`")
        if entry is None:
            continue
        reading.words(entry, "shared")
        key_node, value_node = entry.get("key"), entry.get("value")
        named = None if key_node is None else reading.text(key_node, "`key`")
        if named is not None and value_node is not None and key_node is not None:
            into._put(reading, named, key_node.position, _operation(reading, entry), to_json(value_node))


def _taken_apart(reading: Reading, node: SourceNode) -> tuple[str | None, Json]:
    entries = node.entries
    if len(entries) == 1:
        ((name, value),) = entries.items()
        if name in OPERATIONS:
            return name, to_json(value)
    if "value" in entries and any(word in entries for word in _NAMES_IT) and len(entries) == 2:
        return _operation(reading, node), to_json(entries["value"])
    return None, to_json(node)


def _operation(reading: Reading, node: SourceNode) -> str | None:
    given = [node.entries[word] for word in _NAMES_IT if word in node.entries]
    if len(given) > 1:
        reading.findings.error("P0108", "`op` and `reduce` are the same, and both are given", given[1].position)
    return reading.choice(given[0], "a reducer", OPERATIONS, code="P0610") if given else None


# ---- checks, and the reducers that result


def shared_of(tasks: list[TaskDraft]) -> Iterator[Shared]:
    for task in tasks:
        yield from task.shared
        yield from task.shared_rules


def declared(step: StepDraft, executor: ExecutorDraft) -> JsonMap | None:
    """Key -> reducer as `reducers` says; None when `set_shared` is not enabled."""
    layers = [executor.fanout.given, step.fanout.given]
    if step.loop is not None and step.loop.reducers is not None:
        layers.append({"reducers": step.loop.reducers})
    found: JsonMap = {}
    is_enabled = False
    for layer in layers:
        for given in (layer.get("shared"), layer.get("reducers")):
            if isinstance(given, dict):
                found.update(given)
            if given is not None:
                is_enabled = given is not False
    return found if is_enabled else None


def reducers_of(step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft) -> dict[str, str]:
    """Key -> operation, for all that this step's pipeline shares and all that is declared."""
    known = declared(step, executor)
    if known is None or step.loop is None:
        return {}
    used = {one.key for one in shared_of(tasks)}
    own = declared(step, ExecutorDraft()) or {}
    # What only the executor declares is for whichever loop uses it.
    found = {key: str(operation) for key, operation in known.items() if key in used or key in own}
    for one in shared_of(tasks):
        if one.operation is not None:
            found.setdefault(one.key, one.operation)
    return found


def check_shared(reading: Reading, step: StepDraft, tasks: list[TaskDraft], executor: ExecutorDraft) -> None:
    found = list(shared_of(tasks))
    if not found:
        return
    if step.loop is None:
        message = f"`set_shared` stands in step `{step.name}`, which has no loop"
        reading.findings.error(
            "P0613", message, found[0].position, hint="write to ctx with `set_ctx`, or give the step a loop"
        )
        return
    known = declared(step, executor)
    if known is None:
        _not_enabled(reading, found)
        return
    first: dict[str, tuple[str, str]] = {key: (str(operation), "`reducers`") for key, operation in known.items()}
    for one in found:
        if one.operation is None and one.key not in first:
            _without_reducer(reading, one)
        elif one.operation is not None:
            operation, said_by = first.setdefault(one.key, (one.operation, f"line {one.position.line}"))
            if operation != one.operation:
                message = f"`{one.key}` is shared with `{one.operation}` here, and with `{operation}` by {said_by}"
                hint = f"one key has one reducer; write `{{op: {operation}, value: …}}` to share a mapping"
                reading.findings.error("P0612", message, one.position, hint=hint)


def _not_enabled(reading: Reading, found: list[Shared]) -> None:
    """All at once: the author sees which reducers are to be let in."""
    named: JsonMap = {one.key: one.operation or "sum" for one in found}
    reading.findings.error(
        "P0611",
        "`set_shared` is not enabled for this loop",
        found[0].position,
        hint="say so in the step's `spec`: `reducers: true`, or each key with its reducer",
        rewrite=yaml_text({"spec": {"reducers": named}}),
    )


def _without_reducer(reading: Reading, one: Shared) -> None:
    reading.findings.error(
        "P0615",
        f"nothing says how the values of `{one.key}` come together",
        one.position,
        hint=f"name the reducer here, `{{{one.key}: {{sum: …}}}}`, or in `reducers: {{{one.key}: sum}}`",
    )
