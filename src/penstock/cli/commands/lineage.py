"""`penstock lineage FILE`: what each column of each output is made of, followed back to where it was first read or made."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from penstock.app.library import Library
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import put, put_json, safe
from penstock.kernel.net import Net, On
from penstock.ports.rows import Schema

End: TypeAlias = tuple[str, str, str]
"""(component, output port, column)"""
Made: TypeAlias = Mapping[tuple[str, str], Mapping[str, tuple[End, ...]]]
DEEPEST = 1_000


@dataclass(frozen=True, slots=True)
class Lineage:
    """`made`: (component, output port) -> column -> the columns it is computed from, one component back."""

    net: Net
    schemas: Mapping[tuple[str, str], Schema | None]
    made: Made

    def ends(self) -> list[End]:
        """Every column of every output that is known before the run, in the order of the document."""
        order = {name: number for number, name in enumerate(self.net.nodes)}
        known = sorted(self.schemas.items(), key=lambda one: order.get(one[0][0], len(order)))
        found: dict[End, None] = {}
        for (component, port), schema in known:
            columns = [column.name for column in schema or ()]
            columns += [name for name in self.made.get((component, port), {}) if name not in columns]
            found.update(dict.fromkeys((component, port, column) for column in columns))
        return list(found)

    def type_of(self, end: End) -> str:
        schema = self.schemas.get(end[:2]) or ()
        return next((column.type for column in schema if column.name == end[2]), "")

    def back(self, end: End) -> tuple[End, ...]:
        return self.made.get(end[:2], {}).get(end[2]) or self._handed_on(*end)

    def _handed_on(self, component: str, port: str, column: str) -> tuple[End, ...]:
        """The outputs of a joblet call are made inside it."""
        node = self.net.nodes.get(component)
        if node is None or node.part is None or node.part.opens is None:
            return ()
        inside = (
            link for link in self.net.links if link.target == component and link.source.startswith(f"{component}.")
        )
        return tuple((link.source, link.port, column) for link in inside if link.on is On.DATA and link.to_port == port)

    def sources(self, end: End) -> list[End]:
        """Where a column was first read or computed, as far back as that is known."""
        found: dict[End, None] = {}
        waiting, seen = [end], {end}
        while waiting and len(seen) < DEEPEST * 10:
            before = self.back(one := waiting.pop(0))
            if not before and one != end:
                found[one] = None
            fresh = [each for each in before if each not in seen]
            seen.update(fresh)
            waiting += fresh
        return list(found)

    def chosen(self, wanted: str | None) -> list[End]:
        """The ends of one component, or of one of its columns: `load` or `load.total`."""
        every = self.ends()
        if wanted is None:
            return every
        for component in sorted(self.net.nodes, key=len, reverse=True):
            if wanted == component:
                return [end for end in every if end[0] == component] or self._fed(component, every)
            if wanted.startswith(f"{component}."):
                return self._column(component, wanted.removeprefix(f"{component}."), every)
        name = wanted.partition(".")[0]
        known = ", ".join(f"`{one}`" for one in self.net.nodes if "." not in one)
        raise CommandLineError(
            f"the job has no component `{name}`{_meant(name, self.net.nodes)}", f"the components are {known}"
        )

    def _fed(self, component: str, every: list[End]) -> list[End]:
        """The input columns of a component that writes them and has no output."""
        fed = {(link.source, link.port) for link in self.net.links if link.on is On.DATA and link.target == component}
        return [end for end in every if end[:2] in fed]

    def _column(self, component: str, rest: str, every: list[End]) -> list[End]:
        of = [end for end in every if end[0] == component] or self._fed(component, every)
        ports = {end[1] for end in of}
        port, dot, column = rest.partition(".")
        found = [end for end in of if end[2] == rest or end[1] == rest]
        if not found and dot and port in ports:
            found = [end for end in of if end[1:] == (port, column)]
        if not found:
            names = dict.fromkeys(end[2] for end in of)
            known = ", ".join(f"`{name}`" for name in names) or "none that is known before the run"
            raise CommandLineError(
                f"`{component}` has no column `{rest}`{_meant(rest, names)}", f"its columns are {known}"
            )
        return found


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), 1, 0.6)
    return f"; did you mean `{close[0]}`?" if close else ""


def as_text(lineage: Lineage, ends: list[End]) -> str:
    """Each output with its columns, what each is computed from, and its original sources."""
    if not ends:
        return "no columns are known before the run"
    lines: list[str] = []
    last: tuple[str, str] | None = None
    width = max(len(end[2]) for end in ends)
    types = max(len(lineage.type_of(end)) for end in ends)
    for end in ends:
        if end[:2] != last:
            last = (end[0], end[1])
            lines += ["", safe(f"{end[0]}.{end[1]}")] if lines else [safe(f"{end[0]}.{end[1]}")]
        before, first = lineage.back(end), lineage.sources(end)
        origin = f"← {', '.join(map(_name, before))}" if before else "made here"
        far = f"  (from {', '.join(map(_name, first))})" if first and set(first) != set(before) else ""
        lines.append(safe(f"  {end[2]:<{width}}  {lineage.type_of(end):<{types}}  {origin}{far}").rstrip())
    return "\n".join(lines)


def _name(end: End) -> str:
    component, port, column = end
    return f"{component}.{column}" if port == "main" else f"{component}.{port}.{column}"


def as_json(lineage: Lineage, ends: list[End]) -> dict[str, Any]:
    return {
        "name": lineage.net.name,
        "columns": [
            {
                **_end_json(end),
                "type": lineage.type_of(end) or None,
                "from": [_end_json(one) for one in lineage.back(end)],
                "sources": [_end_json(one) for one in lineage.sources(end)],
            }
            for end in ends
        ],
    }


def _end_json(end: End) -> dict[str, str]:
    return {"component": end[0], "port": end[1], "column": end[2]}


def as_mermaid(lineage: Lineage, ends: list[End]) -> str:
    """One box per output, one node per column, an arrow for each thing it is made of."""
    drawn: dict[End, str] = {}
    arrows: list[tuple[End, End]] = []
    waiting = list(ends)
    while waiting:
        end = waiting.pop(0)
        if end in drawn:
            continue
        drawn[end] = f"c{len(drawn)}"
        arrows += [(one, end) for one in lineage.back(end)]
        waiting += lineage.back(end)
    boxes: dict[tuple[str, str], list[End]] = {}
    for end in drawn:
        boxes.setdefault(end[:2], []).append(end)
    lines = ["flowchart LR"]
    for number, ((component, port), columns) in enumerate(boxes.items()):
        lines.append(f'  subgraph s{number}["{_quoted(f"{component}.{port}")}"]')
        lines += [f'    {drawn[end]}["{_quoted(end[2])}"]' for end in columns]
        lines.append("  end")
    lines += [f"  {drawn[one]} --> {drawn[other]}" for one, other in dict.fromkeys(arrows)]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Mermaid can only escape its special characters by their code points."""
    return "".join(f"#{ord(sign)};" if sign in '"#;<>[]{}|`' else sign for sign in text)


def lineage(options: Namespace) -> int:
    if options.json and options.mermaid:
        raise CommandLineError("`--json` and `--mermaid` are two forms of the same; choose one")
    job = Library().valid_job(Path(options.file), "lineage of columns")
    assert job.net is not None
    lineage = Lineage(job.net, job.schemas, job.lineage)
    chosen = lineage.chosen(options.column)
    if options.json:
        put_json(as_json(lineage, chosen))
    elif options.mermaid:
        put(as_mermaid(lineage, chosen))
    else:
        put(as_text(lineage, chosen))
    return 0
