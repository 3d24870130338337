"""`python` on an engine that is elsewhere: which uses of it can run there, and how they do.

The code runs once for each part of the rows, beside the others and without knowing of them. It may run twice where a worker was
lost, and only the rows of one of them count.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from penstock.components.base import Call, ComponentFailure, Known, PlanCall
from penstock.components.code.block import Block
from penstock.components.code.params import PythonParams
from penstock.ports.rows import Column, Program, RemoteSession, RowsFailed, Schema
from penstock.tools.python.code import NotFriendly, to_json_friendly

_MODULES = {"code_tools": "penstock.tools.python.code", "on_workers": "penstock.components.code.on_workers"}
"""What travels to the workers, as text; in this order."""
_NOT_THERE = {
    "globals": "`globals` are of the whole job, and the code runs in many places at once",
    "emit": "`emit` writes to other ports, and only `main` is there",
    "inputs": "`inputs` holds the rows of other ports, which would have to go to every worker; join them in front of it",
    "log": "`log` has no run's log there; `print` goes to the log of the worker",
    "result": "`result` is one value for all rows, and the code runs in many places at once",
}
_AS_TEXT = ("INTERVAL", "BIT", "TIME WITH TIME ZONE")


def reason(params: PythonParams, inputs: Known, call: PlanCall) -> str | None:
    """Why this use cannot run there; None when it can."""
    if params.mode not in ("row", "batch"):
        return f"`mode: {params.mode}` takes all rows into this process; `row` and `batch` can run there"
    if params.on_error == "reject" or any(port != "main" for port in call.connected):
        return (
            "only `main` can be read there: rows on `reject` or another port are sorted out by the code in this process"
        )
    if any(port != "input" for port in inputs):
        return _NOT_THERE["inputs"]
    for column in inputs.get("input") or ():
        if column.type.upper() in _AS_TEXT:
            return f"the column `{column.name}` is {column.type}, which the code would see as text"
    problem = _of_code(params)
    if problem is None and not params.output_schema and "main" not in call.declared:
        return "it has to say before the run what columns it makes, in `output_schema`"
    return problem


def _of_code(params: PythonParams) -> str | None:
    try:
        step, setup = ast.parse(params.code), ast.parse(params.setup or "")
    except SyntaxError:
        return None  # It is told with its line when the code is compiled.
    used = {node.id for tree in (step, setup) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name, why in _NOT_THERE.items():
        if name in used:
            return why
    if "reject" in _set_in(step):
        return "`reject` sends rows to a port that is not there"
    kept = sorted((_set_in(step) & _set_in(setup)) | set(_declared_global(step)) | _only_added_to(step))
    if kept:
        return f"`{kept[0]}` goes on from row to row, and each part of the rows begins anew there; use a query for that"
    return None


def _set_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _declared_global(tree: ast.AST) -> Iterable[str]:
    return (name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)


def _only_added_to(tree: ast.Module) -> set[str]:
    """`count += 1` of what the code never sets: it would be left over from the row before."""
    added = {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    plain = {
        node.id
        for other in ast.walk(tree)
        if not isinstance(other, ast.AugAssign)
        for node in ast.iter_child_nodes(other)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return added - plain - {"row", "rows", "output"}


def run(params: PythonParams, schema: Schema, call: Call) -> None:
    """The whole run, in a thread. Raises ComponentFailure for what the code does."""
    rows = call.input()
    problem = reason(params, {"input": rows.schema}, call.plan())
    if problem is not None:
        raise ComponentFailure("engine", f"`python` cannot run on this engine: {problem}")
    program = Program(_texts(), "on_workers", json.dumps(_told(params, rows.schema, call)))
    session = cast(RemoteSession, call.engine)
    try:
        call.put("main", session.run_program(program, rows, schema))
    except RowsFailed as failed:
        if failed.kind != "program":
            raise
        told = json.loads(failed.message)
        raise ComponentFailure(told["kind"], told["message"], retryable=told["retryable"], **told["detail"]) from failed


@cache
def _texts() -> Mapping[str, str]:
    found = {}
    for name, module in _MODULES.items():
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        found[name] = Path(spec.origin).read_text(encoding="utf-8")
    return found


def _told(params: PythonParams, schema: Schema, call: Call) -> dict[str, Any]:
    block = Block(params.code, "code", call.source)
    setup = Block(params.setup, "setup", call.source) if params.setup is not None else None
    is_asked = {
        name for one in (block, setup) if one is not None for name in ("context", "iteration") if one.names(name)
    }
    try:
        context = to_json_friendly(call.context) if "context" in is_asked else {}
        iteration = to_json_friendly(call.iteration) if "iteration" in is_asked else None
    except NotFriendly as problem:
        raise ComponentFailure(
            "engine", f"{problem.place('context')} {problem.reason}: it cannot go to workers"
        ) from None
    return {
        "code": block.code.text,
        "file": block.code.file,
        "line": block.code.line,
        "setup": None if setup is None else {"code": setup.code.text, "file": setup.code.file, "line": setup.code.line},
        "mode": params.mode,
        "batch_size": params.batch_size,
        "constant": block.constant(),
        "names": block.identifiers(),
        "passes": not block.names("output"),
        "kinds": {column.name: kind for column in schema if (kind := _kind(column)) is not None},
        "context": context,
        "iteration": iteration,
    }


def _kind(column: Column) -> str | None:
    upper = column.type.upper()
    if upper in ("UUID", "TIME"):
        return upper
    if upper in ("HUGEINT", "UHUGEINT", "BIGNUM", "UBIGINT"):
        return "INTEGER"
    if upper in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"):
        return "ZONED"
    return "MAP" if upper.startswith("MAP(") and not upper.endswith("]") else None
