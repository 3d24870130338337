"""Tools too small for a file of their own: `noop`, `sleep`, `log`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.tools.base import Call, Tool
from penstock.tools.parameters import about


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
