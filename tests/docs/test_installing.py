"""What people are told to install is there to be installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KNOWN = {"penstock", "psycopg[binary]", "tzdata"}
"""What may be named besides the extras: this, and what it is installed with."""


def texts() -> Iterator[tuple[Path, str]]:
    for folder, form in (("src/penstock", "*.py"), ("docs", "*.md"), (".", "*.md")):
        for path in (ROOT / folder).rglob(form) if folder != "." else ROOT.glob(form):
            yield path, path.read_text(encoding="utf-8")


def test_every_extra_that_is_named_anywhere_is_one() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for path, text in texts():
        for named in re.findall(r"penstock\[([^\]{}]+)\]", text):
            assert set(named.replace(" ", "").split(",")) <= set(extras), f"{path}: penstock[{named}]"


def test_who_lacks_a_package_is_told_the_extra_that_brings_it() -> None:
    for path in (ROOT / "src/penstock").rglob("*.py"):
        for named in re.findall(r"pip install '?([\w\[\]-]+)", path.read_text(encoding="utf-8")):
            assert named in KNOWN or named.startswith("penstock["), f"{path}: {named}"
