"""Checks an expression before the run: all its mistakes at once, and every variable it reads."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.parse import parse, parse_condition
from penstock.expr.program import constant_truth
from penstock.expr.rules import CODES, EVERYTHING, Finding, Grammar, Use, read_expression, read_template

__all__ = ["CODES", "EVERYTHING", "Finding", "Grammar", "Inspection", "Use", "inspect"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """`is_single`: the text gives a value, not text. `is_literal`: it has no expression in it.

    `constant` is what a condition without variables always is (E0108 in the reference); None for all others.
    """

    findings: tuple[Finding, ...] = ()
    uses: tuple[Use, ...] = ()
    is_single: bool = False
    is_literal: bool = False
    constant: bool | None = None
    has_blanks: bool = False
    """It is one expression with nothing but white space beside it, and so gives text."""


def inspect(text: str, *, condition: bool = False, grammar: Grammar = EVERYTHING) -> Inspection:
    """With `condition`, the text is a condition: bare or in braces, and all it reads may be undefined."""
    try:
        if condition:
            return _condition(text, grammar)
        if not is_template(text):
            return Inspection(is_literal=True)
        template = parse(text)
    except ExpressionError as error:
        return Inspection((Finding(error.code, error.message, error.start, error.end, error.hint),))
    findings, uses = read_template(template, grammar)
    is_single = template.single is not None
    has_blanks = not is_single and template.lone is not None
    return Inspection(tuple(findings), tuple(uses), is_single, has_blanks=has_blanks)


def _condition(text: str, grammar: Grammar) -> Inspection:
    findings, uses = read_expression(parse_condition(text), True, grammar)
    constant: bool | None = None
    if not findings and not uses:
        try:
            constant = constant_truth(text)
        except ExpressionError as error:
            findings = [Finding("E0101", error.message, error.start, error.end, error.hint)]
    return Inspection(tuple(findings), tuple(uses), is_single=True, constant=constant)
