"""Every trial works in a folder of its own: a relative path must not leave marks anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with nothing of this machine's user in sight."""
    for name in ("PENSTOCK_HOME", "PENSTOCK_DEBUG", "PENSTOCK_KEY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    work = tmp_path / "here"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
