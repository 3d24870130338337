"""Every expression of a document: is it well formed, does it see what it names, does it keep secrets out of the log?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.dialects.expressions import (
    QUOTE_HINT,
    UNQUOTED,
    blanks_beside,
    declared_secrets,
    is_plain_true,
    named_part,
    unquoted,
    warn_constant,
)
from penstock.dialects.job.drafts import Excerpt
from penstock.dialects.job.level import SET_GLOBAL, Level, Member
from penstock.dialects.job.reader import Reading
from penstock.dialects.problems import Position, Severity, closest
from penstock.dialects.reader import did_you_mean, is_template, texts_in
from penstock.dialects.source.node import SourceNode
from penstock.expr import nodes
from penstock.expr.check import Finding, Grammar, Inspection, Use, inspect
from penstock.expr.errors import ExpressionError
from penstock.expr.parse import parse_condition
from penstock.expr.program import constant_truth
from penstock.expr.rules import read_expression
from penstock.kernel.kept import STATE
from penstock.kernel.net import On

AFTER_VARIABLES = ("NB_LINE", "ERROR_MESSAGE", "DURATION_MS")
NAMESPACES = ("context", "global", "globals", "iteration", "params", "execution", "execution_id", "keychain")
WHILE = "iterate_while"
SHELL = "shell"
_OTHER_WORDS = {
    "workload": "context", "ctx": "context", "vars": "context", "env": "context", "iter": "iteration", "item": "iteration.item",
    "index": "iteration.index", "secrets": "keychain", "args": "params",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """What the whole job defines. `context` is None when it cannot be known: for a joblet that is checked by itself."""

    context: frozenset[str] | None = None
    keychain: frozenset[str] = frozenset()
    state: frozenset[str] | None = None
    """What is kept between runs; None when the document declares nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """A text with an expression in it."""

    excerpt: Excerpt
    member: Member
    is_condition: bool = False
    is_link: bool = False


def check_names(reading: Reading, level: Level, names: Names) -> None:
    own = frozenset(str(entry.get("name")) for entry in level.draft.keychain)
    context = None if names.context is None else names.context | frozenset(level.draft.context)
    known = Names(context, names.keychain | own, names.state)
    for entry in level.draft.keychain_nodes:
        for node in texts_in(entry):
            if is_template(node):
                _check_secret(reading, level, context, Excerpt(node, str(node.value)))
    for member in level.members.values():
        if member.draft.type == SHELL and (command := member.draft.params.get("command")) is not None:
            _check_command(reading, level, command.node)
    for site in sites(level):
        _Check(reading, level, known, site).run()


def _check_command(reading: Reading, level: Level, node: SourceNode) -> None:
    excerpt = Excerpt(node, node.text() or "")
    for start, end in unquoted(excerpt.text):
        position = excerpt.position(start, end, level.text)
        reading.report("UNQUOTED_VALUE", UNQUOTED, position, hint=QUOTE_HINT, severity=Severity.WARNING)


def _check_secret(reading: Reading, level: Level, context: frozenset[str] | None, excerpt: Excerpt) -> None:
    """A keychain entry is resolved before the job runs, so it sees the context, the entries above it and nothing else."""
    inspection = inspect(excerpt.text)
    for found in inspection.findings:
        position = excerpt.position(found.start, found.end, level.text)
        reading.findings.error(found.code, found.message, position, label=found.label, hint=found.hint)
    for use in inspection.uses:
        root, position = use.path[0], excerpt.position(use.start, use.end, level.text)
        name = use.path[1] if root == "context" and len(use.path) > 1 else root
        if root == "keychain":
            continue  # Which entries it may read is checked with the order of all of them.
        if root != "context" and root in NAMESPACES:
            hint = "it sees `context`, and the keychain entries above it"
            reading.report("UNSEEN_NAME", f"`{root}` cannot be seen from a keychain entry", position, hint=hint)
        elif root != "context" and len(use.path) > 1 and (near := _OTHER_WORDS.get(root) or _near_namespace(root)):
            message, hint = (
                f"nothing defines `{root}`",
                "a keychain entry sees `context` and other entries, and nothing else",
            )
            reading.report("UNKNOWN_NAME", message, position, label=f"did you mean `{near}`?", hint=hint)
        elif context is not None and name != "context" and name not in context and not use.guarded:
            label = did_you_mean(name, [*context, "context"])
            hint = "" if label else "give it a default in `context`"
            reading.report("UNKNOWN_NAME", f"`context` has no `{name}`", position, label=label, hint=hint)


def sites(level: Level) -> Iterator[Site]:
    """Every expression of a level, in the order of the document."""
    for member in level.members.values():
        for name, param in member.draft.params.items():
            is_condition = member.draft.type == WHILE and name == "while"
            for node in texts_in(param.node):
                if is_condition or is_template(node):
                    yield Site(Excerpt(node, str(node.value)), member, is_condition)
    seen: set[int] = set()
    for wire in level.wires:
        if wire.on is On.IF and wire.when is not None and wire.source in level.members and id(wire.when) not in seen:
            seen.add(id(wire.when))
            yield Site(wire.when, level.members[wire.source], True, True)


def read_of(site: Site) -> Inspection:
    return inspected(site.excerpt.text) if site.is_condition else inspect(site.excerpt.text)


def _near_namespace(name: str) -> str | None:
    return closest(name, [one for one in sorted(NAMESPACES) if abs(len(one) - len(name)) < 2])


class _Check:
    def __init__(self, reading: Reading, level: Level, known: Names, site: Site) -> None:
        self.reading = reading
        self.level = level
        self.known = known
        self.site = site

    def run(self) -> None:
        inspection = read_of(self.site)
        for found in inspection.findings:
            position = self._position(found.start, found.end)
            if self.site.is_condition:
                self.reading.report("BAD_CONDITION", found.message, position, label=found.label, hint=found.hint)
            else:
                self.reading.findings.error(found.code, found.message, position, label=found.label, hint=found.hint)
        for use in inspection.uses:
            self._use(use)
        if inspection.has_blanks:
            text = self.site.excerpt.text
            message, hint = blanks_beside(text)
            self.reading.report(
                "BLANKS_BESIDE", message, self._position(0, len(text)), hint=hint, severity=Severity.WARNING
            )
        if inspection.constant is not None:
            self._constant(inspection.constant)

    def _position(self, start: int, end: int) -> Position:
        return self.site.excerpt.position(start, end, self.level.text)

    def _span(self, use: Use) -> Position:
        return self._position(*named_part(self.site.excerpt.text, use, NAMESPACES))

    def _constant(self, value: bool) -> None:
        text = self.site.excerpt.text
        if not is_plain_true(text):
            warn_constant(self.reading.findings, text, value, self._position(0, len(text)), "global.ready")

    def _use(self, use: Use) -> None:
        path = use.path[1:] if use.path[0] == "context" else use.path
        state = self.known.state
        if state is not None and path[0:1] == (STATE,) and len(path) > 1 and not use.guarded and path[1] not in state:
            label = did_you_mean(path[1], state)
            hint = "" if label else f"declare it, with the value of the first run: `state: {{{path[1]}: null}}`"
            self._unknown(f"`state` has no `{path[1]}`", use, label, hint, Severity.ERROR)
            return
        match use.path[0]:
            case "context":
                if len(use.path) > 1 and not use.guarded:
                    self._context(use, use.path[1])
            case "keychain":
                self._secret(use)
            case "iteration":
                self._iteration(use)
            case "params":
                if not self.level.draft.is_joblet:
                    hint = "a job reads `{{ context.… }}`"
                    self._unseen("`params` is seen in joblets only", use, hint)
            case root if root not in NAMESPACES:
                self._bare(use, root)

    def _context(self, use: Use, name: str) -> None:
        context = self.known.context
        if context is not None and name not in context:
            label = did_you_mean(name, context)
            hint = "" if label else "`--set` may bring it; otherwise give it a default in `context`"
            self._unknown(f"`context` has no `{name}`", use, label, hint)

    def _bare(self, use: Use, name: str) -> None:
        context = self.known.context
        if context is not None and name in context:
            return
        # The context of a joblet by itself is unknown: `env` may be one of its variables, but `contxt` is a misspelling.
        meant = None if context is None else _OTHER_WORDS.get(name)
        if len(use.path) > 1 and not use.guarded and name not in self.level.members:
            # Something is read from it, and it is so near to one of the few names that have something in them.
            near = meant or _near_namespace(name)
            if near is not None:
                position = self._span(use)
                self.reading.report(
                    "UNKNOWN_NAME", f"nothing defines `{name}`", position, label=f"did you mean `{near}`?"
                )
                return
        if context is None:
            return
        if self.site.is_link:
            # Components define their own after-variables, so only a near miss is reported.
            near = closest(name, sorted((*AFTER_VARIABLES, *context, *NAMESPACES)))
            if (near or meant) and not name.startswith("NB_LINE_OUT_"):
                label = f"did you mean `{meant or near}`?"
                self._unknown(f"`{name}` is no variable that every component sets", use, label, "")
        elif not use.guarded:
            label = f"did you mean `{meant}`?" if meant else did_you_mean(name, [*context, *NAMESPACES])
            hint = (
                "" if label else "globals are read as `{{ global.name }}`, variables of the context by their bare name"
            )
            severity = Severity.ERROR if label or len(use.path) > 1 else Severity.WARNING
            self._unknown(f"nothing defines `{name}`", use, label, hint, severity)

    def _iteration(self, use: Use) -> None:
        is_inside = self.level.draft.is_joblet or self.level.homes.get(self.site.member.name, "")
        if not is_inside and self.site.member.draft.type != WHILE:
            self._unseen("`iteration` is seen in the body of an iterator only", use, "")

    def _secret(self, use: Use) -> None:
        member = self.site.member
        if self.site.is_condition or member.draft.type == SET_GLOBAL or member.is_iterator:
            where = (
                "a condition" if self.site.is_condition else f"`{member.name}`, whose values are recorded in the log"
            )
            hint = "use it in the parameters of the component that needs it"
            self.reading.report("SECRET_IN_LOG", f"a secret stands in {where}", self._span(use), hint=hint)
        elif len(use.path) > 1 and use.path[1] not in self.known.keychain:
            names = self.known.keychain
            if self.known.context is not None:
                message = f"`{use.path[1]}` is not declared in `keychain`"
                label = did_you_mean(use.path[1], names)
                self.reading.report(
                    "UNKNOWN_SECRET", message, self._span(use), label=label, hint=declared_secrets(names)
                )

    def _unknown(self, message: str, use: Use, label: str, hint: str, severity: Severity = Severity.WARNING) -> None:
        self.reading.report("UNKNOWN_NAME", message, self._span(use), label=label, hint=hint, severity=severity)

    def _unseen(self, message: str, use: Use, hint: str) -> None:
        self.reading.report("UNSEEN_NAME", message, self._span(use), hint=hint)


# ---- The grammar of conditions in `if` links and `while` (appendix A, D40)
#
# Literals, names, comparison, boolean and arithmetic operators, and a few functions. `default` and `is defined` are there
# because a missing global makes a condition False unless one of these tests it.


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
    """Everything wrong with a condition, and the names it reads. `guarded`: the condition tests whether the name exists."""
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
                form = "a choice (`… if … else …`)"
            case nodes.Slice():
                form = "a slice"
            case nodes.DictOf():
                form = "a mapping"
            case nodes.Chain(operator="~"):
                form = "`~`"
            case nodes.Name(name=word) if word in _OTHER_SPELLINGS:
                hint = f"write `{_OTHER_SPELLINGS[word]}`"
                found.append(Finding("E0101", f"`{word}` is not a constant here", node.start, node.end, hint))
                continue
            case _:
                continue
        found.append(Finding("E0101", f"{form} cannot stand in a condition", node.start, node.end, _LANGUAGE))
    return found
