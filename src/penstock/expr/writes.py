"""Assignments that a document asks for, rendered: what a patch is made of."""

from __future__ import annotations

from typing import cast

from penstock.expr.scope import Scope
from penstock.expr.template import render_lenient
from penstock.kernel.net import Writes
from penstock.kernel.values import JsonMap


def rendered(writes: Writes, scope: Scope) -> JsonMap:
    if not writes:
        return {}
    made: JsonMap = {}
    for kind, templates in (("iter", writes.iter), ("ctx", writes.ctx)):
        if templates:
            made[kind] = cast(JsonMap, render_lenient(dict(templates), scope))
    for kind, templates in (("append", writes.append), ("shared", writes.shared)):
        if templates:
            values = cast(JsonMap, render_lenient(dict(templates), scope))
            made[kind] = {key: [value] for key, value in values.items()}
    return made
