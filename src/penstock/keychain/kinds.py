"""The kinds of keychain entries: which fields each has and what it resolves to.

    one value      env · file · static · secret_manager · bearer
    a mapping      postgres_credential · mysql_credential · basic · api_key · oauth2 · a `map` · what a provider gives as one

A kind with fields that gets none of them is looked up under its own name: in the local keychain, then in `PENSTOCK_<NAME>`,
then field by field in `PENSTOCK_<NAME>_<FIELD>`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, quote_plus, unquote, urlencode, urlsplit

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import NotAsked, Unresolved, did_you_mean
from penstock.keychain.lookup import Lookup
from penstock.keychain.providers import Answer, Local, ask, check_address, options_of, shown
from penstock.keychain.resolved import Content, Entry, Grant
from penstock.keychain.secret import Secret, reveal
from penstock.keychain.surroundings import Surroundings, variable_name
from penstock.ports.meanings import CONNECTION_FIELDS

# ---- Connection texts of databases: a URL, a JSON mapping, or `name=value` words; all become the same fields.
# Law: no message of this module quotes the text, for the password is in it.

_HINT = "it is a URL like `postgresql://user:password@host:5432/database`, or a JSON mapping"


def canonical(fields: JsonMap) -> JsonMap:
    """The same fields under their own names, a `url` among them taken apart; what stands beside it wins."""
    named = {CONNECTION_FIELDS.get(name, name): value for name, value in fields.items() if name != "type"}
    url = named.pop("url", None)
    if url is not None:
        named = {**from_text(str(url), "`url`"), **named}
    if named.get("port") is not None:
        named["port"] = _port(named["port"])
    return named


def from_text(text: str, what: str) -> JsonMap:
    """Raises Unresolved; `what` names the place the text came from."""
    text = text.strip()
    if text.startswith("{"):
        return canonical(_from_json(text, what))
    if "://" in text:
        return _from_url(text, what)
    if "=" in text:
        return canonical(_from_words(text, what))
    raise Unresolved(f"{what} is not a connection", _HINT)


def _from_json(text: str, what: str) -> JsonMap:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # The decoder's message is harmless, its exception holds the whole text.
        raise Unresolved(f"{what} begins like JSON, but is not valid JSON") from None
    assert isinstance(value, dict)
    return value


def _from_url(text: str, what: str) -> JsonMap:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise Unresolved(
            f"{what} is not a valid URL", "characters such as `@`, `/` and `#` in a password are percent-encoded"
        ) from None
    found: JsonMap = dict(parse_qsl(parts.query))
    for name, value in (
        ("host", unquote(parts.hostname) if parts.hostname else None),
        ("port", port),
        ("user", unquote(parts.username) if parts.username else None),
        ("password", unquote(parts.password) if parts.password else None),
        ("database", unquote(parts.path.lstrip("/")) or None),
    ):
        if value is not None:
            found[name] = value
    return canonical({name: value for name, value in found.items() if CONNECTION_FIELDS.get(name, name) != "url"})


def _from_words(text: str, what: str) -> JsonMap:
    try:
        words = shlex.split(text)
    except ValueError:
        words = [""]
    found: JsonMap = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise Unresolved(f"{what} is not a connection", _HINT)
        if CONNECTION_FIELDS.get(name, name) != "url":
            found[name] = value
    return found


def _port(value: Json) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or not 0 < int(text[:6]) < 65536:
        raise Unresolved("`port` is not a number from 1 to 65535")
    return int(text)


# ---- OAuth 2 client credentials: a token that is asked for before the run and again before it runs out (RFC 6749, 4.4).

CLIENT_AUTH = ("auto", "basic", "post")

_LONGEST_LEAD_S = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """`client_auth`: the secret in a header (`basic`), in the form (`post`), or first one, then the other (`auto`)."""

    name: str
    token_url: str
    client_id: str
    client_secret: Secret
    scope: str | None
    audience: str | None
    client_auth: str

    async def grant(self, where: Surroundings) -> Grant:
        """Raises Unavailable when the issuer cannot be reached, Unresolved when it says no."""
        ways = ("basic", "post") if self.client_auth == "auto" else (self.client_auth,)
        for way in ways:
            answer = await self._ask(way, where)
            if answer.status == 200:
                return self._read(answer, where)
            if answer.status not in (400, 401, 403):
                break
        raise Unresolved(
            f"`{shown(self.token_url)}` gives no token: {_reason(answer, where)}",
            "check `client_id`, `client_secret` and `scope`",
        )

    async def renewed(self, where: Surroundings) -> Grant:
        """The same in the middle of a run, where there is no list of problems to add to."""
        try:
            return await self.grant(where)
        except Unresolved as error:
            raise Refused(f"keychain entry `{self.name}`: {error.message}", error.hint) from error

    async def _ask(self, way: str, where: Surroundings) -> Answer:
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        if self.audience:
            form["audience"] = self.audience
        headers = {"Accept": "application/json"}
        secret = reveal(self.client_secret)
        if way == "post":
            form |= {"client_id": self.client_id, "client_secret": secret}
        else:
            both = f"{quote_plus(self.client_id)}:{quote_plus(secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
        return await ask("POST", self.token_url, clock=where.clock, headers=headers, form=form, allowed=where.allowed)

    def _read(self, answer: Answer, where: Surroundings) -> Grant:
        token = answer.body.get("access_token")
        if not isinstance(token, str) or not token.strip():
            raise Unresolved(f"the answer of `{shown(self.token_url)}` has no `access_token`")
        where.redaction.add(token)
        secret = Secret(token)
        content: dict[str, Content] = {"access_token": secret, "token": secret}
        content["token_type"] = str(answer.body.get("token_type") or "Bearer")
        scope = answer.body.get("scope") or self.scope
        if isinstance(scope, str):
            content["scope"] = scope
        return _granted(content, answer, where)


def _granted(content: Content, answer: Answer, where: Surroundings) -> Grant:
    lifetime = _seconds(answer.body.get("expires_in"))
    if lifetime is None or not isinstance(content, dict):
        return Grant(content, None)
    # A tenth of a short life, a minute of a long one: enough for the task that starts now to be served.
    now = where.clock.now()
    content["expires_at"] = now + lifetime
    return Grant(content, now + lifetime - min(_LONGEST_LEAD_S, lifetime / 10))


def _seconds(value: object) -> float | None:
    try:
        seconds = float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 < seconds < float("inf") else None


def _reason(answer: Answer, where: Surroundings) -> str:
    errors = [str(answer.body[name]) for name in ("error", "error_description") if answer.body.get(name)]
    return where.redaction.hide(f"status {answer.status}" + (f", {': '.join(errors)}" if errors else ""))


_COMMON = ("name", "kind")
_PROVIDED = ("provider", "key", "field")


def read_json(text: str, what: str) -> JsonMap:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Unresolved(f"{what} is not a JSON mapping")
    return value


@dataclass(frozen=True, slots=True)
class Field:
    required: bool = False
    secret: bool = False
    rare: bool = False
    """Understood, and not mentioned when nothing was found."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`aliases` are other names for its fields; a provider can have them if `is_provided`; `read` takes apart a text it has."""

    resolve: Callable[[Kind, JsonMap, Lookup], Awaitable[Entry]]
    fields: Mapping[str, Field]
    aliases: Mapping[str, str] = field(default_factory=dict)
    is_provided: bool = False
    has_options: bool = False
    read: Callable[[str, str], JsonMap] = read_json
    example: str = ""
    variants: Mapping[str, Kind] = field(default_factory=dict)
    """Field -> the kind in another form, which an entry with that field is."""

    def of(self, given: JsonMap) -> Kind:
        return next((other for name, other in self.variants.items() if name in given), self)

    def check(self, given: JsonMap) -> None:
        """Raises Unresolved when the fields are not those of this kind, before anything is looked up."""
        known = [*self.fields, *self.aliases, *(_PROVIDED if self.is_provided else ())]
        if self.has_options:
            provider = given.get("provider")
            known += sorted(options_of(provider if isinstance(provider, str) else None))
        wrong = []
        for name in (each for each in given if each not in (*known, *_COMMON)):
            hint = did_you_mean(name, known) or f"it has {', '.join(f'`{each}`' for each in known)}"
            wrong.append(Unresolved(f"`{name}` is not a field of kind `{given['kind']}`", hint))
        if not self.is_provided:
            wrong += self.missing(given)
        if wrong:
            raise Unresolved.together(wrong)

    def missing(self, given: JsonMap) -> list[Unresolved]:
        lacking = [name for name, each in self.fields.items() if each.required and given.get(name) in (None, "")]
        return [Unresolved(f"`{name}` is missing", self.example) for name in lacking]


async def _env(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    return lookup.single(lookup.variable(await lookup.text("var", given["var"])))


async def _file(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    return lookup.single(lookup.file(await lookup.text("path", given["path"])))


async def _static(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    name = "map" if "map" in given else "value"
    value = given[name]
    if not all(map(lookup.is_derived, _leaves(value))):
        lookup.warn("is `static`: for tests only, the secret stands in the document")
    if isinstance(value, dict) and value:
        return Entry(lookup.classified(value))
    if name == "map":
        raise Unresolved("`map` is not a mapping of names to values", kind.example)
    return lookup.single(await lookup.text("value", value))


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


async def _secret_manager(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    key = await lookup.text("key", given["key"]) if given.get("key") is not None else lookup.name
    value = await lookup.provided(given, key)
    return Entry(lookup.classified(value)) if isinstance(value, dict) else lookup.single(str(value))


async def _secrets_by_map(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    paths = given["map"]
    if not isinstance(paths, dict) or not paths:
        raise Unresolved("`map` is not a mapping of names to secrets", kind.example)
    rest = {name: value for name, value in given.items() if name != "map"}

    found: dict[str, Json] = dict.fromkeys(paths)  # In the order in which they are written, whichever comes first.
    wrong: list[Unresolved] = []

    async def one(name: str, path: Json) -> None:
        try:
            found[name] = await lookup.provided(rest, await lookup.text(name, path))
        except Unresolved as error:
            wrong.append(error)

    await asyncio.gather(*(one(name, path) for name, path in paths.items()))
    if wrong:
        raise Unresolved.together(wrong)
    return Entry(lookup.classified(found))


BEARER = {"access_token": None, "token": None, "value": None, "token_type": "Bearer"}
"""What a token is read by as a mapping; None is the token."""


async def _bearer(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    values = await _values(kind, given, lookup)
    return Entry(lookup.keep(str(values["token"]), "token", BEARER), names=("value", "token"))


async def _mapping(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    return Entry(_content(kind, await _values(kind, given, lookup), lookup))


async def _database(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    values = canonical(await _values(kind, given, lookup))
    if not {"host", "user", "database", "service"} & values.keys():
        raise Unresolved("it names neither a `host` nor a `user` nor a `database`", kind.example)
    return Entry(_content(kind, values, lookup))


async def _oauth2(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    values = await _values(kind, given, lookup)
    warning = check_address("token_url", str(values["token_url"]))
    if warning:
        lookup.warn(warning)
    client_auth = str(values.get("client_auth", "auto"))
    if client_auth not in CLIENT_AUTH:
        raise Unresolved(
            f"`client_auth` is `{client_auth}`; it can be {', '.join(f'`{each}`' for each in CLIENT_AUTH)}"
        )
    client = Client(
        name=lookup.name,
        token_url=str(values["token_url"]),
        client_id=str(values["client_id"]),
        client_secret=lookup.keep(str(values["client_secret"]), "client_secret"),
        scope=_words(values.get("scope")),
        audience=_words(values.get("audience")),
        client_auth=client_auth,
    )
    where = lookup.where
    if not where.asks:
        raise NotAsked
    grant = await client.grant(where)
    return Entry(grant.content, renew_at=grant.renew_at, renew=lambda: client.renewed(where))


# ---- A token by a request that the document describes: a form is sent, and the whole answer is the value.

_METHODS: tuple[Literal["GET", "POST", "PUT"], ...] = ("GET", "POST", "PUT")


async def _oauth2_request(kind: Kind, given: JsonMap, lookup: Lookup) -> Entry:
    endpoint = await lookup.text("endpoint", given["endpoint"])
    warning = check_address("endpoint", endpoint)
    if warning:
        lookup.warn(warning)
    wanted = str(given.get("method", "POST")).upper()
    method = next((each for each in _METHODS if each == wanted), None)
    if method is None:
        raise Unresolved(f"`method` is `{wanted}`; it can be {', '.join(f'`{each}`' for each in _METHODS)}")
    headers = await _texts("headers", given, lookup)
    data = await _texts("data", given, lookup)
    if method == "GET" and data:
        endpoint += ("&" if "?" in endpoint else "?") + urlencode(data)
    where = lookup.where

    async def grant() -> Grant:
        answer = await ask(
            method, endpoint, clock=where.clock, headers={"accept": "application/json", **headers},
            form=None if method == "GET" else data, allowed=where.allowed,
        )  # fmt: skip
        if not 200 <= answer.status < 300:
            hint = "check `endpoint`, `headers` and `data`"
            raise Unresolved(f"`{shown(endpoint)}` gives no token: {_reason(answer, where)}", hint)
        if not answer.body:
            raise Unresolved(f"the answer of `{shown(endpoint)}` is no JSON mapping")
        return _granted(lookup.classified(answer.body), answer, where)

    async def renewed() -> Grant:
        try:
            return await grant()
        except Unresolved as error:
            raise Refused(f"keychain entry `{lookup.name}`: {error.message}", error.hint) from error

    if not where.asks:
        raise NotAsked
    found = await grant()
    return Entry(found.content, renew_at=found.renew_at, renew=renewed)


async def _texts(field: str, given: JsonMap, lookup: Lookup) -> dict[str, str]:
    value = given.get(field, {})
    if not isinstance(value, dict):
        raise Unresolved(f"`{field}` is not a mapping")
    return {
        name.lower() if field == "headers" else name: await lookup.text(
            f"{field}.{name}", str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each
        )
        for name, each in value.items()
    }


def _words(value: Json) -> str | None:
    return None if value is None else str(value)


def _content(kind: Kind, values: JsonMap, lookup: Lookup) -> Content:
    content: dict[str, Content] = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        is_secret = lookup.is_derived(value) or (
            kind.fields[name].secret
            if name in kind.fields
            else any(word in name for word in ("pass", "secret", "token"))
        )
        if isinstance(value, (dict, list)):
            content[name] = lookup.classified(value, name)
        else:
            content[name] = lookup.keep(str(value), name) if is_secret else value
    return content


async def _values(kind: Kind, given: JsonMap, lookup: Lookup) -> JsonMap:
    """The fields of an entry with values in their place. Raises Unresolved."""
    own = {kind.aliases.get(name, name): value for name, value in given.items() if name not in (*_COMMON, *_PROVIDED)}
    found: JsonMap = {}
    if any(given.get(name) is not None for name in _PROVIDED):
        key = await lookup.text("key", given["key"]) if given.get("key") is not None else lookup.name
        found = _taken_apart(kind, await lookup.provided(given, key), f"the secret `{key}`")
    elif not own:
        found = await _by_name(kind, lookup)
    wrong = []
    for name, value in own.items():
        try:
            found[name] = await _value(kind, name, value, lookup)
        except Unresolved as error:
            wrong.append(error)
    wrong += kind.missing({**dict.fromkeys(own, True), **found})
    if wrong:
        raise Unresolved.together(wrong)
    return found


async def _value(kind: Kind, name: str, value: Json, lookup: Lookup) -> Json:
    if isinstance(value, str) and kind.fields[name].secret and not lookup.is_derived(value):
        lookup.warn(f"`{name}` is written out: use `{{env: NAME}}`, `{{file: path}}` or `{{secret: key}}`")
    if name == "port" and isinstance(value, int):
        return value
    if name == "scope" and isinstance(value, list):
        return " ".join(str(each) for each in value)
    return await lookup.text(name, value)


async def _by_name(kind: Kind, lookup: Lookup) -> JsonMap:
    name, where = lookup.name, lookup.where
    stored = await Local().get(name, {}, where)
    if stored is not None:
        return _taken_apart(kind, stored, f"`{name}` in the local keychain")
    whole = variable_name(name)
    text = where.variable(whole)
    if text is not None:
        return _taken_apart(kind, text, f"the environment variable `{whole}`")
    parts = {each: variable_name(name, each) for each in kind.fields}
    found: JsonMap = {each: where.variable(variable) for each, variable in parts.items() if where.variable(variable)}
    if not found:
        listed = ", ".join(f"`{parts[each]}`" for each in parts if not kind.fields[each].rare)
        raise Unresolved(
            f"nothing was found: looked for `{name}` in the local keychain and for the variables `{whole}`, {listed}",
            f"store it with `penstock keychain set {name}`, or set `{whole}`"
            + (f"; {kind.example}" if kind.example else ""),
        )
    return found


def _taken_apart(kind: Kind, value: Json, what: str) -> JsonMap:
    fields = value if isinstance(value, dict) else kind.read(str(value), what)
    return {kind.aliases.get(name, name): each for name, each in fields.items()}


def _read_basic(text: str, what: str) -> JsonMap:
    user, colon, password = text.partition(":")
    if text.lstrip().startswith("{") or not colon:
        return read_json(text, what)
    return {"username": user, "password": password}


_DATABASE = {
    "url": Field(secret=True),
    "host": Field(),
    "port": Field(),
    "user": Field(),
    "password": Field(secret=True),
    "database": Field(),
    **{
        name: Field(rare=True)
        for name in ("sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name", "options")
    },
}
_A_VALUE = {"value": Field(required=True, secret=True)}

KINDS: Mapping[str, Kind] = {
    "env": Kind(_env, {"var": Field(required=True)}, example="as in `var: API_TOKEN`"),
    "file": Kind(_file, {"path": Field(required=True)}, example="as in `path: secrets/token.txt`"),
    "static": Kind(_static, _A_VALUE, variants={"map": Kind(_static, {"map": Field(required=True, secret=True)})}),
    "secret_manager": Kind(
        _secret_manager,
        {},
        is_provided=True,
        has_options=True,
        variants={
            "map": Kind(
                _secrets_by_map,
                {"map": Field(required=True), "provider": Field()},
                has_options=True,
                example="as in `map: {api_key: secret/apps/shop#key}`",
            )
        },
    ),
    "bearer": Kind(
        _bearer,
        {"token": Field(required=True, secret=True)},
        aliases={"value": "token"},
        is_provided=True,
        read=lambda text, what: {"token": text},
    ),
    "basic": Kind(
        _mapping,
        {"username": Field(required=True), "password": Field(required=True, secret=True)},
        aliases={"user": "username"},
        is_provided=True,
        read=_read_basic,
    ),
    "api_key": Kind(
        _mapping,
        {"value": Field(required=True, secret=True), "header": Field(), "query": Field()},
        is_provided=True,
        read=lambda text, what: {"value": text},
    ),
    "oauth2": Kind(
        _oauth2,
        {
            "token_url": Field(required=True),
            "client_id": Field(required=True),
            "client_secret": Field(required=True, secret=True),
            "scope": Field(),
            "audience": Field(),
            "client_auth": Field(),
        },
        is_provided=True,
        variants={
            "endpoint": Kind(
                _oauth2_request,
                {"endpoint": Field(required=True), "method": Field(), "headers": Field(), "data": Field()},
            )
        },
    ),
    "postgres_credential": Kind(
        _database,
        _DATABASE,
        aliases=CONNECTION_FIELDS,
        is_provided=True,
        read=from_text,
        example="as in `postgresql://user:password@host:5432/database`",
    ),
    "mysql_credential": Kind(
        _database,
        _DATABASE,
        aliases=CONNECTION_FIELDS,
        is_provided=True,
        read=from_text,
        example="as in `mysql://user:password@host:3306/database`",
    ),
}
