"""Files that appear whole or not at all, also when a process is killed while it writes one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.components.io.file_paths import whole_file

_WRITER = """\
import sys, time
from pathlib import Path
from penstock.components.io.file_paths import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    time.sleep(60)
"""


def _write(path: Path, content: bytes = b"whole") -> None:
    with whole_file(path) as file:
        file.write(content)


def test_what_a_killed_writer_left_goes_with_the_next_one(tmp_path: Path):
    path = tmp_path / "out.xml"
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        _write(path, b"other")
        assert len(os.listdir(tmp_path)) == 2, "what somebody still writes stays"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    _write(path)
    assert os.listdir(tmp_path) == ["out.xml"]
    assert path.read_bytes() == b"whole"


def test_what_an_earlier_process_of_the_same_number_left_goes_too(tmp_path: Path):
    path = tmp_path / "out.xml"
    (tmp_path / f".out.xml.{socket.gethostname()}-{os.getpid()}-999999.part").write_bytes(b"half")
    _write(path)
    assert os.listdir(tmp_path) == ["out.xml"]


def test_two_writers_of_one_process_leave_each_other_alone(tmp_path: Path):
    path = tmp_path / "out.xml"
    with whole_file(path) as outer:
        outer.write(b"last")
        _write(path, b"first")
        assert path.read_bytes() == b"first"
    assert (os.listdir(tmp_path), path.read_bytes()) == (["out.xml"], b"last")


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "out.xml"
    _write(path)
    with pytest.raises(TypeError):
        _write(path, 5)  # type: ignore[arg-type]
    assert (os.listdir(tmp_path), path.read_bytes()) == (["out.xml"], b"whole")


def test_a_file_keeps_its_rights_and_a_link_stays_a_link(tmp_path: Path):
    path, link = tmp_path / "out.xml", tmp_path / "link.xml"
    _write(path)
    path.chmod(0o640)
    link.symlink_to(path)
    _write(link, b"new")
    assert (link.is_symlink(), path.read_bytes(), path.stat().st_mode & 0o777) == (True, b"new", 0o640)
