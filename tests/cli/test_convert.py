"""`penstock convert`: files and folders, in place or elsewhere, and what it says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from tests.dialects.playbook.support import tasks

OLD = tasks("- name: a   # first\n  kind: http\n  endpoint: http://localhost\n")
NEW = OLD.replace("endpoint", "url")
MERGED = tasks(
    "- &first\n  name: a\n  kind: http\n  url: http://localhost\n  method: POST\n  payload: {n: 1}\n"
    "- {<<: *first, name: b}\n"
)
JOB = "kind: Job\nmetadata: {name: j}\ncomponents: []\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "old.yaml").write_text(OLD)
    (tmp_path / "inner" / "new.yaml").write_text(NEW)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "data.yml").write_text("a: 1\n")
    return tmp_path


def test_a_folder_is_rewritten_in_place(folder, capsys):
    assert main(["convert", "."]) == 0
    assert (folder / "old.yaml").read_text() == NEW
    assert (folder / "inner" / "new.yaml").read_text() == NEW
    assert (folder / "job.yaml").read_text() == JOB
    out, words = capsys.readouterr()
    assert "old.yaml: rewritten" in out
    assert "    line 10: `endpoint` is now `url`" in out
    assert "1 of 2 documents written" in words
    assert "2 other YAML files were left alone" in words


def test_a_check_writes_nothing_and_exits_with_1_if_it_would(folder, capsys):
    assert main(["convert", "old.yaml", "--check"]) == 1
    assert (folder / "old.yaml").read_text() == OLD
    assert main(["convert", "inner", "--check"]) == 0
    assert "would change" in capsys.readouterr().out


def test_elsewhere_the_folder_looks_the_same(folder):
    assert main(["convert", ".", "--to", "out"]) == 0
    assert (folder / "out" / "old.yaml").read_text() == NEW
    assert (folder / "out" / "inner" / "new.yaml").read_text() == NEW
    assert (folder / "old.yaml").read_text() == OLD
    assert not (folder / "out" / "job.yaml").exists()


def test_a_file_with_several_documents_becomes_several_files(folder):
    (folder / "two.yaml").write_text(f"---\n{OLD}---\n{OLD.replace('name: test', 'name: other')}")
    assert main(["convert", "two.yaml", "--to", "out"]) == 0
    assert (folder / "out" / "two.yaml").read_text() == NEW
    assert (folder / "out" / "two-2.yaml").read_text() == NEW.replace("name: test", "name: other")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_nothing_that_stands_in_a_file_with_a_document_is_lost(folder, line_end):
    whole = f"# remark\n---\n{OLD}---\na: 1\n---\n# last\n".replace("\n", line_end)
    (folder / "two.yaml").write_bytes(whole.encode())
    assert main(["convert", "two.yaml"]) == 0
    assert (folder / "two.yaml").read_bytes() == f"# remark\n{NEW}".replace("\n", line_end).encode()
    assert (folder / "two-2.yaml").read_bytes() == "a: 1\n# last\n".replace("\n", line_end).encode()


def test_windows_line_ends_stay_on_every_line(folder):
    (folder / "old.yaml").write_bytes(OLD.replace("\n", "\r\n").encode())
    assert main(["convert", "old.yaml"]) == 0
    assert (folder / "old.yaml").read_bytes() == NEW.replace("\n", "\r\n").encode()


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_converted(folder, capsys):
    (folder / "broken.yaml").write_bytes(b"kind: Playbook\nworkflow: \xff\n")
    (folder / "another.yaml").write_text("kind: Playbook\nworkflow: [\n")
    (folder / "merged.yaml").write_text(MERGED)
    (folder / "double.yaml").write_text(OLD.replace("kind: http", "kind: http\n        kind: http"))
    assert main(["convert", "."]) == 2
    assert (folder / "old.yaml").read_text() == NEW
    assert (folder / "merged.yaml").read_text() == MERGED
    out, words = capsys.readouterr()
    assert "broken.yaml` cannot be read" in words
    assert "write the mapping out where it is merged" in words
    assert "double.yaml: left as it is" in words
    assert "another.yaml: as it is" in out


def test_the_report_as_json_has_every_remark(folder, capsys):
    assert main(["convert", "old.yaml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (file,) = said["files"]
    assert file["changed"] is True
    assert file["remarks"] == [{"became": "rewritten", "line": 10, "message": "`endpoint` is now `url`", "hint": ""}]


def test_rights_of_the_file_stay(folder):
    (folder / "old.yaml").chmod(0o640)
    assert main(["convert", "old.yaml"]) == 0
    assert (folder / "old.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nowhere.yaml", "there is no `nowhere.yaml`"),
        ("data.yml", "`data.yml` is not a document that can be converted"),
    ],
)
def test_what_cannot_be_converted_is_refused(folder, capsys, given, words):
    assert main(["convert", given]) == 2
    assert words in capsys.readouterr().err


def test_converters_of_packages_are_asked_first(folder, capsys, monkeypatch):
    from penstock.dialects.convert import converters, frame

    class Notes:
        name = "notes"

        def recognises(self, path: Path, text: str) -> bool:
            return text.startswith("a:")

        def convert(self, path: Path, text: str) -> frame.Converted:
            return frame.Converted(NEW, (frame.Remark(frame.Became.LOST, 1, "`a` has no counterpart"),))

    class Entry:
        name = "notes"

        def load(self):
            return Notes

    monkeypatch.setattr(converters, "entry_points", lambda group: [Entry()])
    converters.installed.cache_clear()
    try:
        assert main(["convert", "data.yml"]) == 0
    finally:
        converters.installed.cache_clear()
    assert (folder / "data.yml").read_text() == NEW
    assert "`a` has no counterpart" in capsys.readouterr().out
