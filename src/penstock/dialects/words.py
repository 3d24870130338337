"""Words of documents in either language: what a word is, the vocabulary of its values, and the words of the keychain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import Enum

from penstock.kernel.values import Json, JsonMap, frozen

DURABILITIES = ("grouped", "strict")
OPEN = "open"
INPUT_RULES = ("declared", OPEN)
"""Which inputs a run may be given: those that the document declares or reads, or any."""


class Strictness(Enum):
    """What a key that is not in the table means. CLOSED: a mistake. HINTS: it does nothing. OPEN: it is the author's own."""

    CLOSED = "closed"
    HINTS = "hints"
    OPEN = "open"


@frozen
class Word:
    about: str
    schema: JsonMap = field(default_factory=dict)
    required: bool = False


@frozen
class Scope:
    title: str
    about: str
    words: dict[str, Word]
    strictness: Strictness = Strictness.CLOSED
    need_one_of: tuple[str, ...] = ()


def ref(scope: str) -> JsonMap:
    return {"$ref": f"#/$defs/{scope}"}


def list_of(item: JsonMap, least: int = 0) -> JsonMap:
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


def choice(values: Iterable[str], default: str | None = None) -> JsonMap:
    found: JsonMap = {"enum": list[Json](values)}
    return {**found, "default": default} if default else found


def number(least: float = 0, default: float | None = None) -> JsonMap:
    found: JsonMap = {"type": "number", "minimum": least}
    return found if default is None else {**found, "default": default}


def integer(least: int = 0, default: int | None = None) -> JsonMap:
    found: JsonMap = {"type": "integer", "minimum": least}
    return found if default is None else {**found, "default": default}


ANY: JsonMap = {}
TEXT: JsonMap = {"type": "string"}
BOOLEAN: JsonMap = {"type": "boolean"}
MAPPING: JsonMap = {"type": "object"}
TEMPLATE: JsonMap = {"type": "string", "pattern": r"\{\{"}


def or_template(schema: JsonMap) -> JsonMap:
    return {"anyOf": [schema, TEMPLATE]}


# ---- The keychain: how each kind of secret is declared


_NAME: JsonMap = {"type": "string", "pattern": r"^[^\W\d][\w-]*$"}
_SECRET: JsonMap = {"type": ["string", "object"]}
_KEYCHAIN_COMMON = {
    "name": Word("Read in tool parameters as `{{ keychain.<name> }}`.", _NAME, required=True),
    "kind": Word("How the secret is found.", TEXT, required=True),
}
_PROVIDED = {
    "provider": Word("The provider of secrets, such as `environment`, `local` or `vault`.", TEXT),
    "key": Word("The secret's name there; otherwise the entry's own name.", TEXT),
    "field": Word("One field of a structured secret.", TEXT),
}


def _keychain(kind: str, about: str, words: dict[str, Word], need_one_of: tuple[str, ...] = ()) -> Scope:
    return Scope(f"keychain {kind}", about, {**_KEYCHAIN_COMMON, **words}, Strictness.OPEN, need_one_of)


def _database(kind: str, product: str) -> Scope:
    return _keychain(
        kind,
        f"How to reach a {product} database. With nothing but a name it is looked up under that name.",
        {
            "url": Word("A whole connection URL.", _SECRET),
            "host": Word("The host.", _SECRET),
            "port": Word("The port.", {"type": ["integer", "string", "object"]}),
            "database": Word("The database.", _SECRET),
            "user": Word("The user.", _SECRET),
            "password": Word("The password, best as `{env: NAME}`, `{file: path}` or `{secret: key}`.", _SECRET),
            "sslmode": Word("How far the connection is secured.", TEXT),
            **_PROVIDED,
        },
    )


KEYCHAIN_KINDS: dict[str, Scope] = {
    "env": _keychain(
        "env", "From an environment variable.", {"var": Word("The variable's name.", TEXT, required=True)}
    ),
    "file": _keychain("file", "The content of a file.", {"path": Word("The file.", TEXT, required=True)}),
    "static": _keychain(
        "static",
        "Written in the document: for tests only.",
        {
            "value": Word("The value.", ANY),
            "map": Word(
                "Several values by name, instead of `value`. As templates they bring other entries together.", MAPPING
            ),
        },
        need_one_of=("value", "map"),
    ),
    "secret_manager": _keychain(
        "secret_manager",
        "From a provider of secrets, or stored on this machine under another name.",
        {**_PROVIDED, "map": Word("Several secrets instead of `key`: name -> where each lies.", MAPPING)},
    ),
    "postgres_credential": _database("postgres_credential", "PostgreSQL"),
    "mysql_credential": _database("mysql_credential", "MySQL"),
    "basic": _keychain(
        "basic",
        "A user name and a password.",
        {"username": Word("The user name.", _SECRET), "password": Word("The password.", _SECRET), **_PROVIDED},
    ),
    "bearer": _keychain("bearer", "A bearer token.", {"token": Word("The token.", _SECRET), **_PROVIDED}),
    "api_key": _keychain(
        "api_key",
        "A key that is sent in a header or in the query.",
        {
            "value": Word("The key.", _SECRET),
            "header": Word("The header it is sent in.", TEXT),
            "query": Word("The query parameter it is sent in.", TEXT),
            **_PROVIDED,
        },
    ),
    "oauth2": _keychain(
        "oauth2",
        "A token got with client credentials, and got again before it ends; or by a request that is written out, whose whole "
        "answer is then the value.",
        {
            "token_url": Word("Where tokens are given out.", _SECRET),
            "client_id": Word("The client's id.", _SECRET),
            "client_secret": Word("The client's secret.", _SECRET),
            "scope": Word("The scopes asked for.", {"type": ["string", "array"]}),
            "audience": Word("The audience asked for.", TEXT),
            "client_auth": Word("How the client shows who it is.", TEXT),
            "endpoint": Word("Where the request goes that is written out, instead of `token_url`.", _SECRET),
            "method": Word("Its method: `POST` unless it is given, `GET` or `PUT`.", TEXT),
            "headers": Word("Its headers.", MAPPING),
            "data": Word(
                "Its fields: sent as a form, as JSON if the headers say so, with `GET` in the query.", MAPPING
            ),
            **_PROVIDED,
        },
    ),
}


PROVIDERS = ("vault", "local", "environment", "env")
PROVIDER_PLUGINS = "penstock.secret_providers"

# Words of other engines for entries: as they are written, and as they are read.
KEYCHAIN_KIND_ALIASES = {
    "secrets": "secret_manager",
    "credential": "secret_manager",
    "credential_ref": "secret_manager",
}
_STORED = {"credential_ref": "key", "ref": "key", "credential": "key"}
KEYCHAIN_WORD_ALIASES = {"credential": _STORED, "credential_ref": _STORED}
KEYCHAIN_WITHOUT_EFFECT = ("scope", "auto_renew", "ttl_seconds")
"""How long a server keeps what was resolved: a run of Penstock resolves its own. Of `oauth2` with client credentials, `scope` is
what is asked for."""
NO_GOOGLE = "no Google log-in here; put a token into the keychain (`bearer`)"


# ---- `connections`

CONNECTION_KINDS = ("postgres", "mysql", "sqlite", "duckdb", "adbc", "dbapi")
CONNECTION_SCOPE = Scope(
    "connection",
    "A database that tools and components use by its name: `connection: name`. Other settings of its driver may stand here, too.",
    {
        "kind": Word("Which database, or which kind of driver.", choice(CONNECTION_KINDS), required=True),
        "url": Word("Where it is, as a URL, without a password.", TEXT),
        "host": Word("Server name or address.", TEXT),
        "port": Word("Server port.", {"type": ["integer", "string"]}),
        "user": Word("User to connect as.", TEXT),
        "password": Word("A reference to the keychain: `{{ keychain.name }}`.", TEXT),
        "database": Word("Database to use.", TEXT),
        "path": Word("The file, relative to the document: SQLite and DuckDB.", TEXT),
        "driver": Word("The Python module of a driver, such as `adbc_driver_snowflake` or `oracledb`.", TEXT),
        "options": Word("Of `adbc` and `dbapi`: what its `connect` is given.", {"type": "object"}),
    },
    Strictness.OPEN,
)
