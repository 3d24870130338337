"""YAML text becomes a tree of values with the types of YAML 1.2, and everything else becomes a problem at its place."""

from __future__ import annotations

import pytest

from penstock.dialects.diagnostics import pages
from penstock.dialects.source.loader import Loaded, load_text
from penstock.dialects.source.node import DEFAULT_LIMITS, SourceLimits, SourceNode, to_json
from penstock.dialects.source.tree import FASTEST, PURE, build
from penstock.kernel.values import Json
from tests.cases import cases

PAGES = pages()


def root_of(text: str) -> SourceNode:
    loaded = load_text(text)
    assert loaded.problems == []
    assert loaded.root is not None
    return loaded.root


def value_of(text: str) -> Json:
    return to_json(root_of(text))


def codes(loaded: Loaded) -> list[str]:
    return [problem.code for problem in loaded.problems]


CORE_SCHEMA: list[tuple[str, Json]] = [
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("~", None),
    ("nUll", "nUll"),
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("tRUE", "tRUE"),
    ("false", False),
    ("False", False),
    ("FALSE", False),
    ("on", "on"),
    ("off", "off"),
    ("yes", "yes"),
    ("no", "no"),
    ("y", "y"),
    ("N", "N"),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("-12", -12),
    ("0777", 777),
    ("0o17", 15),
    ("-0o17", "-0o17"),
    ("0o8", "0o8"),
    ("0x1F", 31),
    ("0xG", "0xG"),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("1:30", "1:30"),
    ("190:20:30", "190:20:30"),
    ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    ("18446744073709551616", 18446744073709551616),
    ("1.5", 1.5),
    ("-1.5e3", -1500.0),
    ("1.", 1.0),
    (".5", 0.5),
    ("+.5", 0.5),
    ("1e3", 1000.0),
    ("1e-3", 0.001),
    (".", "."),
    ("-", ["-"]),
    ("1.2.3", "1.2.3"),
    ("1e", "1e"),
    ("e3", "e3"),
    (".e1", ".e1"),
    ("inf", "inf"),
    ("nan", "nan"),
    ("=", "="),
    ("'true'", "true"),
    ('"5"', "5"),
    ('"\\u00e9\\t"', "é\t"),
    ("'it''s'", "it's"),
    ("!!str 5", "5"),
    ("! 5", "5"),
    ("!!int '5'", 5),
    ("!!float 5", 5.0),
    ("!!bool true", True),
    ("!!null ''", None),
    ("!<tag:yaml.org,2002:str> 5", "5"),
    ("!!seq [1]", [1]),
    ("!!map {a: 1}", {"a": 1}),
    ("{a: b, c}", {"a": "b", "c": None}),
    ("[a: 1]", [{"a": 1}]),
    ("a#b", "a#b"),
    ("a b # c", "a b"),
]


@cases("text, value", [case for case in CORE_SCHEMA if case[0] != "-"])
def test_plain_text_has_the_type_that_yaml_1_2_gives_it(text: str, value: Json) -> None:
    found = value_of(f"x: {text}\n")
    assert found == {"x": value}
    assert isinstance(found, dict)
    assert type(found["x"]) is type(value)


@cases("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", "1e999", "9" * 500, "!!float 1e999"])
def test_numbers_that_json_cannot_say_are_problems_and_stay_text(text: str) -> None:
    loaded = load_text(f"x: {text}\n")
    assert codes(loaded) == ["Y0205"]
    assert loaded.root is not None
    assert to_json(loaded.root) == {"x": text.removeprefix("!!float ")}


STRUCTURES: list[tuple[str, Json]] = [
    ("a:\n  - 1\n  - b: 2\n    c: [3, {d: 4}]\n", {"a": [1, {"b": 2, "c": [3, {"d": 4}]}]}),
    ("a:\r\n  - 1\r\n  - |\r\n    x\r\n    y\r\n", {"a": [1, "x\ny\n"]}),
    ("\ufeffa: 1\n", {"a": 1}),
    ("a: 1   \nb:   \n\n\n", {"a": 1, "b": None}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("%YAML 1.2\n---\na: 1\n", {"a": 1}),
    ("404: x\n0x10: y\n", {"404": "x", "0x10": "y"}),
    ("null: x\n", {"null": "x"}),
    ("on: 1\nyes: 2\n'true': 3\n", {"on": 1, "yes": 2, "true": 3}),
    ("? a\n: 1\n", {"a": 1}),
    ("!!str true: 1\n", {"true": 1}),
    ("a: >\n  x\n  y\n\n  z\n", {"a": "x y\nz\n"}),
    ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
    ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
    ("text", "text"),
    ("[]", []),
    ('{"a": {"b": []}}', {"a": {"b": []}}),
    ("a: '{{ x }}'\nb: x {{ y }}\n", {"a": "{{ x }}", "b": "x {{ y }}"}),
    ("d: &d {x: 1, y: 2}\ne:\n  <<: *d\n  y: 3\n", {"d": {"x": 1, "y": 2}, "e": {"x": 1, "y": 3}}),
    ("d: &d {x: 1, y: 2}\ne:\n  y: 3\n  <<: *d\n", {"d": {"x": 1, "y": 2}, "e": {"x": 1, "y": 3}}),
    ("- &a {x: 1}\n- &b {x: 2, y: 2}\n- <<: [*a, *b]\n", [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2}]),
    ("a: {'<<': 1}\n", {"a": {"<<": 1}}),
]


@cases("text, value", STRUCTURES)
def test_a_document_gives_the_value_it_says(text: str, value: Json) -> None:
    assert value_of(text) == value


@cases("text, value", STRUCTURES)
def test_both_parsers_give_the_same_tree(text: str, value: Json) -> None:
    text = text.removeprefix("\ufeff")
    fast, pure = build(text, "f", DEFAULT_LIMITS, FASTEST), build(text, "f", DEFAULT_LIMITS, PURE)
    assert fast[0] == pure[0]
    assert list(fast[1]) == list(pure[1]) == []


def test_changing_an_aliased_value_does_not_change_the_other() -> None:
    value = value_of("a: &x [1]\nb: *x\n")
    assert isinstance(value, dict)
    assert isinstance(value["a"], list)
    value["a"].append(2)
    assert value["b"] == [1]


@cases("code", [code for code, page in PAGES.items() if code.startswith("Y") and page.bad])
def test_the_bad_example_of_a_code_shows_it_and_the_good_one_is_clean(code: str) -> None:
    assert set(codes(load_text(PAGES[code].bad))) == {code}
    assert codes(load_text(PAGES[code].good)) == []


# Each: the text, and (code, line, column, end column) of every problem.
MISTAKES: list[tuple[str, list[tuple[str, int, int, int]]]] = [
    ("a: 1\nb:\n  x: 1\n  y: 2\n  x: 3\n", [("Y0202", 5, 3, 4)]),
    ("{a: 1, 'a': 2, a: 3}", [("Y0202", 1, 8, 11), ("Y0202", 1, 16, 17)]),
    ("404: 1\n'404': 2\n", [("Y0202", 2, 1, 6)]),
    ("null: 1\n'null': 2\n", [("Y0202", 2, 1, 7)]),
    ("Null: 1\n", [("Y0203", 1, 1, 5)]),
    ("~: 1\n", [("Y0203", 1, 1, 2)]),
    ("?\n: 1\n", [("Y0203", 1, 2, 2)]),
    ("false: 1\n", [("Y0203", 1, 1, 6)]),
    ("1.5: 1\n", [("Y0203", 1, 1, 4)]),
    (".inf: 1\n", [("Y0203", 1, 1, 5)]),
    ("[a, b]: 1\nc: 2\n", [("Y0203", 1, 1, 7)]),
    ("{a: b}: 1\n", [("Y0203", 1, 1, 7)]),
    ("x: &x a\n*x : 1\n", [("Y0203", 1, 7, 8)]),
    ("a: !!python/object/apply:os.system ['id']\n", [("Y0204", 1, 4, 35)]),
    ("a: !secret x\nb: !include f.yaml\n", [("Y0204", 1, 4, 11), ("Y0204", 2, 4, 12)]),
    ("a: &x !env y\n", [("Y0204", 1, 7, 11)]),
    ("a: !!binary aGk=\n", [("Y0204", 1, 4, 12)]),
    ("a: !!int x\n", [("Y0204", 1, 10, 11)]),
    ("!thing a: 1\n", [("Y0204", 1, 1, 7)]),
    ("a: !thing [1]\n", [("Y0204", 1, 4, 10)]),
    ("a: *nobody\nb: 1\n", [("Y0206", 1, 4, 11)]),
    ("a: &a\n  b: *a\n", [("Y0207", 2, 6, 8)]),
    ("a: {<<: 1}\n", [("Y0208", 1, 5, 7)]),
    ("a: {<<: {b: 1}}\n", [("Y0208", 1, 5, 7)]),
    ("a: {<<: }\n", [("Y0208", 1, 5, 7)]),
    ("s: &s x\na: {<<: *s}\n", [("Y0208", 2, 5, 7)]),
    ("s: &s x\na: {<<: [*s]}\n", [("Y0208", 2, 5, 7)]),
    ("a: {<<: [{b: 1}]}\n", [("Y0208", 1, 5, 7)]),
    ("a: {<<: *none}\n", [("Y0206", 1, 9, 14)]),
    ("m: &m {b: 1}\na: {<<: *m, <<: *m}\n", [("Y0202", 2, 13, 15)]),
    ("a: 1\n---\nb: [\n", [("Y0201", 2, 1, 4)]),
    ("a: 1\na: 2\nb: !x 1\nNull: 3\n", [("Y0202", 2, 1, 2), ("Y0204", 3, 4, 6), ("Y0203", 4, 1, 5)]),
]


@cases("text, expected", MISTAKES)
@cases("loader", [FASTEST, PURE])
def test_a_mistake_is_reported_at_its_place(loader: type, text: str, expected: list[tuple[str, int, int, int]]) -> None:
    root, findings = build(text, "f.yaml", DEFAULT_LIMITS, loader)
    found = [(p.code, p.position.line, p.position.column, p.position.end_column) for p in findings]
    assert found == expected
    assert root is not None


def test_a_duplicate_names_both_places_and_keeps_the_first_value() -> None:
    loaded = load_text("a: 1\nb: 2\na: 3\n")
    assert loaded.problems[0].message == "the key `a` is given twice; the first is at line 1, column 1"
    assert loaded.root is not None
    assert to_json(loaded.root) == {"a": 1, "b": 2}


@cases("text", ["", "\n\n", "# only words\n", "---\n", "---\n...\n", "   ", "\ufeff"])
def test_an_empty_document_is_a_problem(text: str) -> None:
    loaded = load_text(text)
    assert codes(loaded) == ["Y0007"]
    assert loaded.root is None


@pytest.mark.parametrize("text", ["~", "null", "---\n~\n"])
def test_a_written_null_is_a_value(text: str) -> None:
    assert root_of(text).is_null


@cases(
    "text, line, column, named",
    [
        ("a: \x07\n", 1, 4, "U+0007"),
        ("a: 1\nb: x\x00\n", 2, 5, "U+0000"),
        ("a: \x7f", 1, 4, "U+007F"),
        ("a: \x9b31m", 1, 4, "U+009B"),
        ("a: 1\r\nb: \ufeff1", 2, 4, "byte order mark"),
        ("a: \ud800", 1, 4, "U+D800"),
        ("a: \uffff", 1, 4, "U+FFFF"),
    ],
)
def test_a_control_character_is_named_at_its_place(text: str, line: int, column: int, named: str) -> None:
    loaded = load_text(text)
    assert codes(loaded) == ["Y0008"]
    problem = loaded.problems[0]
    assert (problem.position.line, problem.position.column) == (line, column)
    assert named in problem.message
    loaded.text.encode()


def test_half_a_surrogate_pair_never_becomes_a_value() -> None:
    for text in ('a: "\\ud800"\n', '"\\ud800": 1\n'):
        for loader in (FASTEST, PURE):
            root, findings = build(text, "f", DEFAULT_LIMITS, loader)
            assert root is None or repr(to_json(root)).encode()
            assert findings.has_errors or "\\\\ud800" in repr(to_json(root) if root else "")


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{before}'] * 9)}]\n" for before, this in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = (
    "m0: &m0 {"
    + ", ".join(f"k{i}: 1" for i in range(200))
    + "}\n"
    + "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}], z{i}: 1}}\n" for i in range(1, 200))
)
TOWER = "a0: &a0 [[[[[[1]]]]]]\n" + "".join(f"a{i}: &a{i} [[[[[[*a{i - 1}]]]]]]\n" for i in range(1, 50))
BOMBS = [
    (LAUGHS, "Y0302"),
    (MERGES, "Y0302"),
    (TOWER, "Y0301"),
    ("[" * 5000, "Y0301"),
    ("{a: " * 5000, "Y0301"),
    ("{" * 5000, "Y0301"),
    ("- " * 5000, "Y0301"),
    ("? " * 5000, "Y0301"),
    ("".join(" " * depth + "a:\n" for depth in range(100)), "Y0301"),
    ("a: &a 1\nb: [" + "*a, " * 101 + "]", "Y0303"),
    ("a: &a " + "x" * 1_000_000 + "\nb: [" + "*a, " * 50 + "]", "Y0304"),
    ("x" * (DEFAULT_LIMITS.max_bytes + 1), "Y0004"),
]


@cases("text, code", BOMBS)
def test_a_bomb_is_refused(text: str, code: str) -> None:
    loaded = load_text(text)
    assert codes(loaded) == [code]
    assert loaded.root is None


def test_limits_are_the_callers_to_choose() -> None:
    limits = SourceLimits(max_bytes=60, depth=2, nodes=5, aliases=1)
    assert codes(load_text("a: [1, 2, 3]", limits=limits)) == []
    assert codes(load_text("a: [1, 2, 3, 4]", limits=limits)) == ["Y0302"]
    assert codes(load_text("a: [[1]]", limits=limits)) == ["Y0301"]
    assert codes(load_text("a: &a 1\nb: [*a, *a]", limits=limits)) == ["Y0303"]
    assert codes(load_text("a: " + "x" * 60, limits=limits)) == ["Y0004"]


def test_a_long_chain_of_merges_is_not_deep() -> None:
    chain = "m0: &m0 {a: 1}\n" + "".join(f"m{i}: &m{i} {{<<: *m{i - 1}}}\n" for i in range(1, 90))
    value = value_of(chain)
    assert isinstance(value, dict)
    assert value["m89"] == {"a": 1}


def test_a_node_says_what_it_is() -> None:
    root = root_of("a: {x: 1}\nb: [1]\nc: text\nd: 1.5\ne: true\nf:\n")
    assert {key: node.noun for key, node in root.entries.items()} == {
        "a": "a mapping",
        "b": "a list",
        "c": "text",
        "d": "a number",
        "e": "`true`",
        "f": "nothing",
    }
    c, d = root.get("c"), root.get("d")
    assert c is not None
    assert d is not None
    assert (c.text(), d.text(), root.text(), root.get("z")) == ("text", None, None, None)
