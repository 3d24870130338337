"""Where a column comes from, over all components: what `penstock lineage` prints."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.drawing import mermaid_text
from penstock.dialects.job.compile import CompiledJob
from penstock.dialects.job.infer import Origin
from penstock.kernel.net import On
from penstock.kernel.values import Json, JsonMap


def edges(compiled: CompiledJob) -> Iterator[tuple[Origin, Origin]]:
    """(from, to) for every column that is made of another one, in the order of the components."""
    for (component, port), columns in compiled.lineage.items():
        for column, origins in columns.items():
            for origin in origins:
                yield origin, (component, port, column)


def origins(compiled: CompiledJob, component: str, port: str, column: str) -> list[Origin]:
    """Where a column begins: the first components on every way that leads to it."""
    found: dict[Origin, None] = {}
    waiting: list[Origin] = [(component, port, column)]
    seen: set[Origin] = set()
    while waiting:
        here = waiting.pop(0)
        if here in seen:
            continue
        seen.add(here)
        before = compiled.lineage.get(here[:2], {}).get(here[2], ())
        if before:
            waiting += before
        elif here != (component, port, column):
            found[here] = None
    return list(found)


def as_json(compiled: CompiledJob) -> JsonMap:
    """Every column of every port that is known, with what it is made of and where it begins."""
    columns: list[Json] = []
    for (component, port), schema in compiled.schemas.items():
        for column in schema or ():
            made_of = compiled.lineage.get((component, port), {}).get(column.name, ())
            columns.append(
                {
                    "component": component,
                    "port": port,
                    "column": column.name,
                    "type": column.type,
                    "from": [_shown(origin) for origin in made_of],
                    "origins": [_shown(origin) for origin in origins(compiled, component, port, column.name)],
                }
            )
    return {
        "name": "" if compiled.net is None else compiled.net.name,
        "columns": columns,
        "targets": _targets(compiled),
    }


def _shown(origin: Origin) -> JsonMap:
    return {"component": origin[0], "port": origin[1], "column": origin[2]}


def _targets(compiled: CompiledJob) -> list[Json]:
    """What ends in components that give no rows on: files and tables, column by column."""
    found: list[Json] = []
    for component, port, source in _ends(compiled):
        for column in compiled.schemas.get(source) or ():
            begins = origins(compiled, *source, column.name) or [(*source, column.name)]
            found.append(
                {
                    "component": component,
                    "port": port,
                    "column": column.name,
                    "origins": [_shown(each) for each in begins],
                }
            )
    return found


def _ends(compiled: CompiledJob) -> Iterator[tuple[str, str, tuple[str, str]]]:
    links = () if compiled.net is None else compiled.net.links
    giving = {link.source for link in links if link.on is On.DATA}
    # Rows that leave a joblet end at its call and begin there again.
    left = {
        (link.target, link.to_port): (link.source, link.port)
        for link in links
        if link.source.startswith(f"{link.target}.__")
    }
    for link in links:
        if link.on is On.DATA and link.target not in giving:
            source = link.source, link.port
            while source in left:
                source = left[source]
            yield link.target, link.to_port, source


def text(compiled: CompiledJob) -> str:
    """For every end of the job, its columns and where they begin."""
    lines: list[str] = []
    for component, port, source in _ends(compiled):
        lines.append(f"{component}.{port}")
        schema = compiled.schemas.get(source)
        if schema is None:
            lines.append("  the columns are not known before the run")
        for column in schema or ():
            begins = origins(compiled, *source, column.name) or [(*source, column.name)]
            lines.append(f"  {column.name}  <-  {', '.join('.'.join(each) for each in begins)}")
    return "\n".join(lines) + "\n" if lines else ""


def mermaid(compiled: CompiledJob) -> str:
    ids: dict[Origin, str] = {}

    def node(origin: Origin) -> str:
        return ids.setdefault(origin, f"n{len(ids)}")

    arrows = [f"  {node(one)} --> {node(other)}" for one, other in edges(compiled)]
    groups: dict[str, list[str]] = {}
    for (component, port, column), name in ids.items():
        groups.setdefault(f"{component}.{port}", []).append(f'    {name}["{mermaid_text(column)}"]')
    boxes = [
        line
        for number, (title, members) in enumerate(groups.items())
        for line in (f'  subgraph g{number}["{mermaid_text(title)}"]', *members, "  end")
    ]
    return "\n".join(["flowchart LR", *boxes, *arrows]) + "\n"
