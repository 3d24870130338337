"""Short ways to write and compile jobs."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from penstock.dialects.diagnostics import pages
from penstock.dialects.job import CompiledJob, compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.kernel.net import Net, On
from tests.dialects.job.catalog import CATALOG

TABLE = {code: page for code, page in pages().items() if code.startswith("J")}
"""The pages of diagnostics of this language."""


def compiled(
    text: str, joblets: dict[str, str] | None = None, *, strict: bool = False, file: str = "test.yaml", **more: object
) -> CompiledJob:
    """`joblets`: name -> text, as if they lay beside the job."""
    files = {str(Path(f"{name}.yaml").absolute()): dedent(each) for name, each in (joblets or {}).items()}
    read = lambda path: files.get(str(path))  # noqa: E731
    return compile_text(dedent(text), file, CATALOG, strict=strict, read=read, **more)  # type: ignore[arg-type]


def problems(text: str, code: str | None = None, joblets: dict[str, str] | None = None) -> list[Problem]:
    return [problem for problem in compiled(text, joblets).problems if code is None or problem.code == code]


def codes(text: str, joblets: dict[str, str] | None = None) -> list[str]:
    return [problem.code for problem in problems(text, None, joblets)]


def errors(text: str, joblets: dict[str, str] | None = None) -> list[str]:
    return [problem.code for problem in problems(text, None, joblets) if problem.severity is Severity.ERROR]


def names(text: str, joblets: dict[str, str] | None = None) -> list[str]:
    """The NAMES of the problems: what stands before the colon."""
    return [problem.message.partition(":")[0] for problem in problems(text, None, joblets)]


def net_of(text: str, joblets: dict[str, str] | None = None, **more: object) -> Net:
    result = compiled(text, joblets, **more)  # type: ignore[arg-type]
    assert result.net is not None, [(problem.code, problem.message) for problem in result.problems]
    return result.net


def job(*lines: str, head: str = "", types: dict[str, str] | None = None, **params: dict[str, object]) -> str:
    """A job from its links: components are `noop`, or `filter` where rows flow through, unless `types` says otherwise."""
    given = types or {}
    data = [line for line in lines if "->" in line]
    control = [line for line in lines if "->" not in line and "(" in line]
    order: list[str] = []
    for line in lines:
        bare = line.partition("(")[0] + " " + line.rpartition(")")[2] if "(" in line else line.replace("->", " ")
        order += [word.partition(".")[0] for word in bare.replace(",", " ").split()]
    sources = {word.strip().partition(".")[0] for line in data for word in line.partition("->")[0].split(",")}
    targets = {word.strip().partition(".")[0] for line in data for word in line.partition("->")[2].split(",")}
    text = head + "components:\n"
    for name in dict.fromkeys([*given, *order]):
        if name in given:
            type_ = given[name]
        elif name in sources or name in targets:
            type_ = "fixed_rows" if name not in targets else "filter" if name in sources else "log_rows"
        else:
            type_ = "noop"
        text += f"  - name: {name}\n    type: {type_!r}\n"
        chosen = params.get(name, _PARAMS.get(type_))
        if chosen:
            text += f"    params: {chosen}\n"
    if data or control:
        text += "connections:\n"
    for section, found in (("data", data), ("control", control)):
        if found:
            text += f"  {section}: |\n" + indent("\n".join(found), "    ") + "\n"
    return text


_PARAMS = {
    "fixed_rows": {"columns": ["id"], "rows": [[1]]},
    "filter": {"where": "id > 0"},
    "read_csv": {"path": "in.csv"},
    "write_csv": {"path": "out.csv"},
    "derive": {"columns": {"twice": "id + id"}},
    "iterate_list": {"items": [1, 2]},
    "iterate_while": {"while": "global.more"},
    "python": {"code": "pass"},
    "sleep": {"seconds": 1},
    "warn": {"message": "x"},
    "set_global": {"values": {"x": 1}},
}


def subjobs(net: Net, container: str = "") -> list[tuple[str, ...]]:
    return [region.members for region in net.containers[container].regions]


def links(net: Net) -> list[str]:
    """The author's links, each as one line."""
    found = []
    for link in net.links:
        if link.hidden:
            continue
        if link.on is On.DATA:
            found.append(f"{link.source}.{link.port} -> {link.target}.{link.to_port}")
        elif link.on is On.IF:
            found.append(f"{link.source} (if {link.order}: {link.when}) {link.target}")
        else:
            found.append(f"{link.source} ({link.on.value}) {link.target}")
    return found
