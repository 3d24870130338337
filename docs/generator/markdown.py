"""Markdown that comes out the same everywhere: tables, fenced code, and values as the author of a document would write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

NOTE = "<!-- Made by `make docs` from the code. Do not edit. -->"

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}


def words(name: str) -> Any:
    """The texts of a page that the code does not contain."""
    return yaml.safe_load((Path(__file__).parent / "words" / f"{name}.yaml").read_text(encoding="utf-8"))


def page(title: str, *parts: str) -> str:
    """A whole page; empty parts are left out."""
    return "\n\n".join([f"{NOTE}\n\n# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Nothing at all when there are no rows. Columns that are empty in every row are left out."""
    lines = [list(row) for row in rows]
    kept = [number for number in range(len(header)) if any(row[number] for row in lines)]
    if not kept:
        return ""
    written = [[_cell(row[number]) for number in kept] for row in lines]
    return "\n".join(
        [
            f"| {' | '.join(header[number] for number in kept)} |",
            f"|{'---|' * len(kept)}",
            *(f"| {' | '.join(row)} |" for row in written),
        ]
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(language: str, text: str) -> str:
    """A fenced block. Control characters are shown as pictures, since nobody would see them."""
    body = text.strip("\n").translate(_PICTURES)
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}{language}\n{body}\n{fence}"


def literal(value: object) -> str:
    """A value in backticks, as it is written in YAML."""
    if isinstance(value, str) and re.fullmatch(r"[\w./:-][\w ./:-]*", value):
        return f"`{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def anchor(heading: str) -> str:
    """The id that a heading gets where Markdown is shown: lower case, no punctuation, blanks as hyphens."""
    bare = re.sub(r"<[^>]+>|[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", bare).replace(" ", "-")
