"""Every test of the command line has a folder of its own, and nothing of this machine's user in sight."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PENSTOCK_HOME", "PENSTOCK_SERVER", "PENSTOCK_TOKEN", "PENSTOCK_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    for name in (
        "PENSTOCK_RESULTS",
        "PENSTOCK_DISPATCH",
        "PENSTOCK_POOL",
        "PENSTOCK_SLOTS",
        "PENSTOCK_DEBUG",
        "PENSTOCK_KEY",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
