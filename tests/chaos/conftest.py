"""Every trial works in a folder of its own: a relative path must not leave marks anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.zygote import Zygote


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="package")
def zygote() -> Iterator[Zygote]:
    """One for all the trials: loading the program takes longer than any of them."""
    with Zygote() as one:
        yield one
