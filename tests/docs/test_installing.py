"""What people are told to install is there to be installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def test_everything_that_may_be_installed_is_in_the_lock_in_a_version_that_fits() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(one for every in project["optional-dependencies"].values() for one in every)]
    lines = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1].isalnum()]
    for requirement in map(Requirement, named):
        pins = [one for one in lines if canonicalize_name(one.name) == canonicalize_name(requirement.name)]
        assert pins, f"`{requirement.name}` is not in constraints.txt: `make lock` puts it there"
        for pin in pins:
            (exact,) = pin.specifier
            assert exact.operator == "==", pin
            assert requirement.specifier.contains(exact.version, prereleases=True), f"{pin} does not fit {requirement}"


def test_the_lock_is_of_no_machine_and_of_no_index() -> None:
    text = (ROOT / "constraints.txt").read_text()
    assert not re.search(r"--hash|--index-url|--find-links|https?://|file:|@", text)


def test_setting_up_and_ci_use_the_lock() -> None:
    installs = re.findall(r"pip install [^\n;]*", (ROOT / "Makefile").read_text())
    assert installs
    assert all("-c constraints.txt" in line for line in installs), installs
    assert "make setup" in (ROOT / ".ci" / "run").read_text()
