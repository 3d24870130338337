"""Assignments that a document asks for, rendered: what a patch is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from penstock.expr.errors import UndefinedValue
from penstock.expr.scope import Scope
from penstock.expr.template import render_writes
from penstock.kernel.net import Writes
from penstock.kernel.values import JsonMap

Say = Callable[[str], None]


class UndefinedWrites:
    """What becomes of undefined values that are written: null and a line of the run's own, each once; or, where the document is
    strict, an error (D67)."""

    def __init__(self, say: Say, *, strict: bool) -> None:
        self._say = say
        self._strict = strict
        self._said: set[tuple[str, str]] = set()

    def __call__(self, error: UndefinedValue, target: str, writer: str) -> None:
        if self._strict:
            raise error
        line = f"warning: `{target}`, written by {writer}, is null: {error}"
        if error.text.strip() != error.text or not error.text.startswith("{{") or error.text.count("{{") > 1:
            line = f"warning: `{target}`, written by {writer}, lacks a value: {error}"
        if (target, line) not in self._said:
            self._said.add((target, line))
            self._say(f"{line}; write `| default(…)` if it may be missing")


def rendered(writes: Writes, scope: Scope, undefined: UndefinedWrites, writer: str) -> JsonMap:
    if not writes:
        return {}
    made: JsonMap = {}
    for kind, prefix, templates in (
        ("iter", "iter", writes.iter),
        ("ctx", "ctx", writes.ctx),
        ("append", "ctx", writes.append),
        ("shared", "shared", writes.shared),
    ):
        if not templates:
            continue

        def note(error: UndefinedValue, prefix: str = prefix) -> None:
            undefined(error, f"{prefix}.{error.path[0]}", writer)

        values = cast(JsonMap, render_writes(templates, scope, note))
        is_added = kind in ("append", "shared")
        made[kind] = {key: [value] for key, value in values.items()} if is_added else values
    return made
