"""How the page gets into the package (`web/build.py`): once for the same sources, and not at all where the registry is out of reach."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.web.chromium import ROOT

LEFT_OUT = shutil.ignore_patterns("node_modules", ".node", ".page", ".lock", "__pycache__")
OLDER = "<!doctype html><title>an older page</title>"


@dataclass(frozen=True)
class Clone:
    root: Path
    registry: str

    @property
    def page(self) -> Path:
        return self.root / "src" / "penstock" / "web"

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env={**os.environ, "npm_config_registry": self.registry, "NO_PROXY": "*", "no_proxy": "*"},
            capture_output=True,
            text=True,
            check=False,
        )

    def build(self) -> subprocess.CompletedProcess[str]:
        return self.python("web/build.py")

    def put(self, stamp: str) -> None:
        """A page that was built before."""
        self.page.mkdir(parents=True, exist_ok=True)
        (self.page / "index.html").write_text(OLDER, encoding="utf-8")
        (self.page / ".sources").write_text(stamp, encoding="utf-8")

    def stamp(self) -> str:
        """What a page of the sources as they are has."""
        done = self.python("-c", "import sys; sys.path.insert(0, 'web'); import build; print(build.sources())")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    """The sources of the page without any packages, and a registry that refuses every connection."""
    shutil.copytree(ROOT / "web", tmp_path / "web", ignore=LEFT_OUT)
    if (ROOT / "web" / ".node").is_dir():  # The Node of a machine that has none.
        (tmp_path / "web" / ".node").symlink_to(ROOT / "web" / ".node")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Nobody listens here, and nobody else will.
        yield Clone(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}/")


def test_without_the_registry_there_is_no_page_and_the_installation_goes_on(clone: Clone) -> None:
    done = clone.build()
    assert done.returncode == 0, done.stderr
    assert "the page is not built: the npm registry at 127.0.0.1 cannot be reached" in done.stderr
    assert not clone.page.exists()


def test_an_older_page_stays_when_no_new_one_can_be_built(clone: Clone) -> None:
    clone.put("the hash of other sources")
    assert clone.build().returncode == 0
    assert (clone.page / "index.html").read_text(encoding="utf-8") == OLDER


def test_a_page_of_these_sources_is_not_built_again(clone: Clone) -> None:
    clone.put(clone.stamp())
    done = clone.build()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_page_is_stale_when_its_sources_or_their_packages_change_and_not_when_a_test_does(clone: Clone) -> None:
    before = clone.stamp()
    (clone.root / "web" / "src" / "further.test.ts").write_text("// a test\n", encoding="utf-8")
    (clone.root / "web" / "README.md").write_text("prose\n", encoding="utf-8")
    assert clone.stamp() == before
    found = {before}
    for name in ("src/main.tsx", "package-lock.json", "vite.config.ts"):
        with (clone.root / "web" / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        found.add(clone.stamp())
    assert len(found) == 4
