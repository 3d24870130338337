"""Patterns whose work is bounded, whatever the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.budget import Frame
from penstock.expr.errors import Misuse
from penstock.expr.regex import pattern, regex_findall
from penstock.expr.scope import Names
from tests.expr.support import steady


@pytest.mark.parametrize(
    "source",
    [
        r"(a+)+$",
        r"(a*)*b",
        r"(a|a)*b",
        r"(a|ab)*c",
        r"(\w+\s?)+$",
        r"(.*)*x",
        r"([a-z]+)*1",
        r"(a?b?)*c",
        r"((ab)*)*c",
        r"(\d+|[0-9])+x",
        r"(?:a{1,30}){1,30}b",
        r"(?i)(k|K)*x",
        r"(x+x+)+y",
        r"(?i)(k|" + "\u212a" + r")*x",
    ],
)
def test_patterns_that_can_take_for_ever_are_refused(source):
    with pytest.raises(Misuse, match="which can take for ever"):
        pattern(source)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (r"(?=a)b", "only the groups"),
        (r"(?<!a)b", "only the groups"),
        (r"(a)\1", "is not known here"),
        (r"(?P=x)", "only the groups"),
        (r"(a", "is never closed"),
        (r"a)", "closes nothing"),
        (r"[a", "is never closed"),
        (r"[[a]]", "with a backslash"),
        (r"*a", "repeats nothing"),
        (r"a**", "cannot be repeated"),
        (r"[z-a]", "bad character range"),
        (r"a{99999999999}", "too large a number"),
        (r"\p{L}", "is not known here"),
        ("(" * 50 + ")" * 50, "nested too deeply"),
        ("a" * 500, "too long"),
        ("a" * 5000, "at most 1000 characters"),
    ],
)
def test_what_is_no_pattern_here_is_refused_with_the_reason(source, why):
    with pytest.raises(Misuse, match=why):
        pattern(source)


@pytest.mark.parametrize(
    ("source", "length"),
    [
        (r"foo", 1_000_000),
        (r"\d+", 1_000_000),
        (r"^\w+@\w+\.com$", 1_000_000),
        (r"^(\w+,)*$", 100_000),
        (r"(\d{1,3}\.){3}\d{1,3}", 10_000),
        (r"\d{4}-\d{2}-\d{2}", 1_000_000),
        (r"[\w.]+@[\w.]+", 5_000),
        (r"(?i)error: (.*)", 5_000),
        (r"^\s+|\s+$", 5_000),
        (r"^.*?(\d+).*$", 500),
    ],
)
def test_everyday_patterns_work_on_texts_of_this_length(source, length):
    assert pattern(source).on("a" * length, Frame(Names())).pattern == source


def test_a_pattern_with_much_competition_is_bounded_by_the_length_of_the_text():
    assert pattern(r".*.*.*b").on("a" * 30, Frame(Names()))
    with pytest.raises(Misuse, match="could take too long on a text of 20,000 characters"):
        pattern(r".*.*.*b").on("a" * 20_000, Frame(Names()))


PIECES = st.sampled_from(
    ["a", "b", "c", r"\d", r"\w", ".", "[ab]", "[^a]", "(a)", "(?:b|c)", "(ab|c)", "^", "$", r"\b", "é", r"\."]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"])


@steady
@given(st.lists(st.tuples(PIECES, REPEATS), max_size=5), st.text("abc1é. \n", max_size=30))
def test_an_allowed_pattern_finds_what_the_standard_library_finds(parts, text):
    source = "".join(piece + ("" if piece in ("^", "$", r"\b") else repeat) for piece, repeat in parts)
    try:
        found = regex_findall(Frame(Names()), text, source)
    except Misuse:
        return
    assert found == [list(one) if isinstance(one, tuple) else one for one in re.findall(source, text)]


@steady
@given(st.text(r"ab(|)[]*+?{},1\^$.:P<>", max_size=12))
def test_any_text_is_a_pattern_or_refused(source):
    try:
        pattern(source)
    except Misuse:
        pass
