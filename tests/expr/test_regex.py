"""Patterns run on a linear-time engine, and their work is paid for before it is done."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.expr.budget import MAX_STEPS, Frame
from penstock.expr.check import inspect
from penstock.expr.errors import Misuse
from penstock.expr.regex import groups_of, pattern, regex_findall, regex_replace, regex_search
from penstock.expr.scope import Names
from tests.cases import cases
from tests.expr.support import refusal, steady, value


def spent(expression: str, **names: object) -> int:
    """The steps an evaluation takes."""
    from penstock.expr.compile import ExpressionCompiler
    from penstock.expr.parse import parse_condition

    frame = Frame(Names(names))
    ExpressionCompiler(expression, strict=False).compile(parse_condition(expression))(frame)
    return MAX_STEPS - frame.steps


@cases(
    "source, text",
    [
        (r"(a?){24}c", "a" * 24),
        (r"(a+)+$", "a" * 200 + "b"),
        (r"(a*)*b", "a" * 200),
        (r"(a|a)*b", "a" * 200),
        (r"(\w+\s?)+$", "word " * 50 + "!"),
        (r"(.*)*x", "a" * 200),
        (r"(?:a{1,30}){1,30}b", "a" * 60),
        (r"(x+x+)+y", "x" * 200),
        (r".*.*.*.*b", "a" * 200),
    ],
)
def test_patterns_on_which_other_engines_hang_are_answered(source, text):
    assert value("x is matching(p)", x=text, p=source) is False


@cases(
    "source, why",
    [
        (r"(?=a)b", "look-ahead does not exist here"),
        (r"(?<!a)b", "look-behind does not exist here"),
        (r"(a)\1", r"back-references such as `\\1` do not exist here"),
        (r"(?P=x)", "back-references do not exist here"),
        (r"(a", r"missing \)"),
        (r"a)", r"unexpected \)"),
        (r"[a", r"missing \]"),
        (r"*a", "no argument for repetition"),
        (r"a**", "bad repetition operator"),
        (r"[z-a]", "invalid character class range"),
        (r"a{1001}", "may count to 1,000"),
        (r"a{99999999999}", "may count to 1,000"),
        (r"(a{100}){100}", "repeats inside repeats included"),
        (r"\pL{300}", "too large once its repeats are written out"),
        ("\ud800", "half of a surrogate pair"),
        ("a" * 5000, "at most 1000 characters"),
    ],
)
def test_what_is_no_pattern_here_is_refused_with_the_reason(source, why):
    with pytest.raises(Misuse, match=why):
        pattern(source)


def test_a_constant_pattern_is_refused_before_the_run():
    (finding,) = inspect("{{ x | regex_search('(?<=a)b') }}").findings
    assert finding.code == "E0111"
    assert "look-behind does not exist here" in finding.message


@cases(
    "source, length",
    [
        (r"foo", 1_000_000),
        (r"\d+", 1_000_000),
        (r"^\w+@\w+\.com$", 400_000),
        (r"^(\w+,)*$", 400_000),
        (r"(\d{1,3}\.){3}\d{1,3}", 200_000),
        (r"\d{4}-\d{2}-\d{2}", 400_000),
        (r"[\w.]+@[\w.]+", 400_000),
        (r"(?i)error: (.*)", 200_000),
        (r"^\s+|\s+$", 400_000),
        (r"^.*?(\d+).*$", 200_000),
    ],
)
def test_everyday_patterns_work_on_texts_of_this_length(source, length):
    assert value("x is matching(p)", x="a" * length, p=source) is False


def test_a_search_pays_for_the_text_times_the_size_of_the_pattern_before_it_starts():
    small, large = pattern(r"(a?){50}c"), pattern(r"(a?){500}c")
    assert large.cost(1000) > 9 * small.cost(1000) > 0
    assert "needs more than 500,000 steps" in refusal("{{ x is matching('(a?){500}c') }}", x="a" * 200_000).message


def test_a_match_that_reads_far_behind_itself_pays_for_the_rest_of_the_text_every_time():
    assert spent("x | regex_findall('.*b|a')", x="a" * 800) > 800 * 800 // 100
    assert spent(r"x | regex_findall('\w')", x="a" * 800) < 800 * 40
    assert "needs more than 500,000 steps" in refusal("{{ x | regex_findall('.*b|a') }}", x="a" * 20_000).message


def test_an_evaluation_pays_for_a_pattern_once_whether_or_not_it_was_compiled_before():
    first = spent("['a', 'b'] | map('regex_replace', 'a(b)?c', '') | list")
    assert spent("['a', 'b'] | map('regex_replace', 'a(b)?c', '') | list") == first
    many = spent("x | map('regex_replace', 'a(b)?c', '') | list", x=["a"] * 1000)
    assert many < first + 1000 * 100


@cases(
    "expression, expected",
    [
        (r"'a1b22' | regex_replace('[0-9]+', '<\\g<0>>')", "a<1>b<22>"),
        (r"'José Núñez' | regex_replace('(\\pL+) (\\pL+)', 'é \\2, \\1')", "é Núñez, José"),
        (r"'k=v' | regex_replace('(?P<key>k)=(?P<value>v)', '\\g<value>\\t\\g<key>')", "v\tk"),
        (r"'ab' | regex_replace('x*', '-')", "-a-b-"),
        (r"'aaa' | regex_replace('a', 'b', 2)", "bba"),
        (r"'é' is matching('^\\w$')", False),
        (r"'é' is matching('^\\pL$')", True),
        (r"'٣' is matching('\\d')", False),
        (r"'a\n' is matching('a$')", False),
        (r"'a' is matching('a\\Z')", True),
        (r"'aaa' | regex_search('a{,2}')", "aa"),
        (r"'[a]' | regex_findall('[][]')", ["[", "]"]),
        (r"'xyz' | regex_search('(y)(w)?', 2)", None),
        (r"'a-b' | regex_findall('(\\w)(-)?')", [["a", "-"], ["b", ""]]),
    ],
)
def test_what_patterns_mean(expression, expected):
    assert value(expression) == expected


@cases("replacement", [r"\2", r"\g<no>", r"\q", r"\g<99999>", "\\"])
def test_a_replacement_that_does_not_fit_is_refused(replacement):
    with pytest.raises(Misuse, match="replacement"):
        regex_replace(Frame(Names()), "a", "(a)", replacement)


def test_half_of_a_surrogate_pair_is_refused_in_the_text():
    with pytest.raises(Misuse, match="surrogate"):
        regex_search(Frame(Names()), "\ud800", "a")
    with pytest.raises(Misuse, match="surrogate"):
        regex_findall(Frame(Names()), "\ud800", "a")


def test_groups_are_counted_as_the_engine_counts_them():
    assert groups_of("(a)(?:b)(?P<c>c)") == 2
    assert groups_of("(a") is None


def test_the_engine_is_loaded_only_where_a_pattern_is():
    code = "import sys, penstock.expr.template as t; t.render('{{ 1 + 1 }}', t.Names()); sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


PIECES = st.sampled_from(
    ["a", "b", "c", r"\d", r"\w", ".", "[ab]", "[^a]", "(a)", "(?:b|c)", "(ab|c)", "^", r"\Z", r"\b", "é", r"\."]
)
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "+?"])


@steady
@given(st.lists(st.tuples(PIECES, REPEATS), max_size=5), st.text("abc1é. \n", max_size=30))
def test_an_allowed_pattern_finds_what_the_standard_library_finds(parts, text):
    source = "".join(piece + ("" if piece in ("^", r"\Z", r"\b") else repeat) for piece, repeat in parts)
    found = regex_findall(Frame(Names()), text, source)
    assert found == [list(one) if isinstance(one, tuple) else one for one in re.findall(source, text, re.ASCII)]


@steady
@given(st.text(r"ab(|)[]*+?{},1\^$.:P<>QEZ", max_size=12))
def test_any_text_is_a_pattern_or_refused(source):
    try:
        pattern(source)
    except Misuse:
        pass
