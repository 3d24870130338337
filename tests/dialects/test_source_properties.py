"""What holds for every text: loading never raises, JSON is read as JSON, and places point at what they name."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.dialects.report import as_json, render
from penstock.dialects.source.loader import load_file, load_text
from penstock.dialects.source.node import DEFAULT_LIMITS, SourceNode, lines_of, to_json
from penstock.dialects.source.positions import position_in_text
from penstock.dialects.source.tree import FASTEST, PURE, build
from penstock.kernel.values import Json
from tests.depth import times

quick = settings(max_examples=times(25), deadline=None, database=None, derandomize=True)

words = st.text(max_size=30)
values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(words, inner, max_size=5),
    max_leaves=20,
)
layouts = st.sampled_from([{}, {"indent": 2}, {"indent": 0}, {"separators": (",", ":")}])

# JSON may hold these bare in a text; YAML wants them escaped.
BARE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def as_yaml(value: Json, layout: dict[str, object]) -> str:
    text = json.dumps(value, ensure_ascii=False, **layout)  # type: ignore[arg-type]
    return BARE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def at(text: str, line: int, column: int, end_column: int) -> str:
    return lines_of(text)[line - 1][column - 1 : end_column - 1]


def same(left: Json, right: Json) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@quick
@given(values, layouts)
def test_json_is_read_as_json(value: Json, layout: dict[str, object]) -> None:
    loaded = load_text(as_yaml(value, layout))
    assert loaded.problems == []
    assert loaded.root is not None
    assert same(to_json(loaded.root), value)


@quick
@given(values, layouts)
def test_every_place_points_at_the_text_of_its_node(value: Json, layout: dict[str, object]) -> None:
    text = as_yaml(value, layout)
    root = load_text(text).root
    assert root is not None
    waiting: list[SourceNode] = [root]
    while waiting:
        node = waiting.pop()
        place = node.position
        found = at(text, place.line, place.column, place.end_column)
        if node.kind == "scalar":
            assert same(json.loads(found), node.value)
        else:
            assert found.startswith("{" if node.kind == "mapping" else "[")
        for key, where in node.keys.items():
            assert json.loads(at(text, where.line, where.column, where.end_column)) == key
        waiting += [*node.items, *node.entries.values()]


printable = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=12)


@quick
@given(st.lists(printable, min_size=1, max_size=5), st.sampled_from("|'\"p"), st.data())
def test_every_range_of_a_text_is_found_where_it_stands(lines: list[str], style: str, data: st.DataObject) -> None:
    if style == "|":
        assume(lines[0].strip() and not lines[0].startswith(" "))
        value = "\n".join(lines) + "\n"
        text = "k:\n  a: |\n" + "".join(f"    {line}\n" for line in lines)
    else:
        value = lines[0]
        spelt = {
            "'": "'" + value.replace("'", "''") + "'",
            '"': json.dumps(value, ensure_ascii=False),
            "p": f"x{value}",
        }
        text = f"k: {{}}\na: {spelt[style]}\n"
    loaded = load_text(text)
    assume(not loaded.problems and loaded.root is not None)
    assert loaded.root is not None
    node = (loaded.root.entries["k"].get("a") or loaded.root.get("a")) if loaded.root.kind == "mapping" else None
    assume(node is not None and node.text() == (f"x{value}" if style == "p" else value))
    assert node is not None
    whole = node.text() or ""
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, len(whole)))
    wanted = whole[start:end].split("\n")[0]
    place = position_in_text(node, start, end, text)
    found = at(text, place.line, place.column, place.end_column)
    spelling = {"'": wanted.replace("'", "''"), '"': wanted.replace("\\", "\\\\").replace('"', '\\"')}
    assert found == spelling.get(style, wanted)


FRAGMENTS = (
    "a¦b: ¦: ¦- ¦? ¦\n¦\n  ¦\n    ¦\t¦\r\n¦[¦]¦{¦}¦{{ x }}¦{%¦, ¦#¦ # c¦|¦>¦|2-\n¦'¦\"¦\\¦\\u¦\\UFFFFFFFF¦\\ud800¦&a ¦*a¦<<: "
    "¦!x ¦!!str ¦!!int ¦!!float ¦%YAML 1.1¦\n---\n¦\n...\n¦0x1¦1e999¦~¦true: ¦\ufeff¦\x00¦\u2028¦\x85¦é¦好¦😀¦@¦`¦%¦======="
)
yaml_like = st.lists(st.sampled_from(FRAGMENTS.split("¦")), max_size=25).map("".join)


def check(text: str) -> None:
    loaded = load_text(text)
    assert loaded.problems or loaded.root is not None
    for problem in loaded.problems:
        place = problem.position
        assert 0 <= place.line <= len(lines_of(loaded.text))
        assert place.column <= place.end_column
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", render(loaded.problems, {loaded.file: loaded.text})
    )
    json.dumps(as_json(loaded.problems)).encode()
    if loaded.root is not None:
        json.dumps(to_json(loaded.root), allow_nan=False).encode()


@settings(quick, max_examples=times(25))
@given(yaml_like)
def test_text_that_looks_like_yaml_never_raises(text: str) -> None:
    check(text)


@settings(quick, max_examples=times(25))
@given(st.text(st.characters(), max_size=60))
def test_text_of_any_characters_never_raises(text: str) -> None:
    check(text)


@settings(quick, max_examples=times(25))
@given(yaml_like)
def test_the_pure_parser_never_raises_either(text: str) -> None:
    if not any(character in text for character in "\x00\ufeff"):
        root, findings = build(text, "f", DEFAULT_LIMITS, PURE)
        list(findings)
        if root is not None:
            json.dumps(to_json(root), allow_nan=False, ensure_ascii=False).encode()


@quick
@given(values, layouts)
def test_both_parsers_read_the_same_value(value: Json, layout: dict[str, object]) -> None:
    text = as_yaml(value, layout)
    assert build(text, "f", DEFAULT_LIMITS, FASTEST)[0] == build(text, "f", DEFAULT_LIMITS, PURE)[0]


@quick
@given(st.binary(max_size=80))
def test_a_file_of_any_bytes_never_raises(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "f.yaml"
        path.write_bytes(content)
        loaded = load_file(path)
    assert loaded.problems or loaded.root is not None


def test_a_loaded_float_is_never_infinite() -> None:
    root = load_text("- 1e308\n- -1e308\n").root
    assert root is not None
    assert all(isinstance(item.value, float) and math.isfinite(item.value) for item in root.items)
