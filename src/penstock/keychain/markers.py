"""Markers inside texts become plain text again, in the encoding the template asked for.

An encoder that went over the marker left its trace on it (`␂` is the control character 2):

    as it is      <pnsk␂…:…>                 the secret as it is
    for a URL     %3Cpnsk%02…%3A…%3E         percent-encoded
    for JSON      <pnsk\\u0002…:…>            escaped
    for HTML      &lt;pnsk␂…:…&gt;           escaped
    in base64     a run that decodes to a text with a marker in it: decoded, filled in, encoded again

Law: a marker that was changed in any other way is refused, never passed on to a tool as if it were the secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from penstock.keychain.errors import SecretAltered
from penstock.keychain.secret import NONCE, Secret, marker, reveal
from penstock.keychain.spellings import base64_cores

_MARKER = re.compile(
    rf"(?P<open><|%3C|\\u003c|&lt;)pnsk(?P<control>\x02|%02|\\u0002){NONCE}(?::|%3A)(?P<number>\d{{20}})(?:>|%3E|\\u003e|&gt;)"
)
_BASE64_CORES = base64_cores(NONCE.encode())
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def _for_html(text: str) -> str:
    import html

    return html.escape(text)


def _for_json(text: str) -> str:
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", inner)


_ENCODE: Mapping[tuple[str, str], Callable[[str], str]] = {
    ("<", "\x02"): lambda text: text,
    ("%3C", "%02"): lambda text: quote(text, safe=""),
    ("<", "\\u0002"): _for_json,
    ("\\u003c", "\\u0002"): _for_json,
    ("&lt;", "\x02"): _for_html,
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
    encode = _ENCODE.get((found["open"], found["control"]))
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
