"""The `playbook` and `job` tools: start another document as a child of this run."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from penstock.tools.base import Call, Tool
from penstock.tools.parameters import about


class PlaybookParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("A file relative to the calling one, or a name in the catalog.")]
    args: Annotated[dict[str, Any] | None, about("Laid over the other playbook's `workload`.")] = None
    return_step: Annotated[
        str | None, about("The step whose result is the task's; otherwise that of the last step to finish.")
    ] = None


class PlaybookTool(Tool[PlaybookParams]):
    """Run another playbook in a scope of its own and take its result. It fails when the other one does."""

    kind: ClassVar[str] = "playbook"

    async def run(self, params: PlaybookParams, call: Call) -> object:
        return await call.play(params.path, params.args or {}, params.return_step)


# ---- The `job` tool: a job as one task of a playbook.


class JobParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("A file relative to the calling one, or a name in the catalog.")]
    args: Annotated[dict[str, Any] | None, about("Laid over the job's `context`.")] = None
    context_group: Annotated[
        str | None, about("A group of the job's `context`, as `--context` names it; `args` go over it.")
    ] = None
    outputs: Annotated[
        list[str] | None,
        about("`component.port`, or a component for its `main`: rows to give back. No link needs to read them."),
    ] = None


class JobTool(Tool[JobParams]):
    """Run a job in a scope of its own. It fails when the job does.

    The result has `status`, `globals`, `components` (name to state, `rows_in`, `rows_out`) and `outputs`: for each one asked for
    its `columns`, `row_count` and `rows`; of more than 1,000 rows a reference under `stored` instead.
    """

    kind: ClassVar[str] = "job"

    async def run(self, params: JobParams, call: Call) -> object:
        outputs = tuple(params.outputs or ())
        return await call.play(params.path, params.args or {}, None, outputs, params.context_group)
