"""The `shell` tool: one command or script in a process of its own, its output bounded and its process group ended with it."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.tools.base import Call, Tool, ToolFailure
from penstock.tools.output import Kept, Lines
from penstock.tools.parameters import Positive, about
from penstock.tools.process import Child, Form, bad_exit, data_of, shorter, start, tails

TERM_SECONDS = 2.0


class ShellParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[
        str | list[str],
        about("A list is one program with its arguments, run as it is; text is a script for the shell."),
    ]
    shell: Annotated[Literal["sh", "bash"], about("What runs a script: `/bin/sh`, or `bash` from the path.")] = "sh"
    env: Annotated[dict[str, str], about("Variables added to those of the engine's own process.")] = {}
    cwd: Annotated[
        str | None, about("Working folder, relative to the document's folder, which is also the default.")
    ] = None
    stdin: Annotated[str | None, about("Text for the command's input; without it the input is empty.")] = None
    timeout: Annotated[Positive | None, about("Seconds the command may take; `spec.timeout` holds as well.")] = None
    ok_codes: Annotated[list[int], about("Exit codes that count as success; `[0]` by default.")] = msgspec.field(
        default_factory=lambda: [0]
    )
    output: Annotated[Form, about("What `data` of the result is made of from the output.")] = "text"


class ShellTool(Tool[ShellParams]):
    """Run a command or a script.

    The result is `{exit_code, stdout, stderr, data}`; `data` is the output as text without its last line end, as parsed
    JSON, or as a list of lines. Every line goes to the run's log as it comes. Of an output that is longer than the
    operator's limit the beginning and the end are kept.

    The command sees the environment of the engine's process and the variables in `env`; secrets belong in `env` or
    `stdin`, never in `command`, which other users of the machine can see. It runs in a session of its own: when the task
    ends, is cancelled or runs out of time, whatever it started in the background ends with it (`SIGTERM`, two seconds
    later `SIGKILL`). A program that shall outlive the task has to be started with `setsid`.

    An exit code that is not in `ok_codes` is an error of kind `exit_code`; further kinds are `timeout`, `not_found`,
    `cannot_start` and `output` (what came is not the JSON that was asked for).
    """

    kind: ClassVar[str] = "shell"

    async def run(self, params: ShellParams, call: Call) -> object:
        run = _Run(params, call)
        child = run.start()
        limit = shorter(params.timeout, call.timeout())
        try:
            async with asyncio.timeout(limit):
                code = await child.ended()
        except TimeoutError:
            await child.terminate(TERM_SECONDS)
            run.flush()
            message = f"the command was still running after {limit:g} s"
            raise ToolFailure("timeout", message, retryable=True, **run.tails()) from None
        except asyncio.CancelledError:
            await child.terminate(TERM_SECONDS)
            raise
        finally:
            child.close()
        run.flush()
        return run.result(code)


class _Run:
    def __init__(self, params: ShellParams, call: Call) -> None:
        limit = call.settings.max_output_bytes
        self._params = params
        self._call = call
        self._kept = {"stdout": Kept(limit), "stderr": Kept(limit)}
        self._lines = {"stdout": Lines(call.say, limit), "stderr": Lines(call.say, limit)}

    def start(self) -> Child:
        command, call = self._params.command, self._call
        interpreter = "/bin/sh" if self._params.shell == "sh" else "bash"
        arguments = [interpreter, "-c", command] if isinstance(command, str) else command
        if not arguments or not arguments[0]:
            raise ToolFailure("parameters", "`command` is an empty list; the first element is the program")
        return start(
            arguments,
            env={**os.environ, **self._params.env},
            cwd=call.folder if self._params.cwd is None else call.resolve(self._params.cwd),
            stdin=None if self._params.stdin is None else self._params.stdin.encode(),
            stdout=lambda data: self._take("stdout", data),
            stderr=lambda data: self._take("stderr", data),
        )

    def _take(self, name: str, data: bytes) -> None:
        self._kept[name].feed(data)
        self._lines[name].feed(data)

    def flush(self) -> None:
        for lines in self._lines.values():
            lines.close()

    def tails(self) -> dict[str, Any]:
        return tails(self._kept)

    def result(self, code: int) -> object:
        if code not in self._params.ok_codes:
            raise bad_exit("the command", code, self._params.ok_codes, self._kept)
        texts = {name: kept.text() for name, kept in self._kept.items()}
        return {"exit_code": code, **texts, "data": data_of(self._kept, self._params.output)}
