"""Templates as programs: the statements around expressions, and what a whole text gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from penstock.expr import nodes
from penstock.expr.budget import MAX_STEPS, TOGETHER, Frame, SharedBudget, check_depth
from penstock.expr.compile import ExpressionCompiler, Run
from penstock.expr.errors import ExpressionError, Misuse, Unforeseen
from penstock.expr.nodes import Body, Expr, Template, children, path_of
from penstock.expr.parse import parse, parse_condition
from penstock.expr.rules import Finding, read_expression, read_template
from penstock.expr.scope import Names, Scope
from penstock.expr.values import MISSING, elements, is_sequence, kind, to_text

Writer: TypeAlias = Callable[[Frame, list[str]], None]
CONSTANT_STEPS: Final = 5_000


class Program(Protocol):
    """Evaluates a text over a scope. A caller with a budget of its own passes the frame."""

    def __call__(self, scope: Scope, frame: Frame | None = None) -> Any: ...


# What a turn of a loop costs besides its body.
_TURN = 4


def template_program(text: str, strict: bool) -> Program:
    template = parse(text)
    _refuse(text, read_template(template)[0])
    single = template.single
    if single is not None:
        return _single(single, text, strict)
    return _text(template, strict)


def condition_program(text: str) -> Program:
    expr = parse_condition(text)
    _refuse(text, read_expression(expr, True)[0])
    run = ExpressionCompiler(text, strict=False).compile(expr)
    return _guarded(lambda frame: bool(run(frame)), text, expr.start, expr.end)


def constant_truth(text: str) -> bool | None:
    """What a condition without variables is; None when that takes more than a few steps. Raises ExpressionError.

    A document may hold thousands of conditions, and all are checked before the run.
    """
    frame = Frame(Names())
    frame.steps = CONSTANT_STEPS
    try:
        return bool(condition_program(text)(frame, frame))
    except ExpressionError:
        if frame.is_spent:
            return None
        raise


def _refuse(text: str, findings: list[Finding]) -> None:
    for finding in findings:
        message = f"{finding.message}; {finding.label}" if finding.label else finding.message
        raise ExpressionError(message, text, finding.start, finding.end, code=finding.code, hint=finding.hint)


# What Python can throw at an operation that does not expect a value. Errors from outside (a view that cannot be read) pass
# through.
_UNFORESEEN = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError)


def _guarded(run: Run, text: str, start: int, end: int, frame_of: Callable[[Scope], Any] = Frame) -> Program:
    """The entry to the evaluator: every failure of an expression leaves as an ExpressionError.

    An operation refuses what it cannot work with by itself. `Unforeseen` is the last resort, and a mistake of ours.
    """

    def guarded(scope: Scope, frame: Frame | None = None) -> Any:
        try:
            if frame is None and type(scope) is SharedBudget:
                return _from_shared(run, scope, text, frame_of)
            return run(frame_of(scope) if frame is None else frame)
        except Misuse as misuse:
            raise ExpressionError(str(misuse), text, start, end) from None
        except RecursionError:
            raise ExpressionError("the values are nested too deeply", text, start, end) from None
        except _UNFORESEEN as error:
            message = f"the values do not fit the expression: {type(error).__name__}: {error}"
            raise Unforeseen(message, text, start, end) from error

    return guarded


def _from_shared(run: Run, budget: SharedBudget, text: str, frame_of: Callable[[Scope], Any]) -> Any:
    budget.open(text)
    if frame_of is not Frame:
        return run(frame_of(budget))
    frame = Frame(budget)
    allowed = frame.steps
    try:
        return run(frame)
    except (Misuse, ExpressionError):
        if allowed < MAX_STEPS and frame.is_spent:
            raise Misuse(TOGETHER) from None
        raise
    finally:
        budget.settle(allowed, max(frame.steps, 0))


def _single(expr: Expr, text: str, strict: bool) -> Program:
    compiler = ExpressionCompiler(text, strict)
    run = compiler.compile_whole(expr)

    # A path needs nothing of a frame but the look-up, which the scope has itself; what it leads to was checked when it was made.
    is_path = path_of(expr) is not None

    def lenient(frame: Frame) -> Any:
        value = run(frame)
        return None if value is MISSING else value

    def single(frame: Frame) -> Any:
        value = run(frame)
        if value is MISSING:
            raise compiler.undefined(expr, Frame(frame))
        return value

    found = single if strict else lenient

    def made(frame: Frame) -> Any:
        value = found(frame)
        check_depth(value)
        return value

    return _guarded(found if is_path else made, text, expr.start, expr.end, _itself if is_path else Frame)


def _itself(scope: Scope) -> Any:
    return scope


def _text(template: Template, strict: bool) -> Program:
    writers = _BodyCompiler(template, strict).body(template.body)

    def write(frame: Frame) -> str:
        written: list[str] = []
        for writer in writers:
            writer(frame, written)
        return "".join(written)

    return _guarded(write, template.text, 0, len(template.text))


class _BodyCompiler:
    def __init__(self, template: Template, strict: bool) -> None:
        self.text = template.text
        self.strict = strict
        self.expressions = ExpressionCompiler(template.text, strict, _assigned(template.body))

    def body(self, body: Body) -> list[Writer]:
        return [self._statement(part) for part in body]

    def _statement(self, part: nodes.Statement) -> Writer:
        match part:
            case nodes.Text():
                return self._constant(part.value)
            case nodes.Output():
                return self._output(part)
            case nodes.If():
                return self._if(part)
            case nodes.For():
                return self._for(part)
            case nodes.Assign():
                return self._assign(part)

    def _constant(self, text: str) -> Writer:
        def constant(frame: Frame, written: list[str]) -> None:
            frame.write(len(text))
            written.append(text)

        return constant

    def _output(self, part: nodes.Output) -> Writer:
        run, expr = self.expressions.compile(part.expr), part.expr

        def output(frame: Frame, written: list[str]) -> None:
            value = run(frame)
            if value is MISSING:
                if self.strict:
                    raise self.expressions.undefined(expr, frame)
                return
            try:
                text = to_text(frame, value)
                frame.write(len(text))
                frame.spend(1 + (len(text) >> 7))
            except Misuse as misuse:
                raise ExpressionError(str(misuse), self.text, expr.start, expr.end) from None
            written.append(text)

        return output

    def _if(self, part: nodes.If) -> Writer:
        branches = [(self.expressions.compile(test), self.body(body)) for test, body in part.branches]
        otherwise = self.body(part.otherwise)

        def if_(frame: Frame, written: list[str]) -> None:
            chosen = otherwise
            for test, body in branches:
                if test(frame):
                    chosen = body
                    break
            for writer in chosen:
                writer(frame, written)

        return if_

    def _assign(self, part: nodes.Assign) -> Writer:
        run, targets, node = self.expressions.compile(part.value), part.targets, part.value

        def assign(frame: Frame, written: list[str]) -> None:
            try:
                frame.spend(1 + (len(frame.locals) >> 4))
                frame.locals = {**frame.locals, **_bound(targets, run(frame))}
            except Misuse as misuse:
                raise ExpressionError(str(misuse), self.text, node.start, node.end) from None

        return assign

    def _for(self, part: nodes.For) -> Writer:
        over, body, otherwise = self.expressions.compile(part.over), self.body(part.body), self.body(part.otherwise)
        where = self.expressions.compile(part.where) if part.where is not None else None
        uses_loop = _mentions_loop(part.body)
        turn = _TURN + _weight(part.body) + (_size(part.where) if part.where is not None else 0)

        def for_(frame: Frame, written: list[str]) -> None:
            value = over(frame)
            if value is MISSING:
                if self.strict:
                    raise self.expressions.undefined(part.over, frame)
                value = []
            outer = frame.locals
            try:
                found = elements(frame, value)
                frame.spend(len(found) * (turn + (len(outer) >> 4)))
                if where is not None:
                    frame.items(len(found))
                    found = [each for each in found if _holds(where, frame, {**outer, **_bound(part.targets, each)})]
                for index, element in enumerate(found):
                    names = {**outer, **_bound(part.targets, element)}
                    frame.locals = {**names, "loop": _loop(index, len(found))} if uses_loop else names
                    for writer in body:
                        writer(frame, written)
            except Misuse as misuse:
                raise ExpressionError(str(misuse), self.text, part.over.start, part.over.end) from None
            frame.locals = outer
            for writer in () if found else otherwise:
                writer(frame, written)

        return for_


def _holds(where: Run, frame: Frame, names: dict[str, Any]) -> bool:
    frame.locals = names
    return bool(where(frame))


def _loop(index: int, length: int) -> dict[str, Any]:
    return {
        "index": index + 1,
        "index0": index,
        "revindex": length - index,
        "revindex0": length - index - 1,
        "first": index == 0,
        "last": index == length - 1,
        "length": length,
    }


def _bound(targets: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(targets) == 1:
        return {targets[0]: value}
    if not is_sequence(value):
        raise Misuse(f"{kind(value)} cannot be taken apart into {len(targets)} names")
    if len(value) != len(targets):
        raise Misuse(f"a list of {len(value)} cannot be taken apart into {len(targets)} names")
    return dict(zip(targets, value, strict=True))


def _assigned(body: Body) -> frozenset[str]:
    """All names that statements set, anywhere in the template."""
    names: set[str] = set()
    for part in body:
        match part:
            case nodes.Assign():
                names.update(part.targets)
            case nodes.For():
                names.update(part.targets, ("loop",), _assigned(part.body), _assigned(part.otherwise))
            case nodes.If():
                names.update(*(_assigned(inner) for _, inner in part.branches), _assigned(part.otherwise))
    return frozenset(names)


def _mentions_loop(body: Body) -> bool:
    return any(use.path[0] == "loop" for use in read_template(Template("", body))[1])


def _weight(body: Body) -> int:
    """How many parts a turn through the body has, at most; a loop inside pays for its own turns."""
    total = 0
    for part in body:
        match part:
            case nodes.Text():
                total += 1
            case nodes.Output():
                total += _size(part.expr)
            case nodes.Assign():
                total += _size(part.value)
            case nodes.For():
                total += _size(part.over) + _weight(part.otherwise)
            case nodes.If():
                total += sum(_size(test) + _weight(inner) for test, inner in part.branches) + _weight(part.otherwise)
    return total


def _size(expr: Expr) -> int:
    return 1 + sum(map(_size, children(expr)))
