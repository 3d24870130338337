"""The `playbook` tool: another playbook as one task."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.tools.base import Call, Tool


class PlaybookParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="A file relative to the calling one, or a name in the catalog.")]
    args: Annotated[dict[str, Any] | None, Meta(description="Laid over the other playbook's `workload`.")] = None
    return_step: Annotated[
        str | None, Meta(description="The step whose result is the task's; otherwise that of the last step to finish.")
    ] = None


class PlaybookTool(Tool[PlaybookParams]):
    """Run another playbook in a scope of its own and take its result. It fails when the other one does."""

    kind: ClassVar[str] = "playbook"
    Params: ClassVar[type[msgspec.Struct]] = PlaybookParams
    example: ClassVar[str] = """\
- name: load
  kind: playbook
  path: load_one.yaml
  args: { table: orders }
  return_step: summary
"""

    async def run(self, params: PlaybookParams, call: Call) -> object:
        return await call.play(params.path, params.args or {}, params.return_step)
