"""A text that is not YAML gets one problem, at the slip rather than where the parser gave up, with the remedy."""

from __future__ import annotations

import pytest

from penstock.dialects.problems import Problem
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import DEFAULT_LIMITS, to_json
from penstock.dialects.source.tree import FASTEST, PURE, build
from tests.cases import cases


def problems(text: str, loader: type = FASTEST) -> list[Problem]:
    return list(build(text, "f.yaml", DEFAULT_LIMITS, loader)[1])


# Each: the text, code, line, column, and the rewrite that is offered.
SLIPS = [
    ("a:\n\tb: 1\n", "Y0103", 2, 1, "  b: 1"),
    ("a:\n  b: 1\n\tc: 2\n", "Y0103", 3, 1, "  c: 2"),
    ("a:\n  \tb: 1\n", "Y0103", 2, 3, "    b: 1"),
    ("a:1\nb: 2\n", "Y0104", 1, 2, "a: 1"),
    ("x:\n  - name: n\n    kind:http\n    url: u\n", "Y0104", 3, 9, "kind: http"),
    ("m: error: none\n", "Y0106", 1, 4, 'm: "error: none"'),
    ("- m: a: b # c\n", "Y0106", 1, 6, '- m: "a: b"'),
    ('m: say "x": no\n', "Y0106", 1, 4, "m: 'say \"x\": no'"),
    ("a: @b\n", "Y0106", 1, 4, 'a: "@b"'),
    ("a: `b`\n", "Y0106", 1, 4, 'a: "`b`"'),
    ("a: %b\n", "Y0106", 1, 4, 'a: "%b"'),
    ("a: *.txt\n", "Y0106", 1, 4, 'a: "*.txt"'),
    ("- * * * * *\n", "Y0106", 1, 3, '- "* * * * *"'),
    ("a: [@b]\n", "Y0106", 1, 5, ""),
    ("a: 'it's'\n", "Y0106", 1, 8, ""),
    ('a: "x" + "y"\n', "Y0106", 1, 8, ""),
    ('""""', "Y0106", 1, 3, ""),
    ('b: 1\na: "x\n\nc: 1\n', "Y0105", 2, 4, ""),
    ("a: 'x\n---\n", "Y0105", 1, 4, ""),
    ("a: 1\n  b: 2\n", "Y0107", 2, 3, ""),
    ("a:\n    b: 1\n  c: 2\n", "Y0107", 3, 3, ""),
    ("a: 1\n- b\n", "Y0107", 2, 1, ""),
    ("- a\nb: 1\n", "Y0107", 2, 1, ""),
    ("a: [1, 2\nb: 3\n", "Y0108", 1, 4, ""),
    ("a: {x: 1\n", "Y0108", 1, 4, ""),
    ("a: [1 {]\n", "Y0108", 1, 7, ""),
    ("[[[", "Y0108", 1, 4, ""),
    ('a: "C:\\data"\n', "Y0109", 1, 7, ""),
    ('a: "\\ud83d\\ude00"\n', "Y0109", 1, 5, ""),
    ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\n", "Y0110", 2, 1, ""),
    ("a: | text\n", "Y0101", 1, 6, ""),
    ("a: - b\n", "Y0101", 1, 4, ""),
    ("a: [1, , 2]\n", "Y0101", 1, 8, ""),
    (": 1\n", "Y0101", 1, 1, ""),
    ("{: 1}\n", "Y0101", 1, 2, ""),
    ("a: ]\n", "Y0101", 1, 4, ""),
    ("code: x = 1\ny = 2\nb: 1\n", "Y0101", 2, 1, ""),
    ("%YAML 2.0\n---\na\n", "Y0101", 1, 1, ""),
    ("a: !e!x 1\n", "Y0101", 1, 4, ""),
    # Templates without quotes, where YAML chokes on them.
    ("url: {{ x }}/y\n", "Y0102", 1, 6, 'url: "{{ x }}/y"'),
    ("url: {{ x }}{{ y }} # both\n", "Y0102", 1, 6, 'url: "{{ x }}{{ y }}"'),
    ("url: {{ x['k'] }}\nb: 1\n", "Y0102", 1, 6, "url: \"{{ x['k'] }}\""),
    ('url: {{ x["k"] }}\n', "Y0102", 1, 6, "url: '{{ x[\"k\"] }}'"),
    ("- {{ x }} b\n- c\n", "Y0102", 1, 3, '- "{{ x }} b"'),
    ("a: {% if x %}y{% endif %}\n", "Y0102", 1, 4, 'a: "{% if x %}y{% endif %}"'),
    ("a: {b: {{ x }}/y}\n", "Y0102", 1, 8, ""),
    ("a: {{ x\n  }}y\n", "Y0102", 1, 4, ""),
    # And where it swallows them.
    ("url: {{ x }}\n", "Y0102", 1, 6, 'url: "{{ x }}"'),
    ("- step: a\n  in: {{ workload.rows | list }}  # all\n", "Y0102", 2, 7, 'in: "{{ workload.rows | list }}"  # all'),
    ("q: [1, {{ x }}]\n", "Y0102", 1, 8, 'q: [1, "{{ x }}"]'),
    ("q: {a: {{ x }}}\n", "Y0102", 1, 8, 'q: {a: "{{ x }}"}'),
    ("{{ x }}: 1\n", "Y0102", 1, 1, '"{{ x }}": 1'),
    ("{{ x }}", "Y0102", 1, 1, '"{{ x }}"'),
]


@cases("text, code, line, column, rewrite", SLIPS)
@cases("line_break", ["\n", "\r\n"])
def test_a_slip_is_named_at_its_place(
    text: str, code: str, line: int, column: int, rewrite: str, line_break: str
) -> None:
    found = problems(text.replace("\n", line_break))
    assert [(p.code, p.position.line, p.position.column, p.rewrite) for p in found] == [(code, line, column, rewrite)]
    assert found[0].position.end_column > found[0].position.column


@cases("text, code, line, column, rewrite", SLIPS)
def test_the_pure_parser_leads_to_the_same_words(text: str, code: str, line: int, column: int, rewrite: str) -> None:
    found = problems(text, PURE)
    if "\\ud83d" in text:
        assert found[0].code == "Y0008"
    else:
        assert [(p.code, p.position.line, p.position.column, p.rewrite) for p in found] == [
            (code, line, column, rewrite)
        ]


@cases("text, rewrite", [(text, rewrite) for text, _, _, _, rewrite in SLIPS if rewrite and "\n" not in text.strip()])
def test_the_offered_rewrite_is_right(text: str, rewrite: str) -> None:
    assert load_text(rewrite).problems == []


def test_a_swallowed_template_stands_in_the_tree_as_the_text_it_was_meant_to_be() -> None:
    loaded = load_text("a: {{ x }}\nb: [{{ y, z }}, 1]\n{{ k }}: 2\n")
    assert [problem.code for problem in loaded.problems] == ["Y0102"] * 3
    assert loaded.root is not None
    assert to_json(loaded.root) == {"a": "{{ x }}", "b": ["{{ y, z }}", 1], "{{ k }}": 2}


def test_a_mapping_as_a_key_with_a_space_between_the_brackets_is_no_template() -> None:
    assert [problem.code for problem in load_text("a: { {x: 1}: 2}\n").problems] == ["Y0203"]


def test_problems_found_before_the_slip_are_kept() -> None:
    assert [problem.code for problem in load_text("a: 1\na: 2\nb: [\n").problems] == ["Y0202", "Y0108"]


@pytest.mark.clause("J8.4")
def test_malformed_yaml_names_file_line_column_and_path() -> None:
    loaded = load_text("workflow:\n  - step: a\n    tool:\n      - kind: http\n        url: {{ x }}/y\n", "orders.yaml")
    (problem,) = loaded.problems
    place = problem.position
    assert (place.file, place.line, place.column) == ("orders.yaml", 5, 14)
    assert problem.path == "workflow[0].tool[0]"


@pytest.mark.parametrize(
    "text",
    ["a: {{" + " " * 500_000 + "x]\n", "a: " + "b: " * 200_000, "\t" * 500_000 + "a: 1: 2", "a: @" + " #" * 300_000],
)
def test_a_line_of_any_length_is_explained_without_being_matched_against_patterns(text: str) -> None:
    (problem,) = problems(text)
    assert len(problem.message) + len(problem.rewrite) + len(problem.hint) < 1000
