"""Programs that tests take from Debian's packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.packages import CACHE, Program, debian_program


def test_a_program_that_is_installed_is_taken_as_it_is() -> None:
    found = debian_program("sh", "dash")
    assert (found.path.name, found.root, found.environment()) == ("sh", Path("/"), dict(os.environ))


def test_a_program_that_cannot_be_had_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    with pytest.raises(
        RuntimeError, match=r"no `apt-get`(.|\n)*hint: install it \(`apt-get install mariadb-server-core`\)"
    ):
        debian_program("mariadbd-of-nowhere", "mariadb-server-core")


def test_libraries_that_were_unpacked_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libaio.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    environment = Program(tmp_path / "usr/sbin/mariadbd", tmp_path).environment()
    assert environment["LD_LIBRARY_PATH"] == f"{library.parent}{os.pathsep}/opt/lib"
