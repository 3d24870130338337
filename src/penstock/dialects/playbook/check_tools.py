"""Tasks against the tools that are installed: kinds, parameters, and the types of values that are written out."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.dialects.playbook.drafts import ParamDraft, TaskDraft
from penstock.dialects.playbook.reader import Reading, did_you_mean, is_template, listed
from penstock.dialects.playbook.tasks import WORKBOOK
from penstock.dialects.problems import closest
from penstock.dialects.schema import NOUNS, types_of
from penstock.dialects.source.loader import SourceNode
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ParamInfo, ToolDescription

_KIND_HINTS = {
    "iterator": "repeating is not a tool: give the step a `loop`",
    "loop": "repeating is not a tool: give the step a `loop`",
    "sink": "storing is not a kind of its own: use the tool of the store",
    "save": "storing is not a kind of its own: use the tool of the store",
    "secrets": "secrets are declared in `keychain`",
    "workflow": "a playbook within a playbook is `kind: playbook`",
    "next": "ways on are `next.arcs`",
    "script": "a script is run by `python` or by `shell`",
    "bash": "a script is run by `shell`",
    "sql": "use the tool of the database, such as `postgres` or `duckdb`",
    "api": "requests are made by `http`",
    "request": "requests are made by `http`",
}


def check_tool(reading: Reading, task: TaskDraft) -> None:
    if task.is_generated or not task.kind or task.kind == WORKBOOK or task.kind_place is None:
        return
    description = reading.describe(task.kind, task.kind_place)
    if description is None:
        if task.kind not in reading.broken:
            _unknown_kind(reading, task)
        return
    for name, param in task.params.items():
        info = description.params.get(name)
        if info is None:
            _unknown_param(reading, task, name, param, description)
        else:
            _check_value(reading, task.kind, info, param.node)
            _check_fields(reading, f"`{name}` of `{task.kind}`", _Part(description.schema).field(name), param.node)
    missing = [name for name, info in description.params.items() if info.required and name not in task.params]
    if missing:
        _missing_params(reading, task, missing, description)


def _unknown_kind(reading: Reading, task: TaskDraft) -> None:
    kinds = [*reading.catalog.kinds(), WORKBOOK]
    hint = _KIND_HINTS.get(task.kind, f"installed are {listed(sorted(set(kinds)), most=40)}")
    assert task.kind_place is not None
    reading.findings.error(
        "P0504", f"there is no tool `{task.kind}`", task.kind_place, label=did_you_mean(task.kind, kinds), hint=hint
    )


def _unknown_param(
    reading: Reading, task: TaskDraft, name: str, param: ParamDraft, description: ToolDescription
) -> None:
    if name == "args":  # Any task may have them: its other parameters see them.
        if param.node.kind != "mapping" and not is_template(param.node):
            message = f"`args` is a mapping of names to values, not {param.node.noun}"
            reading.findings.error("P0509", message, param.node.place)
        return
    takes = (
        f"`{task.kind}` takes {listed(description.params, most=40)}" if description.params else "it takes no parameters"
    )
    hint = takes if closest(name, description.params) else f"{takes}; runtime knobs go under `spec`"
    label = did_you_mean(name, description.params)
    reading.findings.error(
        "P0505", f"the tool `{task.kind}` has no parameter `{name}`", param.key, label=label, hint=hint
    )


def _missing_params(reading: Reading, task: TaskDraft, missing: list[str], description: ToolDescription) -> None:
    place = task.kind_place or task.place
    for name in missing:
        about = description.params[name].description
        reading.findings.error(
            "P0506", f"the tool `{task.kind}` needs `{name}`", place, hint=f"`{name}`: {about}" if about else ""
        )


def _check_value(reading: Reading, kind: str, info: ParamInfo, node: SourceNode) -> None:
    """Only what is written out can be checked now; a template is checked when it has a value."""
    if is_template(node) or (node.is_null and not info.required):
        return
    if info.enum is not None and node.kind == "scalar" and node.value not in info.enum:
        values = [str(value) for value in info.enum if value is not None]
        label = did_you_mean(str(node.value), values)
        message = f"`{info.name}` of `{kind}` cannot be `{node.value}`"
        reading.findings.error("P0508", message, node.place, label=label, hint=f"it is one of {listed(values)}")
        return
    if types_of(node).isdisjoint(info.types) and "any" not in info.types:
        expected = " or ".join(NOUNS.get(name, name) for name in info.types if name != "null")
        hint = "put it in quotes" if "string" in info.types and node.kind == "scalar" else ""
        reading.findings.error(
            "P0507", f"`{info.name}` of `{kind}` must be {expected}, not {node.noun}", node.place, hint=hint
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a tool's JSON Schema, which may refer to others of it."""

    whole: JsonMap
    here: JsonMap | None = None

    def field(self, name: str) -> _Part:
        properties = (self.whole if self.here is None else self.here).get("properties")
        found = properties.get(name) if isinstance(properties, dict) else None
        return _Part(self.whole, found if isinstance(found, dict) else {})

    def ways(self) -> list[_Part]:
        """What the value may be."""
        here = self.here or {}
        reference = here.get("$ref")
        if isinstance(reference, str):
            definitions = self.whole.get("$defs")
            target = definitions.get(reference.rpartition("/")[2]) if isinstance(definitions, dict) else None
            return _Part(self.whole, target if isinstance(target, dict) else {}).ways()
        several = here.get("anyOf")
        if isinstance(several, list):
            return [way for one in several if isinstance(one, dict) for way in _Part(self.whole, one).ways()]
        return [self]

    def of_type(self, name: str) -> _Part | None:
        """The only way in which it may be of a type; None when there is none, or several."""
        found = [way for way in self.ways() if (way.here or {}).get("type", name) == name]
        return found[0] if len(found) == 1 else None


def _check_fields(reading: Reading, what: str, part: _Part, node: SourceNode) -> None:
    """The keys of a mapping in a parameter, where the tool says which there are."""
    if node.kind == "sequence":
        way = part.of_type("array")
        items = None if way is None else (way.here or {}).get("items")
        if way is not None and isinstance(items, dict):
            for item in node.items:
                _check_fields(reading, what, _Part(way.whole, items), item)
        return
    way = part.of_type("object") if node.kind == "mapping" else None
    schema = {} if way is None else way.here or {}
    properties, required = schema.get("properties"), schema.get("required")
    if way is None or not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
        return
    for key, value in node.entries.items():
        if key in properties:
            _check_fields(reading, f"`{key}` in {what}", way.field(key), value)
        else:
            hint, label = f"it has {listed(properties, most=40)}", did_you_mean(key, properties)
            reading.findings.error("P0505", f"{what} has no `{key}`", node.keys[key], label=label, hint=hint)
    for name in required if isinstance(required, list) else ():
        if name not in node.entries:
            about = way.field(str(name)).here or {}
            hint = f"`{name}`: {about['description']}" if "description" in about else ""
            reading.findings.error("P0506", f"{what} needs `{name}`", node.place, hint=hint)
