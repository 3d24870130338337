"""Problems are collected once each, in the order of their places, and only under codes that are documented."""

from __future__ import annotations

import pytest

from penstock.dialects.diagnostics import families, pages
from penstock.dialects.problems import Findings, Position, Problem, Severity, closest
from penstock.dialects.source.loader import load_text
from penstock.kernel.errors import Bug
from tests.cases import cases

HERE = Position("f.yaml", 2, 3, 4)


def test_findings_are_read_in_the_order_of_the_file() -> None:
    findings = Findings()
    findings.note("Y0101", "late", Position("f.yaml", 9, 1, 2))
    findings.warning("Y0101", "second", HERE)
    findings.error("Y0102", "first", HERE)
    findings.error("Y0101", "whole", Position.whole("f.yaml"))
    findings.error("Y0101", "other", Position("e.yaml", 10, 1, 2))
    assert [problem.message for problem in findings] == ["other", "whole", "first", "second", "late"]
    assert len(findings) == 5


def test_the_same_finding_is_kept_once() -> None:
    findings = Findings()
    for _ in range(3):
        findings.error("Y0101", "twice", HERE, hint="look")
    assert findings.in_order() == [Problem("Y0101", Severity.ERROR, "twice", HERE, hint="look")]


def test_a_finding_carries_all_it_was_given() -> None:
    findings = Findings()
    findings.error("Y0101", "m", HERE, label="l", hint="h", rewrite="r", path="a.b")
    assert findings.in_order() == [Problem("Y0101", Severity.ERROR, "m", HERE, "l", "h", "r", "a.b")]


def test_only_errors_are_errors() -> None:
    findings = Findings()
    assert not findings.has_errors
    findings.note("Y0101", "n", HERE)
    findings.warning("Y0101", "w", HERE)
    assert not findings.has_errors
    findings.error("Y0101", "e", HERE)
    assert findings.has_errors


def test_strict_makes_errors_of_warnings_and_leaves_the_original_alone() -> None:
    findings = Findings()
    findings.warning("Y0101", "w", HERE)
    findings.note("Y0101", "n", HERE)
    assert [problem.severity for problem in findings.strict()] == [Severity.ERROR, Severity.NOTE]
    assert [problem.severity for problem in findings] == [Severity.WARNING, Severity.NOTE]


def test_findings_of_two_parts_can_be_joined() -> None:
    findings = Findings(load_text("a: 1\na: 2\n").problems)
    findings.extend(load_text("a: 1\na: 2\nb: *c\n").problems)
    assert [problem.code for problem in findings] == ["Y0202", "Y0206"]


def test_a_code_that_is_not_registered_cannot_be_reported() -> None:
    findings = Findings()
    with pytest.raises(Bug, match="`X9999` is not registered"):
        findings.error("X9999", "m", HERE)
    assert len(findings) == 0


def test_every_page_lies_in_the_file_of_its_family() -> None:
    for family, (title, members) in families().items():
        assert title
        assert members
        assert {code[:3] for code in members} == {family}


def test_every_code_of_the_loader_says_what_why_and_how() -> None:
    for page in (page for code, page in pages().items() if code.startswith("Y")):
        assert page.title
        assert page.why.endswith(".")
        assert page.fix.endswith(".")


NAMES = [
    "retry",
    "continue",
    "jump",
    "break",
    "fail",
    "when",
    "then",
    "else",
    "max_in_flight",
    "step",
    "tool",
    "in",
    "do",
]


@cases(
    "word, meant",
    [
        ("rety", "retry"),
        ("retyr", "retry"),
        ("Retry", "retry"),
        ("contineu", "continue"),
        ("brake", "break"),
        ("whn", "when"),
        ("wehn", "when"),
        ("maxInFlight", "max_in_flight"),
        ("max-in-flight", "max_in_flight"),
        ("max_in_fligth", "max_in_flight"),
        ("stpe", "step"),
        ("tools", "tool"),
        ("IN", "in"),
        ("en", None),
        ("on", None),
        ("x", None),
        ("", None),
        ("___", None),
        ("url", None),
        ("fan", None),
        ("keychain", None),
        ("x" * 10_000, None),
        ("retry", None),
    ],
)
def test_the_closest_name_is_the_one_that_was_meant(word: str, meant: str | None) -> None:
    assert closest(word, NAMES) == meant


def test_between_equals_the_one_with_the_same_first_letter_wins() -> None:
    assert closest("tost", ["host", "test"]) == "test"
    assert closest("test1", []) is None
