"""Every value, key and range of text can be found again in the file."""

from __future__ import annotations

from penstock.dialects.problems import Position
from penstock.dialects.source.loader import Loaded, load_text
from penstock.dialects.source.node import SourceNode, lines_of
from penstock.dialects.source.positions import position_in_text
from tests.cases import cases


def loaded(text: str) -> Loaded:
    found = load_text(text, "f.yaml")
    assert found.problems == []
    return found


def root_of(text: str) -> SourceNode:
    root = loaded(text).root
    assert root is not None
    return root


def at(text: str, place: Position) -> str:
    return lines_of(text)[place.line - 1][place.column - 1 : place.end_column - 1]


PLAY = """\
# orders
name: orders   # the name
workflow:
  - step: first
    tool: {kind: http, n: 5}
    code: |
      x = 1
      y = 2
  - step: "second"
    in: [1, 2,
         3]
    none:
"""


def test_keys_and_values_stand_where_they_are_written() -> None:
    root = root_of(PLAY)
    first, second = root.entries["workflow"].items
    assert at(PLAY, root.position) == "name: orders   # the name"
    assert at(PLAY, root.keys["workflow"]) == "workflow"
    assert at(PLAY, root.entries["name"].position) == "orders"
    assert at(PLAY, root.entries["workflow"].position) == "- step: first"
    assert at(PLAY, first.position) == "step: first"
    assert at(PLAY, first.entries["tool"].position) == "{kind: http, n: 5}"
    assert at(PLAY, first.entries["tool"].entries["n"].position) == "5"
    assert at(PLAY, first.entries["code"].position) == "|"
    assert at(PLAY, second.entries["step"].position) == '"second"'
    assert at(PLAY, second.entries["in"].position) == "[1, 2,"
    assert second.entries["none"].position == Position("f.yaml", 12, 10, 10)
    assert at(PLAY, second.keys["none"]) == "none"


def test_a_node_knows_the_line_on_which_it_ends() -> None:
    root = root_of(PLAY)
    first, second = root.entries["workflow"].items
    assert (root.end_line, first.end_line, second.end_line) == (12, 8, 12)
    assert first.entries["code"].end_line == 8
    assert second.entries["in"].end_line == 11


@cases(
    "text, line, column",
    [
        ("a: b", 1, 4),
        ("a: 'b'", 1, 5),
        ('a: "b"', 1, 5),
        ("a: &x b", 1, 7),
        ("a: !!str b", 1, 10),
        ("a: !<tag:yaml.org,2002:str> &x b", 1, 32),
        ("a: &x\n  # words\n  b", 3, 3),
        ("a: &x\r\n  'b'", 2, 4),
        ("a:\n  b", 2, 3),
        ("a: |\n  b\n", 2, 3),
        ("a: >-\n    b\n", 2, 5),
        ("a: | # words\n b\n", 2, 2),
        ("a: &x |\n  b\n", 2, 3),
        ("a: |\n\n    b\n", 2, 5),
        ("a: |2\n     b\n", 2, 3),
        ("a: >2\n     b\n", 2, 3),
        ("- - |\n   b\n", 2, 4),
        ("é😀: b", 1, 5),
    ],
)
def test_the_text_of_a_scalar_begins_after_its_quote_or_indicator(text: str, line: int, column: int) -> None:
    node = root_of(text)
    while node.kind != "scalar":
        node = node.items[0] if node.items else next(iter(node.entries.values()))
    assert (node.text_line, node.text_column) == (line, column)


def test_an_anchored_value_stands_after_its_anchor() -> None:
    text = "a: &x\n  b: &y 1\nc: &z [1]\nd: &e\nf: [&g , 1]\n"
    root = root_of(text)
    assert at(text, root.entries["a"].position) == "b: &y 1"
    assert at(text, root.entries["a"].entries["b"].position) == "1"
    assert at(text, root.entries["c"].position) == "[1]"
    assert root.entries["d"].position == Position("f.yaml", 4, 6, 6)
    assert root.entries["f"].items[0].position == Position("f.yaml", 5, 7, 7)


def test_aliased_and_merged_values_stand_where_they_were_written() -> None:
    root = root_of("a: &a {x: 1}\nb: *a\nc: {<<: *a}\n")
    assert root.entries["b"].position == root.entries["a"].position
    assert root.entries["c"].keys["x"] == Position("f.yaml", 1, 8, 9)


# Each: the text, the words to find in its one value, which occurrence, and line and column of them.
RANGES = [
    ("a: x {{ y }} z", "{{ y }}", 0, 1, 6),
    ("a: 'x {{ y }} z'", "{{ y }}", 0, 1, 7),
    ("a: 'it''s {{ y }} z'", "{{ y }}", 0, 1, 11),
    ('a: "x\\t\\u00e9 {{ y }} z"', "{{ y }}", 0, 1, 15),
    ('a: "\\x41\\U0001F600\\" {{ y }}"', "{{ y }}", 0, 1, 22),
    ("a: &x !!str {{y}}".replace("{{y}}", "b {{ y }}"), "{{ y }}", 0, 1, 15),
    ("a: |\n  one\n  two {{ y }}\n", "{{ y }}", 0, 3, 7),
    ("a: |\r\n  one\r\n  two {{ y }}\r\n", "{{ y }}", 0, 3, 7),
    ("a: |\n\n  one\n\n    {{ y }}\n", "{{ y }}", 0, 5, 5),
    ("a: |2\n     {{ y }}\n", "{{ y }}", 0, 2, 6),
    ("a: |\n  {{ y }}\n  {{ y }}\n", "{{ y }}", 1, 3, 3),
    ("a: >\n  one\n  two {{ y }}\n", "{{ y }}", 0, 3, 7),
    ("a: >\n  {{ y }}\n  {{ y }} {{ y }}\n", "{{ y }}", 2, 3, 11),
    ("a: >\n  one {{\n  y }} two\n", "{{ y }}", 0, 2, 7),
    ("a: one\n  two {{ y }}\n", "{{ y }}", 0, 2, 7),
    ('a: "one\n  two {{ y }}"\n', "{{ y }}", 0, 2, 7),
    ("a: 'one {{ y }}\n  two {{ y }}'\n", "{{ y }}", 1, 2, 7),
]


@cases("text, words, occurrence, line, column", RANGES)
def test_a_range_of_a_value_is_found_in_the_file(
    text: str, words: str, occurrence: int, line: int, column: int
) -> None:
    node = root_of(text).entries["a"]
    value = node.text()
    assert value is not None
    start = -1
    for _ in range(occurrence + 1):
        start = value.index(words, start + 1)
    place = position_in_text(node, start, start + len(words), text)
    assert (place.line, place.column) == (line, column)
    assert at(text, place) in (words, "{{")


def test_a_range_that_cannot_be_found_is_the_whole_scalar() -> None:
    text = 'a: "one\\n\\\n  two"\n'
    node = root_of(text).entries["a"]
    assert position_in_text(node, 3, 4, text) == node.position


def test_a_range_that_makes_no_sense_is_the_whole_scalar() -> None:
    text = "a: 5\nb: text\n"
    root = root_of(text)
    assert position_in_text(root.entries["a"], 0, 1, text) == root.entries["a"].position
    assert position_in_text(root.entries["b"], 3, 1, text) == root.entries["b"].position
    assert position_in_text(root, 0, 1, text) == root.position
    assert position_in_text(root.entries["b"], 2, 99, text) == Position("f.yaml", 2, 6, 8)


def test_a_range_over_several_lines_is_shown_on_its_first() -> None:
    text = "a: |\n  one\n  two\n"
    assert at(text, position_in_text(root_of(text).entries["a"], 1, 6, text)) == "ne"


PATHS = [
    (2, 1, 5, "name"),
    (2, 7, 13, "name"),
    (4, 5, 16, "workflow[0]"),
    (4, 5, 9, "workflow[0].step"),
    (5, 11, 29, "workflow[0].tool"),
    (5, 12, 16, "workflow[0].tool.kind"),
    (8, 7, 9, "workflow[0].code"),
    (10, 13, 14, "workflow[1].in[1]"),
    (11, 10, 11, "workflow[1].in[2]"),
    (1, 1, 2, ""),
]


@cases("line, column, end_column, path", PATHS)
def test_a_place_has_a_path(line: int, column: int, end_column: int, path: str) -> None:
    assert loaded(PLAY).path_at(Position("f.yaml", line, column, end_column)) == path


def test_the_path_of_a_merged_key_is_where_it_was_written() -> None:
    found = loaded("a: &a {x: 1}\nb: {y: 0, <<: *a}\nc: {two words: 1, 5: 2}\n")
    assert found.root is not None
    entries = found.root.entries
    assert found.path_at(entries["b"].keys["x"]) == "a.x"
    assert found.path_at(entries["c"].keys["two words"]) == 'c["two words"]'
    assert found.path_at(entries["c"].keys["5"]) == 'c["5"]'
    assert found.path_at(found.root.position) == ""
    assert load_text("").path_at(Position("f", 1, 1, 1)) == ""
