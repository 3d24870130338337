"""A small catalog of tools, and short ways to write and compile documents."""

from __future__ import annotations

from textwrap import dedent, indent

from penstock.dialects.diagnostics import pages
from penstock.dialects.playbook import Compiled, compile_text
from penstock.dialects.problems import Problem, Severity
from penstock.kernel.net import Net, Node
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, PYTHON_BODY, READS_FILE, WEB
from penstock.ports.plugins import ParamInfo, ToolDescription
from penstock.tools.http.tool import HttpTool
from penstock.tools.shell import ShellTool
from penstock.tools.sql.postgres import PostgresTool

TABLE = {code: page for code, page in pages().items() if code.startswith(("E", "P"))}
"""The pages of diagnostics of this language."""

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: test }\n"
WORKLOAD = "workload: { city: Oslo, go: true, again: false, more: false, x: 1, items: [1, 2] }\n"


_GIVES = {"http": HttpTool.gives, "postgres": PostgresTool.gives, "shell": ShellTool.gives}
_MEANINGS: dict[str, JsonMap] = {"url": WEB, "auth": KEYCHAIN_ENTRY, "code": PYTHON_BODY, "script": READS_FILE}


def _tool(kind: str, *params: ParamInfo, defaults: JsonMap | None = None) -> ToolDescription:
    types: dict[str, JsonMap] = {
        param.name: {"type": list(param.types)} if param.types != ("any",) else {} for param in params
    }
    schema: JsonMap = {
        "type": "object",
        "properties": {name: {**one, **_MEANINGS.get(name, {})} for name, one in types.items()},
        "required": [param.name for param in params if param.required],
    }
    named = {param.name: param for param in params}
    return ToolDescription(kind, f"The {kind} tool.", named, schema, defaults or {}, gives=_GIVES.get(kind, ()))


def _param(name: str, *types: str, required: bool = False, enum: tuple[str, ...] | None = None) -> ParamInfo:
    return ParamInfo(name, required, types or ("any",), enum, f"The {name}.")


_TOOLS = (
    _tool("noop", _param("value")),
    _tool("sleep", _param("seconds", "number", required=True)),
    _tool("log", _param("message", required=True), _param("level", "string", enum=("info", "error")), _param("data")),
    _tool(
        "http",
        _param("url", "string", required=True),
        _param("method", "string", enum=("GET", "POST")),
        _param("headers", "object", "null"),
        _param("params", "object", "null"),
        _param("json"),
        _param("auth", "string", "object", "null"),
        defaults={"timeout": {"connect": 5, "read": 30}, "pool": "shared"},
    ),
    _tool(
        "python",
        _param("code", "string"),
        _param("script", "string", "null"),
        _param("args", "object", "null"),
        _param("libs", "array", "object", "null"),
    ),
    _tool("postgres", _param("auth", "string", "object"), _param("command", "string"), _param("query", "string")),
    _tool("shell", _param("run", "string", "array", required=True), _param("input", "string", "null")),
    _tool(
        "playbook", _param("path", "string", required=True), _param("return_step", "string"), _param("args", "object")
    ),
)


class SmallCatalog:
    def __init__(self, *tools: ToolDescription) -> None:
        self._tools = {tool.kind: tool for tool in tools}

    def kinds(self) -> list[str]:
        return sorted(self._tools)

    def describe(self, kind: str) -> ToolDescription | None:
        return self._tools.get(kind)


CATALOG = SmallCatalog(*_TOOLS)


def compiled(text: str, *, strict: bool = False, file: str = "test.yaml") -> Compiled:
    return compile_text(text, file, CATALOG, strict=strict)


def problems(text: str, code: str | None = None) -> list[Problem]:
    found = compiled(text).problems
    return [problem for problem in found if code is None or problem.code == code]


def codes(text: str) -> list[str]:
    return [problem.code for problem in problems(text)]


def errors(text: str) -> list[str]:
    return [problem.code for problem in problems(text) if problem.severity is Severity.ERROR]


def net_of(text: str) -> Net:
    result = compiled(text)
    assert result.net is not None, [(problem.code, problem.message) for problem in result.problems]
    return result.net


def steps(text: str, head: str = HEAD + WORKLOAD) -> str:
    """A document around entries of `workflow`."""
    return head + "workflow:\n" + indent(dedent(text).strip("\n") + "\n", "  ")


def tasks(text: str, head: str = HEAD + WORKLOAD) -> str:
    """A document with one step, `start`, around entries of `tool`."""
    return steps("- step: start\n  tool:\n" + indent(dedent(text).strip("\n") + "\n", "    "), head)


def place_within_steps(problem: Problem) -> tuple[int, int]:
    """Line and column within the text that was given to `steps`."""
    return problem.position.line - 5, problem.position.column - 2


def place_within_tasks(problem: Problem) -> tuple[int, int]:
    """Line and column within the text that was given to `tasks`."""
    return problem.position.line - 7, problem.position.column - 6


def node_of(text: str, step: str = "start") -> Node:
    return net_of(text).nodes[step]


def whole(example: str) -> str:
    """An example of a problem code as a document."""
    if example.startswith("- step:") and "# a whole file" not in example:
        return steps(example)
    if example.startswith("- ") and "# a whole file" not in example:
        return tasks(example)
    return example
