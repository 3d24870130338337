"""Connections to MySQL and MariaDB, and what the server's error numbers mean."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.kernel.values import JsonMap
from penstock.tools.addresses import OPEN, Addresses
from penstock.tools.base import Call, ToolFailure
from penstock.tools.network import address_refused, allowed_addresses, connect_words
from penstock.tools.sql.connection import Address, connect_timeout
from penstock.tools.sql.failures import Place, failure, scrubbed

if TYPE_CHECKING:
    import ssl

    from pymysql.connections import Connection


@dataclass(frozen=True, slots=True)
class Login:
    """What PyMySQL is told, all but the TLS context, which is made for each connection."""

    arguments: dict[str, Any] = field(repr=False)
    sslmode: str = "prefer"
    ca: str | None = None
    allowed: Addresses = OPEN


_FOUND_ROWS = 2
_SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")


def login_of(address: Address, call: Call) -> Login:
    said: dict[str, Any] = {}
    options = dict(address.options)
    if address.url:
        said, more = _from_url(address.url)
        options = more | options
    own = {"host": address.host, "port": address.port, "user": address.user}
    own |= {"password": address.password, "database": address.database, "unix_socket": options.get("unix_socket")}
    said |= {name: value for name, value in own.items() if value is not None}
    mode = options.get("sslmode", "prefer").lower().replace("_", "-")
    if mode not in _SSL_MODES:
        raise ToolFailure("parameters", f"`{mode}` is not an sslmode; it is one of {', '.join(_SSL_MODES)}")
    # Like every other database, an UPDATE then counts the rows it found, not only those that it made different.
    arguments = {
        "charset": "utf8mb4",
        "client_flag": _FOUND_ROWS,
        "connect_timeout": max(1, round(connect_timeout(call))),
        **said,
    }
    return Login(arguments, mode, options.get("sslrootcert") or options.get("ssl_ca"), address.allowed)


def _from_url(url: str) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolFailure(
            "parameters", "the MySQL URL cannot be read; hint: `mysql://user:password@host:3306/database`"
        ) from None
    if not parts.scheme.startswith(("mysql", "mariadb")):
        raise ToolFailure("parameters", f"a MySQL URL begins with `mysql://`, not with `{parts.scheme}://`")
    said = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "database": unquote(parts.path.lstrip("/")) or None,
    }
    return {name: value for name, value in said.items() if value is not None}, dict(parse_qsl(parts.query))


def _tls(login: Login) -> ssl.SSLContext | None:
    import ssl

    if login.sslmode in ("disable", "prefer") and login.ca is None:
        return None
    context = ssl.create_default_context(cafile=login.ca)
    context.check_hostname = login.sslmode == "verify-full"
    if login.sslmode not in ("verify-ca", "verify-full"):
        context.verify_mode = ssl.CERT_NONE
    return context


def connect(login: Login) -> Connection[Any]:
    import pymysql

    try:
        is_local = login.sslmode == "prefer" and "unix_socket" in login.arguments
        told = {**login.arguments, "ssl": _tls(login), "ssl_disabled": is_local or login.sslmode == "disable"}
        if login.allowed.is_open:
            return pymysql.connect(**told)
        connection = pymysql.connect(**told, defer_connect=True)
        connection.connect(_dialled(login))
        return connection
    except (pymysql.MySQLError, OSError) as error:
        number, words = _said(error)
        if "refused" in words:
            words = connect_words(error, str(login.arguments.get("host")), login.arguments.get("port"))
        words = scrubbed(words, [login.arguments.get("password")])
        kind, retryable = _KINDS.get(number, ("connect", True))
        helpers = {"mysql": _helper(number)}
        raise ToolFailure(kind, f"no connection to MySQL: {words}", retryable=retryable, helpers=helpers) from None


def _dialled(login: Login) -> socket.socket | None:
    """A connection to an address that was judged; TLS still verifies the name. None: a socket in the file system."""
    told = login.arguments
    if told.get("unix_socket"):
        if not login.allowed.reaches_sockets:
            raise address_refused(f"`{told['unix_socket']}` is a socket of this machine")
        return None
    host, port, seconds = str(told.get("host") or "localhost"), int(told.get("port") or 3306), told["connect_timeout"]
    addresses = allowed_addresses(host, port, login.allowed)
    for number, address in enumerate(addresses, start=1):
        try:
            dialled = socket.create_connection((address, port), seconds)
        except OSError as error:
            if number == len(addresses):
                raise OSError(2003, f"Can't connect to MySQL server on '{host}' ({error.strerror or error})") from error
        else:
            dialled.settimeout(None)
            return dialled
    raise AssertionError("there is at least one address")


def thread_of(connection: Connection[Any]) -> int:
    """The number under which the server knows the connection."""
    return int(connection.thread_id())  # type: ignore[no-untyped-call]


def kill_query(login: Login, number: int) -> None:
    """Ask the server to give up what connection `number` is running. When that fails, the caller's grace time ends it."""
    import pymysql

    with suppress(pymysql.MySQLError, OSError, ToolFailure):
        connection = connect(login)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"KILL QUERY {number:d}")
        finally:
            connection.close()


# Server error number -> kind, and whether trying again may help.
_KINDS = {
    1040: ("connect", True),  # too many connections
    1044: ("permission", False),
    1045: ("permission", False),
    1049: ("not_found", False),  # unknown database
    1054: ("not_found", False),  # unknown column
    1064: ("syntax", False),
    1142: ("permission", False),
    1143: ("permission", False),
    1146: ("not_found", False),  # unknown table
    1149: ("syntax", False),
    1203: ("connect", True),
    1205: ("timeout", True),  # lock wait
    1213: ("serialization", True),  # deadlock
    1227: ("permission", False),
    1305: ("not_found", False),  # unknown function or procedure
    1317: ("timeout", True),  # interrupted
    1698: ("permission", False),
    1969: ("timeout", True),  # MariaDB: max_statement_time
    2002: ("connect", True),
    2003: ("connect", True),
    2006: ("connect", True),
    2013: ("connect", True),
    3024: ("timeout", True),  # MySQL: max_execution_time
    4031: ("connect", True),
}
_CONSTRAINTS = {1022, 1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1761, 1762, 3819, 4025}
_SQLSTATES = {1062: "23000", 1205: "HY000", 1213: "40001", 1064: "42000", 1146: "42S02", 1054: "42S22", 1045: "28000"}


def _said(error: Exception) -> tuple[int, str]:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    words = str(error.args[1]) if len(error.args) > 1 else str(error)
    return number, words


def _helper(number: int) -> JsonMap:
    state = _SQLSTATES.get(number, "23000" if number in _CONSTRAINTS else "HY000")
    return {"code": number, "sqlstate": state}


def failure_of(error: Exception, place: Place | None) -> ToolFailure:
    number, words = _said(error)
    kind, retryable = _KINDS.get(number, ("constraint" if number in _CONSTRAINTS else "database", False))
    if isinstance(error, OSError):
        kind, retryable = "connect", True
    return failure(kind, words, place, {"mysql": _helper(number)}, retryable=retryable)
