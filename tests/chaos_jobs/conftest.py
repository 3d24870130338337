"""Every trial works in a folder of its own: a relative path must not leave marks anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos_jobs.zygote import JobZygote


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


@pytest.fixture(scope="package")
def zygote() -> Iterator[JobZygote]:
    """One for all the trials: loading the program takes longer than any of them."""
    with JobZygote() as one:
        yield one
