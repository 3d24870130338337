"""Words of other engines: each is read as today's, says that it has no effect, or is refused with the remedy."""

from __future__ import annotations

import pytest
import yaml
from jsonschema import Draft202012Validator

from penstock.dialects.playbook import compile_text
from penstock.dialects.playbook.public import WORDS, Treatment
from penstock.dialects.playbook.schema import json_schema
from penstock.dialects.problems import Problem, Severity
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, steps, tasks

CATALOG = Registry()
POST = "- name: a\n  kind: http\n  url: http://localhost\n  method: POST\n"
GET = "- name: a\n  kind: http\n  url: http://localhost\n"
LOOP = "- step: a\n  loop:\n    in: [1, 2]\n    iterator: x\n"
PG = "- name: a\n  kind: postgres\n  url: postgresql://localhost/x\n  command: select 1\n"


def compiled(text: str):
    return compile_text(text, "test.yaml", CATALOG)


def digest(text: str) -> str:
    found = compiled(text)
    assert found.net is not None, [(one.code, one.message, one.hint) for one in found.problems]
    return found.net.digest


def about_words(text: str) -> list[Problem]:
    return [one for one in compiled(text).problems if one.code in ("P0218", "P0219", "P0220")]


# scope and word -> a document that says it, and one in today's words
ALIASES = {
    ("step", "input"): (
        steps("- step: a\n  input: {n: 1, m: 2}\n  tool: [{name: t, kind: python, args: {m: 3}, code: result = n}]"),
        steps("- step: a\n  tool: [{name: t, kind: python, args: {m: 3, n: 1}, code: result = n}]"),
    ),
    ("step", "args"): (
        steps("- step: a\n  args: {n: 1}\n  tool: {kind: python, code: result = n}"),
        steps("- step: a\n  tool: {kind: python, args: {n: 1}, code: result = n}"),
    ),
    ("then", "backoff: fixed"): tuple(
        tasks(
            "- name: a\n  kind: noop\n  spec:\n    policy:\n      rules:\n"
            f"        - else: {{then: {{do: retry, attempts: 3, delay: 2, backoff: {word}}}}}\n"
        )
        for word in ("fixed", "none")
    ),
    ("loop", "cursor"): (
        steps(
            "- step: a\n  loop:\n    cursor: {kind: postgres, auth: q, claim: UPDATE t SET n = 1 RETURNING id}\n    iterator: row\n"
            "    spec: {mode: cursor, max_in_flight: 8, frame: {max_rows: 50}}\n  tool: {kind: noop}\n"
        ),
        steps(
            "- step: a\n  loop:\n    in: {claim: {kind: postgres, auth: q, sql: UPDATE t SET n = 1 RETURNING id, rows: 50}}\n"
            "    iterator: row\n    spec: {mode: parallel, max_in_flight: 8}\n  tool: {kind: noop}\n"
        ),
    ),
    ("http", "verify_ssl"): (tasks(GET + "  verify_ssl: false"), tasks(GET + "  verify: false")),
    ("http", "timeout"): (tasks(GET + "  timeout: 8"), tasks(GET + "  spec: {timeout: 8}")),
    ("http", "timeout_seconds"): (tasks(GET + "  timeout_seconds: 8"), tasks(GET + "  spec: {timeout: 8}")),
    ("duckdb", "database"): tuple(
        tasks(f"- name: a\n  kind: duckdb\n  {word}: x.duckdb\n  command: select 1") for word in ("database", "path")
    ),
    **{
        ("duckdb", word): tuple(
            tasks(f"- name: a\n  kind: duckdb\n  {each}: x.duckdb\n  command: select 1") for each in (word, "path")
        )
        for word in ("db", "db_path")
    },
    ("transfer", "chunk_size"): tuple(
        tasks(
            f"- name: a\n  kind: transfer\n  {word}: 10\n  source: {{kind: duckdb, query: select 1 AS n}}\n"
            "  target: {kind: sqlite, path: x.db, table: t}\n"
        )
        for word in ("chunk_size", "chunk_rows")
    ),
    ("playbook", "timeout"): (
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  timeout: 9"),
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  spec: {timeout: 9}"),
    ),
    ("playbook", "timeout_seconds"): (
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  timeout_seconds: 9"),
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  spec: {timeout: 9}"),
    ),
    ("playbook", "return_result"): (
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  return_result: true"),
        tasks("- name: a\n  kind: playbook\n  path: b.yaml"),
    ),
    ("playbook", "result_step"): (
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  result_step: end"),
        tasks("- name: a\n  kind: playbook\n  path: b.yaml\n  return_step: end"),
    ),
    ("noop", "result"): (
        tasks("- name: a\n  kind: noop\n  result: {ok: 1}"),
        tasks("- name: a\n  kind: noop\n  value: {ok: 1}"),
    ),
}
HINTS = {
    ("step", "set_ctx"): (
        steps("- step: a\n  set_ctx: {n: 1, ctx.m: 2}\n  tool: {kind: noop}"),
        steps("- step: a\n  set: {ctx.n: 1, ctx.m: 2}\n  tool: {kind: noop}"),
    ),
    ("shell", "cmds"): None,
    ("shell", "timeout_seconds"): (
        tasks("- {name: a, kind: shell, cmds: [echo], timeout_seconds: 9}"),
        tasks("- {name: a, kind: shell, cmds: [echo], timeout: 9}"),
    ),
    ("http", "endpoint"): (
        tasks("- {name: a, kind: http, endpoint: http://localhost}"),
        tasks("- {name: a, kind: http, url: http://localhost}"),
    ),
    ("http", "payload"): (tasks(POST + "  payload: {n: 1}"), tasks(POST + "  json: {n: 1}")),
    ("http", "data"): (tasks(GET + "  data: {n: 1}"), tasks(GET + "  params: {n: 1}")),
    ("sql", "credential"): (tasks(PG + "  credential: pg"), tasks(PG + "  auth: pg")),
    ("playbook", "payload"): (
        tasks("- {name: a, kind: playbook, path: b.yaml, payload: {n: 1}}"),
        tasks("- {name: a, kind: playbook, path: b.yaml, args: {n: 1}}"),
    ),
}
IGNORED = {
    ("root", "tracing"): (
        HEAD + "tracing: {enabled: true}\n" + steps("- step: a", head=""),
        steps("- step: a", head=HEAD),
    ),
    ("step", "output"): (steps("- step: a\n  output: {output_select: [x]}"), steps("- step: a")),
    ("step", "result"): (steps("- step: a\n  result: {output_select: [x]}"), steps("- step: a")),
    ("task", "assert"): (tasks("- {name: a, kind: noop, assert: {expects: [x]}}"), tasks("- {name: a, kind: noop}")),
    ("task", "output"): (tasks(PG + "  output: {store: {kind: kv}}"), tasks(PG)),
    ("http", "output_select"): (tasks(GET + "  output_select: {threshold_kb: 9}"), tasks(GET)),
    ("playbook", "task"): (
        tasks("- {name: a, kind: playbook, path: b.yaml, task: label}"),
        tasks("- {name: a, kind: playbook, path: b.yaml}"),
    ),
}
# scope and word -> a document that says it, and what its rewrite or its remedy says
REFUSED = {
    ("root", "spec"): (HEAD + "spec: {threshold: 20}\n" + steps("- step: a", head=""), "workload:\n  threshold: 20"),
    ("shell", "exports"): (tasks("- {name: a, kind: shell, command: 'x=1', exports: [x]}"), "output: json"),
    ("python", "auth"): (tasks("- {name: a, kind: python, code: 'result = 1', auth: {gcs: {key: sa}}}"), "args"),
    ("python", "iterator"): (tasks("- {name: a, kind: python, code: 'result = 1', iterator: {items: [1]}}"), "loop"),
    ("http", "spec: {method, url, …}"): (
        tasks("- {name: a, kind: http, spec: {method: GET, endpoint: http://localhost}}"),
        "url: http://localhost",
    ),
    ("sql", "auth: {alias: {source, key}}"): (
        tasks("- {name: a, kind: postgres, auth: {pg: {tool: postgres, key: pg_main}}, command: select 1}"),
        "auth: pg_main",
    ),
    ("http", "auth: {alias: {source, key}}"): (
        tasks(GET + "  auth: {api: {source: credential, service: http, key: api_main}}"),
        "auth: api_main",
    ),
    ("sql", "with"): (tasks(PG + "  with: {db_name: admin}"), "database: admin"),
    ("duckdb", "gcs_credential"): (
        tasks("- {name: a, kind: duckdb, gcs_credential: k, command: select 1}"),
        "CREATE SECRET",
    ),
    ("transfer", "mode"): (
        tasks(
            "- name: a\n  kind: transfer\n  mode: replace\n  source: {kind: duckdb, query: select 1 AS n}\n"
            "  target: {kind: sqlite, path: x.db, table: t}\n"
        ),
        "mode: truncate",
    ),
    ("transfer", "source: {type}"): (
        tasks(
            "- name: a\n  kind: transfer\n  source: {type: duckdb, query: select 1 AS n}\n"
            "  target: {kind: sqlite, path: x.db, table: t}\n"
        ),
        "kind: duckdb",
    ),
    ("transfer", "target: {type}"): (
        tasks(
            "- name: a\n  kind: transfer\n  source: {kind: duckdb, query: select 1 AS n}\n"
            "  target: {type: sqlite, path: x.db, table: t}\n"
        ),
        "kind: sqlite",
    ),
}
LATER = {("python", "libs")}


def test_every_word_of_the_table_that_the_door_reads_has_a_case_here():
    known = {*ALIASES, *HINTS, *IGNORED, *REFUSED, *LATER}
    assert {(one.scope, one.word) for one in WORDS if one.rule is not None} == known


def test_no_two_entries_of_the_table_are_for_one_word():
    assert len({(one.scope, one.word) for one in WORDS}) == len(WORDS)


@cases("public, today", ALIASES.values())
def test_an_alias_comes_to_the_same_net_and_nothing_is_said_of_it(public, today):
    assert digest(public) == digest(today)
    assert about_words(public) == []


@cases("public, today", [pair for pair in HINTS.values() if pair is not None])
def test_a_word_that_was_replaced_comes_to_the_same_net_and_the_rewrite_is_shown(public, today):
    assert digest(public) == digest(today)
    (problem,) = about_words(public)
    assert (problem.code, problem.severity) == ("P0219", Severity.WARNING)
    assert problem.rewrite


@cases("public, today", IGNORED.values())
def test_a_word_without_effect_changes_nothing_and_says_so(public, today):
    assert digest(public) == digest(today)
    assert [one.code for one in about_words(public)] == ["P0220"]


@cases("public, remedy", REFUSED.values())
def test_a_refused_word_is_one_error_that_names_the_remedy(public, remedy):
    (problem,) = [one for one in compiled(public).problems if one.severity is Severity.ERROR]
    assert problem.code == "P0218"
    assert remedy in problem.rewrite or remedy in problem.hint


@cases(
    "public, today",
    [
        (POST + "  headers: {Content-Type: application/x-www-form-urlencoded}\n  payload: {n: 1}", "form"),
        (POST + "  data: {n: 1}", "json"),
        (POST + '  data: "{{ workload.items }}"', "body"),
        (POST + '  payload: "a text"', "body"),
    ],
)
def test_where_a_body_goes_depends_on_method_and_header(public, today):
    word = "payload" if "payload" in public else "data"
    assert digest(tasks(public)) == digest(tasks(public.replace(f"  {word}:", f"  {today}:")))


def test_a_body_of_several_parts_is_refused_with_what_makes_one():
    (problem,) = about_words(tasks(POST + "  headers: {content-type: multipart/form-data}\n  payload: {n: 1}"))
    assert (problem.code, problem.severity) == ("P0218", Severity.ERROR)
    assert "`files`" in problem.hint


def test_a_time_limit_may_be_a_text_that_is_a_number_and_no_other():
    assert digest(tasks(GET + "  timeout: '8'")) == digest(tasks(GET + "  spec: {timeout: 8.0}"))
    (problem,) = about_words(tasks(GET + "  timeout: '{{ workload.x }}'"))
    assert (problem.code, problem.severity) == ("P0218", Severity.ERROR)


def test_the_place_of_an_element_has_other_names_in_the_workbook():
    def book(name: str) -> str:
        return (
            HEAD
            + f"workbook: [{{name: t, kind: noop, value: '{{{{ {name} }}}}'}}]\n"
            + steps(LOOP + "  tool: {kind: workbook, task: t}", head="")
        )

    assert digest(book("loop_index")) == digest(book("iter.index"))


@cases(
    "more, remedy",
    [
        ("kind: http, url: http://localhost, auth: {source: adc}", "bearer"),
        ("kind: duckdb, command: select 1, auth: {pg: {source: credential, tool: postgres, key: pg_main}}", "ATTACH"),
        ('kind: playbook, path: b.yaml, timeout: "{{ workload.n }}"', "the seconds"),
        ('kind: http, url: http://localhost, timeout_seconds: "{{ workload.n }}"', "the seconds"),
    ],
)
def test_what_a_word_cannot_say_here_is_refused_with_the_remedy_and_without_a_rewrite(more, remedy):
    (problem,) = about_words(tasks(f"- {{name: a, {more}}}"))
    assert (problem.code, problem.severity, problem.rewrite) == ("P0218", Severity.ERROR, "")
    assert remedy in problem.hint


@cases("status", ["'success'", "['success', 'partial']"])
def test_another_engine_calls_a_good_outcome_a_success(status):
    text = """
        - step: a
          tool:
            - name: t
              kind: noop
              spec: {policy: {rules: [{when: "{{ output.status %s }}", then: {do: continue}}, {else: {then: {do: fail}}}]}}
          next: {arcs: [{step: b, when: "{{ output.status %s and output.data.status == 'success' }}"}]}
        - step: b
    """
    asked = f"in {status}" if status.startswith("[") else f"== {status}"
    today = asked.replace("success", "ok")
    assert digest(steps(text % (asked, asked))) == digest(steps(text % (today, today)))


def test_what_a_step_gives_is_read_below_input_in_its_tasks():
    text = "- step: a\n  input: {n: 1}\n  tool: {kind: shell, command: [echo, '{{ %s }}', '{{ %s | default(2) }}']}\n"
    assert digest(steps(text % ("input.n", "input.n"))) == digest(steps(text % ("n", "n")))
    (error,) = [one for one in compiled(steps(text % ("input.m", "n"))).problems if one.severity is Severity.ERROR]
    assert (error.code, "`input`" in error.message) == ("P0701", True)


def test_a_payload_that_no_engine_would_send_is_dropped_and_that_is_said():
    assert digest(tasks(GET + "  payload: {n: 1}")) == digest(tasks(GET))
    assert [one.code for one in about_words(tasks(GET + "  payload: {n: 1}"))] == ["P0220"]


def test_a_query_and_a_body_in_one_word_are_refused_with_the_names_of_both():
    (problem,) = about_words(tasks(POST + "  data: {query: {a: 1}, body: {b: 2}}"))
    assert problem.rewrite == "params:\n  a: 1\njson:\n  b: 2"


def test_a_word_and_todays_word_at_once_are_refused():
    (problem,) = about_words(tasks(GET + "  verify: true\n  verify_ssl: false"))
    assert (problem.code, problem.severity) == ("P0218", Severity.ERROR)


def test_a_file_that_is_called_memory_is_none():
    memory = '- name: a\n  kind: duckdb\n  database: ":memory:"\n  command: select 1'
    assert digest(tasks(memory)) == digest(tasks("- name: a\n  kind: duckdb\n  command: select 1"))


def test_what_an_arc_brings_goes_over_what_the_step_gives():
    text = """
        - step: a
          next: {arcs: [{step: b, args: {n: 5}}]}
        - step: b
          input: {n: "{{ workload.x }}", m: text}
          tool: {kind: python, code: result = n}
    """
    found = compiled(steps(text))
    assert found.net is not None
    assert found.net.nodes["b"].tasks[0].params["args"] == {
        "n": "{{ args.n if args.n is defined else (workload.x) }}",
        "m": "text",
    }


@cases(
    "given, expression",
    [
        ("[]", "[]"),
        ("{a: [1, true, null, text]}", '{"a": [1, true, none, "text"]}'),
        ("['{{ workload.x }}', 2]", "[(workload.x), 2]"),
    ],
)
def test_a_value_of_a_step_may_have_parts_where_an_arc_brings_another(given, expression):
    found = compiled(
        steps(f"""
        - step: a
          next: {{arcs: [{{step: b, args: {{n: 5}}}}]}}
        - step: b
          input: {{n: {given}}}
          tool: {{kind: python, code: result = n}}
    """)
    )
    assert found.net is not None
    assert found.net.nodes["b"].tasks[0].params["args"] == {
        "n": f"{{{{ args.n if args.n is defined else {expression} }}}}"
    }


def test_every_task_of_a_step_gets_what_the_step_gives_wherever_it_stands():
    text = """
        - step: a
          input: {n: 1}
          tool:
            - name: choice
              choose:
                - when: "{{ workload.go }}"
                  then: [{name: t, kind: python, code: result = n}]
                - else: [{name: u, kind: python, code: result = n}]
            - name: again
              until: {do: [{name: v, kind: python, code: result = n}], when: "{{ true }}"}
            - w: {kind: python, code: result = n}
    """
    found = compiled(steps(text))
    assert found.net is not None
    given = [task.params.get("args") for task in found.net.nodes["a"].tasks if task.kind == "python"]
    assert given == [{"n": 1}] * 4


@cases("read", ["event.name", "event.type", "event.event_type"])
def test_the_ends_of_a_step_have_other_names_in_a_guard(read):
    def arcs(done: str, failed: str) -> str:
        guards = f"{{step: b, when: \"{{{{ {read} == '{done}' }}}}\"}}, {{step: c, when: \"{{{{ {read} in ['{failed}'] }}}}\"}}"
        return steps(f"- step: a\n  next: {{arcs: [{guards}]}}\n- step: b\n- step: c")

    assert digest(arcs("call.done", "call.error")) == digest(arcs("step.done", "step.failed"))
    assert compiled(arcs("call.done", "call.error")).problems == ()


def test_an_outcome_that_is_ok_has_another_name_in_a_condition():
    def step(ok: str) -> str:
        rules = (
            f"[{{when: \"{{{{ output.status == '{ok}' }}}}\", then: {{do: break}}}}, {{else: {{then: {{do: fail}}}}}}]"
        )
        arc = f"{{step: b, when: \"{{{{ '{ok}' == outcome.status or output.status in ['{ok}'] }}}}\"}}"
        return steps(
            f"- step: a\n  tool: {{kind: noop, value: success, spec: {{policy: {{rules: {rules}}}}}}}\n"
            f"  next: {{arcs: [{arc}]}}\n- step: b"
        )

    assert digest(step("success")) == digest(step("ok"))


def test_the_result_of_an_inner_task_is_not_that_of_the_step_and_that_is_told():
    text = """
        - step: a
          tool: [{one: {kind: noop, value: 1}}, {two: {kind: noop, value: 2}}]
          next: {arcs: [{step: b, when: "{{ a.one == 1 and a.two == 2 }}"}]}
        - step: b
    """
    (problem,) = [one for one in compiled(steps(text)).problems if one.code == "P0710"]
    assert problem.hint == "write `a.results.one` for the result of that task"


@pytest.mark.parametrize("name", ["loop_index", "_index", "iter._index", "iter.loop_index"])
def test_the_place_of_an_element_has_other_names_within_a_loop(name):
    def loop(name: str) -> str:
        return steps(
            LOOP
            + f"  tool: {{kind: python, args: {{i: '{{{{ {name} + 1 }}}}', t: 'n{{{{ {name} }}}}'}}, code: result = i}}"
        )

    assert digest(loop(name)) == digest(loop("iter.index"))


REQUEST = "- step: a\n  tool: {kind: http, url: http://localhost}\n"


@cases("public, today", [("output.data.n", "output.data.data.n"), ("output.data[0]", "output.data.data[0]")])
def test_a_field_of_what_was_answered_is_read_from_the_body(public, today):
    def step(read: str) -> str:
        arc = f"{{arcs: [{{step: b, when: '{{{{ {read} }}}}', args: {{n: 'x{{{{ {read} }}}}'}}}}]}}"
        return steps(f"{REQUEST}  set: {{ctx.n: '{{{{ {read} }}}}'}}\n  next: {arc}\n- step: b")

    assert digest(step(public)) == digest(step(today))
    assert compiled(step(public)).problems == ()


@cases(
    "tool",
    ["{kind: noop}", "[{name: x, kind: http, url: http://localhost}, {name: y, kind: noop}]"],
)
def test_output_of_other_tools_is_left_alone(tool):
    found = compiled(steps(f"- step: a\n  tool: {tool}\n  set: {{ctx.n: '{{{{ output.data.n }}}}'}}"))
    assert found.net is not None
    assert found.net.nodes["a"].on_done.ctx == {"n": "{{ output.data.n }}"}


def of(kind: str, more: str, read: str) -> str:
    arc = f'{{arcs: [{{step: b, when: "{{{{ {read} }}}}"}}]}}'
    return steps(f"- step: a\n  tool: [{{name: t, kind: {kind}, {more}}}]\n  next: {arc}\n- step: b")


SQLITE = ("sqlite", "path: x.db, command: select 1")
SHELL = ("shell", "cmds: [echo]")
ASKED = ("http", "url: http://localhost")


@cases(
    "tool, read, meant",
    [
        (ASKED, "output.response.id == 1", "did you mean `data`?"),
        (ASKED, "a.elapsed > 1", "did you mean `elapsed_ms`?"),
        (SQLITE, "a.affected_rows == 3", "did you mean `row_count`?"),
        (SQLITE, "output.data.rowcount == 3", "did you mean `row_count`?"),
        (SQLITE, "a.status == 'success'", ""),
        (SQLITE, "a[0].n == 1", ""),
        (SHELL, "a.output == 'x'", "did you mean `stdout`?"),
    ],
)
def test_a_field_that_no_such_tool_gives_is_told(tool, read, meant):
    assert [(one.code, one.label) for one in compiled(of(*tool, read)).problems] == [("P0710", meant)]


@cases(
    "tool, read",
    [
        (ASKED, "a.status_code == 200 and output.body.n and a.get('data') and output.http.status"),
        (SQLITE, "a.command_0.rows[0].n and output.row_count and output.data.rows"),
        (SHELL, "a.returncode == 0 and a.commands[0].stdout"),
        (("postgres", "url: x, upsert: {table: t, keys: [n], rows: []}"), "a.inserted == 1"),
        (("python", "code: result = 1"), "a.anything == 1"),
    ],
)
def test_a_field_that_the_tool_may_give_is_not_told(tool, read):
    assert compiled(of(*tool, read)).problems == ()


def test_what_another_name_holds_is_not_taken_for_a_result():
    found = compiled(of(*SQLITE, "args.a.x and ctx.a.x").replace("- step: b", "- step: b\n  set: {ctx.a: 1}"))
    assert "P0710" not in [one.code for one in found.problems]


def test_a_word_beside_output_that_a_loop_has_is_no_slip():
    text = steps(LOOP + "  tool: {kind: noop}\n  set: {ctx.n: '{{ output.stats }}'}")
    assert compiled(text).problems == ()


@cases("read", ["output.data", "output.data.status", "output.data.headers"])
def test_what_could_be_the_answer_or_its_body_is_told(read):
    found = compiled(steps(f"{REQUEST}  set: {{ctx.n: '{{{{ {read} }}}}'}}"))
    assert [one.code for one in found.problems] == ["P0709"]


def test_outside_of_a_loop_the_name_is_the_authors():
    text = steps(
        "- step: a\n  tool: {kind: noop, value: '{{ loop_index }}'}", head=HEAD + "workload: {loop_index: 1}\n"
    )
    found = compiled(text)
    assert found.net is not None
    assert found.net.nodes["a"].tasks[0].params["value"] == "{{ loop_index }}"


def test_the_results_of_a_pipelines_tasks_are_kept_where_somebody_reads_them():
    text = """
        - step: a
          tool:
            - {name: one, kind: noop, value: {n: 1}}
            - {name: two, kind: noop}
          next: {arcs: [{step: b, when: "{{ a.results.one.n == 1 }}"}]}
        - step: b
          tool: {kind: noop, value: "{{ a.results.one.n }}"}
    """
    found = compiled(steps(text))
    assert found.net is not None, found.problems
    assert found.net.nodes["a"].tasks[0].on_ok.ctx == {"a_results.one": "{{ output }}"}
    assert found.net.nodes["a"].tasks[1].on_ok.ctx == {}
    assert found.net.nodes["b"].tasks[0].params["value"] == "{{ ctx.a_results.one.n }}"


def test_a_mistake_in_a_value_that_moved_is_shown_where_it_stands():
    (problem,) = [
        one for one in compiled(tasks(POST + '  payload: {n: "{{ nowher.x }}"}')).problems if one.code == "P0701"
    ]
    assert (problem.position.line, problem.path) == (12, "workflow[0].tool[0].payload.n")


def test_a_value_behind_an_anchor_is_rewritten_for_each_that_names_it():
    text = """
        - step: a
          tool:
            - &call {name: a, kind: http, url: http://localhost, verify_ssl: false}
            - {<<: *call, name: b}
    """
    today = text.replace("verify_ssl", "verify")
    assert digest(steps(text)) == digest(steps(today))


@cases("script", ["docker ps --format '{{.ID}}'", "docker inspect -f '{{json .State}}' x", "echo ${#names[@]}"])
def test_braces_of_another_program_are_refused_with_the_words_that_keep_them(script):
    found = compiled(tasks(f'- {{name: a, kind: shell, cmds: "{script}"}}'))
    hints = {one.hint for one in found.problems if one.severity is Severity.ERROR}
    assert hints == {"braces that are not for Penstock stand between `{% raw %}` and `{% endraw %}`"}


def test_the_treatments_are_all_in_use():
    assert {one.treatment for one in WORDS} == set(Treatment)


def test_the_schema_for_editors_knows_every_word_that_is_read_and_shows_what_is_out_of_date():
    schema = json_schema(CATALOG)
    validator = Draft202012Validator(schema)
    documents = [pair[0] for pair in (*ALIASES.values(), *HINTS.values(), *IGNORED.values()) if pair is not None]
    wrong = {
        text: found[0].message for text in documents if (found := list(validator.iter_errors(yaml.safe_load(text))))
    }
    assert wrong == {}
    assert schema["properties"]["tracing"]["deprecated"] is True
    assert "deprecated" not in schema["$defs"]["step"]["properties"]["input"]
