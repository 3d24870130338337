"""Places that secrets come from.

A provider is a class without constructor arguments and with one method; more of them are found under the entry point group
`penstock.secret_providers`, by name. It gives a text, a mapping, or None when it has nothing under that key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import NotAsked, Unresolved, did_you_mean
from penstock.keychain.store import PASSPHRASE, LocalStore
from penstock.keychain.surroundings import Surroundings, variable_name
from penstock.ports.plugins import offered

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


class Environment:
    """`PENSTOCK_<KEY>`, then the variable that is called exactly as the key."""

    options: frozenset[str] = frozenset()

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        return where.variable(variable_name(key)) or where.variable(key)

    def looked_for(self, key: str) -> str:
        own = variable_name(key)
        return f"environment variable `{own}`" if own == key else f"environment variables `{own}` and `{key}`"


class Local:
    """The encrypted store that `penstock keychain set` writes."""

    options: frozenset[str] = frozenset()

    async def get(self, key: str, options: JsonMap, where: Surroundings) -> Json:
        store = LocalStore(where.home, where.environ, where.clock)
        if not store.exists():
            return None
        where.redaction.add(where.environ.get(PASSPHRASE, ""))
        # Making a key from a passphrase is slow by design.
        return await asyncio.to_thread(store.get, key)

    def looked_for(self, key: str) -> str:
        return f"`{key}` in the local keychain"


def _vault() -> SecretProvider:
    from penstock.keychain.vault import Vault

    return Vault()


_BUILT_IN: dict[str, Callable[[], SecretProvider]] = {
    "environment": Environment,
    "env": Environment,
    "local": Local,
    "vault": _vault,
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
    known = sorted({*_BUILT_IN, *installed})
    raise Unresolved(
        f"there is no secret provider `{name}`; there are {', '.join(f'`{each}`' for each in known)}",
        did_you_mean(name, known),
    )


def options_of(name: str | None) -> frozenset[str]:
    if name is None:
        return frozenset()
    return frozenset(provider(name).options)


async def look_up(key: str, name: str | None, options: JsonMap, where: Surroundings) -> Json:
    """The text or mapping under `key`. Raises Unresolved when no provider has it."""
    sought = []
    for each in (name,) if name is not None else _UNLESS_TOLD:
        source = provider(each)
        if not where.asks and each not in _BUILT_IN:
            raise NotAsked
        value = await _get(source, each, key, options, where)
        if value is not None:
            return value
        sought.append(source.looked_for(key))
    raise Unresolved(f"no such secret: looked for {' and '.join(sought)}", _advice(key, name))


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
