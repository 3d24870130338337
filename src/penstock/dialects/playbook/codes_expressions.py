"""Codes of the expression language, which reports them without knowing documents: here they get their pages."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc


def _message(text: str) -> str:
    return f"- name: tell\n  kind: log\n  message: {text}\n"


def _condition(text: str) -> str:
    return f"- step: start\n  next:\n    arcs:\n      - step: end\n        when: {text}\n- step: end\n"


_GOOD = _message('"{{ workload.city | upper }}"')

EXPRESSIONS = {
    "E0101": CodeDoc(
        "a text that is not an expression",
        "Between `{{` and `}}` stands one expression, in the syntax of Jinja.",
        "Look at the caret: a bracket, a quote or an operator is missing there.",
        _message('"{{ workload.city + }}"'),
        _GOOD,
    ),
    "E0102": CodeDoc(
        "a filter that does not exist",
        "The filters are a fixed list, so that the same playbook gives the same result everywhere.",
        "Choose one of the list in the reference of expressions.",
        _message('"{{ workload.city | uper }}"'),
        _GOOD,
    ),
    "E0103": CodeDoc(
        "a function that does not exist",
        "The functions are a fixed list; playbooks cannot define their own.",
        "Choose one of the list, or compute the value in a task.",
        _message('"{{ open(workload.city) }}"'),
        _GOOD,
    ),
    "E0104": CodeDoc(
        "a test that does not exist",
        "`is` is followed by a test, such as `defined` or `none`.",
        "Choose one of the list in the reference of expressions.",
        _condition('"{{ workload.city is defind }}"'),
        _condition('"{{ workload.city is defined }}"'),
    ),
    "E0105": CodeDoc(
        "a name with two underscores at both ends",
        "Such names lead into the machinery of Python, which expressions cannot reach.",
        "Use another name.",
        _message('"{{ workload.city.__class__ }}"'),
        _GOOD,
    ),
    "E0106": CodeDoc(
        "a method that cannot be called",
        "Only a few methods of text, mappings and lists can be called; they change nothing.",
        "Use a filter, or compute the value in a task.",
        _message('"{{ workload.city.encode() }}"'),
        _GOOD,
    ),
    "E0107": CodeDoc(
        "a statement that is not allowed",
        "Templates have `if`, `for`, `set` and `raw`; the others would reach outside the text.",
        "Use one of these, or make the text in a task.",
        _message("\"{% include 'x' %}\""),
        _message('"{% if workload.city %}{{ workload.city }}{% endif %}"'),
    ),
    "E0108": CodeDoc(
        "a condition that never changes",
        "It reads no variable, so it is always true or always false; most often a name stands in quotes.",
        "Take the quotes away, or leave the condition out.",
        _condition("\"{{ 'workload.city' }}\""),
        _condition('"{{ workload.city }}"'),
    ),
    "E0109": CodeDoc(
        "a condition mixed with text",
        "A condition is one expression; text around it would make it true whatever the expression gives.",
        "Put everything between one pair of braces.",
        _condition("\"{{ workload.city }} == 'Oslo'\""),
        _condition("\"{{ workload.city == 'Oslo' }}\""),
    ),
    "E0110": CodeDoc(
        "arguments that a word does not take",
        "Each filter, test, function and method takes its own arguments.",
        "Write it as the hint shows.",
        _message('"{{ workload.city | upper(3) }}"'),
        _GOOD,
    ),
    "E0111": CodeDoc(
        "a regular expression that is wrong or not supported",
        "Patterns run on RE2, which needs linear time on any text; it has no look-around and no back-references.",
        "Correct the pattern; instead of looking around, match more and take a group of it.",
        _message("\"{{ workload.city | regex_replace('(?<=St)\\\\.', '') }}\""),
        _message("\"{{ workload.city | regex_replace('(St)\\\\.', '\\\\1') }}\""),
    ),
}
