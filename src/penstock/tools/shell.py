"""The `shell` tool: commands and scripts in processes of their own, their output bounded, their process group ended with them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import Call, Tool, ToolFailure, is_only_at_caller
from penstock.tools.output import Kept, Lines
from penstock.tools.parameters import Positive, about
from penstock.tools.process import Child, Form, bad_exit, data_of, head, shorter, start, tails

TERM_SECONDS = 2.0
MAX_TOLD = 1_000
MOST_TOLD = 20
"""Of the entries that ran, in the detail of a failure: the last ones, and so much of each text."""
MAX_NAMED = 120


class ShellParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    command: Annotated[
        str | list[str] | None,
        about(
            "A list is one program with its arguments, run as it is; text is a script for the shell. One of `command` and "
            "`cmds` is needed."
        ),
    ] = None
    cmds: Annotated[
        str | list[str] | None,
        about("Scripts that run one after another, each in a process of its own, until one fails; text is one script."),
    ] = None
    shell: Annotated[
        Literal["sh", "bash"] | None,
        about("What runs a script: `/bin/sh` (default of `command`), or `bash` from the path (default of `cmds`)."),
    ] = None
    env: Annotated[dict[str, str], about("Variables added to those of the engine's own process.")] = {}
    cwd: Annotated[
        str | None, about("Working folder, relative to the document's folder, which is also the default.")
    ] = None
    stdin: Annotated[
        str | None, about("Text for the command's input, or that of each entry; without it the input is empty.")
    ] = None
    timeout: Annotated[Positive | None, about("Seconds all of it may take; `spec.timeout` holds as well.")] = None
    ok_codes: Annotated[list[int], about("Exit codes that count as success; `[0]` by default.")] = msgspec.field(
        default_factory=lambda: [0]
    )
    output: Annotated[Form, about("What `data` of the result is made of from the output.")] = "text"

    def __post_init__(self) -> None:
        if (self.command is None) == (self.cmds is None):
            raise ValueError("one of `command` and `cmds` is needed, and not both")
        if self.cmds == []:
            raise ValueError("`cmds` is an empty list; each entry is a script")

    @property
    def program(self) -> str:
        shell = self.shell or ("sh" if self.cmds is None else "bash")
        return "/bin/sh" if shell == "sh" else shell


class ShellTool(Tool[ShellParams]):
    """Run a command or a script, or several scripts.

    The result is `{exit_code, stdout, stderr, data}`; `data` is the output as text without its last line end, as parsed
    JSON, or as a list of lines. Every line goes to the run's log as it comes. Of an output that is longer than the
    operator's limit the beginning and the end are kept.

    The command sees the environment of the engine's process and the variables in `env`; secrets belong in `env` or
    `stdin`, never in `command`, which other users of the machine can see. It runs in a session of its own: when the task
    ends, is cancelled or runs out of time, whatever it started in the background ends with it (`SIGTERM`, two seconds
    later `SIGKILL`). A program that shall outlive the task has to be started with `setsid`.

    `cmds` is a list of scripts. Each runs in a `bash` of its own, so a `cd` or a variable ends with its entry. The first one
    whose exit code is not in `ok_codes` is the last: the task fails, and its message says which it was. The result is that
    of the last entry, and `commands` has `{command, exit_code, stdout, stderr}` for each; these share the limit. After a
    failure `outcome.error.commands` has the last 20 that ran, cut to a thousand characters each.

    An entry of `cmds` in which a word names a file or folder that is found from the caller's folder, and not from the
    document's, runs in the caller's folder, and a line in the log says so. The caller's folder is the working folder of the
    `penstock run`, or of the Python program, that runs the document; with `cwd`, and on a fleet, there is none. A resume looks
    from the folder that it is called in: entries that are still to run may run elsewhere than they would have.

    An exit code that is not in `ok_codes` is an error of kind `exit_code`; further kinds are `timeout`, `not_found`,
    `cannot_start` and `output` (what came is not the JSON that was asked for).
    """

    kind: ClassVar[str] = "shell"
    gives: ClassVar[tuple[str, ...]] = ("exit_code", "stdout", "stderr", "data", "commands", "returncode")
    one_of: ClassVar[tuple[str, ...]] = ("command", "cmds")

    async def run(self, params: ShellParams, call: Call) -> object:
        run = _Run(params, call)
        limit = shorter(params.timeout, call.timeout())
        try:
            async with asyncio.timeout(limit):
                await run.entries()
        except TimeoutError:
            await run.stop()
            raise run.out_of_time(limit) from None
        except asyncio.CancelledError:
            await run.stop()
            raise
        finally:
            run.close()
        return run.result()


@dataclass(slots=True)
class _Entry:
    """A command, or one of `cmds`, and as much of its output as `commands` has room for."""

    command: str | list[str]
    output: dict[str, Kept]
    code: int | None = None

    def listed(self) -> JsonMap:
        return {"command": cast("Json", self.command), "exit_code": self.code, **_texts(self.output)}


def _texts(output: dict[str, Kept]) -> dict[str, str]:
    return {name: kept.text() for name, kept in output.items()}


class _Run:
    """Law: at most one child is alive, the last one that was started; only its output is kept up to the whole limit."""

    def __init__(self, params: ShellParams, call: Call) -> None:
        limit = call.settings.max_output_bytes
        scripts = params.cmds if isinstance(params.cmds, list) else [params.cmds or ""]
        self._params = params
        self._call = call
        self._commands: list[str | list[str]] = [*scripts] if params.command is None else [params.command]
        self._lines = {"stdout": Lines(call.say, limit), "stderr": Lines(call.say, limit)}
        self._begun: list[_Entry] = []
        self._output = self._room(limit)
        self._child: Child | None = None

    async def entries(self) -> None:
        for command in self._commands:
            folder = await self._folder(command)
            entry = self._entry(command)
            self._child = self._start(entry, folder)
            entry.code = await self._child.ended()
            self._flush()
            if entry.code not in self._params.ok_codes:
                raise self._bad_code(entry.code)

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.terminate(TERM_SECONDS)
        self._flush()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()

    def _flush(self) -> None:
        for lines in self._lines.values():
            lines.close()

    # ---- starting an entry

    async def _folder(self, command: str | list[str]) -> Path:
        call, cwd = self._call, self._params.cwd
        if cwd is not None:
            return call.resolve(cwd)
        if call.caller is None or self._params.cmds is None or not isinstance(command, str):
            return call.folder
        word = await call.threads.run(_word_of_the_caller, command, call)
        if word is None:
            return call.folder
        which = f"entry {len(self._begun) + 1}"
        call.say(f"{which} runs in `{call.caller}`: `{word}` is there, and not beside the document")
        return call.caller

    def _entry(self, command: str | list[str]) -> _Entry:
        limit = self._call.settings.max_output_bytes
        self._output = self._room(limit)
        count = len(self._commands)
        entry = _Entry(command, self._output if count == 1 else self._room(limit // count))
        self._begun.append(entry)
        return entry

    def _room(self, limit: int) -> dict[str, Kept]:
        return {name: Kept(limit) for name in self._lines}

    def _start(self, entry: _Entry, folder: Path) -> Child:
        params, command = self._params, entry.command
        arguments = [params.program, "-c", command] if isinstance(command, str) else command
        if not arguments or not arguments[0]:
            raise ToolFailure("parameters", "`command` is an empty list; the first element is the program")
        try:
            return start(
                arguments,
                env={**os.environ, **params.env},
                cwd=folder,
                stdin=None if params.stdin is None else params.stdin.encode(),
                stdout=lambda data: self._take(entry, "stdout", data),
                stderr=lambda data: self._take(entry, "stderr", data),
            )
        except ToolFailure as failure:
            if params.cmds is not None:
                self._begun.pop()
                failure.detail.update(self._told())
                if failure.detail.get("program") == "bash":
                    failure.message += ", which runs `cmds`: install it, or write `shell: sh`"
            raise

    def _take(self, entry: _Entry, name: str, data: bytes) -> None:
        self._output[name].feed(data)
        if entry.output is not self._output:
            entry.output[name].feed(data)
        self._lines[name].feed(data)

    # ---- what came of it

    def result(self) -> object:
        data = data_of(self._output, self._params.output, self._call.holds_secret, **self._told())
        result: JsonMap = {"exit_code": self._begun[-1].code, **_texts(self._output), "data": data}
        if self._params.cmds is not None:
            result["commands"] = [entry.listed() for entry in self._begun]
        return result

    def _bad_code(self, code: int) -> ToolFailure:
        return bad_exit(
            self._named(), code, self._params.ok_codes, self._output, self._call.holds_secret, **self._told()
        )

    def out_of_time(self, limit: float | None) -> ToolFailure:
        message = f"{self._named()} was still running after {limit:g} s"
        shown = tails(self._output, self._call.holds_secret)
        return ToolFailure("timeout", message, retryable=True, **shown, **self._told())

    def _named(self) -> str:
        if self._params.cmds is None or not self._begun:
            return "the command"
        command = str(self._begun[-1].command).strip()
        shown = head(command, min(MAX_NAMED, len(command.partition("\n")[0])), self._call.holds_secret)
        return f"entry {len(self._begun)} of {len(self._commands)} (`{shown}`)"

    def _told(self) -> dict[str, Any]:
        """What a failure says of the entries so far."""
        if self._params.cmds is None:
            return {}
        hides = self._call.holds_secret
        return {
            "commands": [
                {
                    "command": head(str(each.command), MAX_TOLD, hides),
                    "exit_code": each.code,
                    **tails(each.output, hides, MAX_TOLD),
                }
                for each in self._begun[-MOST_TOLD:]
            ]
        }


# ---- the words of a script that may be paths
#
# Near enough to what a shell reads: quotes and backslashes are, variables and patterns are not looked into. A bare word that
# names a command is looked for on the path, and is none.

_TOKEN = re.compile(
    r"""(?P<comment>(?<![^\s;&|()`])\#[^\n]*)
      | (?P<end>[;&|()`\n])
      | (?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|<>()`'"\\])+)""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)"|([^'"\\]+)""", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_BEFORE_COMMANDS = frozenset({"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"})


def _word_of_the_caller(script: str, call: Call) -> str | None:
    return next((word for word in _paths(script) if is_only_at_caller(word, call)), None)


def _paths(script: str) -> Iterator[str]:
    names_command = True
    for found in _TOKEN.finditer(script):
        if found["word"] is None:
            names_command = names_command or found["end"] is not None
            continue
        word = "".join(_plain(part) for part in _PART.finditer(found["word"]))
        is_assigned = names_command and _ASSIGNED.match(word) is not None
        if not word.startswith(("-", "~")) and ("/" in word or not names_command):
            yield word
        if "=" in word:
            yield word.partition("=")[2]
        names_command = names_command and (is_assigned or word in _BEFORE_COMMANDS)


def _plain(part: re.Match[str]) -> str:
    escaped, single, double, bare = part.groups()
    if escaped is not None:
        return escaped.replace("\n", "")
    if double is not None:
        return re.sub(r"\\([\\\"$`\n])", lambda found: found[1].replace("\n", ""), double)
    return single if single is not None else bare
