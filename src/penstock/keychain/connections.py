"""Connection texts of databases: a URL, a JSON mapping, or `name=value` words; all become the same fields.

Law: no message of this module quotes the text, for the password is in it.
"""

from __future__ import annotations

import json
import shlex
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.kernel.values import Json, JsonMap
from penstock.keychain.errors import Unresolved

ALIASES = {
    "username": "user",
    "dbname": "database",
    "db": "database",
    "hostname": "host",
    "passwd": "password",
    "pwd": "password",
    "dsn": "url",
}

_HINT = "it is a URL like `postgresql://user:password@host:5432/database`, or a JSON mapping"


def canonical(fields: JsonMap) -> JsonMap:
    """The same fields under their own names, a `url` among them taken apart; what stands beside it wins."""
    named = {ALIASES.get(name, name): value for name, value in fields.items()}
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
    return canonical({name: value for name, value in found.items() if name not in ("url", "dsn")})


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
        if name not in ("url", "dsn"):
            found[name] = value
    return found


def _port(value: Json) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or not 0 < int(text[:6]) < 65536:
        raise Unresolved("`port` is not a number from 1 to 65535")
    return int(text)
