"""Looks for secrets where none may be: in every file of a state folder and in anything else that came out of a run.

It knows the spellings of a secret by itself and shares no code with the redaction it checks. A database is read twice: as a
file, for what is in free pages and in the write-ahead log; and row by row, since a value may lie across two pages.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote, quote_plus

CORE = 12
"""So many characters of a spelling are looked for at least; shorter needles would be found by chance."""
PART = 10
"""Of the secret itself also its first and its last so many characters: half a secret is too much."""


@dataclass(frozen=True)
class Found:
    where: str
    spelling: str
    around: bytes

    def __str__(self) -> str:
        return f"{self.where}: {self.spelling}: {self.around!r}"


def spellings(secret: str) -> dict[str, bytes]:
    """Name -> what to look for. Of base64 the part that does not depend on its neighbours, for each of three alignments."""
    raw = secret.encode()
    found = {
        "as it is": raw,
        "in part, its beginning": secret[:PART].encode(),
        "in part, its end": secret[-PART:].encode(),
        "URL-encoded": quote(secret, safe="").encode(),
        "URL-encoded in lower case": _lower_escapes(quote(secret, safe="")),
        "form-encoded": quote_plus(secret).encode(),
        "URL-encoded twice": quote(quote(secret, safe=""), safe="").encode(),
        "JSON": json.dumps(secret)[1:-1].encode(),
        "JSON with its own characters": json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        "JSON in JSON": json.dumps(json.dumps(secret)[1:-1])[1:-1].encode(),
        "Python": repr(secret)[1:-1].encode(),
        "HTML": escape(secret).encode(),
        "hexadecimal": raw.hex().encode(),
        "hexadecimal in upper case": raw.hex().upper().encode(),
    }
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw)
        core = encoded[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]
        found[f"base64 at {shift}"] = core
        found[f"URL-safe base64 at {shift}"] = core.translate(bytes.maketrans(b"+/", b"-_"))
    return {name: needle for name, needle in found.items() if len(needle) >= min(CORE, PART)}


def _lower_escapes(text: str) -> bytes:
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])]).encode()


class Scanner:
    """Scans for the same secrets again and again."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._needles: dict[bytes, str] = {}
        for number, secret in enumerate(secrets):
            assert len(secret) >= CORE + PART, "a canary must be long enough not to turn up by chance"
            for name, needle in spellings(secret).items():
                self._needles.setdefault(needle, f"secret {number} {name}")

    def in_bytes(self, data: bytes, where: str) -> list[Found]:
        found = []
        for needle, spelling in self._needles.items():
            at = data.find(needle)
            if at >= 0:
                found.append(Found(where, spelling, data[max(0, at - 60) : at + len(needle) + 60]))
        return found

    def in_text(self, text: str, where: str) -> list[Found]:
        return self.in_bytes(text.encode("utf-8", "surrogatepass"), where)

    def in_folder(self, folder: Path) -> list[Found]:
        """Every file below, whatever it is; names too."""
        found = self.in_text("\n".join(str(path) for path in folder.rglob("*")), "the names of files")
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found += self.in_bytes(path.read_bytes(), str(path))
                if path.suffix == ".db":
                    found += self.in_database(path)
        return found

    def in_database(self, path: Path) -> list[Found]:
        found = []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            for table, rows in _tables(connection):
                found += self.in_bytes(b"\n".join(rows), f"{path}, table {table}")
        return found


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, list[bytes]]]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()]
    for name in names:
        rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()
        yield name, [_bytes(value) for row in rows for value in row if value is not None]


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def assert_clean(found: list[Found]) -> None:
    assert not found, "\n".join(str(one) for one in found[:20])


def state_folders(below: Path) -> list[Path]:
    return [path.parent for path in sorted(below.rglob("penstock.db"))]
