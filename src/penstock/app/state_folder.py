"""Where state lives, and which servers run on it.

A state folder is `--store`, else PENSTOCK_HOME, else `.penstock/` beside the file that is run. A command that has no file looks
into `./.penstock`, then for the state folder below the current folder that was used last. Which folders were used is remembered
on a best-effort basis; nothing depends on it.

Law: each server process keeps one file in its state folder, `servers/PID.json`, and holds a lock on it for as long as it lives,
so that a command in that folder finds the server's database. A file that nobody locks was left by a server that died, and is
ignored. The files are readable by their owner only: a database URL may hold a password, and the page of a folder has a token.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.kernel.errors import Refused

VARIABLE = "PENSTOCK_HOME"
FOLDER = ".penstock"
DATABASE = "penstock.db"
REMEMBERED = 100
SERVERS = "servers"


def home_for(file: Path, store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder of a file that is run."""
    given = _given(store, environ)
    if given is not None:
        return given
    whole = file.expanduser().absolute()
    return (_here() if _is_stream(whole) else whole.parent) / FOLDER


def _is_stream(file: Path) -> bool:
    """A pipe or a device (`<(…)`, `/dev/stdin`), beside which nothing can be kept. `/dev/stdin` may well be a regular file, and
    files below `/dev/shm` are files like any other."""
    folder = Path(os.path.realpath(file.parent))
    is_of_device = folder in (Path("/dev"), Path("/dev/fd")) or folder.parts[1:2] == ("proc",)
    return is_of_device or (file.exists() and not file.is_file())


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Refused("the current folder is gone: it was removed or moved", "go to another folder") from None


def home_here(store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder for a command that may make one, such as `keychain set`."""
    here = _here() / FOLDER
    return _given(store, environ) or (here if here.exists() else _found(environ)) or here


def known_home(store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder of a command about earlier runs: it must be there."""
    given = _given(store, environ)
    home = given or _found(environ)
    if home is None:
        raise Refused(
            f"there is no state folder here: neither `{Path.cwd() / FOLDER}` nor one used before below this folder",
            f"go to the folder of the playbook, or name the state folder with `--store` or `{VARIABLE}`",
        )
    if not (home / DATABASE).exists():
        raise Refused(f"there are no runs in `{home}`: it has no `{DATABASE}`", "is it the state folder you mean?")
    return home


def _given(store: str | None, environ: Mapping[str, str] | None) -> Path | None:
    value = store or (os.environ if environ is None else environ).get(VARIABLE)
    return Path(value).expanduser().absolute() if value else None


def _found(environ: Mapping[str, str] | None) -> Path | None:
    here = _here()
    if (here / FOLDER / DATABASE).exists():
        return here / FOLDER
    for home in reversed(_remembered(environ)):
        if home.is_relative_to(here) and (home / DATABASE).exists():
            return home
    return None


def _list_file(environ: Mapping[str, str] | None) -> Path | None:
    values = os.environ if environ is None else environ
    base = values.get("XDG_STATE_HOME")
    if base:
        return Path(base) / "penstock" / "homes"
    user = values.get("HOME")
    return Path(user) / ".local" / "state" / "penstock" / "homes" if user else None


def _remembered(environ: Mapping[str, str] | None) -> list[Path]:
    """Oldest first."""
    path = _list_file(environ)
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [Path(line) for line in lines[-REMEMBERED:] if line]


def remember(home: Path, environ: Mapping[str, str] | None = None) -> None:
    path = _list_file(environ)
    if path is None:
        return
    known = _remembered(environ)
    if known and known[-1] == home:
        return
    lines = [*[str(one) for one in known if one != home][-REMEMBERED + 1 :], str(home)]
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError, UnicodeEncodeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
        fresh.replace(path)


@dataclass(frozen=True, slots=True)
class ServerRecord:
    pid: int
    url: str
    database: str | None
    """None: it keeps everything in the state folder itself."""
    token: str | None = None
    """Of a server that is only for the owner of the folder (`penstock ui`): what it asks for."""

    @property
    def address(self) -> str:
        """What to open in a browser. Behind `#` the token is sent to nobody: the page takes it from there."""
        return f"{self.url}/" if self.token is None else f"{self.url}/#token={self.token}"


@contextmanager
def recorded(home: Path, url: str, database: str | None, token: str | None = None) -> Iterator[None]:
    """Records a server of this process for the duration of the block."""
    record = ServerRecord(os.getpid(), url, database, token)
    file = home / SERVERS / f"{record.pid}.json"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.write(handle, msgspec.json.encode(record))
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        os.close(handle)


def running_servers(home: Path) -> list[ServerRecord]:
    """The servers that are alive. Files that dead servers left behind are removed."""
    found = []
    try:
        files = sorted((home / SERVERS).glob("*.json"))
    except OSError:
        return []
    for file in files:
        with suppress(OSError):
            handle = os.open(file, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _is_held(handle):
                    with suppress(msgspec.MsgspecError):  # It is just being written.
                        found.append(msgspec.json.decode(os.read(handle, 1 << 16), type=ServerRecord))
                else:
                    file.unlink()
            finally:
                os.close(handle)
    return found


def _is_held(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
