"""Shell entries and Python code within whole runs: what they know of the run, what the log keeps of them, and a resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.kernel.values import JsonMap
from tests.engine import document, play, resume
from tests.fleet.scene import Fleet, on_fleet
from tests.tools.running import waits_for

SECRET = "kanarie-4b1d77aa90"

# ---- what code knows of its run


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_context_has_results_workload_ctx_and_iter_by_their_names(tmp_path: Path, isolation: str) -> None:
    run = play(
        f"""
        workload: {{city: Oslo, load: hidden}}
        workflow:
          - step: load
            tool: {{kind: noop, value: {{rows: [1, 2]}}}}
            set: {{ctx.total: 3}}
            next: {{arcs: [{{step: each, args: {{more: 4}}}}]}}
          - step: each
            loop: {{in: [a, b], iterator: letter, spec: {{mode: sequential}}}}
            tool:
              - {{name: first, kind: noop, value: "{{{{ letter }}}}1"}}
              - name: code
                kind: python
                isolation: {isolation}
                code: |
                  return [
                      context["city"], context["workload"]["city"], context["ctx"]["total"], context["total"],
                      context["iter"]["letter"], context["letter"], context["first"], context["more"],
                      context["args"]["more"], context["execution_id"], context.get("load"),
                  ]
        """,
        tmp_path,
    )
    assert run.status == "completed", run.error
    made = [one["outcome"]["result"] for one in run.payloads("task.done") if one["task"] == "code"]
    assert made == [
        ["Oslo", "Oslo", 3, 3, letter, letter, f"{letter}1", 4, 4, "run-1", "hidden"] for letter in ("a", "b")
    ]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_no_secret_is_in_the_context(tmp_path: Path, isolation: str) -> None:
    run = play(
        f"""
        keychain: [{{name: key, kind: static, value: {SECRET}}}]
        workload: {{n: 1}}
        workflow:
          - step: start
            tool:
              - {{name: echo, kind: python, args: {{s: "{{{{ keychain.key }}}}"}}, code: "result = [s, len(s)]"}}
              - name: look
                kind: python
                isolation: {isolation}
                args: {{s: "{{{{ keychain.key }}}}"}}
                code: |
                  everything = str({{key: context[key] for key in context}})
                  return [s in everything, "keychain" in context, context["echo"][1], sorted(context["args"])]
        """,
        tmp_path,
    )
    assert run.status == "completed", run.error
    assert run.result == [False, False, len(SECRET), []]


def test_a_large_result_is_read_when_the_code_looks_at_it(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
        workflow:
          - step: start
            tool:
              - {name: large, kind: python, code: "result = {'rows': list(range(1000))}"}
              - {name: look, kind: python, code: "return sum(context['large']['rows'])"}
              - {name: apart, kind: python, isolation: process, code: "return len(context['large']['rows'])"}
        """,
        tmp_path,
    )
    assert [one["outcome"]["result"] for one in run.payloads("task.done")[1:]] == [499_500, 1000]


# ---- what the log keeps


def test_a_secret_that_an_entry_prints_or_has_in_it_is_masked_in_commands(tmp_path: Path) -> None:
    run = play(
        f"""
        keychain: [{{name: key, kind: static, value: {SECRET}}}]
        workflow:
          - step: start
            tool:
              - name: sh
                kind: shell
                env: {{KEY: "{{{{ keychain.key }}}}"}}
                cmds: ["echo in $KEY", "echo {{{{ keychain.key }}}} >&2; echo done"]
                spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}
              - name: bad
                kind: shell
                env: {{KEY: "{{{{ keychain.key }}}}"}}
                cmds: ["echo $KEY", "echo $KEY >&2; : {{{{ keychain.key }}}}; exit 3"]
        """,
        tmp_path,
    )
    first, second = (one["outcome"] for one in run.payloads("task.done"))
    assert first["result"]["commands"] == [
        {"command": "echo in $KEY", "exit_code": 0, "stdout": "in ***\n", "stderr": ""},
        {"command": "echo *** >&2; echo done", "exit_code": 0, "stdout": "done\n", "stderr": "***\n"},
    ]
    assert "(`echo $KEY >&2; : ***; exit 3`) failed: exit code 3" in second["error"]["message"]
    assert [each["exit_code"] for each in second["error"]["commands"]] == [0, 3]
    assert SECRET not in json.dumps(run.events)
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in (tmp_path / ".penstock/logs").iterdir())


def test_a_flood_in_several_entries_is_one_result_by_reference(tmp_path: Path) -> None:
    run = play(
        """
        executor: {spec: {policy: {limits: {max_payload_bytes: 5000}}}}
        workflow:
          - step: start
            tool:
              - {name: sh, kind: shell, cmds: ["seq 1 20000", "seq 1 20000", "echo last"]}
              - {name: seen, kind: noop, value: "{{ [sh.data, sh.commands[1].stdout | length] }}"}
        """,
        tmp_path,
    )
    assert run.result == ["last", 108_894]
    assert max(len(str(event)) for event in run.events) < 5000


# ---- the caller's folder, and a resume


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    made = {name: tmp_path / name for name in ("document", "here", "there")}
    for folder in made.values():
        folder.mkdir()
    for name in ("here", "there"):
        (made[name] / "tool.sh").write_text(f"echo {name}\n")
        (made[name] / "tool.py").write_text(f"return '{name}'\n")
    return made


CALLED = """
    - step: start
      tool:
        - {name: sh, kind: shell, cmds: ["bash tool.sh"]}
        - {name: py, kind: python, script: {uri: tool.py, source: {type: file}}}
        - {name: gate, kind: shell, cmds: ["test -e gate || exit 7"]}
        - {name: again, kind: shell, cmds: ["bash tool.sh"], output: lines}
        - {name: all, kind: noop, value: "{{ [sh.data, py, again.data] }}"}
"""


def test_the_callers_folder_is_that_of_the_process_and_a_resume_looks_from_its_own(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders["here"])
    failed = play(CALLED, folders["document"])
    assert failed.error["message"] == "entry 1 of 1 (`test -e gate || exit 7`) failed: exit code 7, expected `0`"
    monkeypatch.chdir(folders["there"])
    (folders["document"] / "gate").touch()
    run = resume(folders["document"])
    assert run.result == ["here", "here", ["there"]]
    lines = [json.loads(line)["line"] for line in _log(folders["document"]).read_text().splitlines()]
    assert [line for line in lines if "beside the document" in line] == [
        f"entry 1 runs in `{folders['here']}`: `tool.sh` is there, and not beside the document",
        f"the script is read in `{folders['here']}`: `tool.py` is there, and not beside the document",
        f"entry 1 runs in `{folders['there']}`: `tool.sh` is there, and not beside the document",
    ]


def _log(folder: Path) -> Path:
    return folder / ".penstock/logs/run-1.ndjson"


def test_a_sub_playbook_has_the_same_caller(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    inner = folders["document"] / "inner"
    inner.mkdir()
    (inner / "child.yaml").write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: child}\nworkflow:\n"
        "  - step: start\n    tool: {kind: shell, cmds: [bash tool.sh]}\n"
    )
    monkeypatch.chdir(folders["here"])
    run = play(
        "- step: start\n  tool: {kind: playbook, path: inner/child.yaml, return_step: start}", folders["document"]
    )
    assert run.result["data"] == "here"


def test_a_fleet_gives_code_the_same_names_and_has_no_caller(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders["here"])
    file = folders["document"] / "book.yaml"
    file.write_text(
        document(
            """
            workload: {city: Oslo}
            workflow:
              - step: start
                tool: {kind: noop, value: 3}
                set: {ctx.total: 4}
                next: {arcs: [{step: each}]}
              - step: each
                spec: {loop_mode: fanout}
                loop: {in: [a, b], iterator: letter}
                tool:
                  kind: python
                  code: return [context[name] for name in ("start", "city", "total", "letter")]
                next: {arcs: [{step: theirs}]}
              - step: theirs
                tool: {kind: python, script: {uri: tool.py}}
            """
        )
    )

    async def scenario(scene: Fleet) -> tuple[Any, list[JsonMap]]:
        await scene.serve()
        scene.work("w1")
        run = await scene.submit(file)
        return (await scene.ended(run)).status, scene.canonical(run)

    status, events = on_fleet(folders["document"], scenario)
    assert status == "failed"
    shown = json.dumps(events)
    assert '[3, "Oslo", 4, "a"]' in shown
    assert '[3, "Oslo", 4, "b"]' in shown
    assert f"there is no script `tool.py` (looked for `{folders['document']}/tool.py`)" in shown


def test_a_run_that_is_killed_in_its_second_entry_begins_with_the_first_one_again(tmp_path: Path) -> None:
    book = tmp_path / "book.yaml"
    book.write_text(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: killed}\nworkflow:\n  - step: start\n"
        "    tool:\n      kind: shell\n      cmds:\n        - echo first >> began\n"
        "        - echo second >> began; while ! test -e go && kill -0 $PPID; do sleep 0.01; done\n"
    )
    store = ["--store", str(tmp_path / "state")]
    command = [sys.executable, "-m", "penstock"]
    process = subprocess.Popen([*command, "run", str(book), *store], stdout=subprocess.DEVNULL, cwd=tmp_path)
    waits_for(lambda: (tmp_path / "began").exists() and "second" in (tmp_path / "began").read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (tmp_path / "go").touch()
    resumed = [*command, "resume", "@last", *store, "--json"]
    ended = subprocess.run(resumed, capture_output=True, text=True, cwd=tmp_path, check=True)
    said = json.loads(ended.stdout)
    assert (said["status"], len(said["result"]["commands"])) == ("completed", 2)
    assert (tmp_path / "began").read_text().split() == ["first", "second", "first", "second"]
