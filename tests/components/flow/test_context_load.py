"""Settings from files and from rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.components.harness import mistakes, schema

from .support import failed, run


def load(folder: Path, name: str, content: str, **params: Any) -> dict[str, Any]:
    (folder / name).write_text(content)
    return run("context_load", {"path": name, **params}, folder=folder).globals


def refused(folder: Path, name: str, content: str | bytes, **params: Any) -> str:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    failure = failed("context_load", {"path": name, **params}, folder=folder)
    assert str(folder / name) in failure.message
    return failure.message.replace(str(folder / name), "FILE")


def test_a_yaml_file_keeps_its_types(tmp_path: Path) -> None:
    text = "host: db1\nport: 5432\nratio: 0.5\non: yes\nday: 2024-01-01\ncode: 012\nempty:\nlist: [a, 1]\nnest: {x: true}\n"
    assert load(tmp_path, "settings.yaml", text) == {
        "host": "db1",
        "port": 5432,
        "ratio": 0.5,
        "on": "yes",
        "day": "2024-01-01",
        "code": 12,
        "empty": None,
        "list": ["a", 1],
        "nest": {"x": True},
    }


def test_json_env_and_csv_files_are_known_by_their_names(tmp_path: Path) -> None:
    assert load(tmp_path, "a.json", '{"n": 1, "t": "x"}') == {"n": 1, "t": "x"}
    env = '# comment\nexport A=1\nB = plain # not this\nC=\'it # is\'\nD="a\\nb \\"q\\""\nE=\n\n'
    assert load(tmp_path, ".env", env) == {"A": "1", "B": "plain", "C": "it # is", "D": 'a\nb "q"', "E": ""}
    assert load(tmp_path, ".env.prod", "A=2") == {"A": "2"}
    assert load(tmp_path, "a.csv", 'value,key\n"x,1",a\ny,b\n') == {"a": "x,1", "b": "y"}
    assert load(tmp_path, "a.tsv", "key\tvalue\na\t1\n") == {"a": "1"}
    assert load(tmp_path, "talend.txt", "name;wert\na;1\n", format="csv", delimiter=";", key="name", value="wert") == {
        "a": "1"
    }


def test_names_get_the_prefix_and_values_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "db.yaml").write_text("password: s3cret\nhost: h\n")
    ran = run("context_load", {"path": "db.yaml", "prefix": "db_"}, folder=tmp_path)
    assert ran.globals == {"db_password": "s3cret", "db_host": "h"}
    assert (ran.result, ran.after, ran.said) == ({"names": ["db_host", "db_password"]}, {"COUNT": 2}, [])


def test_an_empty_file_has_no_settings(tmp_path: Path) -> None:
    assert load(tmp_path, "a.yaml", "# nothing\n") == {}
    assert load(tmp_path, "a.json", "") == {}


def test_rows_are_settings_too() -> None:
    rows = [{"KEY": "a", "value": "1"}, {"KEY": "b", "value": None}, {"KEY": "a", "value": "2"}]
    assert run("context_load", {}, {"input": rows}).globals == {"a": "2", "b": None}
    typed = run("context_load", {"key": "k", "value": "v"}, {"input": [{"k": 1, "v": 2.5}]})
    assert typed.globals == {"1": 2.5}


def test_a_row_without_a_name_is_an_error() -> None:
    failure = failed("context_load", {}, {"input": [{"key": "a", "value": "1"}, {"key": None, "value": "2"}]})
    assert (failure.kind, failure.message) == ("rows", "row 2 has no name in the column `key`")


def test_columns_that_are_not_there_are_found_before_the_run() -> None:
    (mistake,) = mistakes("context_load", {}, {"input": schema(key="VARCHAR", val="VARCHAR")})
    assert "there is no column `value`; did you mean `val`?" in mistake.message


def test_settings_come_from_one_place(tmp_path: Path) -> None:
    assert "here there is neither" in failed("context_load", {}).message
    both = failed("context_load", {"path": "x.yaml"}, {"input": [{"key": "a", "value": "1"}]})
    assert "here there is both" in both.message


def test_required_names_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("host: h\n")
    failure = failed("context_load", {"path": "a.yaml", "required": ["host", "port", "user"]}, folder=tmp_path)
    assert (failure.kind, "`port`, `user` is required" in failure.message) == ("missing", True)


def test_a_file_that_is_not_there_is_a_failure_unless_it_may_be_missing(tmp_path: Path) -> None:
    failure = failed("context_load", {"path": "no.yaml"}, folder=tmp_path)
    assert (failure.kind, failure.message) == ("missing_file", f"there is no `{tmp_path / 'no.yaml'}`")
    assert run("context_load", {"path": "no.yaml", "missing_ok": True}, folder=tmp_path).globals == {}
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a regular file" in failed("context_load", {"path": "pipe.yaml"}, folder=tmp_path).message


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", "a: [1", "FILE line 1: it is not YAML"),
        ("a.yaml", "x: 1\na: &b 1\nc: *b\n", "FILE line 3: it is not YAML: an alias is not allowed here"),
        ("a.yaml", "a: 1\na: 2\n", "FILE line 2: it is not YAML: a name comes twice"),
        ("a.yaml", "- a\n", "FILE: it is not a mapping of names to values but a list"),
        ("a.yaml", "a: !!python/object:os.system {}\n", "FILE line 1: it is not YAML"),
        ("a.json", "{", "FILE: it is not JSON"),
        ("a.env", "just words\n", "FILE line 1: a line is `NAME=value`"),
        ("a.env", "A=1\nB='open\n", "FILE line 2: a value that begins with '"),
        ("a.csv", "name,value\n", "FILE line 1: the first line has no column `key`; there are `name`, `value`"),
        ("a.csv", "key,value\na\n", "FILE line 2: the line has too few values"),
        ("a.dat", "x", "the name of `FILE` does not say what is in it"),
        ("a.yaml", b"a: \xff\n", "`FILE` is not text in `utf-8`"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, name: str, content: str | bytes, expected: str) -> None:
    assert expected.replace("FILE", "`FILE`").replace("``", "`") in refused(tmp_path, name, content)
