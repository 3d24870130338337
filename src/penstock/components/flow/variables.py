"""`set_global`: values that later components read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure, Mistake, PlanCall
from penstock.expr.job_names import why_not_a_global
from penstock.kernel.values import JsonMap
from penstock.ports.rows import Schema


class SetGlobalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    values: Annotated[dict[str, Any], Meta(description="Name -> value: text, a number, a list, a mapping, null.")] = (
        msgspec.field(default_factory=dict)
    )
    delete: Annotated[
        list[str], Meta(description="Names of globals that are gone from here on. One that is not there is left alone.")
    ] = msgspec.field(default_factory=list)


class SetGlobal(Action[SetGlobalParams]):
    """Set global variables, and delete them.

    They are visible when the component's links fire, all of them at once, as `{{ global.name }}`. A value that is exactly
    one `{{ … }}` keeps its type. A variable that another sub-job created can be changed for everyone only by a component
    that lists it in `global_export`. A name has letters, digits, `_` and `-`, and begins with a letter. What is
    deleted is as if it had never been for whoever comes after: `{{ global.name | default(…) }}` gives the default, and an `if`
    link that reads it does not fire. The result is `{names}`, with `delete`
    `{names, deleted}`.
    """

    type: ClassVar[str] = "set_global"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    Params = SetGlobalParams
    example: ClassVar[str] = """\
context: {country: NL}
components:
  - name: settings
    type: set_global
    params:
      values: {table: "orders_{{ context.country }}", limit: 100}
  - name: tell
    type: warn
    params: {message: "loading {{ global.table }}"}
connections:
  control: settings (ok) tell
"""

    def check(self, params: SetGlobalParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        if not params.values and not params.delete:
            return [Mistake((), "it sets nothing and deletes nothing; hint: give `values`, or `delete`")]
        both = sorted(set(params.values) & set(params.delete))
        return [Mistake(("delete",), f"`{both[0]}` is set and deleted at once")] if both else []

    async def run(self, params: SetGlobalParams, call: Call) -> JsonMap:
        for name, value in params.values.items():
            reason = why_not_a_global(name)
            if reason is not None:
                raise ComponentFailure("parameters", reason)
            call.globals[name] = value
        gone = [name for name in params.delete if name in call.globals]
        for name in gone:
            del call.globals[name]
        names: JsonMap = {"names": [*sorted(params.values)]}
        return {**names, "deleted": [*sorted(gone)]} if params.delete else names
