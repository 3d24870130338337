"""Plan, source map, graph and schema."""

import re
from xml.etree import ElementTree

import jsonschema
import pytest

from penstock.dialects.drawing import Box, laid_out
from penstock.dialects.playbook.plan import picture, plan
from penstock.dialects.playbook.public import WORDS
from penstock.dialects.playbook.schema import json_schema
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.ports.meanings import WEB
from penstock.ports.plugins import ParamInfo, ToolDescription
from tests.cases import cases
from tests.dialects.playbook.support import CATALOG, HEAD, TABLE, SmallCatalog, compiled, net_of, steps, tasks, whole
from tests.dialects.playbook.test_spec_examples import LABELLED, ROUTED, TODAY

FLOW = """\
- step: start
  spec: { policy: { admit: { rules: [{ else: { allow: true } }] } } }
  tool: { name: probe, kind: http, url: x }
  next:
    spec: { mode: inclusive }
    arcs:
      - { step: each, when: "{{ event.name == 'step.done' and workload.go }}" }
      - { step: side, when: "{{ workload.city in ['<Oslo>', \\"a|b\\"] }}" }
      - { step: tidy, when: "{{ event.name == 'step.failed' }}" }
- step: each
  loop: { in: "{{ workload.items }}", iterator: item, spec: { mode: parallel, max_in_flight: 5 } }
  tool: [{ kind: noop }, { kind: noop }, { kind: noop }, { kind: noop }, { kind: noop }, { kind: noop }]
  next: { arcs: [{ step: both }] }
- step: side
  next: { arcs: [{ step: both }, { step: side, when: "{{ event.name == 'step.failed' }}" }] }
- step: both
  spec: { join: [each, side] }
  next: { arcs: [{ step: start, when: "{{ workload.again }}" }] }
- step: tidy
"""


# ---- plan and source map


def test_a_plan_shows_the_lowered_form_in_the_words_of_the_language():
    shown = plan(net_of(HEAD + ROUTED))
    assert shown["entry"] == "fetch_all_endpoints"
    assert shown["limits"] == {"max_payload_bytes": 1_048_576, "max_step_visits": 10_000, "max_task_runs": 1_000_000}
    (first, *_) = shown["steps"]
    assert first["admit"] == [{"else": None, "then": {"allow": True}}]
    assert first["timeout_s"] == 600.0
    assert first["loop"]["max_in_flight"] == 10
    assert [task["name"] for task in first["tool"]][:2] == ["init_iter", "route_by_status"]
    retry = first["tool"][2]["spec"]["policy"]["rules"][0]["then"]
    assert retry == {"do": "retry", "attempts": 5, "backoff": "exponential", "delay": 2.0, "max_delay": 300.0}
    assert first["next"]["mode"] == "exclusive"


def test_a_plan_names_secrets_and_never_shows_them():
    head = HEAD + "keychain: [{ name: token, kind: static, value: s3cr3t }]\n"
    shown = plan(net_of(steps("- step: start\n", head)))
    assert shown["keychain"] == [{"name": "token", "kind": "static"}]
    assert "s3cr3t" not in repr(shown)


def test_the_source_map_knows_the_line_on_which_a_parameters_text_begins():
    text = "- name: calc\n  kind: python\n  args: { x: 1 }\n  code: |\n    y = x\n    result = y\n"
    result = compiled(tasks(text))
    assert result.positions.lines_of("start", "calc") == {"args": 10, "code": 12}
    assert result.positions.tasks["start", "calc"].line == 8
    assert result.positions.steps["start"].line == 6
    assert result.positions.lines_of("start", "nothing") == {}


# ---- graph


def test_mermaid_has_every_step_and_arc_and_no_sign_that_would_be_syntax():
    text = picture(net_of(steps(FLOW))).mermaid()
    assert text.startswith("flowchart TD\n")
    assert "<b>both</b><br/>#91;join each + side#93;" in text
    assert text.count("-->") + text.count("-.->") == 1 + 7
    for label in re.findall(r'"([^"]*)"', text):
        bare = re.sub(r"</?(b|small|br/)/?>", "", label)
        assert not re.search(r"""[<>|'{}()\[\]]""", bare), bare


def test_dot_quotes_what_it_is_given():
    text = picture(net_of(steps(FLOW))).dot()
    assert text.startswith('digraph "test" {')
    assert '"start" -> "tidy" [label="step.failed", style=dashed];' in text
    assert text.count("{") == text.count("}") == 1
    assert re.search(r'label="each\\n\[loop item, parallel × 5\]\\n', text)


def test_svg_is_well_formed_and_shows_steps_badges_and_guards():
    root = ElementTree.fromstring(picture(net_of(steps(FLOW))).svg())
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for expected in (
        "start",
        "each",
        "loop item, parallel × 5",
        "join each + side",
        "admission",
        "step.failed",
        "… 2 more",
    ):
        assert expected in texts, texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 1 + 7 + 1


def test_steps_of_a_layout_do_not_lie_on_each_other():
    names = [f"s{n}" for n in range(12)]
    arcs = [(names[n], names[m]) for n in range(12) for m in (n + 1, n + 3, n - 4) if 0 <= m < 12]
    layout = laid_out({name: Box(80 + 10 * len(name), 40) for name in names}, arcs, "s0", 60)
    spots = list(layout.spots.values())
    for index, one in enumerate(spots):
        assert one.x - one.width / 2 >= -0.01
        for other in spots[index + 1 :]:
            apart = (
                abs(one.x - other.x) >= (one.width + other.width) / 2
                or abs(one.y - other.y) >= (one.height + other.height) / 2
            )
            assert apart, (one, other)
    assert len(layout.ways) == len(arcs)


def test_a_large_graph_is_still_drawn():
    count = 400
    text = "".join(
        f"- step: s{n}\n  next: {{ spec: {{ mode: inclusive }}, arcs: [{{ step: s{n + 1} }}, {{ step: s{count} }}] }}\n"
        for n in range(count)
    )
    assert picture(net_of(steps(text + f"- step: s{count}\n"))).svg().endswith("</svg>\n")


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


@pytest.mark.parametrize("document", [HEAD + LABELLED, HEAD + ROUTED, HEAD + TODAY, steps(FLOW)])
def test_the_schema_accepts_what_the_compiler_accepts(document):
    assert complaints(document) == []


@cases("code", sorted(code for code, doc in TABLE.items() if doc.good))
def test_the_schema_accepts_every_good_example(code):
    assert complaints(whole(TABLE[code].good)) == []


@cases(
    "code",
    ["P0002", "P0004", "P0005", "P0007", "P0101", "P0102", "P0105", "P0106", "P0107", "P0202", "P0203", "P0204", "P0207",
     "P0211", "P0217", "P0301", "P0401", "P0405", "P0407", "P0412", "P0503", "P0504", "P0505", "P0506", "P0507", "P0603",
     "P0902", "P0905"],
)  # fmt: skip
def test_the_schema_catches_what_a_shape_can_tell(code):
    assert complaints(whole(TABLE[code].bad)) != []


def test_every_word_of_the_language_is_described_in_the_schema():
    for name, scope in SCOPES.items():
        if name in ("root", "task"):
            continue
        others = {alias.key for alias in WORDS if alias.scope == name} - scope.words.keys()
        properties = {key: one for key, one in SCHEMA["$defs"][name]["properties"].items() if key not in others}
        assert {key: value["description"] for key, value in properties.items()} == {
            key: word.about for key, word in scope.words.items()
        }


def test_parameters_of_tools_are_described_and_may_be_templates():
    (http,) = [
        case["then"] for case in SCHEMA["$defs"]["call"]["allOf"] if case["if"]["properties"]["kind"]["const"] == "http"
    ]
    assert http["properties"]["url"] == {**WEB, "type": ["string"], "description": "The url."}
    assert http["properties"]["headers"]["anyOf"][1] == {"type": "string", "pattern": r"\{\{"}
    assert http["allOf"] == [{"anyOf": [{"required": ["url"]}, {"required": ["endpoint"]}]}]
    assert http["additionalProperties"] is False


def test_definitions_inside_a_tools_schema_are_lifted_into_the_whole():
    schema = {
        "$ref": "#/$defs/Params",
        "$defs": {
            "Params": {"properties": {"to": {"$ref": "#/$defs/Target"}}},
            "Target": {"properties": {"next": {"$ref": "#/$defs/Target"}}},
        },
    }
    tool = ToolDescription("send", "Send.", {"to": ParamInfo("to", True, ("object",))}, schema)
    whole_schema = json_schema(SmallCatalog(tool))
    jsonschema.Draft202012Validator.check_schema(whole_schema)
    assert whole_schema["$defs"]["send.Target"] == {"properties": {"next": {"$ref": "#/$defs/send.Target"}}}


def test_an_arc_after_a_failure_has_a_colour_of_its_own():
    """Of two rules for one line the later one wins, so that of failures stands behind that of arcs."""
    text = picture(net_of(steps(FLOW))).svg()
    assert 'class="arc fail"' in text
    assert text.index(".arc{") < text.index(".fail{")
