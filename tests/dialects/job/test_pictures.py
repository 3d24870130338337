"""Plan, graph and schema."""

import json
import re
from xml.etree import ElementTree

import jsonschema
import pytest

from penstock.dialects.job.plan import graph_json, picture, plan, plan_text
from penstock.dialects.job.schema import json_schema
from penstock.dialects.job.words import SCOPES
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.kernel.errors import Bug
from tests.cases import cases
from tests.dialects.job.catalog import CATALOG
from tests.dialects.job.support import TABLE, compiled, job, net_of
from tests.dialects.job.test_links import PARTS, SPELLINGS

CLEAN = """
kind: Joblet
params: {least: 0}
inputs: {customers: keep.input}
outputs: {clean: more.main}
components:
  - {name: keep, type: filter, params: {where: "id > {{ params.least }}"}}
  - {name: more, type: derive, params: {columns: {twice: id + id}}}
connections: {data: keep -> more}
"""
MAIN = """
metadata: {name: addresses}
context: {city: Oslo, groups: {prod: {city: Bergen}}}
keychain: [{name: token, kind: static, value: s3cr3t}]
job_config: {memory_limit: 256MB, on_subjob_error: abort}
components:
  - {name: extract, type: fixed_rows, params: {columns: [id], rows: [[1]]}, die_on_error: true}
  - {name: normalise, type: "@clean", params: {least: 3}}
  - {name: load, type: write_csv, params: {path: "{{ city }}.csv"}}
  - {name: each, type: iterate_list, params: {items: [1, 2]}}
  - {name: work, type: warn, params: {message: "{{ iteration.item }} <b>|x|"}}
  - {name: fin, type: noop}
  - {name: left, type: noop}
  - {name: right, type: noop}
  - {name: both, type: noop}
  - {name: last, type: post_job}
connections:
  data:
    extract.main -> normalise.customers
    normalise.clean -> load.input
  control: |
    load (ok) each
    each (iterate) work
    each (iteration_error) fin
    load (if 1: "NB_LINE in [1, 2] and city == 'a|b'") left
    left (parallelise) right, fin2
    right, fin2 (synchronise) both
""".replace("  - {name: both", "  - {name: fin2, type: noop}\n  - {name: both")


def example():
    result = compiled(MAIN, {"clean": CLEAN})
    assert result.net is not None, result.problems
    return result


# ---- plan


def test_a_plan_shows_sub_jobs_members_boundaries_columns_and_groups():
    shown = plan(example())
    json.dumps(shown)
    assert shown["subjobs"][0] == {
        "name": "extract",
        "in": "",
        "members": ["extract", "normalise", "load", "each", "left"],
    }
    assert {
        "name": "normalise.__keep",
        "in": "normalise",
        "members": ["normalise.__keep", "normalise.__more"],
        "opened": "joblet",
    } in shown["subjobs"]
    assert {"name": "fin", "in": "each", "members": ["fin"], "opened": "body", "handles": "iteration_error"} in shown[
        "subjobs"
    ]
    assert shown["fused"] == [["normalise.__keep", "normalise.__more"]]
    assert shown["limits"] == {"max_reevaluations": 100, "max_payload_bytes": 1_048_576}
    assert shown["on_subjob_error"] == "abort"
    rows = [(link["from"], link["to"]) for link in shown["links"] if link["on"] == "data"]
    assert rows == [
        ("extract", "normalise.__proxy_in"),
        ("normalise.__proxy_out", "load"),
        ("normalise.__proxy_in", "normalise.__keep"),
        ("normalise.__keep", "normalise.__more"),
        ("normalise.__more", "normalise.__proxy_out"),
    ]
    by_name = {component["name"]: component for component in shown["components"]}
    assert by_name["normalise"]["inputs"]["customers"]["from"] == ["extract.main"]
    assert [column["name"] for column in by_name["normalise"]["outputs"]["clean"]] == ["id", "twice"]
    assert by_name["both"]["joins"] == ["right", "fin2"]
    assert by_name["normalise.__keep"]["fused"] == "normalise.__more"
    assert by_name["extract"]["startable"]


def test_a_plan_names_secrets_and_never_shows_them():
    result = example()
    assert plan(result)["keychain"] == [{"name": "token", "kind": "static"}]
    assert "s3cr3t" not in json.dumps(plan(result)) + plan_text(result)


def test_the_plan_as_text_is_for_people():
    text = plan_text(example())
    assert text.startswith("job addresses\n")
    for line in (
        "context groups prod",
        "engine duckdb, memory_limit 256MB",
        "sub-job normalise.__keep in the joblet call normalise",
        "sub-job fin in the body of each, on iteration_error",
        "  normalise.__more.main -> normalise.__proxy_out.clean   (handed over)",
        "  normalise.__keep + normalise.__more",
    ):
        assert f"{line}\n" in text, text
    assert re.search(r"  extract +fixed_rows +starts at once; dies on error; main\(id BIGINT\)\n", text)
    assert re.search(r"  last +post_job +runs in any case\n", text)


def test_a_document_with_errors_has_no_plan():
    with pytest.raises(Bug):
        plan(compiled("components: []\n"))


# ---- graph


def test_mermaid_has_every_component_and_link_and_no_sign_that_would_be_syntax():
    net = example().net
    text = picture(net).mermaid()
    assert text.startswith("flowchart TD\n")
    assert text.count("subgraph") == text.count("  end\n") == 8
    assert text.count("==>") == 4
    assert text.count("-.->") == 1
    for label in re.findall(r'"([^"]*)"', text):
        bare = re.sub(r"</?(b|small|br/)/?>", "", label)
        assert not re.search(r"""[<>|'{}()\[\]]""", bare), bare


def test_rows_that_leave_a_joblet_are_drawn_from_the_component_inside():
    text = picture(example().net).dot()
    assert '"normalise.__more" -> "load" [label="clean", penwidth=2];' in text
    assert '"normalise.__more" -> "normalise"' not in text


def test_dot_quotes_what_it_is_given_and_has_a_box_for_every_sub_job():
    text = picture(example().net).dot()
    assert text.startswith('digraph "addresses" {')
    assert text.count("subgraph cluster_") == 8
    assert text.count("{") - text.count("{{") * 2 == text.count("}") - text.count("}}") * 2


def test_a_job_with_one_sub_job_has_no_box():
    assert "subgraph" not in picture(net_of(job("a (ok) b"))).mermaid()


def test_svg_is_well_formed_and_shows_components_badges_and_conditions():
    root = ElementTree.fromstring(picture(example().net).svg())
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for expected in (
        "extract",
        "normalise.__keep",
        "@clean",
        "for each element",
        "join right + fin2",
        "dies on error",
        "iterate",
        "fused",
    ):
        assert expected in texts, texts
    assert any(text.startswith("if 1: NB_LINE") for text in texts)


def test_the_graph_as_json_has_components_and_links():
    shown = graph_json(example().net)
    json.dumps(shown)
    assert {component["name"]: component["subjob"] for component in shown["components"]}["left"] == "extract"
    assert {"from": "load", "to": "each", "on": "ok"} in shown["links"]


def test_a_large_job_is_still_drawn():
    lines = [f"c{n} (ok) c{n + 1}" for n in range(400)]
    net = net_of(job(*lines))
    assert picture(net).svg().endswith("</svg>\n")
    assert picture(net).mermaid().count("-->") == 400


# ---- schema

SCHEMA = json_schema(CATALOG)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def complaints(document: str) -> list[str]:
    root = load_text(document, "x.yaml").root
    assert root is not None
    return [error.message for error in VALIDATOR.iter_errors(to_json(root))]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@cases("document", [MAIN, CLEAN, *(PARTS + spelling for spelling in SPELLINGS.values())])
def test_the_schema_accepts_what_the_compiler_accepts(document):
    assert complaints(document) == []


@cases("code", sorted(code for code, doc in TABLE.items() if doc.good))
def test_the_schema_accepts_every_good_example(code):
    assert complaints(TABLE[code].good) == []


@cases(
    "code",
    ["J0001", "J0002", "J0003", "J0004", "J0005", "J0101", "J0102", "J0103", "J0104", "J0105", "J0201", "J0203", "J0501",
     "J0502", "J0503"],
)  # fmt: skip
def test_the_schema_catches_what_a_shape_can_tell(code):
    assert complaints(TABLE[code].bad) != []


def test_every_word_of_the_language_is_described():
    for name, scope in SCOPES.items():
        assert scope.about, name
        for word in scope.words.values():
            assert word.about.endswith((".", "?")), (name, word)
