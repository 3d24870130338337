"""The keychain of one run: entries by name, resolved before the first step.

Law: templates get `view`, which holds secrets only as `Secret`; tools get plain text through `reveal` and `credential`, and only
then. Nobody writes to a keychain: a token that runs out is replaced by `fresh`, under the same name and the same markers. A name
that became known in the middle of the run is looked up when a tool asks for it, and is in no view.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias, Union
from urllib.parse import quote

from penstock.kernel.values import Json
from penstock.keychain.errors import SecretAltered, UnknownEntry, Unresolved
from penstock.keychain.redaction import Redaction
from penstock.keychain.secret import NONCE, Secret, base64_cores, marker, marker_of, reveal
from penstock.ports.ambient import Clock, SystemClock

# ---- Markers inside texts become plain text again, in the encoding the template asked for.
# The form of a marker shows which encoder it went through, and the secret is encoded the same way (`␂` is control character 2):
#   <pnsk␂'…:…>                none: the secret as it is
#   %3Cpnsk%02%27…%3A…%3E      for a URL: percent-encoded
#   <pnsk\u0002'…:…>           for JSON: escaped
#   &lt;pnsk␂&#39;…:…&gt;      for HTML: escaped
#   <pnsk␂'"'"'…:…>            for a shell, within single quotes: escaped
#   base64                a run that decodes to a text with a marker: decoded, filled in, encoded again
# Law: a marker that was changed in any other way is refused, never passed on to a tool as if it were the secret.

_MARKER = re.compile(
    rf"(?P<open><|%3C|\\u003c|&lt;)pnsk(?P<control>\x02|%02|\\u0002)(?P<quote>'\"'\"'|'|%27|\\u0027|&#39;|&#x27;){NONCE}"
    r"(?::|%3A)(?P<number>\d{20})(?:>|%3E|\\u003e|&gt;)"
)
_BASE64_CORES = base64_cores(NONCE.encode())
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def _for_html(text: str) -> str:
    import html  # Few templates escape a secret for HTML.

    return html.escape(text)


def _for_json(text: str) -> str:
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", inner)


def _for_shell(text: str) -> str:
    return text.replace("'", _QUOTE_IN_SHELL)


_QUOTE_IN_SHELL = "'\"'\"'"
_ENCODE: Mapping[tuple[str, str, str], Callable[[str], str]] = {
    ("<", "\x02", "'"): lambda text: text,
    ("%3C", "%02", "'"): lambda text: quote(text, safe=""),
    ("%3C", "%02", "%27"): lambda text: quote(text, safe=""),
    ("<", "\\u0002", "'"): _for_json,
    ("\\u003c", "\\u0002", "\\u0027"): _for_json,
    ("&lt;", "\x02", "&#39;"): _for_html,
    ("&lt;", "\x02", "&#x27;"): _for_html,
    ("<", "\x02", _QUOTE_IN_SHELL): _for_shell,
}


def fill_in(text: str, known: Mapping[str, Secret]) -> str:
    """`text` with every marker replaced. `known` is by marker. A text without markers is returned as it is."""
    if NONCE in text:
        text = _MARKER.sub(lambda found: _plain(found, known), text)
        if NONCE in text:
            raise SecretAltered()
    if any(core in text for core in _BASE64_CORES):
        text = _BASE64_RUN.sub(lambda found: _refill(found[0], known), text)
    return text


def _plain(found: re.Match[str], known: Mapping[str, Secret]) -> str:
    secret = known.get(marker(found["number"]))
    encode = _ENCODE.get((found["open"], found["control"], found["quote"]))
    # Left as it is, the check for the nonce refuses it: encoded in two ways, or a secret of another run.
    return found[0] if secret is None or encode is None else encode(reveal(secret))


def _refill(run: str, known: Mapping[str, Secret]) -> str:
    if not any(core in run for core in _BASE64_CORES):
        return run
    is_url_safe = "-" in run or "_" in run
    try:
        standard = run.rstrip("=").translate(str.maketrans("-_", "+/"))
        inside = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise SecretAltered() from error
    filled = fill_in(inside, known).encode()
    again = base64.urlsafe_b64encode(filled) if is_url_safe else base64.b64encode(filled)
    # The padding is kept or left out as the template had it; the length, and so its need, has changed.
    is_padded = run.endswith("=") or len(run) % 4 == 0
    return again.decode() if is_padded else again.decode().rstrip("=")


Content: TypeAlias = Union[bool, int, float, str, Secret, "list[Content]", "dict[str, Content]", None]
"""What an entry holds: a value as JSON has it, with secrets in place of the texts that are secret."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Content with an end: it should be replaced at `renew_at`. None: it has no end that we know of."""

    content: Content
    renew_at: float | None
    fields: Content = None


@dataclass(slots=True)
class Entry:
    """`names` are the fields under which a tool finds an entry that is one value, unless it has `fields` inside; `renew`
    asks for the content again, after the entries that it `needs`."""

    content: Content
    names: tuple[str, ...] = ("value",)
    renew_at: float | None = None
    renew: Callable[[], Awaitable[Grant]] | None = None
    fields: Content = None
    needs: tuple[str, ...] = ()


class Keychain:
    def __init__(
        self,
        entries: Mapping[str, Entry] | None = None,
        *,
        clock: Clock | None = None,
        redaction: Redaction | None = None,
        warnings: Sequence[str] = (),
        look_up: Callable[[str], Entry] | None = None,
    ) -> None:
        """`look_up`: an entry that nothing declares. It may block, is called from any thread, and raises Unresolved."""
        self._look_up = look_up
        self._asked: dict[str, Entry] = {}
        self._asking = threading.Lock()
        self._entries = dict(entries or {})
        self._clock = clock or SystemClock()
        self.redaction = redaction if redaction is not None else Redaction()
        """Shared with the keychains of sub-playbooks, so that a secret handed down is hidden there too."""
        self.warnings = tuple(warnings)
        self._by_marker: dict[str, Secret] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        for entry in self._entries.values():
            self._know(entry.content)
        self._shown = {name: frozen(entry.content) for name, entry in self._entries.items()}
        self._view = MappingProxyType(self._shown)

    def __repr__(self) -> str:
        return f"Keychain({', '.join(self._entries)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keychain holds secrets and cannot be serialised or copied")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def view(self) -> Mapping[str, object]:
        """What templates see as `keychain`: read-only, always current, without a single plain secret."""
        return self._view

    def reveal(self, value: Any) -> Any:
        """A copy of `value` in which secrets and their markers have become plain text. Only for the call of a tool.

        Raises SecretAltered when a template has changed a secret. Without any secret known, `value` itself is returned.
        """
        return self._revealed(value) if self._by_marker else value

    def credential(self, name: str) -> dict[str, Any]:
        """An entry for `auth:`, in plain text. One value is found under `value`. Raises UnknownEntry."""
        entry = self._entries.get(name)
        if entry is None:
            entry = self._undeclared(name)
        plain = self._revealed(entry.content if entry.fields is None else entry.fields)
        return plain if isinstance(plain, dict) else dict.fromkeys(entry.names, plain)

    def _undeclared(self, name: str) -> Entry:
        if any(reveal(secret) == name for secret in tuple(self._by_marker.values())):
            return Entry(name, ("value", "token"))  # `auth: "{{ keychain.token }}"` gave the secret itself.
        if self._look_up is None or not name.strip():
            raise UnknownEntry(name, self._entries)
        with self._asking:
            if name not in self._asked:
                try:
                    found = self._look_up(name)
                except Unresolved as error:
                    raise UnknownEntry(name, self._entries, error) from None
                self._know(found.content)
                self._asked[name] = found
            return self._asked[name]

    def hide(self, text: str) -> str:
        """`text` as it may be logged: known secrets, encoded ones too, and markers are replaced by `***`."""
        return self.redaction.hide(text)

    def hide_bytes(self, data: bytes) -> bytes:
        return self.redaction.hide_bytes(data)

    def hide_tree(self, value: Json) -> Json:
        """The same for a value; unlike `hide_bytes` on its JSON it cannot break the form of the JSON."""
        return self.redaction.hide_tree(value)

    @property
    def hides(self) -> bool:
        """Is there anything to hide?"""
        return self.redaction.hides

    def shows(self, data: bytes) -> bool:
        """Is a secret in `data`? The quick question to ask of encoded JSON before `hide_tree` walks through the value."""
        return self.redaction.shows(data)

    def is_stale(self) -> bool:
        """Has any entry to be replaced by now? Cheap: to be asked before every task."""
        return any(self._is_due(entry) for entry in self._entries.values() if entry.renew is not None)

    async def fresh(self, name: str | None = None) -> None:
        """Replace what is about to run out: one entry, or all. A name that no entry has is no business of this method.

        Raises Unavailable when the issuer cannot be reached, Refused when it says no.
        """
        for each in [*self._entries] if name is None else [name]:
            for need in self._entries[each].needs if each in self._entries else ():
                await self.fresh(need)
            if each in self._entries and self._is_due(self._entries[each]):
                # One asks, the others wait and find it done: an issuer may revoke the token it gave a moment ago.
                async with self._locks.setdefault(each, asyncio.Lock()):
                    if self._is_due(self._entries[each]):
                        await self._renew(each)

    def _is_due(self, entry: Entry) -> bool:
        return entry.renew is not None and entry.renew_at is not None and self._clock.now() >= entry.renew_at

    async def _renew(self, name: str) -> None:
        entry = self._entries[name]
        assert entry.renew is not None
        grant = await entry.renew()
        old = list(secrets_in(entry.content))
        entry.content, entry.renew_at, entry.fields = grant.content, grant.renew_at, grant.fields
        self._know(entry.content)
        # Texts rendered before the renewal are sent after it: their markers stand for the new value from now on.
        current = dict(secrets_in(entry.content))
        for path, secret in old:
            replaced = [known for known, held in self._by_marker.items() if held is secret]
            for known in replaced if path in current else ():
                self._by_marker[known] = current[path]
        self._shown[name] = frozen(entry.content)

    def _know(self, content: Content) -> None:
        for _, secret in secrets_in(content):
            self._by_marker[marker_of(secret)] = secret
            self.redaction.add(reveal(secret))

    def _revealed(self, value: Any) -> Any:
        match value:
            case str():
                return fill_in(value, self._by_marker)
            case Secret():
                return reveal(self._by_marker.get(marker_of(value), value))
            case Mapping():
                return {self._revealed(key): self._revealed(each) for key, each in value.items()}
            case list() | tuple():
                return [self._revealed(each) for each in value]
            case _:
                return value


def frozen(content: Content) -> object:
    match content:
        case dict():
            return MappingProxyType({key: frozen(each) for key, each in content.items()})
        case list():
            return tuple(frozen(each) for each in content)
        case _:
            return content


def secrets_in(content: Content, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Secret]]:
    match content:
        case Secret():
            yield path, content
        case dict():
            for key, each in content.items():
                yield from secrets_in(each, (*path, key))
        case list():
            for index, each in enumerate(content):
                yield from secrets_in(each, (*path, index))
        case _:
            return
