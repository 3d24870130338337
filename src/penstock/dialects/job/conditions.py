"""The grammar of conditions: what an `if` link and `while` may say (appendix A, D40).

Literals, names, comparison, boolean and arithmetic operators, and a few functions. `default` and `is defined` are there
because a missing global makes a condition False, unless it is asked about in these ways.
"""

from __future__ import annotations

from penstock.expr import nodes
from penstock.expr.check import Finding, Grammar, Inspection
from penstock.expr.errors import ExpressionError
from penstock.expr.parse import parse_condition
from penstock.expr.program import constant_truth
from penstock.expr.rules import read_expression

FUNCTIONS = frozenset(("abs", "bool", "float", "int", "len", "max", "min", "round", "str", "sum"))
GRAMMAR = Grammar(
    filters=frozenset(("default", "d")),
    tests=frozenset(("defined", "undefined", "none")),
    functions=FUNCTIONS,
    methods=frozenset(),
)
_OTHER_SPELLINGS = {"null": "none", "NULL": "none", "TRUE": "true", "FALSE": "false"}
"""Constants as other languages write them. Read as globals they would be missing, and the condition never true."""
_LANGUAGE = (
    "a condition has literals, names, comparison, `and` / `or` / `not`, arithmetic, and the functions "
    + ", ".join(f"`{name}`" for name in sorted(FUNCTIONS))
)


def inspected(text: str) -> Inspection:
    """All that is wrong with a condition, and what it reads. `guarded` says of a name that it is asked about, as elsewhere."""
    try:
        found, _ = read_expression(parse_condition(text), True, GRAMMAR)
    except ExpressionError as error:
        found = [Finding(error.code, error.message, error.start, error.end, error.hint)]
    more = tuple(_outside(text))
    if found or more:
        findings = sorted((*(_hinted(finding) for finding in found), *more), key=lambda each: each.start)
        return Inspection(tuple(findings), is_single=True)
    uses = tuple(read_expression(parse_condition(text), False, GRAMMAR)[1])
    return Inspection((), uses, is_single=True, constant=None if uses else _constant(text))


def _constant(text: str) -> bool | None:
    """None also when it cannot be evaluated: then the component whose link this is ends in ERROR, as the grammar allows it."""
    try:
        return constant_truth(text)
    except ExpressionError:
        return None


def _hinted(finding: Finding) -> Finding:
    if finding.hint or finding.label:
        return finding
    return Finding(finding.code, finding.message, finding.start, finding.end, _LANGUAGE)


def _outside(text: str) -> list[Finding]:
    """Forms of the expression language that conditions do not have."""
    try:
        waiting: list[nodes.Expr] = [parse_condition(text)]
    except ExpressionError:
        return []
    found: list[Finding] = []
    while waiting:
        node = waiting.pop()
        waiting += nodes.children(node)
        match node:
            case nodes.Choice():
                said = "a choice (`… if … else …`)"
            case nodes.Slice():
                said = "a slice"
            case nodes.DictOf():
                said = "a mapping"
            case nodes.Chain(operator="~"):
                said = "`~`"
            case nodes.Name(name=word) if word in _OTHER_SPELLINGS:
                hint = f"write `{_OTHER_SPELLINGS[word]}`"
                found.append(Finding("E0101", f"`{word}` is not a constant here", node.start, node.end, hint))
                continue
            case _:
                continue
        found.append(Finding("E0101", f"{said} cannot stand in a condition", node.start, node.end, _LANGUAGE))
    return found
