"""file_copy, file_move, file_delete, file_touch."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.components.flow.support import ScriptedClock, failed, run


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "c.txt", "sub/d.csv"):
        (tmp_path / "in" / name).write_text(name)
    return tmp_path


# ---- copy


def test_a_file_is_copied_with_the_folders_on_its_way(folder: Path) -> None:
    ran = run("file_copy", {"path": "in/a.csv", "to": "x/y/z.csv"}, folder=folder)
    assert tree(folder / "x") == {"y/z.csv": "a.csv"}
    assert ran.result == {
        "count": 1,
        "files": [{"path": str(folder / "in" / "a.csv"), "to": str(folder / "x" / "y" / "z.csv")}],
    }
    assert ran.after == {"COUNT": 1, "FILENAME": str(folder / "x" / "y" / "z.csv")}


@pytest.mark.parametrize("make", [True, False])
def test_a_folder_as_target_is_copied_into(folder: Path, make: bool) -> None:
    if make:
        (folder / "kept").mkdir()
    run("file_copy", {"path": "in/a.csv", "to": "kept" if make else "kept/"}, folder=folder)
    assert tree(folder / "kept") == {"a.csv": "a.csv"}


def test_the_files_of_a_pattern_are_copied_and_can_be_copied_again(folder: Path) -> None:
    params = {"path": "in", "pattern": "*.csv", "to": "out"}
    for _ in range(2):
        assert run("file_copy", params, folder=folder).after["COUNT"] == 2
    assert tree(folder / "out") == {"a.csv": "a.csv", "b.csv": "b.csv"}
    run("file_copy", {**params, "recursive": True}, folder=folder)
    assert tree(folder / "out") == {"a.csv": "a.csv", "b.csv": "b.csv", "sub/d.csv": "sub/d.csv"}


def test_a_target_inside_the_source_is_not_copied_into_itself(folder: Path) -> None:
    params = {"path": "in", "pattern": "*.csv", "recursive": True, "to": "in/done"}
    for _ in range(2):
        run("file_copy", params, folder=folder)
    assert sorted(tree(folder / "in" / "done")) == ["a.csv", "b.csv", "sub/d.csv"]


def test_a_folder_is_copied_whole(folder: Path) -> None:
    run("file_copy", {"path": "in", "to": "all"}, folder=folder)
    assert tree(folder / "all") == tree(folder / "in")


def test_what_is_there_is_replaced_only_when_that_is_allowed(folder: Path) -> None:
    (folder / "out.csv").write_text("old")
    failure = failed("file_copy", {"path": "in/a.csv", "to": "out.csv", "overwrite": False}, folder=folder)
    assert (failure.kind, failure.message) == ("file_exists", f"`{folder / 'out.csv'}` exists already")
    run("file_copy", {"path": "in/a.csv", "to": "out.csv"}, folder=folder)
    assert (folder / "out.csv").read_text() == "a.csv"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


# ---- move


@pytest.mark.parametrize(("path", "to", "left"), [("in/a.csv", "done/", "done/a.csv"), ("in/a.csv", "z", "z")])
def test_a_file_is_moved(folder: Path, path: str, to: str, left: str) -> None:
    run("file_move", {"path": path, "to": to}, folder=folder)
    assert ((folder / left).read_text(), (folder / path).exists()) == ("a.csv", False)


def test_the_files_of_a_pattern_are_moved_and_a_second_run_finds_none(folder: Path) -> None:
    params = {"path": "in", "pattern": ["a.*", "*.txt"], "to": "done"}
    assert [run("file_move", params, folder=folder).after["COUNT"] for _ in range(2)] == [2, 0]
    assert tree(folder / "done") == {"a.csv": "a.csv", "c.txt": "c.txt"}


def test_a_file_that_was_moved_already_is_a_failure_unless_that_may_be(folder: Path) -> None:
    params = {"path": "in/a.csv", "to": "done/a.csv"}
    run("file_move", params, folder=folder)
    failure = failed("file_move", params, folder=folder)
    assert failure.kind == "missing_file"
    assert "if an earlier run may have moved it, say `missing_ok: true`" in failure.message
    assert run("file_move", {**params, "missing_ok": True}, folder=folder).result == {"count": 0, "files": []}
    assert (folder / "done" / "a.csv").read_text() == "a.csv"


def test_a_move_between_file_systems_copies_whole_and_then_deletes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = os.replace

    def no_rename(source: Any, target: Any) -> None:
        # What the system says when the two are on different devices; a temporary file of ours is always beside its place.
        if not str(source).endswith(".tmp"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(source, target)

    monkeypatch.setattr(os, "replace", no_rename)
    run("file_move", {"path": "in/a.csv", "to": "elsewhere/a.csv"}, folder=folder)
    assert ((folder / "elsewhere" / "a.csv").read_text(), (folder / "in" / "a.csv").exists()) == ("a.csv", False)


def test_a_pattern_in_the_path_is_explained(folder: Path) -> None:
    failure = failed("file_move", {"path": "in/*.csv", "to": "done"}, folder=folder)
    assert "give the folder as `path: in` and `pattern: *.csv`" in failure.message


def test_a_path_must_name_something(folder: Path) -> None:
    assert failed("file_copy", {"path": "", "to": "x"}, folder=folder).message == "the path is empty"
    assert failed("file_copy", {"path": "hdfs://b/k", "to": "x"}, folder=folder).kind == "unsupported_scheme"


# ---- delete


def test_a_file_is_deleted_and_a_second_time_only_if_it_may_be_missing(folder: Path) -> None:
    assert run("file_delete", {"path": "in/a.csv"}, folder=folder).after == {"COUNT": 1}
    assert failed("file_delete", {"path": "in/a.csv"}, folder=folder).kind == "missing_file"
    assert run("file_delete", {"path": "in/a.csv", "missing_ok": True}, folder=folder).after == {"COUNT": 0}


def test_the_files_of_a_pattern_are_deleted(folder: Path) -> None:
    assert run("file_delete", {"path": "in", "pattern": "*.csv"}, folder=folder).after == {"COUNT": 2}
    assert sorted(tree(folder / "in")) == ["c.txt", "sub/d.csv"]
    assert run("file_delete", {"path": "in", "pattern": "*", "recursive": True}, folder=folder).after == {"COUNT": 2}
    assert (folder / "in" / "sub").is_dir()
    assert failed("file_delete", {"path": "nix", "pattern": "*"}, folder=folder).kind == "missing_file"
    assert run("file_delete", {"path": "nix", "pattern": "*", "missing_ok": True}, folder=folder).after == {"COUNT": 0}


def test_a_folder_is_deleted_only_when_it_is_said_and_never_the_documents_own(folder: Path) -> None:
    failure = failed("file_delete", {"path": "in"}, folder=folder)
    assert (failure.kind, "add `recursive: true`" in failure.message) == ("file", True)
    run("file_delete", {"path": "in", "recursive": True}, folder=folder)
    assert not (folder / "in").exists()
    assert "has this document in it" in failed("file_delete", {"path": ".", "recursive": True}, folder=folder).message


def test_of_a_link_only_the_link_is_deleted(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "in")
    run("file_delete", {"path": "link"}, folder=folder)
    assert (folder / "in" / "a.csv").exists()


# ---- touch


def test_touch_makes_an_empty_file_or_sets_the_time_of_one_that_is_there(folder: Path) -> None:
    clock = ScriptedClock()
    ran = run("file_touch", {"path": "flags/done"}, folder=folder, clock=clock)
    path = folder / "flags" / "done"
    assert (ran.after, path.read_text(), path.stat().st_mtime) == (
        {"FILENAME": str(path), "CREATED": True},
        "",
        clock.now(),
    )
    ran = run("file_touch", {"path": "in/a.csv"}, folder=folder, clock=clock)
    assert (ran.result["created"], (folder / "in" / "a.csv").read_text()) == (False, "a.csv")
    assert (folder / "in" / "a.csv").stat().st_mtime == clock.now()
    assert failed("file_touch", {"path": "no", "create": False}, folder=folder).kind == "missing_file"
