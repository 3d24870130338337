"""How one entry finds its values: written out, or pointing to a variable, a file or a provider.

password: {env: PGPASSWORD}
password: {file: secrets/pg.txt}
password: {secret: app/db, provider: vault, field: password}
"""

from __future__ import annotations

import json
import os.path
import stat
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import NotAsked, Unresolved, did_you_mean
from penstock.keychain.providers import look_up, options_of
from penstock.keychain.resolved import Content, Entry
from penstock.keychain.secret import NO_PARTS, SHORT, Secret, is_short
from penstock.keychain.surroundings import NOT_FOR_ENTRIES, Surroundings

_MAX_FILE_BYTES = 1024 * 1024
# Names of fields that are no secret, wherever a mapping comes from. All others are taken for secrets.
_WHERE_AND_WHO = (
    "host", "hostname", "port", "user", "username", "database", "dbname", "db", "schema", "sslmode", "scheme",
    "db_host", "db_port", "db_user", "db_name",
)  # fmt: skip
_OPEN_FIELDS = frozenset(
    {
        *_WHERE_AND_WHO,
        "type",
        "region",
        "endpoint",
        "token_type",
        "expires_at",
        "expires_in",
        "scope",
        "header",
        "query",
    }
)


class Lookup:
    """The resolution of one entry: where it looks, and what there is to tell about it afterwards."""

    def __init__(self, name: str, where: Surroundings) -> None:
        self.name = name
        self.where = where
        self.warnings: list[str] = []
        self._derived: set[str] = set()

    def derive(self, text: str) -> str:
        """A text that a template made of another entry's secret. Whatever field it stands in, it is one."""
        self.where.redaction.add(text)
        self._derived.add(text)
        return text

    def is_derived(self, value: Json) -> bool:
        return isinstance(value, str) and value in self._derived

    def warn(self, message: str) -> None:
        self.warnings.append(f"keychain entry `{self.name}`: {message}")

    def variable(self, name: str) -> str:
        value = self.where.variable(name)
        if value is not None:
            return value
        if name in NOT_FOR_ENTRIES:
            raise Unresolved(f"the environment variable `{name}` is for Penstock itself", "name another one")
        state = "is empty" if name in self.where.environ else "is not set"
        raise Unresolved(f"the environment variable `{name}` {state}", f"set it, as in `export {name}=…`")

    def file(self, path: str) -> str:
        """The text of a small regular file without the line ends behind it, relative to the document's folder (D56)."""
        if not self.where.is_here:
            raise NotAsked
        file = self.where.folder / os.path.expanduser(path)
        try:
            found = file.stat()
            # Anything but a regular file may never end or never begin.
            if not stat.S_ISREG(found.st_mode):
                raise Unresolved(f"`{file}` is not a file")
            if found.st_size > _MAX_FILE_BYTES:
                raise Unresolved(
                    f"the file `{file}` is too large for a secret: {found.st_size} bytes, at most {_MAX_FILE_BYTES}"
                )
            text = file.read_bytes().decode("utf-8").rstrip("\r\n")
        except FileNotFoundError:
            raise Unresolved(
                f"there is no file `{file}`", "a relative path starts from the folder of the document"
            ) from None
        except UnicodeDecodeError:
            raise Unresolved(f"the file `{file}` is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            raise Unresolved(
                f"the file `{file}` cannot be read: {getattr(error, 'strerror', None) or 'not a valid path'}"
            ) from None
        if not text.strip():
            raise Unresolved(f"the file `{file}` is empty")
        if found.st_mode & stat.S_IROTH:
            self.warn(f"everybody on this machine can read `{file}`: use `chmod 600`")
        return text

    async def provided(self, given: JsonMap, key: str) -> Json:
        """From the provider that `given` names, or the usual ones; of a mapping, the field that it names."""
        name = given.get("provider")
        if name is not None and not isinstance(name, str):
            raise Unresolved("`provider` is not a text")
        path, _, after = key.partition("#")
        field = given.get("field") or after or None
        options = {option: value for option, value in given.items() if option in options_of(name)}
        for option, value in options.items():
            if isinstance(value, dict):
                options[option] = await self.text(option, value)
        value = await look_up(path, name, options, self.where)
        if field is None:
            return value
        if not isinstance(value, dict):
            raise Unresolved(f"the secret `{path}` has no fields, so also no `{field}`")
        if value.get(str(field)) is None:
            raise Unresolved(
                f"the secret `{path}` has no field `{field}`; it has {', '.join(f'`{each}`' for each in sorted(value))}"
            )
        return value[str(field)]

    async def text(self, field: str, given: Json) -> str:
        """The text that a field of an entry stands for."""
        match given:
            case str():
                if not given.strip():
                    raise Unresolved(f"`{field}` is empty")
                return given
            case {"env": str(name), **rest} if not rest:
                return self.variable(name)
            case {"file": str(path), **rest} if not rest:
                return self.file(path)
            case {"secret": str(key)} if isinstance(given, dict):
                return await self._single(field, given, key)
            case bool() | int() | float():
                raise Unresolved(f"`{field}` is not a text", "put it in quotes, so that nothing of it is lost")
            case _:
                raise Unresolved(
                    f"`{field}` is not a text", "write a text, `{env: NAME}`, `{file: path}` or `{secret: key}`"
                )

    async def _single(self, field: str, given: JsonMap, key: str) -> str:
        provider = given.get("provider")
        known = {"secret", "provider", "field"} | options_of(provider if isinstance(provider, str) else None)
        for name in given.keys() - known:
            raise Unresolved(f"`{name}` is not known beside `secret` in `{field}`", did_you_mean(name, known))
        value = await self.provided(given, key)
        if isinstance(value, (dict, list)):
            raise Unresolved(f"`{field}`: the secret `{key}` has several fields", "name one with `field`")
        return str(value)

    def keep(self, text: str, what: str = "", parts: Mapping[str, str | None] = NO_PARTS) -> Secret:
        """A secret of this entry. From here on it is hidden wherever it turns up. `parts`: as in Secret."""
        self.where.redaction.add(text)
        if is_short(text):
            subject = f"`{what}`" if what else "the secret"
            self.warn(
                f"{subject} has fewer than {SHORT} characters: it can be hidden only where it stands alone in a text"
            )
        return Secret(text, parts)

    def single(self, text: str) -> Entry:
        """An entry that is one text. What a text of JSON or a URL has inside is hidden, too, and tools are given its fields."""
        secret = self.keep(text)
        fields = _fields_in(text)
        if fields is not None:
            return Entry(secret, fields=self.classified(fields))
        password = _password_in(text)
        if password:
            self.where.redaction.add(password)
        return Entry(secret)

    def classified(self, value: Json, field: str = "") -> Content:
        """A mapping from outside, with everything secret in it that is not known to be open."""
        match value:
            case dict():
                return {name: self.classified(each, name) for name, each in value.items()}
            case list():
                return [self.classified(each, field) for each in value]
            case None | bool():
                return value
            case str() if not value.strip():
                return value
            case _ if field.lower() in _OPEN_FIELDS and not self.is_derived(value):
                return value
            case _:
                return self.keep(str(value), field)


def _fields_in(text: str) -> JsonMap | None:
    """The mapping that a text is in JSON."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _password_in(text: str) -> str | None:
    try:
        found = urlsplit(text).password if "://" in text else None
    except ValueError:
        return None
    return None if found is None else unquote(found)
