"""What is allowed, and which names are used: one walk over a tree, before any value is known.

The check at plan time reports all findings, and the compiler refuses a tree that has any: nothing runs that the check refuses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from penstock.expr import nodes
from penstock.expr.errors import Misuse
from penstock.expr.nodes import Body, Expr, Template, WordKind, path_of
from penstock.expr.regex import pattern
from penstock.expr.words.table import APPLIES_FILTER, APPLIES_TEST, METHODS, PATTERN_WORDS, TABLES

CODES: dict[str, str] = {
    "E0101": "The text of a template or condition cannot be read as an expression.",
    "E0102": "The expression uses a filter that does not exist.",
    "E0103": "The expression calls a function that does not exist.",
    "E0104": "The expression uses a test (`is …`) that does not exist.",
    "E0105": "Names with two underscores at both ends are not readable from expressions.",
    "E0106": "The expression calls a method; only a few methods of text, mappings and lists can be called.",
    "E0107": "The template uses a statement that is not `if`, `for`, `set` or `raw`.",
    "E0108": "The condition has no variable in it, so it is always true or always false.",
    "E0109": "The condition mixes expressions with text; a condition is one expression.",
    "E0110": "A filter, test, function or method is given arguments that it does not take.",
    "E0111": "The regular expression is wrong, or uses what the linear-time engine does not have.",
}
_UNKNOWN = {"filter": "E0102", "function": "E0103", "test": "E0104", "method": "E0106"}
_REMEDIES = {
    "token": "expressions do not reach the network; a tool takes what it needs from the keychain: `auth: name`"
}
_ASKS_FOR_UNDEFINED = frozenset({"default", "d", "defined", "undefined"})


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    message: str
    start: int
    end: int
    hint: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """A variable that is read. `guarded`: it may be undefined here without harm."""

    path: tuple[str, ...]
    start: int
    end: int
    guarded: bool


@dataclass(frozen=True, slots=True)
class Grammar:
    """A smaller language: the words it has, of each kind; None means all of them."""

    filters: frozenset[str] | None = None
    tests: frozenset[str] | None = None
    functions: frozenset[str] | None = None
    methods: frozenset[str] | None = None

    def allows(self, kind: str, name: str) -> bool:
        allowed = {"filter": self.filters, "test": self.tests, "function": self.functions, "method": self.methods}[kind]
        return allowed is None or name in allowed


EVERYTHING = Grammar()


def read_template(template: Template, grammar: Grammar = EVERYTHING) -> tuple[list[Finding], list[Use]]:
    reader = _Reader(grammar)
    reader.body(template.body, frozenset())
    return reader.findings, reader.uses


def read_expression(expr: Expr, guarded: bool, grammar: Grammar = EVERYTHING) -> tuple[list[Finding], list[Use]]:
    reader = _Reader(grammar)
    reader.expr(expr, frozenset(), guarded)
    return reader.findings, reader.uses


def did_you_mean(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # Only mistakes need it.

    close = get_close_matches(name, known, 1, 0.6)
    return f"did you mean `{close[0]}`?" if close else ""


class _Reader:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.findings: list[Finding] = []
        self.uses: list[Use] = []
        # Paths that an enclosing test has checked: inside it they are known to exist, and so are their prefixes.
        self.asked: list[tuple[str, ...]] = []
        self.known: Counter[tuple[str, ...]] = Counter()

    def body(self, body: Body, bound: frozenset[str]) -> frozenset[str]:
        """Returns the names that are bound behind it."""
        for part in body:
            match part:
                case nodes.Output():
                    self.expr(part.expr, bound, False)
                case nodes.Assign():
                    self.expr(part.value, bound, False)
                    bound |= frozenset(part.targets)
                case nodes.If():
                    bound = self._if(part, bound)
                case nodes.For():
                    self.expr(part.over, bound, False)
                    inner = bound | frozenset(part.targets)
                    if part.where is not None:
                        self.expr(part.where, inner, True)
                    self.body(part.body, inner | {"loop"})
                    self.body(part.otherwise, bound)
        return bound

    def _if(self, part: nodes.If, bound: frozenset[str]) -> frozenset[str]:
        after = bound
        before = len(self.asked)
        for test, body in part.branches:
            self._ask(test, bound)
            after |= self.body(body, bound)
        after |= self.body(part.otherwise, bound)
        self._forget(before)
        return after

    def _ask(self, test: Expr, bound: frozenset[str]) -> None:
        begin = len(self.uses)
        self.expr(test, bound, True)
        self._remember(begin)

    def _remember(self, begin: int) -> None:
        """The paths that were read since."""
        for use in self.uses[begin:]:
            self.asked.append(use.path)
            self.known.update(use.path[:length] for length in range(1, len(use.path) + 1))

    def _forget(self, before: int) -> None:
        for path in self.asked[before:]:
            self.known.subtract(path[:length] for length in range(1, len(path) + 1))
        del self.asked[before:]

    def expr(self, node: Expr, bound: frozenset[str], guarded: bool) -> None:
        if (path := path_of(node)) is not None:
            self._path(node, path, bound, guarded)
            return
        match node:
            case nodes.Word():
                self._word(node, bound, guarded)
            case nodes.Chain(operator="or"):
                for operand in node.operands[:-1]:
                    self.expr(operand, bound, True)
                self.expr(node.operands[-1], bound, guarded)
            case nodes.Chain(operator="and"):
                before = len(self.asked)
                for operand in node.operands:
                    begin = len(self.uses)
                    self.expr(operand, bound, guarded)
                    self._remember(begin)
                self._forget(before)
            case nodes.Unary(operator="not"):
                self.expr(node.operand, bound, True)
            case nodes.Choice():
                before = len(self.asked)
                self._ask(node.test, bound)
                self.expr(node.then, bound, guarded)
                if node.otherwise is not None:
                    self.expr(node.otherwise, bound, guarded)
                self._forget(before)
            case nodes.Get():
                self._key(node.key)
                for child in (node.of, node.key):
                    self.expr(child, bound, guarded)
            case _:
                for child in nodes.children(node):
                    self.expr(child, bound, guarded)

    def _path(self, node: Expr, path: tuple[str, tuple[str | int, ...]], bound: frozenset[str], guarded: bool) -> None:
        step = node
        while isinstance(step, nodes.Get):
            self._key(step.key)
            step = step.of
        root, keys = path
        self._name(root, step)
        if root not in bound:
            full = (root, *map(str, keys))
            self.uses.append(Use(full, node.start, node.end, guarded or self.known[full] > 0))

    def _key(self, key: Expr) -> None:
        if isinstance(key, nodes.Const) and isinstance(key.value, str):
            self._name(key.value, key)

    def _name(self, name: str, node: Expr) -> None:
        if len(name) > 4 and name.startswith("__") and name.endswith("__"):
            self._find("E0105", f"`{name}` is not readable from an expression", node.start, node.end)

    def _word(self, node: nodes.Word, bound: frozenset[str], guarded: bool) -> None:
        entry = TABLES[node.kind].get(node.name)
        if entry is None or not self.grammar.allows(node.kind, node.name):
            self._unknown(node)
        else:
            complaint = entry.complaint(
                len(node.arguments.positional), tuple(name for name, _ in node.arguments.keywords)
            )
            if complaint:
                hint = f"it is written `{entry.signature()}`"
                self._find("E0110", f"the {node.kind} `{node.name}` {complaint}", node.at, node.until, hint)
            self._applied(node)
            self._pattern(node)
        if node.of is not None:
            self.expr(node.of, bound, guarded or (node.name in _ASKS_FOR_UNDEFINED and node.kind != "method"))
        for argument in node.arguments.all():
            self.expr(argument, bound, guarded)

    def _unknown(self, node: nodes.Word) -> None:
        code = _UNKNOWN[node.kind]
        known = [name for name in TABLES[node.kind] if name.isidentifier() and self.grammar.allows(node.kind, name)]
        hint = ""
        if node.kind == "method":
            message = f"the method `{node.name}` cannot be called in an expression"
            if self.grammar.methods is None:
                hint = "methods that can be called: " + ", ".join(f"`{name}`" for name in METHODS)
        else:
            message = f"there is no {node.kind} `{node.name}`"
            if node.name in TABLES[node.kind]:
                message = f"the {node.kind} `{node.name}` cannot be used here"
        if node.kind == "function" and node.name in _REMEDIES:
            hint = _REMEDIES[node.name]
        elif node.kind != "filter" and node.name in TABLES["filter"] and self.grammar.allows("filter", node.name):
            hint = f"it is a filter: `value | {node.name}`"
        elif node.kind == "filter" and node.name in TABLES["function"]:
            hint = f"it is a function: `{node.name}(…)`"
        self._find(code, message, node.at, node.until, hint, did_you_mean(node.name, known))

    def _applied(self, node: nodes.Word) -> None:
        """`map('upper')`, `select('defined')` and the like name another word, which is checked as if it stood there itself."""
        if node.kind != "filter":
            return
        arguments = node.arguments.positional
        applied: tuple[tuple[dict[str, int], WordKind], ...] = ((APPLIES_FILTER, "filter"), (APPLIES_TEST, "test"))
        for table, kind in applied:
            place = table.get(node.name)
            if place is None or place >= len(arguments):
                continue
            name = arguments[place]
            if not (isinstance(name, nodes.Const) and isinstance(name.value, str)):
                self._find(
                    _UNKNOWN[kind], f"`{node.name}` takes the name of a {kind} written out", name.start, name.end
                )
            elif name.value not in TABLES[kind] or not self.grammar.allows(kind, name.value):
                known = [known for known in TABLES[kind] if self.grammar.allows(kind, known)]
                message = f"there is no {kind} `{name.value}`"
                self._find(_UNKNOWN[kind], message, name.start, name.end, label=did_you_mean(name.value, known))
            else:
                entry = TABLES[kind][name.value]
                keywords = tuple(keyword for keyword, _ in node.arguments.keywords)
                complaint = entry.complaint(len(arguments) - place - 1, keywords)
                if complaint:
                    hint = f"behind its name come its own arguments; it is written `{entry.signature()}`"
                    self._find("E0110", f"the {kind} `{name.value}` {complaint}", name.start, name.end, hint)

    def _pattern(self, node: nodes.Word) -> None:
        if node.name not in PATTERN_WORDS or not node.arguments.positional:
            return
        source = node.arguments.positional[0]
        if isinstance(source, nodes.Const) and isinstance(source.value, str):
            try:
                pattern(source.value)
            except Misuse as misuse:
                self._find("E0111", str(misuse), source.start, source.end)

    def _find(self, code: str, message: str, start: int, end: int, hint: str = "", label: str = "") -> None:
        self.findings.append(Finding(code, message, start, end, hint, label))
