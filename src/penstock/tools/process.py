"""A process of its own session, watched by the event loop, that leaves nothing behind.

`close` ends the process and everything it started in its session's process group, reaps it and closes every pipe; it may be
called at any time and more than once. The group is signalled while the leader is still unreaped, so its number cannot have
been given to somebody else. No threads: exit is seen through a pidfd (by asking again where the system has none).
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.ports.json_text import json_mistake
from penstock.tools.base import ToolFailure
from penstock.tools.output import Kept

if TYPE_CHECKING:
    import subprocess

OUTPUT_GRACE = 1.0
"""How long output may still come from processes in the background once the first process has ended."""
POLL_SECONDS = 0.02
_SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

Sink = Callable[[bytes], object]


class Child:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._readers: set[int] = set()
        self._writer: int | None = None
        self._pidfd: int | None = None
        self._poll: asyncio.TimerHandle | None = None
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.drained: asyncio.Future[None] = self._loop.create_future()
        self._watch()

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self, descriptor: int, sink: Sink) -> None:
        """Hand what arrives on a pipe to `sink`. The descriptor is closed at its end."""
        os.set_blocking(descriptor, False)
        self._readers.add(descriptor)
        self._loop.add_reader(descriptor, self._readable, descriptor, sink)

    def write(self, descriptor: int, data: bytes, *, then_close: bool = True) -> None:
        """Write all of `data` as fast as it is taken. A reader that goes away is no error: it may not want any."""
        os.set_blocking(descriptor, False)
        self._writer = descriptor
        self._loop.add_writer(descriptor, self._writable, descriptor, memoryview(data), then_close)

    async def ended(self) -> int:
        """Wait for the exit and for the output: the exit code, negative for a signal. Ends what is left of the group."""
        # Not `await self.exited`: a task that is cancelled cancels the future it awaits, and others look at this one.
        await asyncio.wait([self.exited])
        await asyncio.wait([self.drained], timeout=OUTPUT_GRACE)
        return self.close()

    async def terminate(self, grace: float) -> None:
        """Ask the whole group to end; after `grace` seconds it is made to."""
        try:
            self._signal(signal.SIGTERM)
            await asyncio.wait([self.exited], timeout=grace)
        finally:
            self.close()

    def close(self) -> int:
        self._signal(signal.SIGKILL)
        # After SIGKILL this is a matter of milliseconds; a process stuck in the kernel is left to the system.
        code = -signal.SIGKILL.value
        with suppress(TimeoutError):
            code = self._reap()
        self._forget()
        return code

    def _reap(self) -> int:
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            # EPERM: the whole group has become somebody else's (a setuid program).
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _forget(self) -> None:
        for descriptor in list(self._readers):
            self._close_reader(descriptor)
        if self._writer is not None:
            self._close_writer(self._writer)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._poll is not None:
            self._poll.cancel()
        for future in (self.exited, self.drained):
            if not future.done():
                future.set_result(None)

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            self._ask_again()
        else:
            self._loop.add_reader(self._pidfd, self._exit_seen)

    def _ask_again(self) -> None:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            over = os.waitid(os.P_PID, self._process.pid, flags) is not None
        except ChildProcessError:
            over = True
        if over:
            self._exit_seen()
        else:
            self._poll = self._loop.call_later(POLL_SECONDS, self._ask_again)

    def _exit_seen(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        if not self.exited.done():
            self.exited.set_result(None)
        if not self._readers and not self.drained.done():
            self.drained.set_result(None)

    def _readable(self, descriptor: int, sink: Sink) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            sink(data)
        else:
            self._close_reader(descriptor)

    def _close_reader(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        self._readers.discard(descriptor)
        os.close(descriptor)
        if not self._readers and not self.drained.done():
            self.drained.set_result(None)

    def _writable(self, descriptor: int, data: memoryview, then_close: bool) -> None:
        try:
            data = data[os.write(descriptor, data[: 1 << 20]) :]
        except BlockingIOError:
            return
        except OSError:
            data, then_close = data[:0], True
        if data:
            self._loop.add_writer(descriptor, self._writable, descriptor, data, then_close)
            return
        self._loop.remove_writer(descriptor)
        if then_close:
            self._close_writer(descriptor)

    def _close_writer(self, descriptor: int) -> None:
        self._loop.remove_writer(descriptor)
        os.close(descriptor)
        self._writer = None


def start(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    stdin: bytes | None,
    stdout: Sink,
    stderr: Sink,
    hold_stdin: bool = False,
    reply: Sink | None = None,
) -> Child:
    """Start a process. `hold_stdin` keeps its input open after the last byte; `reply` gives it a third pipe to write to,
    whose number stands in its environment as `PENSTOCK_REPLY_FD`. Raises ToolFailure when it cannot be started."""
    ends = os.pipe() if reply is not None else None
    if ends is not None:
        env = {**env, "PENSTOCK_REPLY_FD": str(ends[1])}
    try:
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
            pass_fds=() if ends is None else (ends[1],),
        )
    except (OSError, ValueError) as error:
        for end in ends or ():
            os.close(end)
        raise _cannot_start(arguments, cwd, error) from error
    child = Child(process)
    if ends is not None and reply is not None:
        os.close(ends[1])
        child.read(ends[0], reply)
    for stream, sink in ((process.stdout, stdout), (process.stderr, stderr)):
        child.read(_own(stream), sink)
    if stdin is not None:
        child.write(_own(process.stdin), stdin, then_close=not hold_stdin)
    return child


def _own(stream: object) -> int:
    """The descriptor under a Popen stream, taken out of its hands so that it is closed once, by the Child."""
    descriptor = os.dup(stream.fileno())  # type: ignore[attr-defined]
    stream.close()  # type: ignore[attr-defined]
    return descriptor


def _cannot_start(arguments: Sequence[str], cwd: Path | None, error: OSError | ValueError) -> ToolFailure:
    program = arguments[0] if arguments else ""
    if cwd is not None and not cwd.is_dir():
        return ToolFailure("not_found", f"the working folder `{cwd}` does not exist or is not a folder")
    if isinstance(error, FileNotFoundError):
        return ToolFailure("not_found", f"there is no program `{program}`", program=program)
    if isinstance(error, PermissionError):
        return ToolFailure("not_found", f"`{program}` is not a program that may be run", program=program)
    reason = error.strerror if isinstance(error, OSError) else str(error)
    scarce = isinstance(error, OSError) and error.errno in _SCARCE
    return ToolFailure("cannot_start", f"`{program}` cannot be started: {reason}", retryable=scarce)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def shorter(one: float | None, other: float | None) -> float | None:
    """The time limit that strikes first; None is no limit."""
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None


# ---- what a command that has ended gives
# Law: a text that is cut may end in a part of a secret, which would not be found and masked any more. So one that holds a
# secret is cut between lines, or shown not at all.

MAX_DETAIL = 4_000
MAX_LAST = 300
Form = Literal["text", "json", "lines"]
HoldsSecret = Callable[[str], bool]


def data_of(output: Mapping[str, Kept], form: Form, holds_secret: HoldsSecret, **detail: Any) -> Any:
    """Standard output as `form` asks for it. Raises ToolFailure of kind `output`."""
    kept = output["stdout"]
    text = kept.text()
    if form == "lines":
        return text.splitlines()
    if form == "text":
        return text.removesuffix("\n").removesuffix("\r")
    if not kept.is_whole:
        raise ToolFailure("output", f"the output has {kept.size} bytes, more than the {kept.limit} that are kept")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        words = f"the output is not JSON: {json_mistake(text, error)}"
        raise ToolFailure("output", words, **tails(output, holds_secret), **detail) from None


def bad_exit(
    what: str, code: int, ok_codes: Sequence[int], output: Mapping[str, Kept], holds_secret: HoldsSecret, **detail: Any
) -> ToolFailure:
    """The failure of `what` for an exit code that is not among those that are ok."""
    expected = ", ".join(f"`{each}`" for each in ok_codes) or "no code at all"
    last = tail(output["stderr"].text().strip().rpartition("\n")[2], MAX_LAST, holds_secret)
    ended = f"exit code {code}" if code >= 0 else f"ended by {signal_name(-code)}"
    message = f"{what} failed: {ended}, expected {expected}" + (f": {last}" if last else "")
    return ToolFailure("exit_code", message, exit_code=code, **tails(output, holds_secret), **detail)


def tails(output: Mapping[str, Kept], holds_secret: HoldsSecret, limit: int = MAX_DETAIL) -> dict[str, Any]:
    """What a failure shows of the output."""
    return {name: tail(kept.text(), limit, holds_secret) for name, kept in output.items()}


def head(text: str, limit: int, holds_secret: HoldsSecret) -> str:
    if len(text) <= limit:
        return text
    return "…" if holds_secret(text) else f"{text[:limit]}…"


def tail(text: str, limit: int, holds_secret: HoldsSecret) -> str:
    """Whole lines, where there are any."""
    if len(text) <= limit:
        return text
    cut = text[-limit:]
    rest = cut.partition("\n")[2]
    return rest or ("…" if holds_secret(text) else cut)
