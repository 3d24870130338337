"""Documents that a document calls by paths that are written out: checked before the first step, with the path of calls."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.app.embedded import embedded
from penstock.app.library import Library
from penstock.dialects.problems import Problem
from penstock.keychain import KeychainError
from penstock.server.documents import DocumentInvalid

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: test}\n"
PARENT = """\
workflow:
  - step: start
    tool: [{name: mark, kind: files, action: write, path: ran.txt, content: x}]
    next: {arcs: [{step: load}]}
  - step: load
    tool: [{name: call, kind: playbook, path: child.yaml, args: {ARGS}}]
"""
CHILD = "workflow: [{step: start, tool: [{name: a, kind: noop}]}]\n"
SECRET = "keychain: [{name: token, kind: env, var: CHILD_TOKEN}]\n"


def write(folder: Path, **documents: str) -> None:
    for name, text in documents.items():
        (folder / f"{name}.yaml").write_text(textwrap.dedent(text))


def started(folder: Path, environ: Mapping[str, str] | None = None, name: str = "parent") -> Any:
    """Run a document of the folder; what it came to, or raises what it was refused with."""

    async def run() -> Any:
        engine = embedded(folder / "home", environ=dict(environ or {}))
        try:
            under_way = engine.run("run-1")
            document = under_way.services.documents.open(folder / f"{name}.yaml")
            return await under_way.start(document, {}, label=None, trace_id="t")
        finally:
            await engine.close()

    return asyncio.run(run())


def examined(folder: Path, name: str = "parent", **more: Any) -> list[Problem]:
    found = asyncio.run(Library().examined(folder / f"{name}.yaml", home=folder / "home", **more))
    return [one for one in found.problems if one.code != "J0801"]


def playbooks(folder: Path, child: str = CHILD, args: str = "") -> None:
    write(folder, parent=HEAD + PARENT.replace("ARGS", args), child=HEAD + child)


# ---- secrets


def test_a_missing_secret_of_a_sub_playbook_stops_its_caller_before_the_first_step(tmp_path: Path) -> None:
    playbooks(tmp_path, SECRET + CHILD)
    with pytest.raises(KeychainError) as refused:
        started(tmp_path)
    trail = f"{tmp_path}/parent.yaml → load → {tmp_path}/child.yaml"
    assert refused.value.message == (
        f"keychain entry `token` ({tmp_path}/child.yaml:4; {trail}): the environment variable `CHILD_TOKEN` is not set"
    )
    assert not (tmp_path / "ran.txt").exists()
    assert started(tmp_path, {"CHILD_TOKEN": "abc-def-ghi"}).status == "completed"


def test_secrets_are_looked_for_along_all_calls_and_in_both_languages_at_once(tmp_path: Path) -> None:
    job = """\
    components: [{name: part, type: '@part'}]
    """
    part = """\
    kind: Joblet
    keychain: [{name: mart, kind: file, path: mart.txt}]
    components: [{name: q, type: run_sql, params: {auth: mart, sql: select 1}}]
    """
    child = """\
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: child}
    workflow:
      - step: start
        tool:
          - {name: j, kind: job, path: job}
          - {name: again, kind: job, path: job}
          - {name: q, kind: postgres, auth: warehouse, query: select 1}
    """
    own = "keychain: [{name: mine, kind: env, var: MINE}]\n"
    write(tmp_path, parent=HEAD + own + PARENT.replace("ARGS", ""), child=child, job=job, part=part)
    with pytest.raises(KeychainError) as refused:
        started(tmp_path)
    here = f"{tmp_path}/parent.yaml"
    child_trail = f"{here} → load → {tmp_path}/child.yaml"
    assert [(one.entry, one.where) for one in refused.value.problems] == [
        ("mine", f"{here}:4"),
        ("warehouse", f"{tmp_path}/child.yaml:9; {child_trail}"),
        ("mart", f"{tmp_path}/part.yaml:2; {child_trail} → start → {tmp_path}/job.yaml"),
    ]


def test_a_secret_whose_place_is_known_only_while_it_runs_is_left_to_the_run(tmp_path: Path) -> None:
    secret = "workload: {place: nowhere}\nkeychain: [{name: token, kind: file, path: '{{ workload.place }}'}]\n"
    playbooks(tmp_path, secret + CHILD, "place: '{{ start.path }}'")
    assert started(tmp_path).status == "completed"  # Its first step writes the file, and gives the path.
    playbooks(tmp_path, secret + CHILD, "place: other")
    with pytest.raises(KeychainError, match=r"there is no file `.*/other`"):
        started(tmp_path)


def test_services_are_not_asked_for_the_secrets_of_what_is_called(tmp_path: Path) -> None:
    # A real request would take the time-out, or fail: the address is not to be reached from anywhere.
    oauth = "{name: a, kind: oauth2, token_url: 'https://192.0.2.1/token', client_id: x, client_secret: {env: SECRET}}"
    vault = "{name: v, kind: secret_manager, provider: vault, key: app/db}"
    playbooks(tmp_path, f"keychain: [{oauth}, {vault}]\n{CHILD}")
    missing = [one.message for one in examined(tmp_path) if one.code == "Y0505"]
    assert [one.partition(";")[0] for one in missing] == [
        "keychain entry `a`: the environment variable `SECRET` is not set",
        "keychain entry `v`: Vault cannot be asked: `VAULT_ADDR` and `VAULT_TOKEN` not set",
    ]


def test_a_look_at_a_document_warns_of_secrets_that_are_missing_here(tmp_path: Path) -> None:
    playbooks(tmp_path, SECRET + CHILD)
    (found,) = examined(tmp_path)
    assert (found.code, found.severity.value, found.position.line) == ("Y0505", "warning", 4)
    assert found.position.file == str(tmp_path / "child.yaml")
    assert found.calls == f"{tmp_path}/parent.yaml → load → {tmp_path}/child.yaml"


def test_a_stored_secret_is_found_by_a_job_that_names_it_without_declaring_it(tmp_path: Path) -> None:
    write(tmp_path, parent="components: [{name: a, type: run_sql, params: {connection: mart, sql: select 1}}]\n")
    with pytest.raises(KeychainError, match=r"keychain entry `mart` .*parent.yaml:1"):
        started(tmp_path)
    database = f"sqlite:///{tmp_path}/mart.db"
    assert started(tmp_path, {"PENSTOCK_MART": database}).status == "completed"


# ---- inputs, parts, documents


def test_an_input_that_the_called_document_does_not_have_is_an_error_at_its_name(tmp_path: Path) -> None:
    child = "workload: {table: t}\nworkflow: [{step: start, tool: [{name: a, kind: log, message: '{{ table }}'}]}]\n"
    playbooks(tmp_path, child, "tabel: x")
    (found,) = examined(tmp_path)
    assert (found.code, found.severity.value, found.position.line) == ("Y0502", "error", 9)
    assert "`tabel`" in found.message
    assert found.hint == "did you mean `table`?"
    with pytest.raises(DocumentInvalid, match="tabel"):
        started(tmp_path)
    assert not (tmp_path / "ran.txt").exists()
    for right in ("table: x", "event: x"):
        playbooks(tmp_path, child, right)
        assert examined(tmp_path) == []


def test_an_input_that_the_called_document_needs_is_missed(tmp_path: Path) -> None:
    child = "workflow: [{step: start, tool: [{name: a, kind: log, message: '{{ workload.day }} {{ workload.x | default(1) }}'}]}]\n"
    playbooks(tmp_path, child)
    (found,) = examined(tmp_path)
    assert (found.code, found.severity.value) == ("Y0503", "warning")
    assert "reads `day` and has no default" in found.message
    playbooks(tmp_path, child, "day: 1")
    assert examined(tmp_path) == []
    write(tmp_path, parent=HEAD + PARENT.replace("{ARGS}", "'{{ start }}'"))
    assert examined(tmp_path) == []


@pytest.mark.parametrize(
    ("component", "label"),
    [
        ("{name: c, type: run_job, params: {path: job, context: {dya: 1}}}", "Y0502"),
        ("{name: c, type: run_job, params: {path: job, context_group: prdo}}", "Y0504"),
        ("{name: c, type: playbook, params: {path: child, workload: {x: 1}}}", "Y0502"),
        ("{name: c, type: playbook, params: {path: child, return_step: strat}}", "Y0504"),
    ],
)
def test_jobs_that_call_others_are_checked_by_the_same_rules(tmp_path: Path, component: str, label: str) -> None:
    job = "context: {day: 1, groups: {prod: {day: 2}}}\ncomponents: [{name: n, type: noop}]\n"
    write(tmp_path, parent=f"components:\n  - {component}\n", job=job, child=HEAD + CHILD)
    assert [(one.code, one.severity.value, one.position.line) for one in examined(tmp_path)] == [(label, "error", 2)]


def test_the_errors_of_a_called_document_are_told_at_their_place_with_the_path_of_calls(tmp_path: Path) -> None:
    child = HEAD + "workflow: [{step: start, tool: [{name: a, kind: playbook, path: grandchild}]}]\n"
    grandchild = HEAD + "workflow: [{step: start, tool: [{name: a, kind: nopo}]}]\n"
    write(tmp_path, parent=HEAD + PARENT.replace("ARGS", ""), child=child, grandchild=grandchild)
    (found,) = examined(tmp_path)
    assert (found.code, found.position.line) == ("P0504", 4)
    assert found.calls == (
        f"{tmp_path}/parent.yaml → load → {tmp_path}/child.yaml → start → {tmp_path}/grandchild.yaml"
    )
    with pytest.raises(DocumentInvalid):
        started(tmp_path)


def test_a_document_that_is_not_there_is_a_warning_and_stops_a_run_unless_something_may_write_it(
    tmp_path: Path,
) -> None:
    parent = HEAD + "workflow: [{step: start, tool: [{name: a, kind: playbook, path: nowhere}]}]\n"
    write(tmp_path, parent=parent)
    assert [(one.code, one.severity.value) for one in examined(tmp_path)] == [("Y0501", "warning")]
    with pytest.raises(DocumentInvalid, match="there is no document `nowhere`"):
        started(tmp_path)
    text = (HEAD + CHILD).replace("\n", "\\n")
    write(
        tmp_path,
        parent=HEAD
        + "workflow:\n  - step: start\n    tool:\n"
        + f'      - {{name: w, kind: files, action: write, path: nowhere.yaml, content: "{text}"}}\n'
        + "      - {name: a, kind: playbook, path: nowhere}\n",
    )
    assert started(tmp_path).status == "completed"


def test_documents_that_call_each_other_are_looked_at_once(tmp_path: Path) -> None:
    one = HEAD + "workflow: [{step: start, tool: [{name: a, kind: playbook, path: OTHER}]}]\n"
    write(tmp_path, parent=one.replace("OTHER", "child"), child=one.replace("OTHER", "parent"))
    assert examined(tmp_path) == []


# ---- from Python


def test_validate_takes_inputs_and_a_context_group_as_a_run_does(tmp_path: Path) -> None:
    text = (
        "context: {path: none.csv, groups: {prod: {path: orders.csv}}}\n"
        "components:\n"
        "  - {name: a, type: read_csv, params: {path: '{{ path }}'}}\n"
        "  - {name: b, type: filter, params: {where: id > 0}}\n"
        "  - {name: c, type: log_rows}\n"
        "connections: {data: [a -> b, b -> c]}\n"
    )
    write(tmp_path, job=text)
    (tmp_path / "orders.csv").write_text("number\n1\n")
    file = tmp_path / "job.yaml"
    assert penstock.validate(file).ok
    assert [one.code for one in penstock.validate(file, context="prod").errors] == ["J0601"]
    assert [one.code for one in penstock.validate(file, {"path": "orders.csv"}).errors] == ["J0601"]
    assert [one.code for one in penstock.validate(file, context="prdo").errors] == ["Y0504"]
    assert [one.code for one in penstock.validate(file, {"paht": 1}).errors] == ["Y0502"]


def test_a_misspelt_secret_is_one_warning_that_says_what_was_meant(tmp_path: Path) -> None:
    secret = "keychain: [{name: warehouse, kind: static, value: x}]\n"
    write(
        tmp_path,
        parent=HEAD
        + secret
        + "workflow: [{step: s, tool: [{name: a, kind: http, url: 'http://x/', auth: warehose}]}]\n",
    )
    found = [one for one in examined(tmp_path) if one.code != "P0903"]
    assert [(one.code, one.label) for one in found] == [("Y0505", "did you mean `warehouse`?")]


NAMED_CHILD = """
workload: {db: }
workflow:
  - step: start
    tool: [{name: q, kind: sqlite, auth: "{{ db }}", query: select 1}]
"""


def test_a_credential_that_a_call_names_is_missed_before_the_run_where_the_name_is_written_out(tmp_path: Path) -> None:
    playbooks(tmp_path, NAMED_CHILD, "db: nowhere")
    with pytest.raises(KeychainError) as caught:
        started(tmp_path)
    assert [problem.entry for problem in caught.value.problems] == ["nowhere"]
    assert "child.yaml:8; parent.yaml" in caught.value.problems[0].where.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "ran.txt").exists()


def test_a_credential_that_the_run_names_is_missed_when_the_call_begins(tmp_path: Path) -> None:
    playbooks(tmp_path, NAMED_CHILD, "db: \"{{ 'no' ~ 'where' }}\"")
    ended = started(tmp_path)
    assert ended.status == "failed"
    assert "looked for `nowhere` in the local keychain" in ended.error["message"]
    assert (tmp_path / "ran.txt").exists()
