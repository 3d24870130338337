"""`die` and `warn`: saying that something is wrong, with and without ending the job."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from penstock.components.base import Action, Call, ComponentFailure
from penstock.kernel.values import JsonMap
from penstock.tools.parameters import about


class DieParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    message: Annotated[str, about("Why; shown, kept in the log, and readable by `log_catcher`.")] = (
        "the job was told to die"
    )
    code: Annotated[int, about("What the process exits with, 1 to 255.", ge=1, le=255)] = 1


class Die(Action[DieParams]):
    """End the job, with a message and an exit code.

    The component ends in ERROR. What its error links reach still runs, what is running finishes, and a `post_job` has its
    turn; nothing else starts. After-variables: `DIE_MESSAGE`, `DIE_CODE`.
    """

    type: ClassVar[str] = "die"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: DieParams, call: Call) -> None:
        call.after.update({"DIE_MESSAGE": params.message, "DIE_CODE": params.code})
        raise ComponentFailure("die", params.message, exit_code=params.code, code=params.code)


class WarnParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    message: Annotated[str, about("What is worth knowing.")]
    code: Annotated[int, about("A number of your own, for whoever reads the warnings.")] = 0


class Warn(Action[WarnParams]):
    """Write a warning into the run's log and go on.

    The component ends OK; `log_catcher` finds the warning. The result is `{message, code}`. After-variables:
    `WARN_MESSAGE`, `WARN_CODE`.
    """

    type: ClassVar[str] = "warn"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: WarnParams, call: Call) -> JsonMap:
        for line in params.message.split("\n"):
            call.say(f"warning: {line}")
        call.after.update({"WARN_MESSAGE": params.message, "WARN_CODE": params.code})
        return {"message": params.message, "code": params.code}
