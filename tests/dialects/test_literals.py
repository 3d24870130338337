"""What documents have written out, with the tools and components as they are: URLs, files, code, names of secrets."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job.compile import compile_file as compile_job
from penstock.dialects.playbook import compile_file as compile_playbook
from penstock.dialects.problems import Problem
from penstock.server.documents import Documents
from penstock.tools.registry import Registry
from tests.cases import cases

TOOLS, COMPONENTS = Registry(), ComponentRegistry()
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: test}\n"
UNREAD = "J0801"


def playbook(folder: Path, text: str) -> list[Problem]:
    """The problems of a playbook with these steps."""
    file = folder / "test.yaml"
    file.write_text(HEAD + "workflow:\n" + textwrap.indent(textwrap.dedent(text).strip("\n") + "\n", "  "))
    return known(compile_playbook(file, TOOLS))


def known(compiled: Any) -> list[Problem]:
    return [one for one in compiled.problems if one.code != UNREAD]


def task(folder: Path, text: str) -> list[Problem]:
    return playbook(folder, f"- step: start\n  tool:\n    - {text}")


def job(folder: Path, components: list[str], links: str = "") -> list[Problem]:
    file = folder / "test.yaml"
    control = f"connections:\n{textwrap.indent(textwrap.dedent(links).strip(), '  ')}\n" if links else ""
    file.write_text("components:\n" + "".join(f"  - {one}\n" for one in components) + control)
    return known(compile_job(file, COMPONENTS))


def told(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(one.code, one.severity.value) for one in problems]


# ---- URLs

URLS = [
    ("{name: a, kind: http, url: 'htp://x/y'}", "did you mean `http`?"),
    ("{name: a, kind: http, url: 'http:/x'}", ""),
    ("{name: a, kind: http, url: 'example.com/x'}", ""),
    ("{name: a, kind: notify, via: webhook, url: 'htps://x'}", "did you mean `https`?"),
    ("{name: a, kind: postgres, url: 'pg://x/db', query: select 1}", ""),
    ("{name: a, kind: transfer, source: {kind: http, url: 'ftp://x'}, target: {kind: jsonl, path: b}}", ""),
    ("{name: a, kind: transfer, source: {kind: rows, rows: []}, target: {kind: mysql, url: 'postgresql://x/d', table: t}}", ""),
    ("{name: a, kind: transfer, source: {kind: csv, path: 's3://x/y.csv'}, target: {kind: jsonl, path: b}}", ""),
    ("{name: a, kind: files, action: read, path: 'hdfs://x/y.txt'}", ""),
    ("{name: a, kind: duckdb, path: 's3://x/y.duckdb', query: select 1}", ""),
]  # fmt: skip


@cases("text, label", URLS)
def test_a_url_that_cannot_work_is_an_error_of_the_playbook(tmp_path: Path, text: str, label: str) -> None:
    (found,) = task(tmp_path, text)
    assert (found.code, found.severity.value, found.label) == ("P0620", "error", label)
    assert found.position.line == 7


@cases(
    "text, label",
    [
        ("{name: a, type: http_call, params: {url: 'htp://x'}}", "did you mean `http`?"),
        ("{name: a, type: http_rows, params: {url: 'htps://x'}}", "did you mean `https`?"),
        ("{name: a, type: read_sql, params: {connection: 'sqlit:///x.db', query: select 1}}", "did you mean `sqlite`?"),
        ("{name: a, type: run_sql, params: {connection: 'oracle://x/y', sql: select 1}}", ""),
        ("{name: a, type: run_sql, params: {connection: 'orders.db', sql: select 1}}", ""),
        ("{name: a, type: read_csv, params: {path: 's4://bucket/x.csv'}}", ""),
        ("{name: a, type: write_file, params: {path: 'https://host/x.txt', content: x}}", ""),
        ("{name: a, type: file_transfer, params: {action: list, url: 'sfpt://x'}}", "did you mean `sftp`?"),
        ("{name: a, type: file_transfer, params: {action: list, url: 'sftp:///x'}}", ""),
    ],
)
def test_a_url_that_cannot_work_is_an_error_of_the_job(tmp_path: Path, text: str, label: str) -> None:
    (found,) = job(tmp_path, [text])
    assert (found.code, found.severity.value, found.label) == ("J0507", "error", label)
    assert found.position.line == 2


@pytest.mark.parametrize(
    "text",
    [
        "{name: a, type: http_call, params: {url: '{{ context.base }}/x'}}",
        "{name: a, type: http_call, params: {url: 'https://x/y:z'}}",
        "{name: a, type: read_sql, params: {connection: 'mysql+pymysql://h/d', query: select 1}}",
        "{name: a, type: read_sql, params: {connection: 'DuckDB:///x.duckdb', query: select 1}}",
    ],
)
def test_urls_that_may_work_are_let_alone(tmp_path: Path, text: str) -> None:
    assert not [one for one in job(tmp_path, [text]) if one.code == "J0507"]


# ---- files


def test_an_input_that_nothing_could_have_made_is_warned_of(tmp_path: Path) -> None:
    read = "{name: a, type: read_csv, params: {path: in/orders.csv}}"
    (found,) = job(tmp_path, [read, "{name: b, type: log_rows}"], "data: a -> b")
    assert (found.code, found.severity.value) == ("J0504", "warning")
    assert found.message == "MISSING_FILE: there is no file `in/orders.csv` for `path` of `a`"
    assert str(tmp_path / "in" / "orders.csv") in found.hint
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.csv").write_text("id\n1\n")
    assert job(tmp_path, [read, "{name: b, type: log_rows}"], "data: a -> b") == []


@cases(
    "component",
    [
        "{name: a, type: read_parquet, params: {path: '*.parquet'}}",
        "{name: a, type: read_excel, params: {path: x.xlsx}}",
        "{name: a, type: context_load, params: {path: settings.yaml}}",
        "{name: a, type: file_copy, params: {path: x, to: y}}",
        "{name: a, type: file_unarchive, params: {path: x.zip, to: y}}",
        "{name: a, type: mail, params: {host: h, to: [a@b.c], from: a@b.c, text: t, attachments: [x.pdf]}}",
    ],
)
def test_every_kind_of_input_file_of_a_job_is_looked_for(tmp_path: Path, component: str) -> None:
    assert told(job(tmp_path, [component])) == [("J0504", "warning")]


def test_a_script_that_nothing_could_have_made_is_an_error_of_the_job(tmp_path: Path) -> None:
    component = "{name: a, type: run_sql, params: {connection: 'sqlite:///x.db', file: ddl.sql}}"
    assert told(job(tmp_path, [component])) == [("J0504", "error")]


@pytest.mark.parametrize(
    ("components", "links"),
    [
        # Something could make it.
        (["{name: m, type: shell, params: {command: make x}}"], ""),
        (["{name: m, type: python, params: {code: pass}}"], "control: m (ok) a"),
        (["{name: m, type: file_unarchive, params: {path: test.yaml, to: .}}"], ""),
        (["{name: m, type: file_move, params: {path: test.yaml, to: '{{ context.x | default(1) }}'}}"], ""),
        # It may not run at all.
        (["{name: m, type: iterate_list, params: {items: [1]}}"], "control: m (iterate) a"),
    ],
)
def test_a_file_that_may_come_or_may_not_be_needed_is_a_warning(
    tmp_path: Path, components: list[str], links: str
) -> None:
    found = job(tmp_path, ["{name: a, type: read_csv, params: {path: x.csv}}", *components], links)
    assert told([one for one in found if one.code == "J0504"]) == [("J0504", "warning")]


@pytest.mark.parametrize(
    ("component", "link"),
    [
        ("{name: m, type: file_exists, params: {path: x.csv}}", '"m (if: global.m.EXISTS) a"'),
        ("{name: m, type: warn, params: {message: x}}", "a (error) m"),
        ("{name: m, type: warn, params: {message: x}}", "a (subjob_error) m"),
    ],
)
def test_a_file_that_the_author_knows_may_be_missing_is_only_noted(tmp_path: Path, component: str, link: str) -> None:
    read = "{name: a, type: read_csv, params: {path: x.csv}}"
    found = job(tmp_path, [read, component], f"control: {link}")
    assert told([one for one in found if one.code == "J0504"]) == [("J0504", "note")]


def test_a_file_that_the_job_itself_writes_is_not_missed(tmp_path: Path) -> None:
    rows = "{name: r, type: fixed_rows, params: {columns: [id], rows: [[1]]}}"
    write = "{name: w, type: write_csv, params: {path: x.csv}}"
    read = "{name: a, type: read_csv, params: {path: ./x.csv}}"
    assert (
        job(tmp_path, [rows, write, read, "{name: l, type: log_rows}"], "data: [r -> w, a -> l]\ncontrol: w (ok) a")
        == []
    )
    other = write.replace("x.csv", "y.csv")
    found = job(tmp_path, [rows, other, read, "{name: l, type: log_rows}"], "data: [r -> w, a -> l]")
    assert told(found) == [("J0504", "warning")]


def test_a_file_named_in_a_joblet_is_looked_for_beside_the_joblet_and_told_there(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "part.yaml").write_text(
        "kind: Joblet\noutputs: {rows: a.main}\ncomponents: [{name: a, type: read_csv, params: {path: x.csv}}]\n"
    )
    found = job(tmp_path, ["{name: p, type: '@lib/part'}", "{name: l, type: log_rows}"], "data: p.rows -> l")
    assert told(found) == [("J0504", "warning")]
    assert found[0].position.file.endswith("lib/part.yaml")
    (tmp_path / "lib" / "x.csv").write_text("id\n1\n")
    assert job(tmp_path, ["{name: p, type: '@lib/part'}", "{name: l, type: log_rows}"], "data: p.rows -> l") == []


@pytest.mark.parametrize(
    "text",
    [
        "{name: a, kind: files, action: read, path: x.txt}",
        "{name: a, kind: transfer, source: {kind: csv, path: x.csv}, target: {kind: jsonl, path: b}}",
        "{name: a, kind: http, url: 'http://x/', method: POST, files: [{name: f, path: x.bin}]}",
        "{name: a, kind: postgres, url: 'postgresql://x/y', copy: {table: t, from: x.csv}}",
    ],
)
def test_every_kind_of_input_file_of_a_playbook_is_looked_for(tmp_path: Path, text: str) -> None:
    assert told(task(tmp_path, text)) == [("P0621", "warning")]


def test_a_script_that_nothing_could_have_made_is_an_error_of_the_playbook(tmp_path: Path) -> None:
    assert told(task(tmp_path, "{name: a, kind: python, script: x.py}")) == [("P0621", "error")]


def test_a_script_is_looked_for_from_the_callers_folder_too(tmp_path: Path) -> None:
    document, caller = tmp_path / "document", tmp_path / "caller"
    document.mkdir()
    caller.mkdir()
    file = document / "test.yaml"

    def found(script: str) -> list[tuple[str, str]]:
        tool = f"{{kind: python, script: {script}}}"
        file.write_text(f"{HEAD}workflow:\n  - step: start\n    tool: {tool}\n")
        return told(known(compile_playbook(file, TOOLS, caller=caller)))

    for script in ("x.py", "{uri: x.py}", "{uri: x.py, source: {type: file}}"):
        (caller / "x.py").unlink(missing_ok=True)
        assert found(script) == [("P0621", "error")]
        (caller / "x.py").write_text("return 1")
        assert found(script) == []
        (caller / "x.py").write_text("x = = 1")
        assert found(script) == [("P0618", "error")]
    assert told(known(compile_playbook(file, TOOLS))) == [("P0621", "error")]


@cases(
    "script, expected",
    [
        ("{uri: x.py, source: {type: http}}", []),
        ("{uri: x.py, source: {type: '{{ workload.t }}'}}", []),
        ("{source: {type: http, endpoint: 'htp://x/y'}}", [("P0620", "error")]),
        ("{source: {type: inline, code: 'return 1'}}", []),
        ("{source: {type: inline, code: 'x = = 1'}}", [("P0618", "error")]),
        ("{code: 'x = = 1', source: {type: inline}}", [("P0618", "error")]),
        ("{uri: a/b.py, source: {type: gcs}}", [("P0508", "error")]),
        ("{uri: a/b.py, source: {type: s3}}", [("P0508", "error")]),
        ("{uri: a/b.py, source: {type: fil}}", [("P0508", "error")]),
        ("{uri: 's3://a/b.py'}", [("P0620", "error")]),
        ("{url: x.py}", [("P0505", "error")]),
    ],
)
def test_where_a_script_comes_from_is_checked(tmp_path: Path, script: str, expected: list[tuple[str, str]]) -> None:
    found = task(tmp_path, f"{{name: a, kind: python, script: {script}}}")
    assert [one for one in told(found) if one[0] != "E0102"] == expected


def test_a_script_in_an_object_store_is_to_be_fetched_first(tmp_path: Path) -> None:
    (found,) = task(tmp_path, "{name: a, kind: python, script: {uri: a/b.py, source: {type: gcs}}}")
    assert (found.message, found.hint) == (
        "a script cannot come from `gcs`",
        "fetch it with `files` first, and give its path in `uri`",
    )


@cases(
    "libs, named",
    [
        ("{a: no_such_module_here}", ["no_such_module_here"]),
        (
            "{a: no_such_module_here.inner, b: {from: no_such_other, import: x}}",
            ["no_such_module_here", "no_such_other"],
        ),
        ("{a: json, b: os.path, c: {from: datetime, import: date}, d: email.nothing_such}", []),
        ("{a: beside, b: '{{ workload.x }}'}", []),
    ],
)
def test_a_module_that_is_not_installed_here_is_warned_of(tmp_path: Path, libs: str, named: list[str]) -> None:
    (tmp_path / "beside.py").write_text("raise SystemExit('a check imports nothing')")
    found = task(tmp_path, f"{{name: a, kind: python, libs: {libs}, code: pass}}")
    assert told([one for one in found if one.code == "P0622"]) == [("P0622", "warning")] * len(named)
    assert [one.message.split("`")[1] for one in found if one.code == "P0622"] == named


@cases(
    "tool, expected",
    [
        ("{kind: shell}", ["the tool `shell` needs `command` or `cmds`"]),
        ("{kind: shell, command: null}", ["the tool `shell` needs `command` or `cmds`"]),
        ("{kind: shell, command: a, cmds: b}", ["the tool `shell` takes `command` or `cmds`, and not both"]),
        ("{kind: shell, cmds: [a, b]}", []),
        ("{kind: python}", ["the tool `python` needs `code` or `script`"]),
        ("{kind: python, code: pass, script: null}", []),
    ],
)
def test_of_parameters_that_exclude_each_other_a_task_has_one(tmp_path: Path, tool: str, expected: list[str]) -> None:
    assert [one.message for one in playbook(tmp_path, f"- step: start\n  tool: {tool}")] == expected


def test_values_in_entries_of_a_shell_are_to_be_quoted(tmp_path: Path) -> None:
    cmds = "['cat {{ workload.x }}', 'cat {{ workload.x | quote }}', 'rm {{ workload.x }}']"
    found = [one for one in task(tmp_path, f"{{name: a, kind: shell, cmds: {cmds}}}") if one.code == "P0619"]
    assert [one.hint for one in found] == ["write `{{ name | quote }}`, or hand the value over in `env`"] * 2


def test_what_files_only_writes_or_asks_for_need_not_be_there(tmp_path: Path) -> None:
    for action in ("write", "exists", "list", "mkdir", "delete"):
        more = ", content: x" if action == "write" else ""
        assert task(tmp_path, f"{{name: a, kind: files, action: {action}, path: x{more}}}") == []


@pytest.mark.parametrize(
    "steps",
    [
        # Something before could make it.
        "- step: start\n  tool: [{name: m, kind: shell, command: make}, {name: a, kind: python, script: x.py}]",
        "- step: start\n  tool: [{name: m, kind: python, code: pass}]\n  next: {arcs: [{step: b}]}\n"
        "- step: b\n  tool: [{name: a, kind: python, script: x.py}]",
        # It may not run at all.
        "- step: start\n  tool: [{name: m, kind: noop}]\n  next: {arcs: [{step: b, when: '{{ start }}'}]}\n"
        "- step: b\n  tool: [{name: a, kind: python, script: x.py}]",
        "- step: start\n  loop: {in: [1], iterator: n}\n  tool: [{name: a, kind: python, script: x.py}]",
    ],
)  # fmt: skip
def test_a_file_that_may_come_or_may_not_be_needed_is_a_warning_of_the_playbook(tmp_path: Path, steps: str) -> None:
    assert told([one for one in playbook(tmp_path, steps) if one.code == "P0621"]) == [("P0621", "warning")]


@pytest.mark.parametrize(
    "more",
    [
        "}]\n  next: {arcs: [{step: b, when: '{{ event.name == \"step.failed\" }}'}]}\n- step: b\n  tool: [{name: m, kind: noop}]",
        ", spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}]",
    ],
)  # fmt: skip
def test_a_file_whose_absence_the_playbook_answers_is_only_noted(tmp_path: Path, more: str) -> None:
    found = playbook(tmp_path, "- step: start\n  tool: [{name: a, kind: files, action: read, path: x" + more)
    assert told([one for one in found if one.code == "P0621"]) == [("P0621", "note")]


# ---- code


@pytest.mark.parametrize(
    ("component", "line", "column"),
    [
        ("{name: a, type: python, params: {code: 'x = = 1'}}", 2, 49),
        ("name: a\n    type: python\n    params:\n      code: |\n        x = 1\n        y = (\n", 7, 13),
        ("{name: a, type: python, params: {code: pass, setup: 'def f('}}", 2, None),
    ],
)
def test_python_in_a_job_is_compiled_before_it_runs(
    tmp_path: Path, component: str, line: int, column: int | None
) -> None:
    (found,) = job(tmp_path, [component])
    assert (found.code, found.position.line) == ("J0508", line)
    assert found.message.startswith("BAD_PYTHON: this Python cannot be compiled: ")
    assert column is None or found.position.column == column


def test_python_is_compiled_in_a_job_whose_links_are_wrong_and_in_a_joblet(tmp_path: Path) -> None:
    found = job(tmp_path, ["{name: a, type: python, params: {code: 'x ='}}"], "control: a (ok) nobody")
    assert [one.code for one in found] == ["J0508", "J0302"]
    file = tmp_path / "part.yaml"
    file.write_text("kind: Joblet\ncomponents: [{name: a, type: python, params: {code: 'return 1'}}]\n")
    (problem,) = compile_job(file, COMPONENTS).problems
    assert (problem.code, problem.hint) == ("J0508", "set `output`, `result` or `reject`; code here returns nothing")


def test_a_script_that_is_there_must_be_python(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a = 1\nb = = 2\n")
    (found,) = task(tmp_path, "{name: a, kind: python, script: x.py}")
    assert (found.code, found.position.line) == ("P0618", 7)
    assert found.message == "`x.py`, line 2: this Python cannot be compiled: invalid syntax"
    (tmp_path / "x.py").write_text("def main():\n    return 1\n")
    assert task(tmp_path, "{name: a, kind: python, script: x.py}") == []


def test_python_of_a_workbook_task_that_nobody_calls_is_compiled_too(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    book = "workbook:\n  - name: idle\n    kind: python\n    code: |\n      x = = 1\n"
    file.write_text(HEAD + book + "workflow: [{step: start, tool: [{name: a, kind: noop}]}]\n")
    found = compile_playbook(file, TOOLS).problems
    assert [(one.code, one.position.line) for one in found] == [("P0512", 5), ("P0618", 8)]


# ---- secrets


def test_an_auth_of_a_job_that_is_not_declared_is_said_so_and_declared_by_its_use(tmp_path: Path) -> None:
    keychain = "keychain: [{name: warehouse, kind: postgres_credential}]\n"
    file = tmp_path / "test.yaml"
    file.write_text(
        keychain
        + "components:\n"
        + "  - {name: a, type: run_sql, params: {auth: warehose, sql: select 1}}\n"
        + "  - {name: b, type: run_sql, params: {connection: mart, sql: select 1}}\n"
        + "  - {name: c, type: run_sql, params: {auth: warehouse, sql: select 1}}\n"
    )
    compiled = compile_job(file, COMPONENTS)
    found = [one for one in compiled.problems if one.code != UNREAD]
    assert [(one.code, one.severity.value, one.position.line) for one in found] == [
        ("J0706", "warning", 3),
        ("J0706", "warning", 4),
    ]
    assert found[0].message == "UNDECLARED_SECRET: `auth` names `warehose`, which `keychain` does not declare"
    assert found[0].label == "did you mean `warehouse`?"
    assert compiled.net is not None
    assert [entry["name"] for entry in compiled.net.keychain] == ["warehouse", "warehose", "mart"]


def test_an_auth_that_a_caller_gives_to_a_joblet_is_the_callers(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text(
        "kind: Joblet\nparams: {db: }\n"
        "components: [{name: a, type: run_sql, params: {auth: '{{ params.db }}', sql: select 1}}]\n"
    )
    found = job(tmp_path, ["{name: p, type: '@part', params: {db: mart}}"])
    assert [(one.code, Path(one.position.file).name, one.position.line) for one in found] == [("J0706", "test.yaml", 2)]


# ---- collections of loops


@cases(
    "collection, codes",
    [
        ("{lines: nowhere.txt}", [("P0621", "warning")]),
        ("{row_groups: {path: '*.parquet'}}", [("P0621", "warning")]),
        ("{files: 'inbox/*.csv'}", []),
        ("{objects: 's4://bucket/x'}", [("P0620", "error")]),
        ("{objects: {url: 's3://bucket/x', auth: lake}}", [("P0708", "warning")]),
        ("{http: {url: 'htp://x'}}", [("P0620", "error")]),
        ("{sql: {kind: sqlite, path: x.db, auth: mart, query: select 1, key: id}}", [("P0708", "warning")]),
        ("{lines: test.yaml}", []),
    ],
)
def test_what_a_loop_runs_over_is_looked_at_too(tmp_path: Path, collection: str, codes: list[tuple[str, str]]) -> None:
    found = playbook(
        tmp_path, f"- step: start\n  loop: {{in: {collection}, iterator: n}}\n  tool: [{{name: a, kind: noop}}]"
    )
    assert told(found) == codes


def test_data_that_is_not_there_is_warned_of_and_left_to_the_run_to_fail_by(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    file.write_text("components: [{name: a, type: context_load, params: {path: settings.yaml}}]\n")
    compiled = compile_job(file, COMPONENTS)
    assert told(list(compiled.problems)) == [("J0504", "warning")]
    Documents(TOOLS, COMPONENTS).open(file)
