"""`set_global`: values that later components read."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure
from penstock.expr.job_names import why_not_a_global
from penstock.kernel.values import JsonMap


class SetGlobalParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    values: Annotated[dict[str, Any], Meta(description="Name -> value: text, a number, a list, a mapping, null.")]


class SetGlobal(Action[SetGlobalParams]):
    """Set global variables.

    They are visible when the component's links fire, all of them at once, as `{{ global.name }}`. A value that is exactly
    one `{{ … }}` keeps its type. A variable that another sub-job created can be changed for everyone only by a component
    that lists it in `global_export`. A name has letters, digits, `_` and `-`, and begins with a letter. The result is
    `{names}`.
    """

    type: ClassVar[str] = "set_global"
    family: ClassVar[str] = "orchestrate"
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

    async def run(self, params: SetGlobalParams, call: Call) -> JsonMap:
        for name, value in params.values.items():
            reason = why_not_a_global(name)
            if reason is not None:
                raise ComponentFailure("parameters", reason)
            call.globals[name] = value
        return {"names": [*sorted(params.values)]}
