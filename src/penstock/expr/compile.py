"""Turns a tree into nested functions of one argument, the frame of the evaluation.

Compiled twice at most: strict, where an undefined value inside a text, a list or a mapping is an error that names it; and
lenient, where it is nothing or null. All else is the same in both, so an expression means the same wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias

from penstock.expr import nodes
from penstock.expr.budget import MAX_STEPS, Frame
from penstock.expr.error_words import EITHER, in_noetl_words
from penstock.expr.errors import ExpressionError, Misuse, UndefinedValue
from penstock.expr.nodes import Expr, children, path_of
from penstock.expr.result_views import viewed
from penstock.expr.rules import did_you_mean
from penstock.expr.values import ARITHMETIC, COMPARISONS, MISSING, item, negative, positive, sliced, to_text
from penstock.expr.words.table import TABLES, Entry, call
from penstock.ports.references import reference

Run: TypeAlias = Callable[[Frame], Any]
PLAIN = frozenset({str, int, float, bool, type(None), dict, list, type(MISSING)})


class ExpressionCompiler:
    """`assigned` are the names that statements of the same template set; all other names are looked up in the scope."""

    def __init__(self, text: str, strict: bool, assigned: frozenset[str] = frozenset()) -> None:
        self.text = text
        self.strict = strict
        self.assigned = assigned

    def compile_whole(self, node: Expr) -> Run:
        """The same for a value that is only passed on: a stored result stays a reference."""
        path = path_of(node)
        return self.compile(node) if path is None else self._path(*path)

    def compile(self, node: Expr) -> Run:
        if (path := path_of(node)) is not None:
            return _opening(self._path(*path))
        match node:
            case nodes.Const():
                value = node.value
                return lambda frame: value
            case nodes.Word():
                return self._word(node)
            case nodes.Compare():
                other = in_noetl_words(node)
                return self._compare(node) if other is None else self._compared_twice(node, other)
            case nodes.Chain():
                return self._chain(node)
            case nodes.Choice():
                return self._choice(node)
            case nodes.Binary():
                return self._binary(node)
            case nodes.Unary():
                return self._unary(node)
            case nodes.ListOf():
                return self._list(node)
            case nodes.DictOf():
                return self._dict(node)
            case nodes.Slice():
                return self._slice(node)
            case nodes.Get():
                return self._get(node)
            case _:
                raise AssertionError(node)

    def _path(self, root: str, keys: tuple[str | int, ...]) -> Run:
        start = self._local(root) if root in self.assigned else None
        if start is None and root == "output" and keys[:1] == ("data",) and len(keys) > 1:
            start, keys = _field_of_result(keys[1]), keys[2:]
        elif start is None and keys and keys[0] == "data":
            start, keys = _data_of(root), keys[1:]
        elif start is None and keys and keys[0] == "_ref":
            start, keys = _ref_of(root), keys[1:]
        if start is not None:
            return _steps(start, keys) if keys else start
        if not keys:
            return _whole_outcome if root == "output" else lambda frame: frame.lookup(root)
        if len(keys) == 1:
            (key,) = keys

            def one(frame: Frame) -> Any:
                value = frame.lookup(root)
                if type(value) is dict:
                    return value[key] if key in value else viewed(value, key, MISSING)
                return item(value, key)

            return one
        return _steps(lambda frame: frame.lookup(root), keys)

    def _local(self, name: str) -> Run:
        def local(frame: Frame) -> Any:
            value = frame.locals.get(name, MISSING)
            return frame.lookup(name) if value is MISSING else value

        return local

    def _get(self, node: nodes.Get) -> Run:
        of, key = self.compile(node.of), self.compile(node.key)

        def get(frame: Frame) -> Any:
            value, wanted = of(frame), key(frame)
            if value is MISSING or wanted is MISSING:
                return MISSING
            try:
                return item(value, wanted)
            except Misuse as misuse:
                self._misused(misuse, node)

        return get

    def _slice(self, node: nodes.Slice) -> Run:
        of, *bounds = (
            self.compile(part) if part is not None else _none for part in (node.of, node.first, node.last, node.step)
        )

        def slice_(frame: Frame) -> Any:
            try:
                return sliced(frame, of(frame), *(bound(frame) for bound in bounds))
            except Misuse as misuse:
                self._misused(misuse, node)

        return slice_

    def _list(self, node: nodes.ListOf) -> Run:
        items = [self._inside(part) for part in node.items]
        return lambda frame: [part(frame) for part in items]

    def _dict(self, node: nodes.DictOf) -> Run:
        pairs = [(self._inside(key), self._inside(value)) for key, value in node.pairs]

        def dict_(frame: Frame) -> Any:
            try:
                return {key(frame): value(frame) for key, value in pairs}
            except TypeError:
                self._misused(Misuse("the keys of a mapping are texts or numbers"), node)

        return dict_

    def _inside(self, node: Expr) -> Run:
        """A part of a list or mapping, which must not hold an undefined value."""
        run = self.compile_whole(node)
        if isinstance(node, nodes.Const):
            return run

        def inside(frame: Frame) -> Any:
            value = run(frame)
            if value is not MISSING:
                return value
            if self.strict:
                raise self.undefined(node, frame)
            return None

        return inside

    def _unary(self, node: nodes.Unary) -> Run:
        operand = self.compile(node.operand)
        if node.operator == "not":
            return lambda frame: not operand(frame)
        apply = negative if node.operator == "-" else positive

        def signed(frame: Frame) -> Any:
            try:
                return apply(operand(frame))
            except Misuse as misuse:
                self._misused(misuse, node)

        return signed

    def _binary(self, node: nodes.Binary) -> Run:
        left, right = self.compile(node.left), self.compile(node.right)
        calculate = ARITHMETIC[node.operator]

        def binary(frame: Frame) -> Any:
            try:
                return calculate(frame, left(frame), right(frame))
            except Misuse as misuse:
                self._misused(misuse, node)

        return binary

    def _compare(self, node: nodes.Compare) -> Run:
        first = self.compile(node.first)
        rest = [(COMPARISONS[sign], self._compared(sign, operand)) for sign, operand in node.rest]
        if len(rest) == 1:
            ((compare, second),) = rest

            def once(frame: Frame) -> Any:
                try:
                    return compare(frame, first(frame), second(frame))
                except Misuse as misuse:
                    self._misused(misuse, node)

            return once

        def chained(frame: Frame) -> Any:
            try:
                left = first(frame)
                for compare, operand in rest:
                    right = operand(frame)
                    if not compare(frame, left, right):
                        return False
                    left = right
            except Misuse as misuse:
                self._misused(misuse, node)
            return True

        return chained

    def _compared_twice(self, node: nodes.Compare, other: nodes.Compare) -> Run:
        """An error's kind has two words: it is one of several if one word is, and another one if both are."""
        once, again = self._compare(node), self._compare(other)
        if node.rest[0][0] in EITHER:
            return lambda frame: once(frame) or again(frame)
        return lambda frame: once(frame) and again(frame)

    def _compared(self, sign: str, operand: Expr) -> Run:
        if sign in ("in", "not in") and isinstance(operand, nodes.ListOf):
            values = [part.value for part in operand.items if isinstance(part, nodes.Const)]
            if len(values) == len(operand.items):
                # A list of constants is made once; it cannot leave the comparison, so it cannot be changed.
                return lambda frame: values
        return self.compile(operand)

    def _chain(self, node: nodes.Chain) -> Run:
        *others, last = (self.compile(operand) for operand in node.operands)
        match node.operator:
            case "or":

                def any_(frame: Frame) -> Any:
                    for operand in others:
                        value = operand(frame)
                        if value:
                            return value
                    return last(frame)

                return any_
            case "and":

                def all_(frame: Frame) -> Any:
                    for operand in others:
                        value = operand(frame)
                        if not value:
                            return value
                    return last(frame)

                return all_
            case "~":
                return self._joined(node, [*others, last])

    def _joined(self, node: nodes.Chain, operands: list[Run]) -> Run:
        def joined(frame: Frame) -> Any:
            parts: list[str] = []
            try:
                for operand in operands:
                    value = operand(frame)
                    if value is not MISSING:
                        parts.append(to_text(frame, value))
                    elif self.strict:
                        return MISSING
                frame.text(sum(map(len, parts)), *parts)
            except Misuse as misuse:
                self._misused(misuse, node)
            return "".join(parts)

        return joined

    def _choice(self, node: nodes.Choice) -> Run:
        test, then = self.compile(node.test), self.compile(node.then)
        otherwise = self.compile(node.otherwise) if node.otherwise is not None else _missing
        return lambda frame: then(frame) if test(frame) else otherwise(frame)

    def _word(self, node: nodes.Word) -> Run:
        entry = TABLES[node.kind][node.name]
        if node.kind == "test":
            return self._test(node, entry)
        if node.name in ("default", "d") and node.kind == "filter" and len(node.arguments.all()) <= 1:
            return self._default(node)
        values = [self.compile(part) for part in (*(() if node.of is None else (node.of,)), *node.arguments.positional)]
        named = {name: self.compile(part) for name, part in node.arguments.keywords}

        def word(frame: Frame) -> Any:
            try:
                arguments = [value(frame) for value in values]
                return call(
                    entry, frame, arguments, {name: run(frame) for name, run in named.items()} if named else _NO_NAMES
                )
            except Misuse as misuse:
                self._misused(misuse, node)

        return word

    def _default(self, node: nodes.Word) -> Run:
        assert node.of is not None
        of = self.compile(node.of)
        instead = self.compile(node.arguments.all()[0]) if node.arguments.all() else (lambda frame: "")

        def default(frame: Frame) -> Any:
            value = of(frame)
            return instead(frame) if value is MISSING else value

        return default

    def _test(self, node: nodes.Word, entry: Entry) -> Run:
        assert node.of is not None
        of, negated = self.compile(node.of), node.negated
        arguments = [self.compile(part) for part in node.arguments.all()]

        def test(frame: Frame) -> Any:
            try:
                passed = call(entry, frame, [of(frame), *(argument(frame) for argument in arguments)], {})
            except Misuse as misuse:
                self._misused(misuse, node)
            # Every test of an undefined value fails, except whether it is defined.
            return (passed is True) != negated

        return test

    def _misused(self, misuse: Misuse, node: Expr) -> NoReturn:
        raise ExpressionError(str(misuse), self.text, node.start, node.end) from None

    def undefined(self, node: Expr, frame: Frame) -> ExpressionError:
        return undefined_error(self, node, frame)


_NO_NAMES: dict[str, Any] = {}


def _none(frame: Frame) -> None:
    return None


def _missing(frame: Frame) -> Any:
    return MISSING


def _opening(run: Run) -> Run:
    """Loads large texts from the store. Views of lists and mappings are loaded when something looks inside."""

    def opening(frame: Frame) -> Any:
        value = run(frame)
        return value.opened() if type(value) not in PLAIN and hasattr(value, "opened") else value

    return opening


def _whole_outcome(frame: Frame) -> Any:
    """`output` as a whole is the result, also where the value is only passed on."""
    value = frame.lookup("output")
    return value.whole() if type(value) not in PLAIN and hasattr(value, "whole") else value


def _data_of(root: str) -> Run:
    def data(frame: Frame) -> Any:
        value = frame.lookup(root)
        own = MISSING if value is MISSING else item(value, "data")
        return frame.lookup(f"{root}.data") if own is MISSING and value is not MISSING else own

    return data


def _field_of_result(key: str | int) -> Run:
    """A field that the result of a request does not have is looked up in what the answer says: that is `output.data` in other
    engines."""
    result = _data_of("output")

    def field(frame: Frame) -> Any:
        value = result(frame)
        found = item(value, key)
        if found is not MISSING or not isinstance(value, Mapping):
            return found
        return item(viewed(value, "body", MISSING), key)

    return field


def _ref_of(root: str) -> Run:
    """`x._ref` of a result without a field of that name is its reference as text (penstock.ports.references)."""

    def ref(frame: Frame) -> Any:
        value = frame.lookup(root)
        own = MISSING if value is MISSING else item(value, "_ref")
        if own is not MISSING or value is MISSING:
            return own
        whole = value.whole() if hasattr(value, "whole") else frame.lookup(f"{root}.data")
        return MISSING if whole is MISSING else reference(whole)

    return ref


def _steps(start: Run, keys: tuple[str | int, ...]) -> Run:
    def steps(frame: Frame) -> Any:
        value = start(frame)
        for key in keys:
            if type(value) is dict:
                value = value[key] if key in value else viewed(value, key, MISSING)
            elif value is MISSING:
                return MISSING
            else:
                value = item(value, key)
        return value

    return steps


# ---- Which variable made a value undefined. Runs only after the failure, so it may evaluate parts again.


def undefined_error(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> UndefinedValue:
    # A few steps more than were left: what is evaluated again was paid for once.
    frame.steps = min(MAX_STEPS, max(frame.steps, MAX_STEPS // 10))
    culprit = _culprit(compiler, node, frame)
    source = compiler.text[culprit.start : culprit.end]
    shown = source if len(source) <= 80 else source[:77] + "…"
    path = path_of(culprit)
    message = f"`{shown}` is undefined{_more(compiler, culprit, frame) if path else ''}"
    return UndefinedValue(
        message,
        compiler.text,
        culprit.start,
        culprit.end,
        name=".".join([path[0], *map(str, path[1])]) if path else None,
    )


def _culprit(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> Expr:
    if path_of(node) is not None:
        return node
    suspects: tuple[Expr, ...] = children(node)
    match node:
        case nodes.Choice():
            taken = node.then if compiler.compile(node.test)(frame) else node.otherwise
            return node if taken is None else _culprit(compiler, taken, frame)
        case nodes.Chain(operator="or"):
            suspects = node.operands[-1:]
        case nodes.Word(kind="filter", name="default" | "d"):
            suspects = node.arguments.all()
    for suspect in suspects:
        if compiler.compile(suspect)(frame) is MISSING:
            return _culprit(compiler, suspect, frame)
    return node


def _more(compiler: ExpressionCompiler, node: Expr, frame: Frame) -> str:
    """Where the path breaks off, and a name that is there and looks like the missing one."""
    steps: list[nodes.Get] = []
    root = node
    while isinstance(root, nodes.Get):
        steps.insert(0, root)
        root = root.of
    value = compiler.compile(root)(frame)
    if value is MISSING:
        return ""
    for step in steps:
        assert isinstance(step.key, nodes.Const)
        inner = item(value, step.key.value)
        if inner is MISSING:
            parent = compiler.text[step.of.start : step.of.end]
            broken = f": `{parent}` has no `{step.key.value}`" if step is not steps[-1] else ""
            names = [name for name in value if isinstance(name, str)][:1000] if isinstance(value, Mapping) else []
            close = did_you_mean(str(step.key.value), names) if value is not None else ""
            return f"{broken}{'; ' + close if close else ''}"
        value = inner
    return ""
