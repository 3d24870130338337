"""Results and errors under the names of public playbooks: what is stored stays as it is, and both names read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine import Played, play
from tests.servers import postgres_server, postgres_url
from tests.tools.support import Reply, Request, Server, serve

__all__ = ["postgres_server", "postgres_url"]


def answer(request: Request) -> Reply:
    """`/429` answers with that status, `/text` is text, and anything else is a small document."""
    status = request.target.strip("/")
    if status == "text":
        return Reply(200, "no JSON")
    return Reply(int(status), {"no": status}) if status.isdigit() else Reply(200, {"items": [{"id": 7}], "next": None})


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(answer) as found:
        yield found


def played(text: str, tmp_path: Path, **payload: Any) -> Played:
    run = play(text, tmp_path, payload)
    assert run.status == "completed", run.error
    return run


# ---- results in templates and conditions

HTTP = """
workload: {url: null, path: null}
workflow:
  - step: start
    tool:
      - name: fetch
        kind: http
        url: "{{ workload.url }}"
        set: {ctx.kept: "{{ output }}", ctx.code: "{{ output.status_code }}", ctx.helper: "{{ outcome.http.status_code }}"}
        spec: {policy: {rules: [{when: "{{ outcome.result.status_code == 200 and output.body.items }}", then: {do: continue}}, {else: {then: {do: fail}}}]}}
      - {name: seen, kind: noop, value: ["{{ fetch.status_code }}", "{{ fetch.body.items[0].id }}", "{{ _prev.status_code }}", "{{ fetch['body'].next is none }}"]}
      - {name: asked, kind: noop, value: ["{{ 'status_code' in fetch }}", "{{ fetch.status_code is defined }}", "{{ fetch.get('body').items[0].id }}", "{{ [fetch] | map(attribute='status_code') | first }}", "{{ fetch.stats is defined }}"]}
      - {name: last, kind: noop, value: {seen: "{{ seen }}", asked: "{{ asked }}", fetch: "{{ fetch }}"}}
    next: {arcs: [{step: use, when: "{{ output.fetch.status_code == 200 and event.result.fetch.body.items }}", args: {given: "{{ start.fetch }}"}}]}
  - step: use
    tool: {kind: noop, value: ["{{ start.fetch.body.items[0].id }}", "{{ args.given.status_code }}", "{{ ctx.kept.body.items[0].id }}", "{{ start.seen }}", "{{ start.asked }}"]}
"""


ANSWERED = """
workload: {url: null}
workflow:
  - step: start
    tool:
      - name: fetch
        kind: http
        url: "{{ workload.url }}"
        set: {ctx.id: "{{ output.data.items[0].id }}", ctx.today: "{{ output.data.data.items[0].id }}", ctx.whole: "{{ output.data }}"}
        spec: {policy: {rules: [{when: "{{ output.data.items }}", then: {do: continue}}, {else: {then: {do: fail}}}]}}
    set: {ctx.status: "{{ output.data.status }}", ctx.none: "{{ output.data.none | default('no') }}"}
    next: {arcs: [{step: use, when: "{{ output.data.items }}", args: {id: "{{ output.data.items[0].id }}"}}]}
  - step: use
    tool: {kind: noop, value: ["{{ args.id }}", "{{ ctx.id }}", "{{ ctx.today }}", "{{ ctx.status }}", "{{ ctx.none }}", "{{ ctx.whole | length }}"]}
"""


def test_what_an_answer_says_is_read_below_output_data(server: Server, tmp_path: Path) -> None:
    assert played(ANSWERED, tmp_path, url=server.url + "/").result == [7, 7, 7, 200, "no", 5]


def test_a_field_of_another_result_is_not_looked_for_in_its_body(tmp_path: Path) -> None:
    run = played(
        """
        workflow:
          - step: start
            tool: {kind: noop, value: {body: {n: 1}}, set: {ctx.n: "{{ output.data.n | default('none') }}"}}
            next: {arcs: [{step: use}]}
          - step: use
            tool: {kind: noop, value: "{{ ctx.n }}"}
        """,
        tmp_path,
    )
    assert run.result == "none"


def test_an_http_result_is_read_as_status_code_and_body_wherever_it_is_read(server: Server, tmp_path: Path) -> None:
    run = played(HTTP, tmp_path, url=server.url)
    assert run.result == [7, 200, 7, [200, 7, 200, True], [True, True, 7, 200, False]]
    assert (run.ctx["code"], run.ctx["helper"]) == (200, 200)


def test_nothing_is_stored_under_the_other_names(server: Server, tmp_path: Path) -> None:
    run = played(HTTP, tmp_path, url=server.url)
    result = run.payloads("task.done")[0]["outcome"]["result"]
    assert sorted(result) == ["data", "elapsed_ms", "headers", "status", "url"]
    assert sorted(run.ctx["kept"]) == sorted(result)


def test_a_large_result_is_read_under_the_other_names_through_its_reference(server: Server, tmp_path: Path) -> None:
    run = played("executor: {spec: {policy: {limits: {max_payload_bytes: 60}}}}" + HTTP, tmp_path, url=server.url)
    assert run.payloads("task.done")[0]["outcome"]["result"]["$ref"] == "result"
    assert run.result[:4] == [7, 200, 7, [200, 7, 200, True]]


def test_what_a_result_holds_goes_before_its_other_names(tmp_path: Path) -> None:
    own = {"data": 1, "status": 2, "headers": {}, "url": "", "elapsed_ms": 3, "body": "own", "status_code": "own"}
    run = played(
        f"""
        - step: start
          tool:
            - {{name: made, kind: noop, value: {json.dumps(own)}}}
            - {{name: read, kind: python, args: {{r: "{{{{ made }}}}"}}, code: "result = [r['body'], r.get('status_code')]"}}
            - {{name: both, kind: noop, value: ["{{{{ made.body }}}}", "{{{{ made.status_code }}}}", "{{{{ read }}}}"]}}
        """,
        tmp_path,
    )
    assert run.result == ["own", "own", ["own", "own"]]


def test_another_mapping_has_none_of_the_names(tmp_path: Path) -> None:
    run = played(
        """
        - step: start
          tool:
            - {name: made, kind: noop, value: {data: 1, status: 2, rows: [], total: 3}}
            - {name: seen, kind: noop, value: ["{{ made.body is defined }}", "{{ made.status_code | default('none') }}", "{{ made.command_0 is defined }}", "{{ made.stats is defined }}"]}
            - {name: py, kind: python, args: {made: "{{ made }}"}, code: "result = [made.get('body'), 'stats' in made, type(made).__name__]"}
            - {name: both, kind: noop, value: ["{{ seen }}", "{{ py }}"]}
        """,
        tmp_path,
    )
    assert run.result == [[False, "none", False, False], [None, False, "dict"]]


SQL = """
- step: start
  tool:
    - {name: load, kind: sqlite, path: "it.db", query: "SELECT 5 AS id"}
    - {name: two, kind: sqlite, path: "it.db", command: "SELECT 1 AS id; SELECT 2 AS id"}
    - {name: seen, kind: noop, value: ["{{ load.command_0.rows[0].id }}", "{{ load.command_0.row_count }}", "{{ two.command_0.rows[0].id }}", "{{ load.command_1 is defined }}"]}
    - {name: py, kind: python, args: {load: "{{ load }}", two: "{{ two }}"}, isolation: HOW, code: "result = [load['command_0']['rows'][0]['id'], two['command_0']['rows'][0]['id'], load.get('command_1')]"}
    - {name: both, kind: noop, value: ["{{ seen }}", "{{ py }}"]}
"""


@pytest.mark.parametrize("how", ["thread", "process"])
def test_the_result_of_one_command_is_read_as_that_of_command_0(how: str, tmp_path: Path) -> None:
    run = played(SQL.replace("HOW", how), tmp_path)
    assert run.result == [[5, 1, 1, False], [5, 1, None]]


def test_a_script_is_read_by_its_returncode(tmp_path: Path) -> None:
    run = played(
        """
        - step: start
          tool:
            - {name: sh, kind: shell, cmds: [exit 3], ok_codes: [3]}
            - {name: py, kind: python, args: {sh: "{{ sh }}"}, code: "result = [sh['returncode'], sh['commands'][0].get('returncode')]"}
            - {name: both, kind: noop, value: ["{{ sh.returncode }}", "{{ py }}"]}
        """,
        tmp_path,
    )
    assert run.result == [3, [3, None]]


def test_a_loop_is_read_by_its_stats(tmp_path: Path) -> None:
    run = played(
        """
        - step: start
          loop: {in: [1, 0, 2], iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
          tool: {name: turn, kind: python, args: {n: "{{ n }}"}, code: "result = 10 / n"}
          next: {arcs: [{step: use, when: "{{ event.name == 'loop.done' and output.stats.failed == 1 and event.result.stats.success == 2 }}"}]}
        - step: use
          tool:
            - {name: seen, kind: noop, value: ["{{ start.stats }}", "{{ start.stats.total }}"]}
            - {name: py, kind: python, args: {all: "{{ start }}"}, code: "result = [all['stats']['success'], all.get('stats'), len(all['results'])]"}
            - {name: both, kind: noop, value: ["{{ seen }}", "{{ py }}"]}
        """,
        tmp_path,
    )
    stats = {"total": 3, "success": 2, "failed": 1}
    assert run.result == [[stats, 3], [2, stats, 3]]


# ---- results in Python code

CODE = """
assert isinstance(r, dict) and "status_code" in r and "nothing" not in r
try:
    r["nothing"]
except KeyError as error:
    missing = str(error)
found = [r["status_code"], r["body"]["items"][0]["id"], r.get("body")["next"], r.get("nothing", "instead"), missing]
inner = [many[0]["status_code"], deep["first"]["body"]["next"], r["body"].get("status_code")]
names = [sorted(r), sorted(dict(r)), len(r)]
result = {"found": found, "inner": inner, "names": names, "whole": r}
"""


@pytest.mark.parametrize("how", ["thread", "process"])
def test_code_reads_a_result_it_is_given_under_both_names_and_gives_it_back_as_it_was(
    how: str, server: Server, tmp_path: Path
) -> None:
    code = CODE.replace("\n", "\n" + " " * 18)
    run = played(
        f"""
        workload: {{url: null}}
        workflow:
          - step: start
            tool:
              - {{name: fetch, kind: http, url: "{{{{ workload.url }}}}"}}
              - name: py
                kind: python
                isolation: {how}
                args: {{r: "{{{{ fetch }}}}", many: ["{{{{ fetch }}}}"], deep: {{first: "{{{{ fetch }}}}"}}}}
                code: |{code}
        """,
        tmp_path,
        url=server.url,
    )
    fields = ["data", "elapsed_ms", "headers", "status", "url"]
    assert run.result["found"] == [200, 7, None, "instead", "'nothing'"]
    assert run.result["inner"] == [200, None, None]
    assert run.result["names"] == [fields, fields, 5]
    assert run.result["whole"] == run.payloads("task.done")[0]["outcome"]["result"]


# ---- errors by NoETL's words

Task = dict[str, Any]


def error_of(tmp_path: Path, task: Task, kind: str, word: str) -> Played:
    """A run whose task fails with an error of this kind, which NoETL calls by this word."""
    asked = {
        "word": "output.error.noetl_kind",
        "is_word": f"output.error.kind == '{word}'",
        "is_kind": f"output.error.kind == '{kind}'",
        "in_words": f"output.error.kind in ['something', '{word}']",
        "turned": f"'{word}' == output['error'].kind",
        "filtered": f"output.error.kind | default('') | upper == '{word.upper()}'",
        "is_another": f"output.error.kind != '{word}'",
        "is_none_of": f"output.error.kind not in ['something', '{kind}']",
        "is_something": "output.error.kind == 'something'",
        "is_not_something": "output.error.kind != 'something' and output.error.kind not in ['something']",
        "outcome_s": "outcome.error.kind",
        "outcome_has_word": "outcome.error.noetl_kind is defined",
    }
    then = {"do": "continue", "set_ctx": {name: f"{{{{ {expression} }}}}" for name, expression in asked.items()}}
    spec = {**task.get("spec", {}), "policy": {"rules": [{"else": {"then": then}}]}}
    arc = {"step": "end", "when": f"{{{{ output.error.kind == '{word}' }}}}"}
    steps = [
        {"step": "start", "tool": [{"name": "it", **task, "spec": spec}], "next": {"arcs": [arc]}},
        {"step": "end", "tool": {"kind": "noop", "value": "reached"}},
    ]
    run = played(f"workflow: {json.dumps(steps)}\n", tmp_path)
    held = dict.fromkeys(("is_word", "is_kind", "in_words", "turned", "filtered", "is_not_something"), True)
    not_held = dict.fromkeys(("is_another", "is_none_of", "is_something", "outcome_has_word"), False)
    assert run.ctx == {"word": word, "outcome_s": kind, **held, **not_held}
    assert run.result == "reached"
    return run


STATUSES = {
    400: "client_error", 401: "auth", 403: "auth", 404: "not_found", 409: "client_error", 418: "client_error",
    429: "rate_limit", 500: "server_error", 503: "server_error",
}  # fmt: skip


@pytest.mark.parametrize(("status", "word"), STATUSES.items(), ids=map(str, STATUSES))
def test_a_status_has_noetl_s_word_beside_penstock_s(status: int, word: str, server: Server, tmp_path: Path) -> None:
    run = error_of(tmp_path, {"kind": "http", "url": f"{server.url}/{status}"}, "http_status", word)
    assert "noetl_kind" not in run.payloads("task.done")[0]["outcome"]["error"]


def test_a_status_that_is_no_error_anywhere_else_is_unknown(server: Server, tmp_path: Path) -> None:
    error_of(tmp_path, {"kind": "http", "url": server.url, "ok_status": 201}, "http_status", "unknown")


def test_a_body_that_cannot_be_read_has_noetl_s_word(server: Server, tmp_path: Path) -> None:
    error_of(tmp_path, {"kind": "http", "url": f"{server.url}/text", "response": "json"}, "decode", "parse")


PYTHON = {"kind": "python", "code": "import time\nwhile True: time.sleep(0.001)", "spec": {"timeout": 0.05}}
NO_SERVER = "postgresql://127.0.0.1:1/x"
TASKS: dict[str, tuple[Task, str, str]] = {
    "a server that is not there": ({"kind": "http", "url": "http://127.0.0.1:1"}, "connect", "connection"),
    "a time limit": (PYTHON, "timeout", "timeout"),
    "a database that is not there": (
        {"kind": "postgres", "url": NO_SERVER, "query": "SELECT 1"},
        "connect",
        "db_connection",
    ),
    "parameters": ({"kind": "http", "url": "http://127.0.0.1:1", "form": {}, "body": "x"}, "parameters", "schema"),
    "an exception": ({"kind": "python", "code": "1 / 0"}, "exception", "unknown"),
    "a table that is not there": (
        {"kind": "sqlite", "path": "it.db", "query": "SELECT * FROM no"},
        "not_found",
        "not_found",
    ),
    "a constraint of SQLite": (
        {"kind": "sqlite", "path": "it.db", "query": "CREATE TABLE t (n INT CHECK (n > 0)); INSERT INTO t VALUES (0)"},
        "constraint",
        "db_constraint",
    ),
    "a time limit of a database": (
        {
            "kind": "duckdb",
            "query": "SELECT count(*) FROM range(10000000) a, range(10000000) b",
            "spec": {"timeout": 0.05},
        },
        "timeout",
        "db_timeout",
    ),
}


@pytest.mark.parametrize(("task", "kind", "word"), TASKS.values(), ids=TASKS)
def test_an_error_has_noetl_s_word_beside_penstock_s(task: Task, kind: str, word: str, tmp_path: Path) -> None:
    error_of(tmp_path, task, kind, word)


RAISED = {
    "23505": ("constraint", "db_constraint"), "40P01": ("serialization", "db_deadlock"),
    "57014": ("timeout", "db_timeout"), "42501": ("permission", "auth"), "22012": ("database", "unknown"),
}  # fmt: skip


@pytest.mark.parametrize(("state", "words"), RAISED.items(), ids=RAISED)
def test_an_error_of_postgresql_has_noetl_s_word(
    state: str, words: tuple[str, str], postgres_url: str, tmp_path: Path
) -> None:
    raising = f"DO $$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END $$"
    error_of(tmp_path, {"kind": "postgres", "url": postgres_url, "query": raising}, *words)


def test_an_outcome_without_error_is_of_no_kind(tmp_path: Path) -> None:
    run = played(
        """
        - step: start
          tool:
            kind: noop
            spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {
              is: "{{ output.error.kind == 'timeout' or output.error.kind in ['timeout', 'unknown'] }}",
              is_not: "{{ output.error.kind != 'timeout' and output.error.kind not in ['unknown'] }}"}}}}]}}
        """,
        tmp_path,
    )
    assert run.ctx == {"is": False, "is_not": True}


def test_the_error_of_a_loop_has_noetl_s_word_in_an_arc(server: Server, tmp_path: Path) -> None:
    run = played(
        f"""
        - step: start
          loop: {{in: [1], iterator: n}}
          tool: {{name: it, kind: http, url: "{server.url}/429"}}
          next: {{arcs: [{{step: use, when: "{{{{ event.name == 'step.failed' and output.error.kind == 'rate_limit' }}}}"}}]}}
        - step: use
          tool: {{kind: noop}}
        """,
        tmp_path,
    )
    assert run.steps() == ["start", "use"]
