"""Which state folder belongs to a file that is run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from penstock.app.state_folder import FOLDER, home_for


def test_state_lies_beside_a_file_also_in_shared_memory() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        file = Path(name) / "orders.yaml"
        file.write_text("", encoding="utf-8")
        assert home_for(file, environ={}) == Path(name) / FOLDER
        assert home_for(Path(name) / "missing.yaml", environ={}) == Path(name) / FOLDER
        link = Path(name) / "link.yaml"
        link.symlink_to(file)
        assert home_for(link, environ={}) == Path(name) / FOLDER


def test_state_of_a_stream_or_a_device_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text("", encoding="utf-8")
    (tmp_path / "below").mkdir()
    os.mkfifo(tmp_path / "below" / "pipe")
    with (tmp_path / "orders.yaml").open() as file:
        # A descriptor may stand for a regular file: beside it lie descriptors, and no state.
        streams = [
            "/dev/stdin",
            "/dev/null",
            f"/dev/fd/{file.fileno()}",
            f"/proc/self/fd/{file.fileno()}",
            "below/pipe",
        ]
        assert {home_for(Path(one), environ={}) for one in streams} == {tmp_path / FOLDER}
