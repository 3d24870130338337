"""`shell`: a command or script as a component."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from penstock.components.base import Action, Call, Known, PlanCall, Schemas
from penstock.components.flow.tool_calls import failure_from, require, tool_call
from penstock.kernel.values import JsonMap
from penstock.ports.components import Mistake, Port
from penstock.ports.rows import Column, Schema
from penstock.tools import shell
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import Positive, about

MAX_AFTER = 10_000
"""Characters of output in an after-variable; the result has all of it."""
LINES: Schema = (Column("number", "BIGINT"), Column("line", "VARCHAR"))
_ANY_CODE = list(range(-64, 256))


class ShellParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[
        str | list[str],
        about("Text is a script for the shell; a list, or text beside `args`, is one program that is run as it is."),
    ]
    args: Annotated[list[str] | None, about("Arguments of the program in `command`; no shell looks at them.")] = None
    env: Annotated[dict[str, str], about("Variables added to those of the engine's own process.")] = {}
    cwd: Annotated[
        str | None, about("Working folder, relative to the document's folder, which is also the default.")
    ] = None
    stdin: Annotated[str | None, about("Text for the command's input; without it the input is empty.")] = None
    timeout: Annotated[Positive | None, about("Seconds the command may take.")] = None
    check: Annotated[bool, about("An exit code other than 0 is a failure.")] = True


class Shell(Action[ShellParams]):
    """Run a command or a script.

    The result is `{exit_code, stdout, stderr}`, and so are the after-variables `EXIT_CODE`, `STDOUT` and `STDERR` (the last
    10,000 characters); `EXIT_CODE` is there after a failure too. Each line goes to the run's log as it comes. `main`, when
    it is read, has the output as rows: `number` from 1, `line`.

    Values from rows or from outside belong in `args`, `env` or `stdin`, where no shell takes them apart. Secrets belong in
    `env` or `stdin`: other users of the machine can see a command. When the component ends, is cancelled or runs out of
    time, whatever it started ends with it.
    """

    type: ClassVar[str] = "shell"
    family: ClassVar[str] = "orchestrate"
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="the lines of the output"),)

    def check(self, params: ShellParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return _mistakes(params)

    def schemas(self, params: ShellParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": LINES}

    async def run(self, params: ShellParams, call: Call) -> JsonMap:
        require(_mistakes(params))
        asked = shell.ShellParams(
            command=_command(params),
            env=params.env,
            cwd=params.cwd,
            stdin=params.stdin,
            timeout=params.timeout,
            ok_codes=[0] if params.check else _ANY_CODE,
        )
        try:
            done = await shell.ShellTool().run(asked, tool_call(call))
        except ToolFailure as failed:
            _remember(call, failed.detail)
            raise failure_from(failed) from failed
        assert isinstance(done, dict)
        result: JsonMap = {name: done[name] for name in ("exit_code", "stdout", "stderr")}
        _remember(call, result)
        if "main" in call.connected:
            rows = list(enumerate(str(result["stdout"]).splitlines(), start=1))
            call.put("main", await call.threads.run(call.engine.load, LINES, [rows]))
        return result


def _mistakes(params: ShellParams) -> list[Mistake]:
    if params.args is not None and isinstance(params.command, list):
        return [
            Mistake(("args",), "`command` is a list and has its arguments in it: leave `args` out, or make it text")
        ]
    return []


def _command(params: ShellParams) -> str | list[str]:
    if isinstance(params.command, list) or params.args is None:
        return params.command
    return [params.command, *params.args]


def _remember(call: Call, facts: JsonMap) -> None:
    if "exit_code" in facts:
        call.after["EXIT_CODE"] = facts["exit_code"]
    for name in ("stdout", "stderr"):
        if name in facts:
            call.after[name.upper()] = str(facts[name])[-MAX_AFTER:]
