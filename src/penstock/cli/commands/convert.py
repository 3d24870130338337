"""`penstock convert`: documents of other tools and of older words as documents of today."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import put, put_json, say
from penstock.dialects.convert.converters import installed
from penstock.dialects.convert.frame import Became, Converted, Converter
from penstock.kernel.errors import Refused
from penstock.server.project_files import TooManyFiles, yaml_files

MOST_LINES = 6
_BETWEEN = re.compile(r"^---[ \t]*(?:#[^\n]*)?\r?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _File:
    """One document, and the file that is written for it."""

    source: Path
    target: Path
    text: str
    converter: Converter


def convert(options: Namespace) -> int:
    given = Path(options.file)
    to = None if options.to is None else Path(options.to)
    found, others = _found(given, to)
    done: list[tuple[_File, Converted | None, str]] = []
    for file in found:
        try:
            done.append((file, file.converter.convert(file.source, file.text), ""))
        except Refused as error:
            done.append((file, None, f"{error.message}: {error.hint}" if error.hint else error.message))
    changed = [file for file, result, _ in done if result is not None and _would_write(file, result)]
    if not options.check:
        for file, result, _ in done:
            if result is not None and _would_write(file, result):
                _write(file.target, result.text)
    is_open = any(result is None or not result.is_whole for _, result, _ in done)
    code = 2 if any(result is None for _, result, _ in done) else 1 if options.check and changed else 0
    if options.json:
        put_json(
            {"exit_code": code, "files": [_as_json(*one, changed=one[0] in changed) for one in done], "others": others}
        )
        return code
    for file, result, why in done:
        _show(file, result, why, is_changed=file in changed, is_check=options.check)
    verb = "would be written" if options.check else "written"
    say(f"{len(changed)} of {len(done)} documents {verb}" + ("; some need a decision" if is_open else ""))
    if others:
        say(f"{len(others)} other YAML files were left alone")
    return code


def _found(given: Path, to: Path | None) -> tuple[list[_File], list[str]]:
    if given.is_dir():
        try:
            paths = list(yaml_files(given.resolve()))
        except TooManyFiles as error:
            raise CommandLineError(error.message, "convert a part of it") from error
        base = given.resolve()
    elif given.is_file():
        paths, base = [given.resolve()], given.resolve().parent
    else:
        raise CommandLineError(f"there is no `{given}`", "name a file or a folder")
    files: list[_File] = []
    others: list[str] = []
    for path in paths:
        inner = path.relative_to(base)
        try:
            pieces = list(_documents(path))
        except CommandLineError as error:
            if not given.is_dir():
                raise
            say(error.message)
            pieces = []
        target = path if to is None else to / inner
        if not pieces:
            others.append(str(inner))
        for number, (text, converter) in enumerate(pieces):
            # A file is one document: those behind the first get files of their own.
            name = target if number == 0 else target.with_name(f"{target.stem}-{number + 1}{target.suffix}")
            files.append(_File(path, name, text, converter))
    if given.is_file() and not files:
        raise CommandLineError(f"`{given}` is not a document that can be converted", _known())
    return files, others


def _known() -> str:
    return f"converters read {', '.join(one.name for one in installed())}"


def _documents(path: Path) -> Iterator[tuple[str, Converter]]:
    try:
        whole = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandLineError(f"`{path}` cannot be read: {error}") from error
    pieces = _pieces(whole)
    converters = [next((one for one in installed() if one.recognises(path, piece)), None) for piece in pieces]
    if any(converters):
        for piece, converter in zip(pieces, converters, strict=True):
            yield piece, converter or _AsItIs()


def _pieces(whole: str) -> list[str]:
    """The documents of a file. What stands above the first line that begins one, a remark, belongs to that one."""
    pieces: list[str] = []
    remarks, start = "", 0
    for between in [*_BETWEEN.finditer(whole), None]:
        end = len(whole) if between is None else between.start()
        piece = remarks + whole[start:end]
        if any(line.strip() and not line.lstrip().startswith(("#", "%", "...")) for line in piece.splitlines()):
            pieces.append(piece)
            piece = ""
        remarks = piece
        start = end if between is None else between.end()
    if pieces:
        pieces[-1] += remarks
    return pieces if len(pieces) > 1 else [whole]


class _AsItIs:
    """What stands in one file with a document that is converted: nothing of it is lost."""

    name = "as it is"

    def recognises(self, path: Path, text: str) -> bool:
        return True

    def convert(self, path: Path, text: str) -> Converted:
        return Converted(text)


def _would_write(file: _File, result: Converted) -> bool:
    try:
        return file.target.read_bytes().decode("utf-8", "replace") != result.text
    except OSError:
        return True


def _write(target: Path, text: str) -> None:
    """Whole or not at all, with the rights that the file has."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        written.write_text(text, encoding="utf-8", newline="")
        if target.exists():
            written.chmod(target.stat().st_mode & 0o7777)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)


def _show(file: _File, result: Converted | None, why: str, *, is_changed: bool, is_check: bool) -> None:
    here = Path.cwd()
    shown = str(file.target.relative_to(here) if file.target.is_relative_to(here) else file.target)
    if result is None:
        say(f"{shown}: left as it is: {why}")
        return
    state = ("would change" if is_check else "rewritten") if is_changed else "as it is"
    put(f"{shown}: {state}\n")
    sys.stdout.flush()
    for became in Became:
        remarks = [one for one in result.remarks if one.became is became]
        if remarks:
            put(f"  {became.value}\n")
        said: dict[str, list[int]] = {}
        for one in remarks:
            hint = f" (hint: {one.hint})" if one.hint and became is not Became.REWRITTEN else ""
            said.setdefault(one.message + hint, []).append(one.line)
        for text, lines in said.items():
            put(f"    {_places(lines)}{text}\n")


def _places(lines: list[int]) -> str:
    """What is said of many lines is said once."""
    found = [str(line) for line in sorted(set(lines)) if line]
    if not found:
        return ""
    more = f" and {len(found) - MOST_LINES} more" if len(found) > MOST_LINES else ""
    return f"line{'s' if len(found) > 1 else ''} {', '.join(found[:MOST_LINES])}{more}: "


def _as_json(file: _File, result: Converted | None, why: str, *, changed: bool) -> dict[str, object]:
    remarks = () if result is None else result.remarks
    return {
        "file": str(file.source),
        "to": str(file.target),
        "changed": changed,
        **({"refused": why} if result is None else {}),
        "remarks": [
            {"became": one.became.name.lower(), "line": one.line, "message": one.message, "hint": one.hint}
            for one in remarks
        ],
    }
