"""`components`: a list of components with a `name`, or a mapping from names to components."""

from __future__ import annotations

from penstock.dialects.job.columns import read_schemas
from penstock.dialects.job.drafts import ComponentDraft, ParamDraft
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import SourceNode


def read_components(reading: Reading, node: SourceNode) -> dict[str, ComponentDraft]:
    found: dict[str, ComponentDraft] = {}
    for component in _each(reading, node):
        first = found.setdefault(component.name, component)
        if first is not component:
            message = f"two components are called `{component.name}`"
            hint = f"the first is on line {first.place.line}"
            reading.report("DUPLICATE_NAME", message, component.place, hint=hint)
    return found


def _each(reading: Reading, node: SourceNode) -> list[ComponentDraft]:
    found: list[ComponentDraft | None] = []
    if node.kind == "mapping":
        for key, item in node.entries.items():
            place = node.keys[key]
            name = reading.name(SourceNode("scalar", place, key), "the name of a component")
            if item.kind != "mapping":
                reading.wrong_shape(item, f"the component `{key}`", "a mapping")
                continue
            reading.words(item, "unnamed_component")
            found.append(_read(reading, item, name, place))
    elif node.kind == "sequence":
        found = [_listed(reading, item) for item in node.items]
    else:
        reading.wrong_shape(
            node, "`components`", "a list", hint="such as `- {name: orders, type: read_csv, params: {…}}`"
        )
    return [component for component in found if component is not None]


def _listed(reading: Reading, item: SourceNode) -> ComponentDraft | None:
    if item.kind != "mapping":
        reading.wrong_shape(item, "a component", "a mapping")
        return None
    reading.words(item, "component")
    named = item.get("name")
    if named is None:
        return None
    return _read(reading, item, reading.name(named, "the name of a component"), named.place)


def _read(reading: Reading, item: SourceNode, name: str | None, place: Place) -> ComponentDraft | None:
    kind = item.get("type")
    type_ = reading.text(kind, "`type`")
    params = reading.mapping(item.get("params"), "`params`")
    schemas = read_schemas(reading, item)
    component = ComponentDraft(
        name=name or "",
        place=place,
        type=type_ or "",
        type_place=place if kind is None else kind.place,
        params={}
        if params is None
        else {key: ParamDraft(params.keys[key], one) for key, one in params.entries.items()},
        die_on_error=reading.flag(item.get("die_on_error"), "`die_on_error`", False),
        exports=tuple(str(each.value) for each in reading.texts(item.get("global_export"), "`global_export`")),
        startable=reading.flag(item.get("startable"), "`startable`", False),
        active=reading.flag(item.get("active"), "`active`", True),
        schemas=schemas,
    )
    return component if name is not None and type_ is not None else None
