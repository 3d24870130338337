"""The command line as real processes that start at once: each is forked from one that has everything imported.

    done = called("run", "p.yaml", cwd=folder, env=environment)      # to its end
    running = starting("serve", stdout=file, stderr=file)              # a Popen like any other
    child = starting("-m", "tests.adapters.children", "hold", ...)     # a module of the tests in place of the command line

Loading the program is most of what a short command costs. What is left is the same: a process of its own, its exit code, its
signals, its streams. What its loading does is for tests of their own, which start Python anew.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120.0
START_NEW_SESSION = 5
"""Its place among what `subprocess` passes behind the streams."""
ENOUGH = 1 << 20
"""The longest request: words, folder and environment."""
BESIDES = ("uvicorn", "prometheus_client", "rich.console", "rich.table")
"""What is imported only once a command is under way."""


class Warm(subprocess.Popen[str]):
    """Only its birth and its end are known from somebody else: it is a child of the process that forked it."""

    _ended: socket.socket

    def _execute_child(  # type: ignore[override]
        self,
        args: Sequence[str],
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Any,
        cwd: Any,
        env: dict[str, str] | None,
        startupinfo: Any,
        creationflags: int,
        shell: bool,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *rest: Any,
    ) -> None:
        self._ended, theirs = socket.socketpair()
        streams = [number if given == -1 else given for number, given in enumerate((p2cread, c2pwrite, errwrite))]
        where = {
            "words": list(args),
            "cwd": os.fspath(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "is_session": bool(rest[START_NEW_SESSION]),
        }
        with theirs:
            self.pid = _Forge.at_hand().fork(where, [theirs.fileno(), *streams])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        ready, _, _ = select.select([self._ended], [], [], 0 if wait_flags & os.WNOHANG else None)
        if not ready:
            return 0, 0
        said = self._ended.recv(16)
        self._ended.close()
        assert said, "who forks has died"
        return self.pid, int(said)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._ended.fileno() >= 0:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def starting(*words: str, **more: Any) -> subprocess.Popen[str]:
    return Warm(words, **more)


def called(*words: str, input: str | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` does it."""
    stdin = None if input is None else subprocess.PIPE
    with Warm(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more) as running:
        try:
            out, err = running.communicate(input, timeout=PATIENCE_S)
        except BaseException:
            running.kill()
            raise
    return subprocess.CompletedProcess(words, running.returncode, out, err)


class _Forge:
    """The process that forks, one for all tests of this process."""

    _one: _Forge | None = None

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ENOUGH)
        with theirs:
            path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close)

    @classmethod
    def at_hand(cls) -> _Forge:
        if cls._one is None:
            cls._one = cls()
        return cls._one

    def fork(self, where: dict[str, Any], streams: list[int]) -> int:
        socket.send_fds(self._line, [json.dumps(where).encode()], streams)
        said = self._line.recv(16)
        assert said, "who forks has died"
        return int(said)

    def _close(self) -> None:
        self._line.close()
        self._process.wait(PATIENCE_S)


# ---- inside the process that forks


def _load() -> None:
    import penstock

    for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in BESIDES:
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"
    gc.collect()
    gc.freeze()  # So that the children share these pages.


def _serve(line: socket.socket) -> list[str]:
    """Comes back in a child, with its words; who forks never does."""
    waiting: dict[int, tuple[int, int]] = {}  # pidfd -> (process id, where to say how it ended)
    while True:
        ready, _, _ = select.select([line, *waiting], [], [])
        for end in ready:
            if end is not line:
                pid, told = waiting.pop(end)
                _tell(told, os.waitpid(pid, 0)[1])
                os.close(end)
                continue
            message, streams, _, _ = socket.recv_fds(line, ENOUGH, 4)
            if not message:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                for inherited in (line.detach(), streams[0], *waiting, *(told for _, told in waiting.values())):
                    os.close(inherited)
                return _become(json.loads(message), streams[1:])
            waiting[os.pidfd_open(pid)] = (pid, streams[0])
            for stream in streams[1:]:
                os.close(stream)
            line.send(str(pid).encode())


def _tell(where: int, status: int) -> None:
    with socket.socket(fileno=where) as told, suppress(OSError):  # Nobody may be waiting for it any more.
        told.send(str(status).encode())


def _become(command: dict[str, Any], streams: list[int]) -> list[str]:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if command["is_session"]:
        _lead_session()
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    words: list[str] = command["words"]
    return words


def _lead_session() -> None:
    """A session of its own, with the terminal that it reads from, if it is one, for the keys that make signals."""
    os.setsid()
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _leave(code: int) -> NoReturn:
    """As Python ends, but for taking apart what was loaded, which would take longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _load()
    from penstock.cli.main import main

    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words[:1] == ["-m"]:
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__")
        _leave(0)
    sys.argv = ["penstock", *words]
    _leave(main())
