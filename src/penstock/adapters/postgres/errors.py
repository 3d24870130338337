"""What PostgreSQL says, told to people: what is wrong, with which database, and what can be done.

Law: an error is `unfit` (the values are at fault, for ever), passing (trying again may help), or neither (somebody has to
do something first). No message shows a password.
"""

from __future__ import annotations

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from penstock.adapters.files.folders import SAFE
from penstock.kernel.errors import Refused, Unavailable

UNFIT_STATES = ("22", "23", "54")
PASSING_STATES = ("08", "25006", "25P03", "25P04", "40", "53", "55P03", "55006", "57", "58")

# libpq gives no SQLSTATE for a connection that never came to be; the server's words are all there is.
_CONNECT_WORDS = (
    (re.compile(r"password authentication failed|no password supplied|fe_sendauth"), "28P01"),
    (
        re.compile(r"no pg_hba\.conf entry|authentication failed|role .* does not exist|not permitted to log in"),
        "28000",
    ),
    (re.compile(r"database .* does not exist"), "3D000"),
    (re.compile(r"too many (connections|clients)|remaining connection slots"), "53300"),
    (re.compile(r"starting up|shutting down|in recovery mode|not yet accepting"), "57P03"),
    (re.compile(r"certificate|SSL|sslmode|GSSAPI"), "28000"),
)


class Lost(psycopg.OperationalError):
    """A connection that does not answer in time."""


def place_of(url: str) -> str:
    """The database as messages name it: without user and password."""
    try:
        said = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq's own complaint quotes the text, perhaps with a piece of the password.
        raise Refused(
            "this is no PostgreSQL URL",
            "write `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with `@`, `:`, `/` and `%` of a user name or password "
            "as `%40`, `%3A`, `%2F`, `%25`",
        ) from error
    host = said.get("host") or said.get("hostaddr") or "localhost"
    port = said.get("port")
    where = f"{host}:{port}" if port else str(host)
    return f"database `{said.get('dbname') or said.get('user') or 'postgres'}` on `{where}`"


def state_of(error: psycopg.Error) -> str | None:
    if error.sqlstate:
        return error.sqlstate
    words = str(error)
    return next((state for pattern, state in _CONNECT_WORDS if pattern.search(words)), None)


def is_passing(error: psycopg.Error) -> bool:
    """May the same be done if it is tried again?"""
    state = state_of(error)
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(PASSING_STATES)


def is_unfit(error: psycopg.Error) -> bool:
    """Are the values at fault?"""
    state = error.sqlstate or ""
    return state.startswith(UNFIT_STATES) or (not state and isinstance(error, psycopg.DataError))


def is_soon_over(error: psycopg.Error) -> bool:
    """Is the server there, and about to be ready, or held up by another process that brings the schema up?"""
    return state_of(error) in ("57P03", "55P03", "40P01")


def words_of(error: psycopg.Error) -> str:
    return error.diag.message_primary or " ".join(str(error).split())


def unavailable(error: psycopg.Error, place: str) -> Unavailable:
    """The trouble with the world behind `error`."""
    state = state_of(error) or ""
    words = words_of(error)
    for beginning, (what, hint) in _TOLD.items():
        if state.startswith(beginning):
            return Unavailable(f"{place} {what}: {words}", hint)
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        what = "does not answer" if isinstance(error, Lost) else "cannot be reached"
        return Unavailable(f"{place} {what}: {words}", f"{SAFE}; see that the server runs and can be reached from here")
    return Unavailable(f"{place} could not be used: {words} ({state or 'no code'})", SAFE)


_TOLD: dict[str, tuple[str, str]] = {
    "28": ("refuses the login", "check user, password and the server's `pg_hba.conf`"),
    "3D000": ("does not exist", "make it with `CREATE DATABASE … ENCODING 'UTF8'`, or correct the name"),
    "3F000": ("lacks the schema", "make it with `CREATE SCHEMA`, or correct the `search_path` of the URL"),
    "42501": (
        "does not allow what is needed",
        "let the user create tables in the schema (`GRANT CREATE, USAGE ON SCHEMA … TO …`), or name another schema "
        "with `?options=-csearch_path%3DNAME`",
    ),
    "42": ("lacks tables of Penstock, or they were changed", "put a backup in their place, or begin with a new schema"),
    "53100": ("has a full disk", f"{SAFE}; make room on the server"),
    "53300": ("has no connection left", "raise `max_connections`, or run fewer servers on it"),
    "53": ("is short of something", f"{SAFE}; give the server more memory or connections"),
    "25006": ("is read-only", "connect to the primary server (`target_session_attrs=read-write`)"),
    "55P03": ("is kept locked by another program", f"{SAFE}; end the program that holds the lock"),
    "57P": ("is stopping or starting", f"{SAFE}; see that the server runs"),
    "57014": ("took too long", f"{SAFE}; see what keeps the server busy, or which program holds a lock"),
    "58": ("has trouble with its own files", f"{SAFE}; look at the server's log"),
    "XX": ("is damaged, or PostgreSQL has a fault", f"{SAFE}; look at the server's log"),
}
