"""The files tool on a real file system: folders, moving things about, and what can go wrong."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.tools.base import os_failure
from penstock.tools.files import FilesParams, FilesTool
from penstock.tools.registry import example_of
from tests.cases import cases
from tests.contracts.blobs_servers import BUCKET, S3, s3

from .filing import do, failed, visible

__all__ = ["s3"]


@pytest.fixture
def doc(tmp_path: Path) -> Path:
    folder = tmp_path / "doc"
    folder.mkdir()
    return folder


# ---- folders


def tree(doc: Path) -> None:
    for name in ("b.csv", "a.csv", "a.txt", "in/c.csv", "in/deep/d.csv"):
        (doc / name).parent.mkdir(parents=True, exist_ok=True)
        (doc / name).write_text(name)


def names(result: Any) -> list[str]:
    assert result["count"] == len(result["data"])
    return [each["name"] for each in result["data"]]


def test_list_is_sorted_and_takes_a_pattern(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    assert names(do(tmp_path, "list", ".", pattern="[!.]*")) == ["a.csv", "a.txt", "b.csv", "in"]
    assert names(do(tmp_path, "list", ".", pattern="*.csv")) == ["a.csv", "b.csv"]
    assert names(do(tmp_path, "list", ".", pattern="*.csv", recursive=True)) == [
        "a.csv",
        "b.csv",
        "in/c.csv",
        "in/deep/d.csv",
    ]
    assert names(do(tmp_path, "list", ".", pattern="*/c.*")) == ["in/c.csv"]


def test_list_says_what_each_entry_is(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    os.utime(doc / "in/c.csv", (0, 1.5))
    (doc / "in/nowhere").symlink_to("gone")
    file, folder, link = do(tmp_path, "list", "in")["data"]
    assert file == {
        "name": "c.csv",
        "path": str(doc / "in/c.csv"),
        "type": "file",
        "size": 8,
        "modified": "1970-01-01T00:00:01.500Z",
    }
    assert (folder["type"], link["type"]) == ("folder", "link")


@pytest.mark.parametrize("pattern", ["/etc/*", ""])
def test_a_pattern_that_is_none_is_told(tmp_path: Path, pattern: str) -> None:
    assert failed(tmp_path, "list", ".", pattern=pattern).kind == "parameters"


def test_mkdir_makes_folders_on_the_way_and_can_be_done_again(tmp_path: Path, doc: Path) -> None:
    assert do(tmp_path, "mkdir", "a/b/c")["created"] is True
    assert do(tmp_path, "mkdir", "a/b/c")["created"] is False
    (doc / "file").touch()
    assert failed(tmp_path, "mkdir", "file").kind == "exists"


# ---- copy, move, delete


def test_copy_and_move_take_files_and_whole_folders(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    do(tmp_path, "copy", "a.txt", to="x/y.txt")
    do(tmp_path, "copy", "in", to="twin")
    do(tmp_path, "move", "in", to="moved/here")
    do(tmp_path, "move", "a.csv", to="z.csv")
    assert [each for each in visible(doc) if (doc / each).is_file()] == [
        "a.txt",
        "b.csv",
        "moved/here/c.csv",
        "moved/here/deep/d.csv",
        "twin/c.csv",
        "twin/deep/d.csv",
        "x/y.txt",
        "z.csv",
    ]


def test_a_target_that_is_a_folder_means_into_it(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    assert do(tmp_path, "copy", "a.txt", to="in")["to"] == str(doc / "in/a.txt")
    assert do(tmp_path, "move", "a.txt", to="fresh/")["to"] == str(doc / "fresh/a.txt")
    assert (doc / "fresh/a.txt").exists()


@pytest.mark.parametrize("action", ["copy", "move"])
def test_a_file_put_onto_itself_stays(tmp_path: Path, doc: Path, action: str) -> None:
    (doc / "a.txt").write_text("x")
    do(tmp_path, action, "a.txt", to="./a.txt")
    assert (doc / "a.txt").read_text() == "x"


@pytest.mark.parametrize("action", ["copy", "move"])
def test_a_folder_is_not_put_into_itself_nor_over_another(tmp_path: Path, doc: Path, action: str) -> None:
    tree(doc)
    (doc / "other/in").mkdir(parents=True)
    assert failed(tmp_path, action, "in", to="in/deep").kind == "parameters"
    assert failed(tmp_path, action, "in", to="other").kind == "exists"
    assert "in/c.csv" in visible(doc)


def test_delete_needs_a_word_for_folders(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    assert do(tmp_path, "delete", "a.txt")["deleted"] is True
    failure = failed(tmp_path, "delete", "in")
    assert failure.kind == "is_directory"
    assert "recursive: true" in failure.message
    do(tmp_path, "delete", "in", recursive=True)
    assert visible(doc) == ["a.csv", "b.csv"]


def test_deleting_a_link_leaves_what_it_leads_to(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    (doc / "link").symlink_to("in")
    do(tmp_path, "delete", "link", recursive=True)
    assert "in/c.csv" in visible(doc)
    assert "link" not in visible(doc)


@pytest.mark.parametrize("path", [".", "..", "/", "./in/.."])
def test_the_folder_of_the_document_is_not_deleted(tmp_path: Path, doc: Path, path: str) -> None:
    tree(doc)
    assert failed(tmp_path, "delete", path, recursive=True).kind == "parameters"
    assert "in/c.csv" in visible(doc)


# ---- questions


def test_exists_checksum_and_stat(tmp_path: Path, doc: Path) -> None:
    tree(doc)
    assert do(tmp_path, "exists", "a.txt")["data"] is True
    assert do(tmp_path, "exists", "no.txt")["data"] is False
    assert do(tmp_path, "exists", "a.txt/below")["data"] is False
    assert do(tmp_path, "checksum", "a.txt")["data"] == hashlib.sha256(b"a.txt").hexdigest()
    assert do(tmp_path, "checksum", "a.txt", algorithm="MD5")["data"] == hashlib.md5(b"a.txt").hexdigest()
    assert failed(tmp_path, "checksum", "a.txt", algorithm="crc").kind == "parameters"
    assert do(tmp_path, "stat", "a.txt")["size"] == 5
    assert do(tmp_path, "stat", "in")["type"] == "folder"


# ---- failures


@cases("action", ["read", "list", "copy", "move", "delete", "checksum", "stat"])
def test_what_is_not_there_is_not_found_unless_that_is_fine(tmp_path: Path, doc: Path, action: str) -> None:
    more = {"to": "b"} if action in ("copy", "move") else {}
    failure = failed(tmp_path, action, "no.txt", **more)
    assert failure.kind == "not_found"
    assert failure.message == f"there is no `{doc / 'no.txt'}`"
    result = do(tmp_path, action, "no.txt", missing_ok=True, **more)
    assert not result.get("data")
    assert not result.get("deleted")
    assert not result.get("exists")


def test_a_folder_is_no_file(tmp_path: Path, doc: Path) -> None:
    (doc / "in").mkdir()
    for action, more in (("read", {}), ("write", {"content": "x"}), ("append", {"content": "x"}), ("checksum", {})):
        assert failed(tmp_path, action, "in", **more).kind == "is_directory"


def test_a_file_is_no_folder(tmp_path: Path, doc: Path) -> None:
    (doc / "a.txt").touch()
    assert failed(tmp_path, "list", "a.txt").kind == "not_found"
    assert failed(tmp_path, "write", "a.txt/b", content="x").kind in ("exists", "not_found")


@cases(
    "number, kind, retryable",
    [
        (errno.EACCES, "permission", False),
        (errno.EPERM, "permission", False),
        (errno.EROFS, "permission", False),
        (errno.ENOSPC, "disk_full", True),
        (errno.EDQUOT, "disk_full", True),
        (errno.EIO, "io", True),
        (errno.EMFILE, "io", True),
        (errno.ENAMETOOLONG, "io", True),
        (errno.EISDIR, "is_directory", False),
        (errno.EEXIST, "exists", False),
    ],
)
def test_every_error_of_the_system_has_a_kind(number: int, kind: str, retryable: bool) -> None:
    failure = os_failure(OSError(number, os.strerror(number)), Path("/data/a.txt"))
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert "`/data/a.txt`" in failure.message


def test_a_file_url_is_a_path(tmp_path: Path, doc: Path) -> None:
    (doc / "a b.txt").write_text("x")
    assert do(tmp_path, "read", f"file://{doc}/a%20b.txt")["data"] == "x"
    assert do(tmp_path, "read", f"file://localhost{doc}/a%20b.txt")["data"] == "x"


@pytest.mark.parametrize("path", ["hdfs://bucket/key", "file://elsewhere/a"])
def test_another_scheme_is_told(tmp_path: Path, path: str) -> None:
    assert failed(tmp_path, "read", path).kind == "unsupported_scheme"


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "file:///a%00b"])
def test_a_path_that_is_none_is_told(tmp_path: Path, path: str) -> None:
    assert failed(tmp_path, "delete", path, recursive=True).kind == "parameters"


@cases(
    "action, params, words",
    [
        ("write", {}, "needs `content`"),
        ("copy", {}, "needs `to`"),
        ("read", {"to": "x"}, "`to` is for `copy` and `move`"),
        ("delete", {"content": None}, "`content` is for `write` and `append`"),
        ("write", {"content": [1], "format": "csv"}, "list of mappings"),
        ("write", {"content": [{"a": 1}], "format": "csv", "delimiter": "::"}, "`delimiter`"),
        ("write", {"content": "x", "encoding": "utf-99"}, "`utf-99`"),
        ("write", {"content": "ж", "encoding": "latin-1"}, "`latin-1`"),
        ("write", {"content": {"a": float("nan")}}, "cannot be written as JSON"),
    ],
)
def test_parameters_that_do_not_fit_together_are_told(
    tmp_path: Path, doc: Path, action: str, params: dict[str, Any], words: str
) -> None:
    failure = failed(tmp_path, action, "a.txt", **params)
    assert failure.kind == "parameters"
    assert words in failure.message
    assert visible(doc) == []


def test_every_parameter_is_described_and_the_example_is_a_valid_task() -> None:
    described = msgspec.json.schema(FilesParams)["$defs"]["FilesParams"]["properties"]
    assert all(each.get("description") for each in described.values())
    (task,) = yaml.safe_load(example_of(FilesTool))
    params = {name: value for name, value in task.items() if name not in ("name", "kind")}
    assert msgspec.convert(params, FilesParams).action == "write"


def test_every_action_works_in_a_bucket(tmp_path: Path, s3: S3) -> None:
    there = {"credentials": s3.options()}
    root = f"s3://{BUCKET}/files-tool"
    assert do(tmp_path, "write", f"{root}/a.json", content={"n": 1}, **there)["path"] == f"{root}/a.json"
    assert do(tmp_path, "read", f"{root}/a.json", **there)["data"] == {"n": 1}
    do(tmp_path, "append", f"{root}/in/b.jsonl", content=[{"n": 1}], **there)
    do(tmp_path, "append", f"{root}/in/b.jsonl", content=[{"n": 2}], **there)
    assert do(tmp_path, "read", f"{root}/in/b.jsonl", **there)["data"] == [{"n": 1}, {"n": 2}]
    found = do(tmp_path, "list", root, recursive=True, pattern="*.json*", **there)
    assert [(one["name"], one["type"]) for one in found["data"]] == [("a.json", "file"), ("in/b.jsonl", "file")]
    assert do(tmp_path, "exists", f"{root}/nix", **there)["data"] is False
    assert do(tmp_path, "stat", f"{root}/in/b.jsonl", **there)["size"] == 18
    assert do(tmp_path, "checksum", f"{root}/in/b.jsonl", **there)["size"] == 18
    assert do(tmp_path, "copy", f"{root}/a.json", to="back/", **there)["to"].endswith("doc/back/a.json")
    assert do(tmp_path, "move", "back/a.json", to=f"{root}/moved.json", **there)["to"] == f"{root}/moved.json"
    assert not (tmp_path / "doc/back/a.json").exists()
    assert failed(tmp_path, "write", f"{root}/a.json", content="x", overwrite=False, **there).kind == "exists"
    assert failed(tmp_path, "read", f"{root}/nix", **there).kind == "not_found"
    assert do(tmp_path, "read", f"{root}/nix", missing_ok=True, **there)["data"] is None
    assert failed(tmp_path, "delete", root, **there).kind == "is_directory"
    assert do(tmp_path, "delete", root, recursive=True, **there)["deleted"] is True
    assert failed(tmp_path, "list", root, **there).kind == "not_found"
    assert failed(tmp_path, "mkdir", root, **there).kind == "unsupported"
