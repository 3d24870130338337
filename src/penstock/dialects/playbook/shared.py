"""`set_shared`: values that all iterations of a loop make together, each through a reducer.

{total: {sum: "{{ … }}"}}                      the reducer is the key
{total: {op: sum, value: "{{ … }}"}}           `reduce` is the same as `op`
[{key: total, op: sum, value: "{{ … }}"}]
{total: "{{ … }}"}                             where `reducers: {total: sum}` says how
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.playbook.drafts import ExecutorDraft, Shared, Site, StepDraft, TaskDraft, Where
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.rewrite import yaml_text
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import Json, JsonMap, Template

_NAMES_IT = ("op", "reduce")


class SharedWrites:
    """What one place in the document shares: key -> template, and how each comes together."""

    def __init__(self) -> None:
        self.templates: dict[str, Template] = {}
        self.drafts: list[Shared] = []

    def add(self, reading: Reading, key: str, place: Place, node: SourceNode) -> None:
        """One `key: value`, in whichever of the spellings the value is."""
        operation, value = _taken_apart(reading, node)
        self._put(reading, key, place, operation, value)

    def _put(self, reading: Reading, key: str, place: Place, operation: str | None, value: Json) -> None:
        if "{{" in key:
            hint = "share a mapping with `merge`, whose keys may come from a template"
            reading.findings.error("P0408", "the name of what is shared cannot be a template", place, hint=hint)
            return
        if key in self.templates:
            hint = "one write for each key; add up before you share"
            reading.findings.error("P0108", f"`{key}` is shared twice here", place, hint=hint)
            return
        self.templates[key] = value
        self.drafts.append(Shared(key, operation, place))


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
            into._put(reading, named, key_node.place, _operation(reading, entry), to_json(value_node))


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
        reading.findings.error("P0108", "`op` and `reduce` are the same, and both are given", given[1].place)
    return reading.choice(given[0], "a reducer", OPERATIONS, code="P0610") if given else None


# ---- checking, and what it comes to


def shared_of(tasks: list[TaskDraft]) -> Iterator[Shared]:
    for task in tasks:
        yield from task.shared
        yield from task.shared_rules


def declared(step: StepDraft, executor: ExecutorDraft) -> JsonMap | None:
    """Key -> reducer as `reducers` says; None when `set_shared` is not enabled."""
    layers = [executor.fanout.said, step.fanout.said]
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
            "P0613", message, found[0].place, hint="write to ctx with `set_ctx`, or give the step a loop"
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
            operation, said_by = first.setdefault(one.key, (one.operation, f"line {one.place.line}"))
            if operation != one.operation:
                message = f"`{one.key}` is shared with `{one.operation}` here, and with `{operation}` by {said_by}"
                hint = f"one key has one reducer; write `{{op: {operation}, value: …}}` to share a mapping"
                reading.findings.error("P0612", message, one.place, hint=hint)


def _not_enabled(reading: Reading, found: list[Shared]) -> None:
    """All at once: the author sees which reducers are to be let in."""
    named: JsonMap = {one.key: one.operation or "sum" for one in found}
    reading.findings.error(
        "P0611",
        "`set_shared` is not enabled for this loop",
        found[0].place,
        hint="say so in the step's `spec`: `reducers: true`, or each key with its reducer",
        rewrite=yaml_text({"spec": {"reducers": named}}),
    )


def _without_reducer(reading: Reading, one: Shared) -> None:
    reading.findings.error(
        "P0615",
        f"nothing says how the values of `{one.key}` come together",
        one.place,
        hint=f"name the reducer here, `{{{one.key}: {{sum: …}}}}`, or in `reducers: {{{one.key}: sum}}`",
    )
