"""Projects at the command line: written by `init`, put into a catalog as folders, and run from there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.project_folder import Rules, gather, is_secret
from penstock.kernel.errors import Refused
from penstock.ports.folders import CATALOG
from penstock.ports.projects import LARGEST_FILE
from tests.cli.children import running
from tests.cli.support import HELLO, PATIENCE_S, call, environment, write
from tests.warm import called

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]

JOB = """\
components:
  rows: {type: read_csv, params: {path: data/rows.csv}}
  also: {type: read_csv, params: {path: ../elsewhere.csv}}
  dated: {type: read_csv, params: {path: "in/{{ context.day }}.csv"}}
  hidden: {type: read_csv, params: {path: secret/rows.csv}}
  written: {type: write_csv, params: {path: out/rows.csv}}
  fixed: {type: write_csv, params: {path: /tmp/fixed.csv}}
context: {day: monday}
connections:
  data: [rows.main -> written.input, also.main -> fixed.input]
"""


def lay(files: dict[str, str]) -> None:
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)


@pytest.mark.parametrize(
    ("patterns", "out", "kept"),
    [
        ("*.csv", ["a.csv", "deep/b.csv"], ["a.csvx", "csv"]),
        ("/a.csv", ["a.csv"], ["deep/a.csv"]),
        ("out/", ["out"], []),
        ("deep/*.txt", ["deep/a.txt"], ["deep/er/a.txt", "a.txt"]),
        ("**/tmp", ["tmp", "a/b/tmp"], ["tmpx"]),
        ("a/**/b", ["a/b", "a/x/y/b"], ["b"]),
        ("*.csv\n!keep.csv", ["a.csv"], ["keep.csv", "deep/keep.csv"]),
        ("# comment\n\n\\#odd\nf[0-9].txt\nx?z", ["#odd", "f1.txt", "xyz"], ["fa.txt", "xz"]),
    ],
)
def test_ignore_files_mean_what_they_mean_to_git(patterns: str, out: list[str], kept: list[str]) -> None:
    Path(".gitignore").write_text(patterns)
    rules = Rules("").inside(Path.cwd(), "")
    assert [path for path in out if not rules.leave_out(path, is_folder=path in ("out", "tmp", "a/b/tmp", "a/b"))] == []
    assert [path for path in kept if rules.leave_out(path, is_folder=False)] == []


def test_what_never_belongs_to_a_project_is_left_out() -> None:
    lay(
        {
            "p/main.yaml": HELLO,
            "p/.git/config": "",
            "p/.penstock/penstock.db": "",
            "p/env/pyvenv.cfg": "",
            "p/env/lib/x.py": "",
            "p/__pycache__/x.pyc": "",
            "p/.env": "PASSWORD=x",
            "p/.env.example": "PASSWORD=",
            "p/keys/server.key": "",
            "p/keys/id_rsa": "",
            "p/sub/.gitignore": "left.txt\n",
            "p/sub/left.txt": "",
            "p/sub/right.txt": "",
            "p/.penstockignore": "notes/\n",
            "p/notes/a.md": "",
            "outside.txt": "",
        }
    )
    os.symlink("../outside.txt", "p/link.txt")
    os.symlink("main.yaml", "p/same.yaml")
    os.symlink("..", "p/loop")
    found = gather(Path("p"))
    assert sorted(found.files) == [
        ".env.example", ".penstockignore", "main.yaml", "same.yaml", "sub/.gitignore", "sub/right.txt",
    ]  # fmt: skip
    said = "; ".join(found.left_out)
    for path in (".env looks like a secret", "keys/server.key looks", "keys/id_rsa looks", "link.txt is a link"):
        assert path in said
    assert not is_secret("keyboard.yaml")


def test_a_folder_that_is_too_large_says_what_is_large() -> None:
    lay({"p/main.yaml": HELLO})
    with Path("p/large.bin").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(Exception, match=r"`large.bin` has 33,554,433 bytes"):
        gather(Path("p"))
    for number in range(3):
        with Path(f"p/large{number}.bin").open("wb") as file:
            file.truncate(LARGEST_FILE - 10)
    Path("p/large.bin").unlink()
    with pytest.raises(Refused, match=r"and 67,108,864 are allowed; the largest: `large0.bin`"):
        gather(Path("p"))


def test_a_name_of_the_authors_own_is_no_path_and_a_file_that_is_touched_is_written(capsys: Capture) -> None:
    job = (
        "components:\n"
        "  - { name: read, type: read_xml, params: { path: a.xml, rows: /a/b, columns: { file: { path: price } } } }\n"
        "  - { name: named, type: derive, params: { columns: { file: 'upper(file)', path: \"'x'\" } } }\n"
        "  - { name: show, type: log_rows }\n"
        "  - { name: done, type: file_touch, params: { path: out/done } }\n"
        "connections: { data: [read -> named, named -> show], control: show (subjob_ok) done }\n"
    )
    lay({"q/job.yaml": job, "q/a.xml": "<a><b><price>1</price></b></a>"})
    put = call(capsys, "catalog", "put", "q", "--json").json
    assert [(one["code"], one["severity"], one["line"]) for one in put["problems"]] == [("Y0401", "note", 5)]


def test_putting_a_document_says_each_place_that_will_not_be_found(capsys: Capture) -> None:
    lay({"p/job.yaml": JOB, "p/data/rows.csv": "n\n1\n", "p/secret/rows.csv": "n\n", "p/.gitignore": "secret/\n"})
    lay({"elsewhere.csv": "n\n1\n", "p/in/monday.csv": "n\n"})
    alone = call(capsys, "catalog", "put", "team/job", "p/job.yaml", "--json").json["problems"]
    assert [(one["code"], one["line"]) for one in alone] == [("Y0401", line) for line in (2, 3, 4, 5, 6)]
    assert alone[0]["file"].endswith("job.yaml")
    put = call(capsys, "catalog", "put", "p", "--json").json
    found = {one["line"]: (one["code"], one["severity"]) for one in put["problems"]}
    assert found == {3: ("Y0402", "warning"), 5: ("Y0403", "warning"), 6: ("Y0401", "note")}
    said = call(capsys, "catalog", "put", "p").err
    assert "job.yaml:3:41: warning[Y0402]" in said
    assert "`p` is kept as version 1, as it was before" in said


def test_projects_are_listed_shown_compared_and_removed(capsys: Capture) -> None:
    lay({"p/main.yaml": Path(write("hello.yaml", HELLO)).read_text(), "p/data.csv": "a\n"})
    assert "`p` is kept as version 1: 2 files, with `p/main`" in call(capsys, "catalog", "put", "p").err
    lay({"p/data.csv": "b\n", "p/more.csv": ""})
    Path("p/main.yaml").write_text(Path("p/main.yaml").read_text().replace("hello", "goodbye"))
    assert call(capsys, "catalog", "put", "p", "p").code == 0
    shown = call(capsys, "catalog", "list").out
    assert re.search(r"^p +2 +project", shown, re.MULTILINE)
    files = call(capsys, "catalog", "show", "p").out
    assert re.search(r"^data.csv +2 ", files, re.MULTILINE)
    assert "goodbye" in call(capsys, "catalog", "show", "p/main").out
    diff = call(capsys, "catalog", "diff", "p").out
    assert "changed: data.csv" in diff
    assert "added: more.csv" in diff
    assert '+          result = {"text": f"goodbye {who}"}' in diff
    assert "are the same" in call(capsys, "catalog", "diff", "p", "--from", "2").err
    assert call(capsys, "catalog", "remove", "p").code == 0
    assert call(capsys, "catalog", "show", "p/main").code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["catalog", "put", "nothing"], "there is no folder `nothing`"),
        (["init", "bad name!"], "is no name for a project"),
    ],
)
def test_what_is_wrong_is_said(capsys: Capture, words: list[str], message: str) -> None:
    told = call(capsys, *words)
    assert (told.code, message in told.err) == (2, True)


def test_doctor_and_the_lists_know_plug_ins_of_this_folder_and_name_what_is_broken(capsys: Capture) -> None:
    good = 'import penstock\n\n\n@penstock.component("calm", inputs=["input"])\ndef calm(input: list[dict]) -> list[dict]:\n    "Keep calm."\n    return input\n'
    bad = (
        'import penstock\n\nRATE = 1 / 0\n\n\n@penstock.component("rated")\ndef rated() -> list[dict]:\n    return []\n'
    )
    lay({"plugins/good.py": good, "plugins/bad.py": bad, "plugins/worse.py": "def ("})
    told = call(capsys, "doctor", "--json")
    found = {(one["what"], one["text"]) for one in told.json["checks"] if one["state"] == "error"}
    assert told.code == 4
    here = Path.cwd().resolve()
    assert found == {
        ("components", f"`rated`: plug-in {here}/plugins/bad.py:3: ZeroDivisionError: division by zero"),
        ("plug-ins", f"{here}/plugins/worse.py:1: SyntaxError: invalid syntax"),
    }
    listed = call(capsys, "components").out
    assert re.search(r"calm +Keep calm\.", listed)
    assert "rated" in listed
    assert '"calm"' in call(capsys, "schema", "job").out
    assert "Keep calm." in call(capsys, "components", "calm").out


def test_init_writes_nothing_over(capsys: Capture) -> None:
    lay({"shop/daily.yaml": "mine"})
    told = call(capsys, "init", "shop")
    assert (told.code, "is there already" in told.err) == (2, True)
    assert [str(path) for path in Path("shop").iterdir()] == ["shop/daily.yaml"]


def _commands(readme: str) -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", readme, re.DOTALL)
    return [shlex.split(line[2:]) for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_everything_in_a_new_project_runs_as_its_readme_says(capsys: Capture) -> None:
    assert call(capsys, "init", "shop").code == 0
    os.chdir("shop")
    commands = _commands(Path("README.md").read_text())
    at = next(number for number, words in enumerate(commands) if words[:2] == ["penstock", "serve"])
    assert len(commands[:at]) == 5

    def ran(words: list[str], **more: str) -> str:
        everything = {**environment(), **more}
        if words[0] == "penstock":
            done = called(*words[1:], env=everything)
        else:
            words = [sys.executable, *words[1:]]
            everything["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # A new project has nothing but pytest itself.
            done = subprocess.run(
                words, env=everything, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    said = [ran(words) for words in commands[:at]]
    assert json.loads(said[1].splitlines()[0]) == {"environment": "dev", "written": 3}
    assert "3 passed" in said[4]
    with running(*commands[at][1:], "--listen", "127.0.0.1:0") as server:
        rest = [ran(words, PENSTOCK_SERVER=server.url) for words in commands[at + 2 :]]
        assert json.loads(rest[1].splitlines()[0]) == {"environment": "prod", "written": 2}
        assert "shop" in rest[3]
    assert Path("deployed/shop/out/orders.csv").read_text().splitlines() == [
        "id,customer,amount", "1,Ada,12.50", "4,Edsger,40.00",
    ]  # fmt: skip
    assert not list(Path().rglob(CATALOG))
