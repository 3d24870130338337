"""file_archive and file_unarchive, and archives that mean harm."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.components.flow.support import failed, run

FORMATS = ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("b.csv", "a.csv", "c.txt", "sub/d.csv", ".hidden"):
        (tmp_path / "in" / name).write_text(f"content of {name}")
    return tmp_path


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def members(path: Path) -> list[str]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


# ---- packing


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_packed_is_unpacked_again(folder: Path, name: str) -> None:
    ran = run("file_archive", {"path": "in", "to": f"out/{name}"}, folder=folder)
    path = folder / "out" / name
    assert members(path) == ["a.csv", "b.csv", "c.txt", "sub/d.csv"]
    assert ran.after == {"FILENAME": str(path), "COUNT": 4, "SIZE": path.stat().st_size}
    for _ in range(2):
        ran = run("file_unarchive", {"path": f"out/{name}", "to": "back"}, folder=folder)
    assert tree(folder / "back") == {n: f"content of {n}" for n in ("a.csv", "b.csv", "c.txt", "sub/d.csv")}
    assert (ran.result["count"], ran.result["skipped"], ran.after["COUNT"]) == (4, [], 4)
    assert [path.name for path in (folder / "out").iterdir()] == [name]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"pattern": "*.csv"}, ["a.csv", "b.csv", "sub/d.csv"]),
        ({"pattern": "*.csv", "recursive": False}, ["a.csv", "b.csv"]),
        ({"exclude": ["sub/*", "c*"]}, ["a.csv", "b.csv"]),
        ({"pattern": ["c*", ".hidden"], "prefix": "2024/may/"}, ["2024/may/.hidden", "2024/may/c.txt"]),
        ({"path": "in/a.csv", "level": 0}, ["a.csv"]),
    ],
)
def test_what_goes_in_is_said_by_patterns(folder: Path, params: dict[str, Any], expected: list[str]) -> None:
    for name in ("a.zip", "a.tar.gz", "a.tar.bz2", "a.tar.xz"):
        run("file_archive", {"path": "in", "to": name, **params}, folder=folder)
        assert members(folder / name) == expected


def test_one_file_is_compressed_and_back(folder: Path) -> None:
    run("file_archive", {"path": "in/a.csv", "to": "a.csv.gz"}, folder=folder)
    assert gzip.decompress((folder / "a.csv.gz").read_bytes()) == b"content of a.csv"
    run("file_unarchive", {"path": "a.csv.gz", "to": "back"}, folder=folder)
    assert tree(folder / "back") == {"a.csv": "content of a.csv"}
    failure = failed("file_archive", {"path": "in", "to": "all.gz"}, folder=folder)
    assert "`gz` is one compressed file and there are 4" in failure.message


def test_an_archive_in_its_own_folder_does_not_pack_itself(folder: Path) -> None:
    for _ in range(2):
        run("file_archive", {"path": "in", "to": "in/all.zip"}, folder=folder)
    assert members(folder / "in" / "all.zip") == ["a.csv", "b.csv", "c.txt", "sub/d.csv"]


def test_nothing_to_pack_is_a_failure_unless_it_may_be(folder: Path) -> None:
    failure = failed("file_archive", {"path": "in", "pattern": "*.none", "to": "a.zip"}, folder=folder)
    assert (failure.kind, "nothing to pack" in failure.message) == ("missing_file", True)
    ran = run("file_archive", {"path": "nix", "to": "a.zip", "missing_ok": True}, folder=folder)
    assert (ran.result, (folder / "a.zip").exists()) == ({"path": None, "count": 0, "size": 0}, False)
    assert failed("file_archive", {"path": "nix", "to": "a.zip"}, folder=folder).kind == "missing_file"


def test_an_archive_that_is_there_is_kept_when_it_must_be(folder: Path) -> None:
    (folder / "a.zip").write_text("old")
    failure = failed("file_archive", {"path": "in", "to": "a.zip", "overwrite": False}, folder=folder)
    assert (failure.kind, (folder / "a.zip").read_text()) == ("file_exists", "old")
    assert sorted(path.name for path in folder.iterdir()) == ["a.zip", "in"]
    assert (
        "name the archive itself"
        in failed("file_archive", {"path": "in", "to": "in", "format": "zip"}, folder=folder).message
    )
    assert "does not say its `format`" in failed("file_archive", {"path": "in", "to": "a.rar"}, folder=folder).message
    assert failed("file_archive", {"path": "in", "to": "a.zip", "prefix": "../x"}, folder=folder).kind == "parameters"


def test_a_file_from_before_1980_can_be_packed(folder: Path) -> None:
    os.utime(folder / "in" / "a.csv", (0, 0))
    run("file_archive", {"path": "in/a.csv", "to": "a.zip"}, folder=folder)
    assert members(folder / "a.zip") == ["a.csv"]


# ---- unpacking


def zip_of(path: Path, contents: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def tar_of(path: Path, *entries: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w") as archive:
        for entry in entries:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


HARMFUL = ["../out.txt", "/etc/out.txt", "a/../../out.txt", "..", "C:\\out.txt", "..\\out.txt", "\\out.txt", "a/.."]


@pytest.mark.parametrize("name", HARMFUL)
def test_an_archive_that_would_write_elsewhere_is_refused_whole(tmp_path: Path, name: str) -> None:
    zip_of(tmp_path / "a.zip", {"good.txt": "x", name: "x"})
    tar_of(tmp_path / "a.tar", entry("good.txt", size=1), entry(name, size=1))
    for archive in ("a.zip", "a.tar"):
        failure = failed("file_unarchive", {"path": archive, "to": "t/back"}, folder=tmp_path)
        assert failure.kind == "unsafe_archive"
        assert not (tmp_path / "t").exists()


def test_links_and_devices_are_left_out_and_named(tmp_path: Path) -> None:
    tar_of(
        tmp_path / "a.tar",
        entry("link", tarfile.SYMTYPE, "/etc"),
        entry("link/passwd", size=1),
        entry("hard", tarfile.LNKTYPE, "../../secret"),
        entry("dev", tarfile.CHRTYPE),
        entry("pipe", tarfile.FIFOTYPE),
        entry("empty/", tarfile.DIRTYPE),
    )
    ran = run("file_unarchive", {"path": "a.tar", "to": "back"}, folder=tmp_path)
    assert tree(tmp_path / "back") == {"link/passwd": "x"}
    assert ran.result["skipped"] == ["link", "hard", "dev", "pipe"]
    assert len(ran.said) == 4


def test_a_link_in_a_zip_is_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("file", "x")
    ran = run("file_unarchive", {"path": "a.zip", "to": "back"}, folder=tmp_path)
    assert (tree(tmp_path / "back"), ran.result["skipped"]) == ({"file": "x"}, ["link"])


def test_a_link_that_lies_in_the_folder_is_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "sub").symlink_to(tmp_path / "outside")
    zip_of(tmp_path / "a.zip", {"sub/x.txt": "x"})
    assert failed("file_unarchive", {"path": "a.zip", "to": "back"}, folder=tmp_path).kind == "unsafe_archive"
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_bomb_is_stopped(tmp_path: Path) -> None:
    zip_of(tmp_path / "a.zip", {"a": "x" * 1000, "b": "x" * 1000})
    failure = failed("file_unarchive", {"path": "a.zip", "to": "back", "max_bytes": 1500}, folder=tmp_path)
    assert (failure.kind, (tmp_path / "back").exists()) == ("too_large", False)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 100_000, mtime=0))
    failure = failed("file_unarchive", {"path": "a.gz", "to": "back", "max_bytes": 99_999}, folder=tmp_path)
    assert (failure.kind, tree(tmp_path / "back")) == ("too_large", {})


def test_only_what_matches_is_unpacked(folder: Path) -> None:
    run("file_archive", {"path": "in", "to": "a.zip"}, folder=folder)
    run("file_unarchive", {"path": "a.zip", "to": "back", "pattern": ["*.txt", "sub/*"]}, folder=folder)
    assert sorted(tree(folder / "back")) == ["c.txt", "sub/d.csv"]


def test_files_that_are_there_are_kept_when_they_must_be(folder: Path) -> None:
    run("file_archive", {"path": "in", "to": "a.zip"}, folder=folder)
    (folder / "back").mkdir()
    (folder / "back" / "c.txt").write_text("mine")
    failure = failed("file_unarchive", {"path": "a.zip", "to": "back", "overwrite": False}, folder=folder)
    assert (failure.kind, tree(folder / "back")) == ("file_exists", {"c.txt": "mine"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.zip", b"no zip at all"),
        ("a.tar", b"no tar at all"),
        ("a.gz", b"no gzip at all"),
        ("a.gz", gzip.compress(os.urandom(2000))[:-900]),
        ("a.tar.gz", gzip.compress(b"\0" * 10, mtime=0)),
        ("a.tar.xz", b""),
    ],
)
def test_a_damaged_archive_is_a_failure_that_says_so(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    failure = failed("file_unarchive", {"path": name, "to": "back"}, folder=tmp_path)
    assert (failure.kind, str(tmp_path / name) in failure.message) == ("format", True)
    assert not any((tmp_path / "back").rglob("*"))


def test_a_zip_with_a_damaged_member_leaves_no_half_file(tmp_path: Path) -> None:
    zip_of(tmp_path / "a.zip", {"a": "hello world"})
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(b"hello world", b"hellO world"))
    assert failed("file_unarchive", {"path": "a.zip", "to": "back"}, folder=tmp_path).kind == "format"
    assert tree(tmp_path / "back") == {}


def test_an_archive_must_be_there_and_a_file(tmp_path: Path) -> None:
    assert failed("file_unarchive", {"path": "a.zip", "to": "b"}, folder=tmp_path).kind == "missing_file"
    assert failed("file_unarchive", {"path": ".", "to": "b", "format": "zip"}, folder=tmp_path).kind == "file"
