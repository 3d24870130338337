"""HashiCorp Vault over HTTP, key-value engine version 2.

A key is a path as `vault kv get` takes it, the mount first: `secret/app/db`. With the option `mount` it is a path inside that
mount; a key of one word lies in the mount `secret`. Address and token come from the options or from `VAULT_ADDR`, `VAULT_TOKEN`.
"""

from __future__ import annotations

from urllib.parse import quote

from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import NotAsked, Unresolved
from penstock.keychain.exchange import Answer, ask, check_address, shown
from penstock.keychain.surroundings import Surroundings
from penstock.tools.addresses import OPEN


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
    place = shown(url)
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
            said = "; ".join(str(each) for each in errors) if isinstance(errors, list) else ""
            raise Unresolved(
                f"Vault answers with status {status} for `{place}`{where.redaction.hide(': ' + said) if said else ''}"
            )
