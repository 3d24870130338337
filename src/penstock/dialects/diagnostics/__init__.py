"""The pages of diagnostics: what every code means, why it is reported, and what to do about it.

Each family of codes is a TOML file beside this module, named after the first three characters of its codes:

    E01 the expression language
    P00 the document    P01 shapes and words    P02 words that are refused    P03 steps and names    P04 policies
    P05 tasks and tools    P06 loops    P07 names and secrets    P08 reachability    P09 keychain
    J00 the document    J01 shapes and words    J02 components    J03 links and sub-jobs    J04 conditions
    J05 parameters    J06 columns    J07 names and secrets    J08 lint    J09 joblets
    Y00 files    Y01 syntax    Y02 values    Y03 limits    Y04 projects    Y05 calls of other documents    Y06 connections

Examples are whole documents. Those of playbooks may also begin with `- step:` (an entry of `workflow`) or with another dash (an
entry of `tool`).

Law: a code without a page cannot be reported. Compiling a document asks only whether a code has a page, which needs no parser;
the pages themselves are read by the documentation and its tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_HEADING = re.compile(r"^\[([EJPY]\d{4})\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """What the reference says about one code. `bad` and `good` are YAML texts, empty where a text cannot show it."""

    title: str
    why: str
    fix: str
    bad: str = ""
    good: str = ""


def has_page(code: str) -> bool:
    return code in _codes(code[:3])


@cache
def _codes(family: str) -> frozenset[str]:
    file = _FOLDER / f"{family}.toml"
    return frozenset(_HEADING.findall(file.read_text(encoding="utf-8"))) if file.is_file() else frozenset()


@cache
def families() -> Mapping[str, tuple[str, Mapping[str, Page]]]:
    """Family -> its title, and its pages by their codes; in alphabetical order."""
    import tomllib  # Only the documentation needs it.

    found: dict[str, tuple[str, Mapping[str, Page]]] = {}
    for file in sorted(_FOLDER.glob("*.toml")):
        pages = tomllib.loads(file.read_text(encoding="utf-8"))
        title = pages.pop("family")
        found[file.stem] = title, {code: Page(**page) for code, page in sorted(pages.items())}
    return found


def pages() -> dict[str, Page]:
    """Every page by its code, in alphabetical order."""
    return {code: page for _, members in families().values() for code, page in members.items()}
