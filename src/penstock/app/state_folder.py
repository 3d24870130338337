"""Where state lives: `--store`, else PENSTOCK_HOME, else `.penstock/` beside the file that is run.

A command that has no file looks into `./.penstock`, then for the state folder below the current folder that was used last.
Which folders were used is remembered as well as can be; nothing depends on it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from penstock.kernel.errors import Refused

VARIABLE = "PENSTOCK_HOME"
FOLDER = ".penstock"
DATABASE = "penstock.db"
REMEMBERED = 100


def home_for(file: Path, store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder of a file that is run."""
    said = _said(store, environ)
    if said is not None:
        return said
    whole = file.expanduser().absolute()
    # Beside a pipe or a device (`<(…)`, `/dev/stdin`) is no place to keep anything.
    is_stream = whole.parts[1:2] in (("dev",), ("proc",)) or (whole.exists() and not whole.is_file())
    return (_here() if is_stream else whole.parent) / FOLDER


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Refused("the current folder is gone: it was removed or moved", "go to another folder") from None


def home_here(store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder for a command that may make one, such as `keychain set`."""
    here = _here() / FOLDER
    return _said(store, environ) or (here if here.exists() else _found(environ)) or here


def known_home(store: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The state folder of a command about earlier runs: it must be there."""
    said = _said(store, environ)
    home = said or _found(environ)
    if home is None:
        raise Refused(
            f"there is no state folder here: neither `{Path.cwd() / FOLDER}` nor one used before below this folder",
            f"go to the folder of the playbook, or name the state folder with `--store` or `{VARIABLE}`",
        )
    if not (home / DATABASE).exists():
        raise Refused(f"there are no runs in `{home}`: it has no `{DATABASE}`", "is it the state folder you mean?")
    return home


def _said(store: str | None, environ: Mapping[str, str] | None) -> Path | None:
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
