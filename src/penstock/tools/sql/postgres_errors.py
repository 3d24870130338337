"""PostgreSQL's errors by SQLSTATE: which kind a rule can test for, and whether trying again may help."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from penstock.kernel.values import JsonMap
from penstock.tools.base import ToolFailure
from penstock.tools.network import connect_words
from penstock.tools.sql.failures import Place, failure, scrubbed

if TYPE_CHECKING:
    import psycopg

MADE_MEANWHILE = ("23505", "42P07", "42710")
"""How the server says that another transaction has made the table since this one looked."""
OK: dict[str, JsonMap] = {"pg": {"code": "00000", "sqlstate": "00000"}}

# The longest beginning that fits decides.
_KINDS = {
    "08": "connect",
    "23": "constraint",
    "28": "permission",
    "3D000": "not_found",
    "3F000": "not_found",
    "40001": "serialization",
    "40P01": "serialization",
    "42501": "permission",
    "42601": "syntax",
    "42703": "not_found",
    "42704": "not_found",
    "42883": "not_found",
    "42P01": "not_found",
    "53300": "connect",
    "55P03": "timeout",
    "57014": "timeout",
    "57P0": "connect",
}
_RETRYABLE = ("08", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03")

# libpq gives no SQLSTATE for a connection that never came to be; the server's words are all there is.
_CONNECT_WORDS = (
    (re.compile(r"password authentication failed|no password supplied|fe_sendauth"), "28P01"),
    (re.compile(r"no pg_hba\.conf entry|authentication failed|role .* does not exist"), "28000"),
    (re.compile(r"database .* does not exist"), "3D000"),
    (re.compile(r"too many (connections|clients)|remaining connection slots"), "53300"),
    (re.compile(r"starting up|shutting down|in recovery mode|not yet accepting"), "57P03"),
)


def kind_of(sqlstate: str) -> str:
    return next((_KINDS[sqlstate[:size]] for size in (5, 4, 2) if sqlstate[:size] in _KINDS), "database")


def is_retryable(sqlstate: str) -> bool:
    return sqlstate.startswith(_RETRYABLE)


def failure_of(error: psycopg.Error, place: Place | None, *, connection_lost: bool = False) -> ToolFailure:
    diagnosis = error.diag
    state = error.sqlstate or ("08006" if connection_lost else "")
    facts = {
        "code": state or None,
        "sqlstate": state or None,
        "severity": diagnosis.severity,
        "detail": diagnosis.message_detail,
        "hint": diagnosis.message_hint,
        "schema": diagnosis.schema_name,
        "table": diagnosis.table_name,
        "column": diagnosis.column_name,
        "constraint": diagnosis.constraint_name,
    }
    helper: JsonMap = {
        name: value for name, value in facts.items() if value is not None or name in ("code", "sqlstate")
    }
    message = diagnosis.message_primary or str(error)
    for more in (diagnosis.message_detail, diagnosis.message_hint and f"hint: {diagnosis.message_hint}"):
        message += f"; {more}" if more else ""
    if "COPY cannot be used" in message:
        message = "COPY to or from the client does not work as a command; hint: use the parameter `copy`"
    if state == "25001":
        message += "; hint: set `autocommit: true`, the task is a transaction otherwise"
    kind = kind_of(state) if state else "parameters"  # without a SQLSTATE it never got as far as the server
    return failure(kind, message, place, {"pg": helper}, retryable=is_retryable(state))


# Of a connection text that it cannot read, libpq quotes the part it stumbled over: perhaps a piece of the password.
_UNREADABLE = re.compile(r"invalid (integer|port|percent|URI|connection|sslmode)|connection option|missing \"=\"")
_REFUSED = re.compile(r'server at "(?P<host>[^"]+)"(?: \([^)]*\))?, port (?P<port>\d+) failed: Connection refused')
NOT_UNDERSTOOD = (
    "the connection to PostgreSQL is not described in a way it understands; "
    "hint: in a URL, write `@`, `:`, `/` and `%` of a user name or password as `%40`, `%3A`, `%2F`, `%25`"
)


def connect_failure(error: psycopg.Error, secrets: list[str | None]) -> ToolFailure:
    if _UNREADABLE.search(str(error)):
        return ToolFailure("parameters", NOT_UNDERSTOOD)
    words = scrubbed(" ".join(str(error).split()), secrets)
    state = error.sqlstate or next((state for pattern, state in _CONNECT_WORDS if pattern.search(words)), "08001")
    helpers: dict[str, JsonMap] = {"pg": {"code": state, "sqlstate": state}}
    # libpq says it of each address that it tried, with a question of its own behind each.
    if (refused := _REFUSED.search(words)) is not None:
        words = connect_words(ConnectionRefusedError(errno.ECONNREFUSED, ""), refused["host"], refused["port"])
    message = f"no connection to PostgreSQL: {words}"
    return ToolFailure(kind_of(state), message, retryable=is_retryable(state), helpers=helpers)
