"""Tools of the flow itself: `playbook` and `job` start another document as a child of this run; `noop`, `sleep` and `log` reach
nothing outside."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

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


class NoopParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    value: Annotated[Any, about("Becomes the result.")] = None


class NoopTool(Tool[NoopParams]):
    """Do nothing, successfully. The result is `value`: handy where a policy or a route needs a task to hang on."""

    kind: ClassVar[str] = "noop"
    makes_files: ClassVar[bool] = False
    inline: ClassVar[bool] = True
    pure: ClassVar[bool] = True
    needs_secrets: ClassVar[bool] = False

    def run_inline(self, params: NoopParams, call: Call) -> object:
        return params.value


class SleepParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    seconds: Annotated[float, about("How long to wait; fractions are allowed.", ge=0)]


class SleepTool(Tool[SleepParams]):
    """Wait. The result is `{slept}`, in seconds."""

    kind: ClassVar[str] = "sleep"
    makes_files: ClassVar[bool] = False
    needs_secrets: ClassVar[bool] = False

    async def run(self, params: SleepParams, call: Call) -> object:
        await call.clock.sleep(params.seconds)
        return {"slept": params.seconds}


class LogParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    message: Annotated[Any, about("Text; anything else is shown as JSON.")]
    level: Annotated[Literal["debug", "info", "warning", "error"], about("Shown in front, except `info`.")] = "info"
    data: Annotated[Any, about("Shown after the message as JSON.")] = None


class LogTool(Tool[LogParams]):
    """Write a line into the run's log. The result is the message."""

    kind: ClassVar[str] = "log"
    makes_files: ClassVar[bool] = False
    inline: ClassVar[bool] = True

    def run_inline(self, params: LogParams, call: Call) -> object:
        text = params.message if isinstance(params.message, str) else _json(params.message)
        if params.level != "info":
            text = f"{params.level}: {text}"
        if params.data is not None:
            text = f"{text} {_json(params.data)}"
        for line in text.split("\n"):
            call.say(line)
        return params.message


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
