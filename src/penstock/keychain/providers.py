"""Places that secrets come from.

A provider is a class without constructor arguments and with one method; more of them are found under the entry point group
`penstock.secret_providers`, by name. It gives a text, a mapping, or None when it has nothing under that key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Literal, Protocol, cast
from urllib.parse import quote, urlencode, urlsplit

from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import NotAsked, Unresolved, did_you_mean
from penstock.keychain.store import PASSPHRASE, LocalStore
from penstock.keychain.surroundings import Surroundings, variable_name
from penstock.ports.ambient import Clock
from penstock.ports.plugins import offered
from penstock.tools.addresses import OPEN, Addresses

GROUP = "penstock.secret_providers"


class SecretProvider(Protocol):
    options: frozenset[str]
    """Fields of an entry that this provider understands besides `key` and `field`."""

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        """Raises Unresolved, or a PenstockError, with a message fit to be shown."""
        ...

    def looked_for(self, key: str) -> str:
        """Where `key` would be, in words: for the message that says it is nowhere."""
        ...


# The fields of a credential that may have a variable each: of a login, a key, a database, an object store.
_FIELDS = (
    "username", "password", "token", "url", "host", "port", "user", "database", "sslmode", "header", "query", "value",
    "access_key_id", "secret_access_key", "session_token", "region", "endpoint", "private_key", "passphrase",
)  # fmt: skip
_MENTIONED = 5


class Environment:
    """`PENSTOCK_<KEY>`, then the variable that is called exactly as the key, then a variable for each field."""

    options: frozenset[str] = frozenset()

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        return in_environment(key, where)

    def looked_for(self, key: str) -> str:
        names = [variable_name(key), *(variable_name(key, each) for each in _FIELDS[:_MENTIONED])]
        return f"environment variables {', '.join(f'`{name}`' for name in names)}"


def in_environment(key: str, where: Surroundings) -> Json:
    whole = where.variable(variable_name(key)) or where.variable(key)
    if whole is not None:
        return whole
    found: JsonMap = {}
    for each in _FIELDS:
        value = where.variable(variable_name(key, each))
        if value is not None:
            found[each] = value
    return found or None


class Local:
    """The encrypted store that `penstock keychain set` writes."""

    options: frozenset[str] = frozenset()

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        # Making a key from a passphrase is slow by design.
        return await asyncio.to_thread(stored, key, where) if store_of(where).exists() else None

    def looked_for(self, key: str) -> str:
        return f"`{key}` in the local keychain"


def store_of(where: Surroundings) -> LocalStore:
    if not where.is_here:
        raise NotAsked
    return LocalStore(where.home, where.environ, where.clock)


def stored(key: str, where: Surroundings) -> Json:
    """What the local store has under a name. A record as NoETL keeps it, `{name, type, data: {…}}`, is its data."""
    store = store_of(where)
    if not store.exists():
        return None
    where.redaction.add(where.environ.get(PASSPHRASE, ""))
    value = store.get(key)
    if isinstance(value, dict) and value.keys() >= {"name", "type", "data"} and isinstance(value["data"], dict):
        return {"type": value["type"], **value["data"]}
    return value


def usual(key: str, where: Surroundings) -> Json:
    """What this machine has under a name. It blocks while a passphrase is made a key. Raises Unresolved."""
    value = stored(key, where)
    if value is None:
        value = in_environment(key, where)
    if value is None:
        raise _nowhere(key, None, [Local(), Environment()])
    return value


_BUILT_IN: dict[str, Callable[[], SecretProvider]] = {
    "environment": Environment,
    "env": Environment,
    "local": Local,
    "vault": lambda: Vault(),  # noqa: PLW0108 - It is defined below.
}
_UNLESS_TOLD = ("local", "environment")


def provider(name: str) -> SecretProvider:
    make = _BUILT_IN.get(name)
    if make is not None:
        return make()
    installed = offered(GROUP)
    if name in installed:
        try:
            return cast(SecretProvider, installed[name].load()())
        except (ImportError, AttributeError, TypeError) as error:
            raise Unresolved(f"the secret provider `{name}` is installed but cannot be loaded: {error}") from error
    known = ["vault", "local", "environment", *sorted(installed)]
    *most, last = (f"`{each}`" for each in known)
    raise Unresolved(f"there is no provider `{name}` here; use {', '.join(most)} or {last}", did_you_mean(name, known))


def options_of(name: str | None) -> frozenset[str]:
    if name is None:
        return frozenset()
    return frozenset(provider(name).options)


async def look_up(key: str, name: str | None, options: JsonMap, where: Surroundings) -> Json:
    """The text or mapping under `key`. Raises Unresolved when no provider has it."""
    sought: list[SecretProvider] = []
    for each in (name,) if name is not None else _UNLESS_TOLD:
        source = provider(each)
        if not where.asks and each not in _BUILT_IN:
            raise NotAsked
        value = await _get(source, each, key, options, where)
        if value is not None:
            return value
        sought.append(source)
    raise _nowhere(key, name, sought)


def _nowhere(key: str, name: str | None, sought: Sequence[SecretProvider]) -> Unresolved:
    places = " and ".join(each.looked_for(key) for each in sought)
    return Unresolved(f"no such secret: looked for {places}", _advice(key, name))


async def _get(source: SecretProvider, name: str, key: str, options: JsonMap, where: Surroundings) -> Json:
    try:
        value = await source.get(key, options, where)
    except PenstockError as error:
        raise Unresolved(error.message, error.hint or "") from error
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        # A plug-in's own error may quote the secret: only its type is shown, and the cause is cut off.
        raise Unresolved(f"the secret provider `{name}` failed with `{type(error).__name__}`") from None
    if value is None or (isinstance(value, (str, dict)) and value):
        return value
    raise Unresolved(f"the secret provider `{name}` gave neither a text nor a mapping for `{key}`")


def _advice(key: str, name: str | None) -> str:
    if name in (None, "local"):
        return f"store it with `penstock keychain set {key}`" + (
            f", or set `{variable_name(key)}`" if name is None else ""
        )
    return f"set `{variable_name(key)}`" if name == "environment" else ""


# ---- One question to an issuer of secrets over HTTP, and its answer.
# Law: redirects are not followed, for they would carry the credential elsewhere; errors name the address without its query
# and never quote what was sent.

_TRIES = 3
_FIRST_DELAY_S = 0.2
_WHOLE_S = 20.0
_MAX_BYTES = 1024 * 1024
_WORTH_ANOTHER_TRY = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: JsonMap
    """Empty when the answer was not a JSON mapping."""


async def ask(
    method: Literal["GET", "POST", "PUT"],
    url: str,
    *,
    clock: Clock,
    headers: Mapping[str, str],
    form: Mapping[str, str] | None = None,
    allowed: Addresses = OPEN,
) -> Answer:
    """`form` is sent as JSON if the headers say so. `allowed`: where the issuer may be, when a document names it. Raises
    Unavailable when there is no answer, or only ones that promise to be better later."""
    address = shown(url)
    why = ""
    for number in range(_TRIES):
        if number:
            await clock.sleep(_FIRST_DELAY_S * 4 ** (number - 1))
        answer = await _once(method, url, headers, form, allowed)
        if isinstance(answer, Answer) and answer.status not in _WORTH_ANOTHER_TRY:
            return answer
        why = answer if isinstance(answer, str) else f"it answers with status {answer.status}"
    raise Unavailable(f"`{address}` cannot be used now: {why}", "check the address and the network, then try again")


async def _once(
    method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None, allowed: Addresses
) -> Answer | str:
    from penstock.tools.base import ToolFailure  # Only a request needs it.
    from penstock.tools.http import exchange  # Slow to import: only a request needs it.
    from penstock.tools.http.tool import can_be_sent

    typed = {} if form is None else {"content-type": "application/x-www-form-urlencoded"}
    sent = {name.lower(): value for name, value in {**typed, **headers}.items()}
    is_json = sent.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    body = None if form is None else exchange.Body([(json.dumps(form) if is_json else urlencode(form)).encode()])
    part = _WHOLE_S / 2
    try:
        request = exchange.Request(method, exchange.url_of(url), sent, body, connect=part, read=part, write=part)
    except ValueError:
        request = None
    if request is None or not all(can_be_sent(name, value) for name, value in sent.items()):
        # What could not be sent is not quoted: it may be the credential.
        raise Unresolved(
            f"the request to `{shown(url)}` cannot be sent: address or credential hold characters that are not allowed"
        )
    client = exchange.Client(True, allowed)
    try:
        async with asyncio.timeout(_WHOLE_S), AsyncExitStack() as stack:
            stack.push_async_callback(client.close)
            response, _ = await exchange.Exchange(follow=False, origin_only=True).send(client, request)
            stack.callback(response.release)
            answer = bytearray()
            while chunk := await response.content.readany():
                answer += chunk
                if len(answer) > _MAX_BYTES:
                    return "its answer is too large"
            return Answer(response.status, _mapping(bytes(answer)))
    except ToolFailure as failure:
        if failure.kind in ("address_refused", "parameters", "unsupported_scheme"):
            raise Unresolved(failure.message) from None
        return failure.message
    except exchange.TROUBLE as error:
        if isinstance(error, TimeoutError):
            return f"no answer within {_WHOLE_S:g} seconds"
        return "its answer broke off"


def _mapping(body: bytes) -> JsonMap:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def shown(url: str) -> str:
    """An address as it may stand in a message: no user, no password, no query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def check_address(field: str, url: str) -> str:
    """A warning when the secret would travel in the open, else an empty text. Raises Unresolved when it is no web address."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname
    except ValueError:
        scheme, host = "", None
    if scheme not in ("http", "https") or not host:
        raise Unresolved(f"`{field}` is not a web address", "it begins with `https://`")
    if scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        return f"`{field}` is not encrypted: secrets travel in the open to `{host}`; use `https://`"
    return ""


# ---- HashiCorp Vault over HTTP, key-value engine version 2.
# A key is a path as `vault kv get` takes it, the mount first: `secret/app/db`. With the option `mount` it is a path inside
# that mount; a key of one word lies in the mount `secret`. Address and token come from the options or from `VAULT_ADDR`,
# `VAULT_TOKEN`.


class Vault:
    options: frozenset[str] = frozenset({"address", "token", "mount", "namespace", "version"})

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        address = self._setting("address", "VAULT_ADDR", options, where)
        token = self._setting("token", "VAULT_TOKEN", options, where)
        if address is None or token is None:
            missing = [name for name, value in (("VAULT_ADDR", address), ("VAULT_TOKEN", token)) if value is None]
            raise Unresolved(f"Vault cannot be asked: {' and '.join(f'`{name}`' for name in missing)} not set")
        where.redaction.add(token)
        check_address("address", address)
        if not where.asks:
            raise NotAsked
        headers = {"X-Vault-Token": token, "X-Vault-Request": "true"}
        namespace = self._setting("namespace", "VAULT_NAMESPACE", options, where)
        if namespace is not None:
            headers["X-Vault-Namespace"] = namespace
        mount, path = _split(key, options.get("mount"))
        url = f"{address.rstrip('/')}/v1/{quote(mount)}/data/{quote(path)}"
        if options.get("version") is not None:
            url += f"?version={quote(str(options['version']))}"
        # An address of the environment is the operator's own.
        allowed = where.allowed if options.get("address") is not None else OPEN
        answer = await ask("GET", url, clock=where.clock, headers=headers, allowed=allowed)
        return _content(answer, url, f"{mount}/{path}", where)

    def looked_for(self, key: str) -> str:
        return f"`{key}` in Vault"

    def _setting(self, option: str, variable: str, options: JsonMap, where: Surroundings) -> str | None:
        given = options.get(option)
        return str(given).strip() if given is not None else where.variable(variable)


def _split(key: str, mount: Json) -> tuple[str, str]:
    path = key.strip("/")
    if isinstance(mount, str):
        return mount.strip("/"), path
    first, slash, rest = path.partition("/")
    if not slash:
        return "secret", first
    # The path of the API has `data/` behind the mount; people copy that one too.
    return first, rest.removeprefix("data/")


def _content(answer: Answer, url: str, path: str, where: Surroundings) -> Json:
    address = shown(url)
    match answer.status:
        case 200:
            data = answer.body.get("data")
            content = data.get("data") if isinstance(data, dict) else None
            if not isinstance(content, dict):
                raise Unresolved(
                    f"Vault's answer for `{path}` is not that of a key-value engine of version 2",
                    "the key begins with the mount, as in `secret/apps/shop`, unless `mount` names it",
                )
            # A mapping of one field `value` is how single values are kept there.
            single = content.get("value") if len(content) == 1 else None
            return single if isinstance(single, str) else content
        case 404:
            return None
        case 403:
            raise Unresolved(f"Vault refuses `{path}` to this token", "check `VAULT_TOKEN`, its policy, and the path")
        case status:
            errors = answer.body.get("errors")
            reason = "; ".join(str(each) for each in errors) if isinstance(errors, list) else ""
            raise Unresolved(
                f"Vault answers with status {status} for `{address}`{where.redaction.hide(': ' + reason) if reason else ''}"
            )
