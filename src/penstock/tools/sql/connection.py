"""Where the database is and who asks: from a keychain entry, from parameters, or both, the parameters having the last word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from penstock.ports.meanings import KEYCHAIN_ENTRY, url
from penstock.tools.addresses import OPEN, Addresses
from penstock.tools.base import Call, ToolFailure

_ALIASES = {
    "dsn": "url",
    "uri": "url",
    "connection_string": "url",
    "value": "url",
    "username": "user",
    "db_user": "user",
    "dbname": "database",
    "db": "database",
    "db_name": "database",
    "db_host": "host",
    "hostname": "host",
    "db_port": "port",
    "db_password": "password",
}
_NAME_OF_ENTRY = ("credential", "key", "name")


Auth = Annotated[
    str | dict[str, Any] | None,
    Meta(
        description="Name of the keychain entry with the connection, or the entry's mapping itself.",
        extra_json_schema=KEYCHAIN_ENTRY,
    ),
]
_URL = "Connection URL, instead of `auth` or the single fields."
PostgresUrl = Annotated[
    str | None, Meta(description=_URL, extra_json_schema=url("postgresql", "postgres", "cockroachdb"))
]
MysqlUrl = Annotated[str | None, Meta(description=_URL, extra_json_schema=url("mysql", "mariadb"))]
Host = Annotated[str | None, Meta(description="Server name or address.")]
Port = Annotated[int | str | None, Meta(description="Server port.")]
User = Annotated[str | None, Meta(description="User to connect as.")]
Password = Annotated[str | None, Meta(description="Password; better kept in the keychain.")]
Database = Annotated[str | None, Meta(description="Database to use.")]
SslMode = Annotated[str | None, Meta(description="`disable`, `prefer`, `require`, `verify-ca` or `verify-full`.")]

FIELDS = ("url", "host", "port", "user", "password", "database", "sslmode")


@dataclass(frozen=True, slots=True)
class Address:
    """One way of spelling for all that can be said of a connection."""

    url: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    database: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)
    allowed: Addresses = OPEN
    """What may be reached: asked when a connection is opened."""

    @property
    def secrets(self) -> list[str | None]:
        return [self.url, self.password]


def entry_of(auth: str | dict[str, Any] | None, call: Call) -> dict[str, Any]:
    """The keychain entry that `auth` means: by name, as a connection text, or already looked up by a template."""
    match auth:
        case None:
            return {}
        case str() if "://" in auth:
            return {"url": auth}
        case str():
            return call.credential(auth)
        case _:
            connects = {_ALIASES.get(key, key) for key in auth} & {"url", "host", "database", "path"}
            named = next((auth[key] for key in _NAME_OF_ENTRY if isinstance(auth.get(key), str)), None)
            return call.credential(named) if named and not connects else auth


def address_of(params: Any, call: Call) -> Address:
    """The address that a struct with `auth` and the single fields speaks of."""
    return address(params.auth, {name: getattr(params, name) for name in FIELDS}, call)


def address(auth: str | dict[str, Any] | None, given: dict[str, Any], call: Call) -> Address:
    said: dict[str, Any] = {}
    for source in (entry_of(auth, call), given):
        said.update({_ALIASES.get(key, key): value for key, value in source.items() if value is not None})
    if not any(said.get(name) for name in ("url", "host", "database")):
        raise ToolFailure(
            "parameters", "no database is named; hint: `auth: <name of a keychain entry>`, or `url`, or `host`"
        )
    known = {name: said.pop(name, None) for name in ("url", "host", "port", "user", "password", "database")}
    options = {key: str(value) for key, value in said.items() if isinstance(value, (str, int, float, bool))}
    text = {name: None if value is None else str(value) for name, value in known.items() if name != "port"}
    return Address(**text, port=_port(known["port"]), options=options, allowed=call.settings.addresses)


def _port(value: Any) -> int | None:
    if value is None or value == "":
        return None
    try:
        port = int(value)
    except (TypeError, ValueError):
        port = 0
    if not 0 < port < 65536:
        raise ToolFailure("parameters", f"`{value}` is not a port: a number from 1 to 65535")
    return port


def connect_timeout(call: Call) -> float:
    """`spec.timeout.connect` in seconds, 10 when nothing is said."""
    timeout = call.spec.get("timeout")
    value = timeout.get("connect") if isinstance(timeout, dict) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 10.0


def pool_size(call: Call) -> int:
    """`spec.pool.max_size`: connections that one execution keeps per database."""
    pool = call.spec.get("pool")
    value = pool.get("max_size") if isinstance(pool, dict) else None
    return max(1, value) if isinstance(value, int) and not isinstance(value, bool) else 10
