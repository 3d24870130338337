"""The author's code, compiled once and run many times over the same names.

Every line number, in a syntax error as in a traceback, is one of the author's file. What the code raises leaves here as a
`ComponentFailure` that names that line; what the engine raises never passes through here.
"""

from __future__ import annotations
import __future__

import ast
import asyncio
import itertools
import symtable
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from types import CodeType, ModuleType
from typing import Any, NoReturn

from penstock.components.base import Call, ComponentFailure
from penstock.tools.base import Source
from penstock.tools.output import StoppableCode, captured
from penstock.tools.parameters import similar
from penstock.tools.python.code import Code, NotFriendly, _compiled, _describe, _Stop, to_json_friendly


def read_only(value: Any, name: str) -> Any:
    """A deep copy that raises when it is written to. It is still a `dict` and a `list` to everything that reads it."""
    if isinstance(value, Mapping):
        return _Fixed(name, {key: read_only(item, name) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return _FixedList(name, [read_only(item, name) for item in value])
    return value


class _Refuses:
    """Every way to write ends here."""

    _name: str

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"`{self._name}` is read-only; values that change during a run belong in `globals`")

    __setitem__ = __delitem__ = __ior__ = __iadd__ = __imul__ = _refuse
    clear = pop = popitem = setdefault = update = append = extend = insert = remove = reverse = sort = _refuse

    def __setattr__(self, name: str, value: Any) -> None:
        self._refuse()


class _Fixed(_Refuses, dict[str, Any]):
    __slots__ = ("_name",)

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        dict.__init__(self, values)
        object.__setattr__(self, "_name", name)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class _FixedList(_Refuses, list[Any]):
    __slots__ = ("_name",)

    def __init__(self, name: str, values: list[Any]) -> None:
        list.__init__(self, values)
        object.__setattr__(self, "_name", name)

    def __reduce__(self) -> Any:
        return list, (list(self),)


class CodeThread(StoppableCode):
    """One run of code in a thread, what it prints, and the way to stop it from another."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.say, call.settings.max_output_bytes)
        self._call = call

    async def run(self, work: Callable[[], Any], timeout: float | None) -> Any:
        """What `work` returns. When the time is over, or the run is cancelled, nothing of it goes on."""
        task = asyncio.ensure_future(self._call.threads.run(self._perform, work))
        try:
            done, _ = await asyncio.wait([task], timeout=timeout)
        except asyncio.CancelledError:
            await self._stop(task)
            raise
        if not done:
            await self._stop(task)
            raise ComponentFailure("timeout", f"the code was still running after {timeout:g} s", retryable=True)
        return task.result()

    @contextmanager
    def in_code(self) -> Iterator[None]:
        """Here, and only here, the thread may be stopped at any instruction."""
        self.enter(threading.get_ident())
        try:
            yield
        finally:
            self.enter(None)

    @contextmanager
    def out_of_code(self) -> Iterator[None]:
        """Back in the engine for a moment, called by the code."""
        self.enter(None)
        try:
            yield
        finally:
            self.enter(threading.get_ident())

    def say(self, text: object) -> None:
        """A line of its own in the run's log."""
        self._lines.write(f"{text}\n")

    def _perform(self, work: Callable[[], Any]) -> Any:
        try:
            with captured(self._lines):
                return work()
        finally:
            self._lines.close()

    async def _stop(self, task: asyncio.Future[Any]) -> None:
        self.drop_output()
        self.raise_stopped()
        task.add_done_callback(_look)
        task.cancel()
        await asyncio.wait([task])


def _look(task: asyncio.Future[Any]) -> None:
    """The exception of a stopped run is of no interest, but asyncio warns unless it is retrieved."""
    if not task.cancelled():
        task.exception()


_numbers = itertools.count(1)
_PARSING = threading.Lock()
"""Python 3.11 loses count of its depth when two threads build syntax trees at once, and then raises SystemError."""
_STEP = "__penstock_step__"
_CHANGING = frozenset({"row", "rows", "output", "reject"})
_LOOKS_AT_ITS_SCOPE = frozenset({"locals", "vars", "dir", "exec", "eval"})


class Block:
    """One piece of code, and where it stands in its document."""

    def __init__(self, text: str, parameter: str, source: Source) -> None:
        line = source.lines.get(parameter, 0)
        # A label other than `code` would have the line counted in a script file, which this is not.
        self.code = Code(text, source.file if line else f"<{parameter}>", line)
        self.parameter = parameter
        try:
            self.whole: CodeType = _compiled(self.code)
        except _Stop as stop:
            raise _failure(stop.failure, parameter) from None
        self._text = "\n" * (max(line, 1) - 1) + text

    @cached_property
    def _tree(self) -> ast.Module:
        with _PARSING:
            return ast.parse(self._text)

    def names(self, name: str) -> bool:
        """Does the code use this name anywhere?"""
        return any(isinstance(node, ast.Name | ast.Global) and _is(node, name) for node in ast.walk(self._tree))

    def start(self) -> CodeType:
        """The imports and definitions at its start, which need not be made anew for every row."""
        return self._compiled(self._tree.body[: self.constant()])

    def step(self, names: Names) -> Callable[[], object]:
        """All that follows the start, as a function of no arguments over these names."""
        rest = self._tree.body[self.constant() :]
        try:
            exec(self._compiled([self._as_function(rest)]), names.values)
        except SyntaxError:
            return partial(exec, self._compiled(rest), names.values)
        function: Callable[[], object] = names.values.pop(_STEP)
        return function

    def constant(self) -> int:
        """So many statements at its start are made once."""
        body = self._tree.body
        return next((number for number, statement in enumerate(body) if not _is_constant(statement)), len(body))

    def identifiers(self) -> list[str] | None:
        """The names in it, if what follows the start can stand in a function; else None."""
        try:
            self._compiled([self._as_function(self._tree.body[self.constant() :])])
        except SyntaxError:
            return None
        return sorted(self._seen())

    def _seen(self) -> set[str]:
        return set(symtable.symtable(self.code.text, self.code.file, "exec").get_identifiers())

    def _as_function(self, body: list[ast.stmt]) -> ast.FunctionDef:
        """The statements as a function, whose names are found faster than those of a module. All of them are declared global,
        so that they mean what they did; the few statements that cannot stand like that are a SyntaxError."""
        seen = self._seen()
        if seen & _LOOKS_AT_ITS_SCOPE:
            raise SyntaxError
        with _PARSING:
            made = ast.parse(f"def {_STEP}():\n    pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        named: list[ast.stmt] = [ast.Global(names=sorted(seen))] if seen else []
        made.name, made.body = _STEP, [*named, *(body or [ast.Pass()])]
        return ast.fix_missing_locations(made)

    def _compiled(self, body: list[ast.stmt]) -> CodeType:
        # `from __future__ import annotations` holds for the rest as well, though its statement stands in the first part.
        flags = self.whole.co_flags & __future__.annotations.compiler_flag
        module = ast.Module(body=body, type_ignores=[])
        made: CodeType = compile(module, self.code.file, "exec", flags=flags, dont_inherit=True)
        return made

    def failure(
        self, error: BaseException, module: str, row: int | None = None, columns: tuple[str, ...] = ()
    ) -> ComponentFailure:
        """What the code raised, as the author would look for it; `row` is the number of the row it happened at."""
        is_told = isinstance(error, ComponentFailure)
        made = error if is_told else _failure(_describe(error, self.code, module), self.parameter)
        assert isinstance(made, ComponentFailure)
        if row is not None:
            made.message += f", at row {row:,}"
            made.detail["row"] = row
        key = error.args[0] if isinstance(error, KeyError) and error.args else None
        if isinstance(key, str) and columns and key not in columns:
            made.message += similar(key, columns)
        made.args = (made.message,)
        return made


class Names:
    """The variables of the code: a module of its own while it runs, because data classes and pickle look theirs up by name."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._module = ModuleType(f"penstock_component_{next(_numbers)}")
        self.values: dict[str, Any] = self._module.__dict__
        self.values.update(given)
        self.module = self._module.__name__
        sys.modules[self.module] = self._module

    def run(self, block: Block, part: CodeType) -> None:
        """Run once; what it raises is a ComponentFailure."""
        try:
            exec(part, self.values)
        except STOPPED_BY_CODE as error:
            raise block.failure(error, self.module) from None

    def result(self) -> Any:
        """`result` as JSON can say it."""
        try:
            return to_json_friendly(self.values.get("result"))
        except NotFriendly as problem:
            place = problem.place("result")
            raise ComponentFailure("not_serialisable", f"`{place}` {problem.reason}", path=place) from None

    def close(self) -> None:
        sys.modules.pop(self.module, None)


STOPPED_BY_CODE = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
"""What code can raise, `sys.exit()` included; being stopped from outside is not among it."""


def _failure(failure: dict[str, Any], parameter: str) -> ComponentFailure:
    message = failure["message"].replace(" of `code`", f" of `{parameter}`")
    detail = {**failure["helpers"].get("py", {}), **failure["detail"]}
    return ComponentFailure(failure["kind"], message, retryable=failure["retryable"], **detail)


def _is(node: ast.Name | ast.Global, name: str) -> bool:
    return node.id == name if isinstance(node, ast.Name) else name in node.names


def _is_constant(statement: ast.stmt) -> bool:
    """An import, or a definition that does not look at the row when it is made."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            returns = [statement.returns] if statement.returns else []
            return not _mentions([*statement.decorator_list, arguments, *returns])
        case ast.ClassDef():
            return not _mentions([statement])
        case _:
            return False


def _mentions(nodes: list[Any]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in _CHANGING for node in nodes for n in ast.walk(node))
