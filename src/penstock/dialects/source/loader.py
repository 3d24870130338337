"""Loads YAML with the position of every value.

`load_file` and `load_text` read the text (and never construct Python objects from tags), resolve YAML 1.2 core types only, refuse
duplicate keys and bombs, and give a tree of `SourceNode`. Whatever the file holds, the answer is a tree or problems, never an
exception. No other package parses YAML.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from penstock.dialects.problems import Findings, Position, Problem
from penstock.dialects.source.node import DEFAULT_LIMITS, Paths, SourceLimits, SourceNode, lines_of
from penstock.dialects.source.positions import Positions
from penstock.dialects.source.tree import build


@dataclass(slots=True)
class Loaded:
    """What a file gave: its tree, or None when there is none; and what is wrong with it, in the order of the file."""

    root: SourceNode | None
    problems: list[Problem]
    text: str
    file: str
    _paths: Paths | None = field(default=None, repr=False, compare=False)

    def path_at(self, position: Position) -> str:
        """Where a place is in the document's structure, such as `workflow[2].tool[0].kind`; "" when there is no tree."""
        if self.root is None:
            return ""
        if self._paths is None:
            self._paths = Paths(self.root)
        return self._paths.at(position)


def load_file(path: Path, limits: SourceLimits = DEFAULT_LIMITS) -> Loaded:
    """Reads one document. The size is known before a byte is read, and no more than the limit ever is."""
    file = os.fsencode(path).decode("utf-8", "replace")
    try:
        content = _read(path, file, limits)
    except FileNotFoundError:
        return _unread(file, "Y0001", f"there is no file `{file}`")
    except IsADirectoryError:
        return _unread(file, "Y0002", f"`{file}` is a folder; give the path of a YAML file")
    except OSError as error:
        return _unread(file, "Y0003", f"`{file}` cannot be read: {_reason(error)}")
    except ValueError:
        return _unread(file, "Y0001", f"`{file}` is no path: it holds a NUL character")
    return content if isinstance(content, Loaded) else _decoded(content, file, limits)


def load_text(text: str, file: str = "<text>", limits: SourceLimits = DEFAULT_LIMITS) -> Loaded:
    """Reads one document from text; `file` is the name that problems carry."""
    text = text.removeprefix("\ufeff")
    if len(text) > limits.max_bytes:
        return _too_large(file, len(text), limits)
    if unprintable := _UNPRINTABLE.search(text):
        return _control_character(text, file, unprintable.start())
    root, findings = build(text, file, limits)
    empty = root is None or (root.is_null and root.position.column == root.position.end_column)
    if empty and not findings:
        return _unread(file, "Y0007", "the document is empty", hint="`penstock new` writes one to start from")
    return Loaded(root, findings.in_order(), text, file)


# What YAML 1.2 calls not printable; and a byte order mark inside the text, which would become an invisible part of a name.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def _read(path: Path, file: str, limits: SourceLimits) -> bytes | Loaded:
    # Not blocking, so that a named pipe without a writer reads as empty instead of hanging.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            return _unread(file, "Y0002", f"`{file}` is a device, not a file")
        if status.st_size > limits.max_bytes:
            return _too_large(file, status.st_size, limits)
        os.set_blocking(handle, True)
        content = stream.read(limits.max_bytes + 1)
    return content if len(content) <= limits.max_bytes else _too_large(file, None, limits)


def _decoded(content: bytes, file: str, limits: SourceLimits) -> Loaded:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _unread(file, "Y0006", "the file is UTF-16; YAML is read as UTF-8", hint="save the file as UTF-8")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" not in content:
            return _undecodable(content, error.start, file)
    else:
        if "\0" not in text:
            return load_text(text, file, limits)
    offset = content.index(b"\0")
    line = len(lines_of(content[:offset].decode("utf-8", "replace")))
    return _unread(file, "Y0005", f"the file is not text: there is a NUL byte at offset {offset:,}, on line {line:,}")


def _undecodable(content: bytes, offset: int, file: str) -> Loaded:
    shown = content.decode("utf-8", "replace").removeprefix("\ufeff")
    before = content[:offset].decode("utf-8").removeprefix("\ufeff")
    findings = Findings()
    findings.error(
        "Y0006",
        f"the byte 0x{content[offset]:02X} at offset {offset:,} is not UTF-8",
        Positions(shown, file).at(len(before)),
        hint="save the file as UTF-8; it may be Latin-1 or Windows-1252 now",
    )
    return Loaded(None, findings.in_order(), shown, file)


def _control_character(text: str, file: str, index: int) -> Loaded:
    code = ord(text[index])
    if 0xD800 <= code <= 0xDFFF:
        # Such a text cannot be encoded, so neither can anything that quotes it.
        text = text.encode("utf-8", "replace").decode("utf-8")
    escape = f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
    name = "a byte order mark" if code == 0xFEFF else f"the character U+{code:04X}"
    findings = Findings()
    findings.error(
        "Y0008",
        f"{name} may not stand in YAML",
        Positions(text, file).at(index),
        hint=f"delete it, or write `{escape}` between double quotes",
    )
    return Loaded(None, findings.in_order(), text, file)


def _too_large(file: str, size: int | None, limits: SourceLimits) -> Loaded:
    shown = f"{size:,} bytes" if size is not None else f"more than {limits.max_bytes:,} bytes"
    message = f"the file has {shown}; a document may have {limits.max_bytes:,}"
    return _unread(file, "Y0004", message, hint="move the data into a file or table that a task reads")


def _unread(file: str, code: str, message: str, hint: str = "") -> Loaded:
    findings = Findings()
    findings.error(code, message, Position.whole(file), hint=hint)
    return Loaded(None, findings.in_order(), "", file)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
