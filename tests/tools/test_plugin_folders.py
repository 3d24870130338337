"""Plug-ins in a folder: found beside documents and at the root of a project, imported when they are used, and no sooner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock import run
from penstock.components.registry import ComponentRegistry
from penstock.kernel.errors import Refused
from penstock.tools.plugins import plugin_folders
from penstock.tools.registry import Registry
from tests.engine import document

SLUG = """\
import penstock
from ._joining import joined

print("imported")


@penstock.tool("slug")
def slug(text: str, separator: str = "-") -> str:
    "Make a name of a text."
    return joined(text, separator)


@penstock.component("loud", inputs=["input"])
def loud(input: list[dict], column: str = "name") -> list[dict]:
    "Shout a column."
    return [row | {column: row[column].upper()} for row in input]
"""
JOINING = "def joined(text, separator):\n    return separator.join(text.lower().split())\n"
CLASS = """\
import msgspec
from penstock import Success, Tool


class EchoParams(msgspec.Struct, kw_only=True):
    text: str


class EchoTool(Tool[EchoParams]):
    "Say it again."
    kind = "echo"
    Params = EchoParams

    async def run(self, params, call):
        return Success(params.text)
"""
USES = document("- step: start\n  tool: [{name: s, kind: slug, text: Hello World}]\n")
JOB = """\
components:
  rows: {type: fixed_rows, params: {columns: [name], rows: [[ada]]}}
  loud: {type: loud}
  keep: {type: python, params: {code: 'globals["names"] = [row["name"] for row in inputs["input"]]'}}
connections: {data: [rows.main -> loud.input, loud.main -> keep.input]}
"""


def lay(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_tools_and_components_beside_a_document_are_found_without_packaging(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/words.py": SLUG, "plugins/_joining.py": JOINING, "p.yaml": USES, "j.yaml": JOB})
    assert run(tmp_path / "p.yaml").result == "hello-world"
    assert run(tmp_path / "j.yaml").globals == {"names": ["ADA"]}
    assert "slug" in Registry().at(tmp_path).kinds()
    assert "loud" in ComponentRegistry().at(tmp_path).types()
    assert "slug" not in Registry().kinds()


def test_classes_need_no_decorator(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/echo.py": CLASS, "p.yaml": USES.replace("kind: slug", "kind: echo")})
    assert run(tmp_path / "p.yaml").result == "Hello World"


@pytest.mark.parametrize("mark", [".penstockignore", "pyproject.toml", ".git/HEAD"])
def test_those_at_the_root_of_the_project_are_found_from_every_folder_of_it(tmp_path: Path, mark: str) -> None:
    lay(tmp_path, {mark: "", "plugins/words.py": SLUG, "plugins/_joining.py": JOINING, "deep/er/p.yaml": USES})
    assert run(tmp_path / "deep" / "er" / "p.yaml").result == "hello-world"


def test_a_folder_above_that_is_no_project_gives_nothing(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/words.py": SLUG, "plugins/_joining.py": JOINING, "deep/p.yaml": USES})
    assert plugin_folders(tmp_path / "deep") == ()


def test_nothing_is_imported_before_it_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay(tmp_path, {"plugins/words.py": SLUG, "plugins/_joining.py": JOINING})
    registry = Registry().at(tmp_path)
    assert "slug" in registry.kinds()
    assert capsys.readouterr().out == ""
    assert registry.describe("slug") is not None
    assert capsys.readouterr().out == "imported\n"


def test_two_folders_may_have_the_same_kind(tmp_path: Path) -> None:
    for name, separator in (("one", "-"), ("two", "_")):
        files = {
            "plugins/words.py": SLUG.replace('"-"', f'"{separator}"'),
            "plugins/_joining.py": JOINING,
            "p.yaml": USES,
        }
        lay(tmp_path / name, files)
    assert [run(tmp_path / name / "p.yaml").result for name in ("one", "two", "one")] == [
        "hello-world", "hello_world", "hello-world",
    ]  # fmt: skip


def test_a_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/words.py": SLUG, "plugins/_joining.py": JOINING, "p.yaml": USES})
    assert run(tmp_path / "p.yaml").result == "hello-world"
    lay(tmp_path, {"plugins/words.py": SLUG.replace('"-"', '"+"')})
    os.utime(tmp_path / "plugins" / "words.py", (2_000_000_000, 2_000_000_000))
    assert run(tmp_path / "p.yaml").result == "hello+world"


def test_a_broken_file_is_named_with_its_line_where_it_is_used_and_nowhere_else(tmp_path: Path) -> None:
    bad = 'import penstock\nimport nothing_of_the_kind\n\n\n@penstock.tool("bad")\ndef bad() -> str:\n    return ""\n'
    worse = 'import penstock\n\n@penstock.tool("worse")\ndef worse(:\n'
    lay(tmp_path, {"plugins/words.py": SLUG, "plugins/_joining.py": JOINING, "plugins/bad.py": bad, "p.yaml": USES})
    lay(tmp_path, {"plugins/worse.py": worse})
    assert run(tmp_path / "p.yaml").ok
    for kind, place in (("bad", "bad.py:2: ModuleNotFoundError"), ("worse", "worse.py:4: SyntaxError")):
        lay(tmp_path, {"q.yaml": document(f"- step: start\n  tool: [{{name: b, kind: {kind}}}]\n")})
        with pytest.raises(Refused, match=rf"q.yaml:7: .*plugins/{place}"):
            run(tmp_path / "q.yaml")


def test_two_files_that_define_one_kind_are_told_of(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/a.py": SLUG, "plugins/b.py": SLUG, "plugins/_joining.py": JOINING})
    (found,) = plugin_folders(tmp_path)
    assert [(one.file.name, "is defined in `a.py` already" in one.reason) for one in found.broken] == [
        ("b.py", True)
    ] * 2


def test_a_kind_that_is_built_in_stays_what_it_is(tmp_path: Path) -> None:
    lay(tmp_path, {"plugins/a.py": SLUG.replace('tool("slug")', 'tool("noop")'), "plugins/_joining.py": JOINING})
    assert type(Registry().at(tmp_path).get("noop")).__module__ == "penstock.tools.flow"
