"""validate, lint, plan, graph, new, schema, components, lineage and preview of jobs: documents, and rows without a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.components.registry import built_in
from tests.cli.jobs import ORDERS, write_job
from tests.cli.support import call, process, write

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


def test_validate_and_lint_take_playbooks_and_jobs_together(capsys: Capture) -> None:
    files = [write_job("orders.yaml", ORDERS), write("play.yaml", "- step: start\n  tool: [{name: n, kind: noop}]")]
    shown = call(capsys, "validate", *files)
    assert shown.code == 0
    assert "orders.yaml: valid" in shown.err
    assert "play.yaml: valid" in shown.err
    bad = ORDERS.replace("amount >=", "amonut >=")
    found = call(capsys, "lint", write_job("bad.yaml", bad), "--json").json
    assert (found["status"], found["exit_code"]) == ("invalid", 2)
    (problem,) = [one for one in found["problems"] if one["severity"] == "error"]
    assert problem["message"].startswith("UNKNOWN_COLUMN")


def test_a_job_that_comes_through_a_pipe_is_told_by_its_text() -> None:
    shown = process("validate", "/dev/stdin", input=ORDERS)
    assert (shown.code, "/dev/stdin: valid" in shown.err) == (0, True)


def test_plan_shows_sub_jobs_and_what_runs_as_one_query(capsys: Capture) -> None:
    text = call(capsys, "plan", write_job("orders.yaml", ORDERS)).out
    assert "sub-job orders" in text
    assert "totals (subjob_ok) done" in text
    plan = call(capsys, "plan", "orders.yaml", "--json").json
    assert plan["kind"] == "job"
    assert [one["name"] for one in plan["components"]][:2] == ["orders", "large"]


def test_graph_draws_a_job_in_every_format(capsys: Capture) -> None:
    write_job("orders.yaml", ORDERS)
    assert call(capsys, "graph", "orders.yaml").out.startswith("flowchart")
    assert call(capsys, "graph", "orders.yaml", "--format", "dot").out.startswith("digraph")
    assert "<svg" in call(capsys, "graph", "orders.yaml", "--format", "svg").out
    assert call(capsys, "graph", "orders.yaml", "-o", "graph.json").code == 0
    drawn = json.loads(Path("graph.json").read_text(encoding="utf-8"))
    assert len(drawn["components"]) == 6
    refused = call(capsys, "graph", write("p.yaml", "- step: start\n  tool: [{name: n, kind: noop}]"), "-o", "p.json")
    assert (refused.code, "only the graph of a job" in refused.err) == (2, True)


def test_a_new_job_runs_as_it_is(capsys: Capture) -> None:
    made = call(capsys, "new", "job", "first")
    assert "to run it: penstock run first.yaml" in made.err
    assert call(capsys, "validate", "first.yaml", "--strict").code == 0
    shown = call(capsys, "run", "first.yaml", "--json")
    assert (shown.code, shown.json["globals"]) == (0, {"customers": 2})
    assert call(capsys, "run", "first.yaml", "--context", "strict", "--json").json["globals"] == {"customers": 1}


def test_a_new_joblet_is_called_by_a_job_beside_it(capsys: Capture) -> None:
    assert '"@part"' in call(capsys, "new", "joblet", "part").err
    text = """
    kind: Job
    components:
      - {name: rows, type: fixed_rows, params: {columns: [amount], rows: [[5], [15], [25]]}}
      - {name: keep, type: "@part", params: {least: 20}}
      - {name: show, type: log_rows}
    connections:
      data: |
        rows.main -> keep.rows
        keep.kept -> show.input
    """
    shown = call(capsys, "run", write_job("job.yaml", text), "--json")
    assert (shown.code, shown.json["components"]["show"]["rows_in"]) == (0, {"input": 1})
    assert shown.json["components"]["keep.__number"]["state"] == "OK"


def test_new_without_a_name_says_that_one_is_missing(capsys: Capture) -> None:
    told = call(capsys, "new", "job")
    assert (told.code, "`penstock new job` needs a name, too" in told.err) == (2, True)
    assert call(capsys, "new", "nonsense", "x").code == 2
    assert list(Path().iterdir()) == []


def test_the_schema_of_jobs_knows_the_components(capsys: Capture) -> None:
    schema = call(capsys, "schema", "job").out
    assert "fixed_rows" in schema
    assert json.loads(schema)["$schema"].startswith("https://json-schema.org")
    assert "workflow" in call(capsys, "schema").out


# ---- components


def test_components_lists_every_type_by_family(capsys: Capture) -> None:
    shown = call(capsys, "components").out
    assert all(f"  {name} " in shown for name in built_in())
    assert "read rows\n  read_csv" in shown
    listed = call(capsys, "components", "--json").json["components"]
    assert {one["type"] for one in listed} >= set(built_in())
    filtering = next(one for one in listed if one["type"] == "filter")
    assert [port["name"] for port in filtering["outputs"]] == ["main", "reject"]


def test_one_component_has_its_text_ports_parameters_and_an_example(capsys: Capture) -> None:
    page = call(capsys, "components", "filter").out
    assert page.startswith("filter\n\nKeep the rows")
    assert "in   input  (required)" in page
    assert "reject  (may be left unread)" in page
    assert "where  (string, required)" in page
    assert "type: filter" in page
    described = call(capsys, "components", "--json", "filter").json
    assert (described["type"], described["family"]) == ("filter", "transform")
    assert described["schema"]["properties"]["where"]


def test_an_unknown_component_is_refused_with_what_was_probably_meant(capsys: Capture) -> None:
    told = call(capsys, "components", "fitler")
    assert (told.code, "did you mean `filter`" in told.err) == (2, True)


# ---- lineage


def test_lineage_follows_columns_back_to_where_they_were_read(capsys: Capture) -> None:
    text = call(capsys, "lineage", write_job("orders.yaml", ORDERS)).out
    blocks = {block.splitlines()[0]: block for block in text.split("\n\n")}
    assert "made here" in blocks["orders.main"]
    assert "← large.amount  (from orders.amount)" in blocks["totals.main"]
    one = call(capsys, "lineage", "orders.yaml", "--json", "totals.total").json
    assert one["columns"] == [
        {
            "component": "totals",
            "port": "main",
            "column": "total",
            "type": "HUGEINT",
            "from": [{"component": "large", "port": "main", "column": "amount"}],
            "sources": [{"component": "orders", "port": "main", "column": "amount"}],
        }
    ]


def test_lineage_draws_only_what_leads_to_what_was_asked_for(capsys: Capture) -> None:
    drawn = call(capsys, "lineage", write_job("orders.yaml", ORDERS), "totals.total", "--mermaid").out
    assert drawn.startswith("flowchart LR")
    assert drawn.count("subgraph") == 3
    assert "customer" not in drawn
    assert call(capsys, "lineage", "orders.yaml", "--mermaid", "--json").code == 2


def test_lineage_of_a_writer_is_that_of_what_it_takes_in(capsys: Capture) -> None:
    told = call(capsys, "lineage", write_job("orders.yaml", ORDERS), "show.total", "--json").json["columns"]
    assert [(one["component"], one["sources"][0]["component"]) for one in told] == [("totals", "orders")]


def test_lineage_goes_through_joblets(capsys: Capture) -> None:
    part = {
        "kind": "Joblet",
        "inputs": {"rows": "twice.input"},
        "outputs": {"more": "twice.main"},
        "components": [{"name": "twice", "type": "derive", "params": {"columns": {"double": "n * 2"}}}],
    }
    write_job("part.yaml", json.dumps(part))
    text = """
    components:
      - {name: numbers, type: fixed_rows, params: {columns: [n], rows: [[1]]}}
      - {name: part, type: "@part"}
      - {name: show, type: log_rows}
    connections:
      data: |
        numbers.main -> part.rows
        part.more -> show.input
    """
    told = call(capsys, "lineage", write_job("job.yaml", text), "show.double")
    assert "← part.__twice.double  (from numbers.n)" in told.out, told.err


def test_lineage_refuses_names_that_are_not_there(capsys: Capture) -> None:
    write_job("orders.yaml", ORDERS)
    told = call(capsys, "lineage", "orders.yaml", "totals.totl")
    assert (told.code, "did you mean `total`?" in told.err) == (2, True)
    told = call(capsys, "lineage", "orders.yaml", "totls")
    assert (told.code, "did you mean `totals`?" in told.err) == (2, True)
    play = write("play.yaml", "- step: start\n  tool: [{name: n, kind: noop}]")
    told = call(capsys, "lineage", play)
    assert (told.code, "is a playbook, which has no lineage" in told.err) == (2, True)


# ---- preview


def test_preview_shows_the_rows_of_a_port_and_how_many_there_are(capsys: Capture) -> None:
    shown = call(capsys, "preview", write_job("orders.yaml", ORDERS), "large", "--rows", "2")
    assert (shown.code, shown.err) == (0, "2 of 3 rows of large\n")
    assert shown.out.splitlines()[0].split() == ["customer", "amount"]
    assert len(shown.out.splitlines()) == 3
    found = call(capsys, "preview", "orders.yaml", "large.reject", "--json").json
    assert found["columns"][:2] == ["customer", "amount"]
    assert [row["customer"] for row in found["rows"]] == ["ben"]
    assert (found["component"], found["port"], found["total"]) == ("large", "reject", 1)


def test_preview_takes_context_groups_and_settings_and_leaves_no_run(capsys: Capture) -> None:
    call(capsys, "run", write_job("orders.yaml", ORDERS), "--quiet")
    assert call(capsys, "preview", "orders.yaml", "large", "--json", "--context", "strict").json["total"] == 1
    assert call(capsys, "preview", "orders.yaml", "large", "--json", "--set", "least=20").json["total"] == 2
    assert call(capsys, "preview", "orders.yaml", "large", "--context", "lax").code == 2
    assert len(call(capsys, "runs", "--json").json["runs"]) == 1


def test_preview_leaves_out_bad_lines_where_the_job_has_a_place_for_them(capsys: Capture) -> None:
    Path("numbers.csv").write_text("n\n1\ntwo\n3\n", encoding="utf-8")
    text = """
    components:
      - {name: numbers, type: read_csv, params: {path: numbers.csv, types: {n: integer}}}
      - {name: show, type: log_rows}
      - {name: bad, type: log_rows}
    connections:
      data: [numbers.main -> show.input, numbers.reject -> bad.input]
    """
    shown = call(capsys, "preview", write_job("job.yaml", text), "numbers", "--json")
    assert (shown.code, [row["n"] for row in shown.json["rows"]]) == (0, [1, 3])


def test_preview_refuses_a_component_or_a_port_that_is_not_there(capsys: Capture) -> None:
    write_job("orders.yaml", ORDERS)
    told = call(capsys, "preview", "orders.yaml", "larg")
    assert (told.code, "did you mean `large`?" in told.err) == (2, True)
    assert call(capsys, "preview", "orders.yaml", "large.nothing").code == 2
