"""Documents made to be slow are refused by what the parser has met so far, and cost no more than in proportion to their size."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.components.base import ComponentFailure
from penstock.components.flow.context_load import _from_yaml
from penstock.dialects.kind import kind_of
from penstock.dialects.problems import closest
from penstock.dialects.secrets import literal_secrets, masked_value
from penstock.dialects.source.loader import load_text
from penstock.expr.check import inspect
from tests.cases import cases
from tests.expr.support import calls_of

DEEP = {
    "[": lambda size: "a: " + "[" * size,
    "{": lambda size: "a: " + "{" * size,
    "{a: ": lambda size: "a: " + "{a: " * size,
    "[]": lambda size: "a: " + "[" * size + "]" * size,
    "- ": lambda size: "a:\n- " + "- " * size,
    "? ": lambda size: "? " * size,
    "blocks": lambda size: "".join(" " * depth + "a:\n" for depth in range(min(size, 600))),
}


@cases("made", DEEP.values())
def test_depth_is_refused_after_as_many_events_as_a_document_may_be_deep(made):
    text = made(100_000)
    assert [problem.code for problem in load_text(text).problems] == ["Y0301"]
    assert kind_of(text) == "playbook"
    assert calls_of(lambda: kind_of(text)) < 5_000
    assert calls_of(lambda: load_text(text)) < 20_000


def test_what_a_document_is_is_told_without_reading_more_values_than_it_may_have():
    text = "a: [" + "1," * 350_000 + "]\nkind: Job\n"
    assert kind_of(text) == "playbook"
    assert kind_of("a: [" + "1," * 5_000 + "]\nkind: Job\n") == "job"


def test_a_context_file_is_refused_by_its_depth_too():
    with pytest.raises(ComponentFailure, match="nested more than 64 deep"):
        _from_yaml("a: " + "[" * 10_000, Path("context.yaml"))


WIDE = {
    "one long line with a mistake": lambda size: "a: [" + "x, " * size + "}",
    "anchors": lambda size: "".join(f"- &a{index} x\n" for index in range(size)),
    "keys": lambda size: "".join(f"k{index}: 1\n" for index in range(size)),
    "a key again and again": lambda size: "k: 1\n" * size,
    "tags": lambda size: "- !x y\n" * size,
    "tabs": lambda size: "\t\n" * size,
    "lines of a quote that is never closed": lambda size: "a: '" + "x\n" * size,
    "a number": lambda size: "a: " + "1" * size,
}


@pytest.mark.parametrize("made", WIDE.values(), ids=WIDE)
def test_a_document_four_times_as_large_costs_about_four_times_as_much(made):
    small, large = (calls_of(lambda size=size: load_text(made(size))) for size in (500, 2_000))
    assert large < 6 * small + 1_000


def test_the_line_that_a_mistake_is_shown_in_is_cut():
    (problem,) = load_text("a: [" + "x, " * 5_000 + "}").problems
    assert len(problem.message) < 400


EXPRESSIONS = {
    "names joined by and": lambda size: "{{ " + " and ".join(f"a.b{index}" for index in range(size)) + " }}",
    "arguments by name": lambda size: "{{ dict(" + ", ".join(f"k{index}=1" for index in range(size)) + ") }}",
    "a list": lambda size: "{{ [" + "1, " * size + "] }}",
    "comparisons": lambda size: "{{ a" + " < a" * size + " }}",
    "branches": lambda size: "{% if a %}" + "{% elif a.b %}" * size + "{% endif %}",
}


@pytest.mark.parametrize("made", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_four_times_as_long_costs_about_four_times_as_much(made):
    small, large = (calls_of(lambda size=size: inspect(made(size))) for size in (250, 1_000))
    assert large < 6 * small + 1_000


@contextmanager
def cpu_seconds(most: float) -> Iterator[None]:
    """Time of this process, whatever else the machine does. What is linear takes a hundredth of it, what is not takes minutes."""

    def late(*_: object) -> None:
        raise AssertionError(f"more than {most:g} seconds of CPU time")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


RUNS = [
    "a",
    "-",
    ".",
    "a-",
    " ",
    ":",
    "/",
    "@",
    "://",
    "://:",
    "a://a:",
    "a://:",
    "pwd ",
    "password  ",
    "?token=",
    "{{",
    "é",
]


@cases("run", RUNS)
def test_secrets_are_looked_for_in_linear_time_whatever_the_text(run):
    text = "://" + run * (100_000 // len(run))
    with cpu_seconds(20):
        assert masked_value("url", text)
        literal_secrets(text)


def test_secrets_in_addresses_are_found_as_before():
    for text, shown in (
        ("postgresql://ann:s3cret@db/x", "postgresql://ann:***@db/x"),
        ("see (https://ann:s3cret@host/) or mysql+x://:s3cret@h", "see (https://ann:***@host/) or mysql+x://:***@h"),
        ("host=db password = s3cret user=ann", "host=db password = *** user=ann"),
        ("https://h/?a=1&token=s3cret&b=2", "https://h/?a=1&token=***&b=2"),
        ("https://host:8080/path@x", "https://host:8080/path@x"),
    ):
        assert masked_value("url", text) == shown


def test_a_name_is_compared_with_many_long_ones_in_little_time():
    names = [f"{'long_name_of_a_variable' * 2}_{number:016}" for number in range(30_000)]
    with cpu_seconds(15):
        assert closest("short_name_of_a_variable" * 2 + "_" + "9" * 16, names) is None
        assert closest(names[77][:-1] + "x", names[77:78]) == names[77]
