"""Run an author's Python code and say what came of it, in the author's own lines.

`perform` never raises: it gives a `Reply`, either the result as JSON-like values or the failure as a mapping. The same
function serves a thread of the engine and the interpreter of an isolated task, so both say the same things.
Standard library only, and little of it at import: this module is on the start-up path of every isolated task.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, MappingProxyType, ModuleType, TracebackType
from typing import Any, NamedTuple

# ---- From what Python code returns to what JSON can say.
# Conversions are those a reader would expect without looking them up (a tuple is a list, a data class a mapping, a date its
# ISO text); anything else is refused with its type and its place. The result shares nothing with the value it was made from.
# Standard library only: this also runs in the interpreter of an isolated task.

MAX_DEPTH = 200
MAX_INT_BITS = 14_000
"""Python itself refuses to print integers of more than 4,300 digits."""
MAX_DRAWN = 5_000_000
"""A generator that never ends would otherwise take the engine's memory with it."""


class NotFriendly(Exception):
    """`reason` continues the sentence "`result.rows[3].when` …"."""

    def __init__(self, reason: str, type_name: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.type_name = type_name
        self.steps: list[str] = []

    def place(self, root: str) -> str:
        path = root + "".join(reversed(self.steps))
        return path if len(path) <= 200 else path[:120] + "…" + path[-60:]


def to_json_friendly(value: object) -> Any:
    """The value as new lists, mappings, texts, numbers, booleans and None. Raises NotFriendly."""
    return _walk(value, 0, set())


def _walk(value: Any, depth: int, above: set[int]) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise NotFriendly("is an integer of more than 4,000 digits", "int")
        return value
    if kind is bool or value is None:
        return value
    if kind is float:
        return _number(value)
    if depth >= MAX_DEPTH:
        raise NotFriendly(f"is nested more than {MAX_DEPTH} levels deep", kind.__name__)
    if id(value) in above:
        raise NotFriendly("contains itself", kind.__name__)
    above.add(id(value))
    try:
        if kind is list or kind is tuple:
            return _list(value, depth, above)
        if kind is dict:
            return _mapping(value, depth, above)
        return _other(value, depth, above)
    finally:
        above.discard(id(value))


def _list(values: Iterable[Any], depth: int, above: set[int]) -> list[Any]:
    made: list[Any] = []
    for item in values:
        try:
            made.append(_walk(item, depth + 1, above))
        except NotFriendly as problem:
            problem.steps.append(f"[{len(made)}]")
            raise
    return made


def _mapping(values: Any, depth: int, above: set[int]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in values.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        if name in made:
            raise NotFriendly(f"has two keys that both become `{name}`", type(values).__name__)
        try:
            made[name] = _walk(item, depth + 1, above)
        except NotFriendly as problem:
            problem.steps.append(f".{name}" if name.isidentifier() else f"[{name!r}]")
            raise
    return made


def _key(key: Any) -> str:
    friendly = key if isinstance(key, (tuple, frozenset)) else _walk(key, MAX_DEPTH - 1, set())
    if isinstance(friendly, str):
        return friendly
    if friendly is None or isinstance(friendly, bool):
        return {None: "null", True: "true", False: "false"}[friendly]
    if isinstance(friendly, (int, float)):
        return str(friendly)
    raise NotFriendly(f"has a key of type `{type(key).__name__}`, and keys must be text", type(key).__name__)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotFriendly("is text that is not valid Unicode", "str") from None
    return str(value)


def _number(value: float) -> float | None:
    """NaN is how numeric libraries spell a missing value, and null is how JSON does."""
    if value != value:
        return None
    if value in (float("inf"), float("-inf")):
        raise NotFriendly("is an infinite number", type(value).__name__)
    return float(value)


def _other(value: Any, depth: int, above: set[int]) -> Any:
    for convert in (_subclass, _standard, _foreign, _collection):
        made = convert(value)
        if made is not _NO:
            if type(made) is _Sorted:
                return _sorted(_list(made, depth, above))
            if made is value and convert is _collection:
                return _list(_drawn(value), depth, above)
            # A conversion that gives back its own kind would go round for ever; the depth limit ends it.
            return _walk(made, depth + 1, above)
    name = type(value).__name__
    raise NotFriendly(f"is of type `{name}`, which JSON cannot say", name)


class _Sorted(tuple[Any, ...]):
    """The elements of a set, still to be put in order."""


_NO: Any = object()


def _subclass(value: Any) -> Any:
    """Text, numbers, lists and mappings of a class of their own, enumerations included."""
    if isinstance(value, str | int | float):
        enumeration = sys.modules.get("enum")
        if enumeration is not None and isinstance(value, enumeration.Enum):
            return value.value
        for plain in (str, int, float):
            if isinstance(value, plain):
                return plain.__str__(value) if plain is str else plain(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    return _NO


def _standard(value: Any) -> Any:
    """Values of the standard library. Whose module was never imported cannot have made the value."""
    for module, names, convert in _STANDARD:
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names)):
            return convert(value)
    if isinstance(value, bytes | bytearray | memoryview):
        import base64  # An isolated process starts without it.

        return base64.b64encode(value).decode()
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields if hasattr(value, name)}
    return _NO


def _moment(value: Any) -> Any:
    # pandas' NaT is a datetime that is not equal to itself.
    return value.isoformat() if value == value else None


def _decimal(value: Any) -> Any:
    """An integer or a float where that loses nothing, otherwise text."""
    if value.is_nan():
        return None
    if value.is_infinite():
        return float(value)
    if value.as_tuple().exponent >= 0 and value.adjusted() < 400:
        return int(value)
    as_float = float(value)
    return as_float if type(value)(repr(as_float)) == value else str(value)


_STANDARD: tuple[tuple[str, tuple[str, ...], Callable[[Any], Any]], ...] = (
    ("datetime", ("date", "time"), _moment),
    ("datetime", ("timedelta",), lambda value: value.total_seconds()),
    ("decimal", ("Decimal",), _decimal),
    ("enum", ("Enum",), lambda value: value.value),
    ("uuid", ("UUID",), str),
    ("pathlib", ("PurePath",), str),
    ("ipaddress", ("_IPAddressBase",), str),
)


def _foreign(value: Any) -> Any:
    """Values of libraries we do not import: known by the methods they have."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.astype(str).tolist() if getattr(value.dtype, "kind", "") in ("m", "M") else value.tolist()
    if hasattr(value, "columns") and hasattr(value, "to_dict") and not hasattr(value, "to_dicts"):
        return value.to_dict(orient="records")
    for method in ("to_dicts", "to_pylist", "to_list", "model_dump"):
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return getattr(value, method)()
    names = getattr(type(value), "__struct_fields__", None) or [
        field.name for field in getattr(type(value), "__attrs_attrs__", ())
    ]
    return {name: getattr(value, name) for name in names} if names else _NO


def _collection(value: Any) -> Any:
    import collections  # An isolated process starts without it.
    from collections import abc

    if isinstance(value, abc.Set) and not isinstance(value, abc.MappingView):
        return _Sorted(value)
    if isinstance(value, abc.Mapping):
        return dict(value)
    if hasattr(value, "keys") and hasattr(value, "__getitem__") and not isinstance(value, type):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118  a database row iterates over its values
    is_file = hasattr(value, "read") or hasattr(value, "fileno")
    if isinstance(value, abc.Iterator) and not is_file:
        return value  # Drawn one by one: `list` would not let itself be stopped when the time is over.
    ordered: Any = (abc.Sequence, abc.MappingView, collections.deque)
    return list(value) if isinstance(value, ordered) and not is_file else _NO


def _drawn(values: Iterator[Any]) -> Iterator[Any]:
    for count, item in enumerate(values):
        if count >= MAX_DRAWN:
            raise NotFriendly(f"gives more than {MAX_DRAWN:,} values, perhaps without end", type(values).__name__)
        yield item


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        import json  # An isolated process starts without it.

        return sorted(values, key=lambda value: (type(value).__name__, json.dumps(value, sort_keys=True)))


__all__ = ["Code", "Reply", "context_keys", "perform", "require_compiles", "syntax_hint", "to_json_friendly"]

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 8_000
_numbers = itertools.count(1)

_HINTS = (
    ("'await' outside", "top-level `await` is not supported: put it into `async def main(): …`"),
    ("'async with' outside", "top-level `async with` is not supported: put it into `async def main(): …`"),
    ("'async for' outside", "top-level `async for` is not supported: put it into `async def main(): …`"),
    ("asynchronous comprehension outside", "put it into `async def main(): …`"),
)


def syntax_hint(reason: str) -> str:
    """What to do about it, where the compiler's reason is one that comes from how code blocks are run."""
    return next((hint for start, hint in _HINTS if start in reason), "")


class Code(NamedTuple):
    """A piece of code and where it stands: `line` is the line of `file` that holds its first line, 0 when that is not known."""

    text: str
    file: str
    line: int = 1
    label: str = "code"
    """The parameter or the file that an author would call it by."""
    function: str = "main"
    must_define: bool = False
    """The author named the function, so its absence is a mistake."""
    libs: Sequence[Sequence[str]] = ()
    """Alias, module and the name in it, or no name for the module itself: bound before the code runs."""

    @property
    def is_script(self) -> bool:
        return self.label != "code"


class Reply(NamedTuple):
    result: Any = None
    failure: dict[str, Any] | None = None
    """`kind`, `message`, `retryable`, `helpers`, `detail`."""


class _Stop(Exception):
    """A mistake that has a kind of its own."""

    def __init__(self, kind: str, message: str, helpers: dict[str, Any] | None = None, **detail: Any) -> None:
        super().__init__(message)
        self.failure = {
            "kind": kind,
            "message": message,
            "retryable": False,
            "helpers": helpers or {},
            "detail": detail,
        }


def perform(
    code: Code,
    arguments: Callable[[], dict[str, Any]],
    cancellable: Callable[[Callable[[], object]], None] | None = None,
    around: Mapping[str, Any] = MappingProxyType({}),
) -> Reply:
    """Compile, run, convert. `cancellable` is given the function that cancels an `async def main` from another thread.
    `around`: what the names in OFFERED stand for, beside those that are made of the arguments."""
    module = ModuleType(f"penstock_task_{next(_numbers)}")
    # Data classes, type hints and pickle look their module up by its name.
    sys.modules[module.__name__] = module
    try:
        value = _run(code, module, arguments(), cancellable, around)
        return Reply(result=to_json_friendly(value))
    except _Stop as stop:
        return Reply(failure=stop.failure)
    except NotFriendly as problem:
        return Reply(failure=_not_serialisable(problem))
    except BaseException as error:  # code under test of no rules: SystemExit and KeyboardInterrupt included
        return Reply(failure=_describe(error, code, module.__name__))
    finally:
        sys.modules.pop(module.__name__, None)


def _run(code: Code, module: ModuleType, arguments: dict[str, Any], cancellable: Any, around: Mapping[str, Any]) -> Any:
    names = module.__dict__
    program = _program_of(code)
    offered = {
        name: dict(arguments) if name in _OF_ARGUMENTS else around.get(name)
        for name in program.named
        if name not in arguments
    }
    names.update(offered)
    names.update(arguments)
    _bind(code.libs, names)
    if code.is_script:
        names["__file__"] = code.file
    exec(program.whole, names)
    if program.returns:
        names[_FELL_THROUGH] = _NO
        value = names.pop(_BODY)()
        del names[_FELL_THROUGH]
        if value is not _NO:
            return _awaited(value, cancellable) if hasattr(value, "__await__") else value
    function = names.get(code.function)
    if callable(function):
        positional, named = _accepted(function, code.function, arguments, offered)
        value = function(*positional, **named)
        return _awaited(value, cancellable) if hasattr(value, "__await__") else value
    if code.must_define:
        raise _Stop("parameters", f"the code defines no function `{code.function}`")
    return names.get("result")


def _bind(libs: Sequence[Sequence[str]], names: dict[str, Any]) -> None:
    """All of them are tried, so that one failure names all that are missing."""
    wrong: dict[str, str] = {}
    kind = ""
    for alias, module, name in libs:
        try:
            names[alias] = _imported(module, name)
        except Exception as error:  # A module may raise anything while it is imported.
            kind = kind or type(error).__name__
            wrong[f"{module}.{name}" if name else module] = f"`{alias}`: {type(error).__name__}: {_message(error)}"
    if wrong:
        helpers = {"py": {"exception_type": kind, "exception_module": "builtins"}}
        message = _bounded(f"`libs` cannot be imported: {'; '.join(wrong.values())}", MAX_MESSAGE)
        raise _Stop("import", message, helpers, modules=list(wrong))


def _imported(module: str, name: str) -> Any:
    import importlib  # An isolated process starts without it.

    found = importlib.import_module(module)
    if not name:
        return found
    try:
        return getattr(found, name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


# ---- What code is compiled to, and which of the names that are offered it uses.

_OF_ARGUMENTS = frozenset({"input_data", "args"})
"""Copies of the arguments as one mapping."""
OFFERED = _OF_ARGUMENTS | {"context", "execution_id"}
"""Names that are made only for code that uses them."""
_BODY, _FELL_THROUGH = "<module>", "<fell through>"
"""Names in the module that no code can have: its own text as a function, and what that returns at its end."""


class Program(NamedTuple):
    whole: CodeType
    named: frozenset[str] = frozenset()
    """Of OFFERED."""
    keys: frozenset[str] | None = frozenset()
    """The keys of `context` that the code looks at; None when it could be any."""
    returns: bool = False
    """The code is the body of a function, since it has a `return`."""


def context_keys(code: Code, known: Iterable[str]) -> list[str]:
    """Of the names that `context` could have, those that the code may look at."""
    try:
        program = _program_of(code)
    except _Stop:
        return []  # The failure is that of its run.
    return [each for each in known if program.keys is None or each in program.keys]


def require_compiles(text: str) -> None:
    """Raises what the compiler raises for the code of a task."""
    _program(text, "<code>", 1, "main")


def _program_of(code: Code) -> Program:
    try:
        return _program(code.text, code.file, max(code.line, 1), code.function)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise _syntax(error, code) from None


@lru_cache(maxsize=256)
def _program(text: str, file: str, line: int, function: str) -> Program:
    named, keys = _used(text, function)
    try:
        return Program(_compile(text, file, line), named, keys)
    except SyntaxError as error:
        if "'return' outside function" not in str(error.msg):
            raise
        return Program(_as_function("\n" * (line - 1) + text, file, error), named, keys, returns=True)


def _used(text: str, function: str) -> tuple[frozenset[str], frozenset[str] | None]:
    """Which of OFFERED the code names, or its function asks for; and the keys of `context`."""
    if not any(name in text for name in OFFERED):
        return frozenset(), frozenset()
    import ast  # An isolated process starts without it.

    try:
        tree = ast.parse(text)
    except SyntaxError:
        return frozenset(), frozenset()
    loaded = [one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    named = set(loaded)
    for one in tree.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name == function:
            named.update(each.arg for each in (*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs))
    if "context" not in named:
        return frozenset(named & OFFERED), frozenset()
    keys = [key for one in ast.walk(tree) if (key := _key_of_context(one)) is not None]
    return frozenset(named & OFFERED), frozenset(keys) if len(keys) == loaded.count("context") else None


def _key_of_context(node: Any) -> str | None:
    """Of `context["key"]` and `context.get("key")`, the key."""
    import ast  # Only code that names `context` needs it.

    looked_up: Any = None
    match node:
        case ast.Subscript(value=ast.Name(id="context"), slice=looked_up, ctx=ast.Load()):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id="context"), attr="get"), args=[looked_up, *_]):
            pass
    return looked_up.value if isinstance(looked_up, ast.Constant) and isinstance(looked_up.value, str) else None


def _as_function(text: str, file: str, outside: SyntaxError) -> CodeType:
    """The code as the body of a function whose variables are the module's: but for `return`, it cannot tell the difference."""
    import ast  # Only code that returns outside of a function needs it.

    class Unannotated(ast.NodeTransformer):
        """A variable that is declared global cannot be annotated."""

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
            if not isinstance(node.target, ast.Name):
                return node
            plain = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
            return ast.copy_location(plain, node)

        def visit_inner(self, node: ast.AST) -> ast.AST:
            return node

        visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_inner

    tree = ast.parse(text, file)
    futures = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    body = [Unannotated().visit(one) for one in tree.body if one not in futures]
    function = ast.parse("def body(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.name = _BODY
    function.body = [*body, ast.Return(ast.Name(_FELL_THROUGH, ast.Load()))]
    module = ast.fix_missing_locations(ast.Module([*futures, function], []))
    inner = _body_of(compile(module, file, "exec", dont_inherit=True))
    if inner.co_flags & _GENERATOR:
        raise outside
    names = sorted(name for name in {*inner.co_varnames, *inner.co_cellvars} if name.isidentifier())
    if names:
        function.body.insert(0, ast.copy_location(ast.Global(names), function))
    return compile(module, file, "exec", dont_inherit=True)


_GENERATOR = 0x20


def _body_of(module: CodeType) -> CodeType:
    return next(one for one in module.co_consts if isinstance(one, CodeType))


def _compiled(code: Code) -> CodeType:
    try:
        return _compile(code.text, code.file, max(code.line, 1))
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise _syntax(error, code) from None


@lru_cache(maxsize=256)
def _compile(text: str, file: str, line: int) -> CodeType:
    # Empty lines in front make every line number, in frames as in syntax errors, one of the author's file.
    return compile("\n" * (line - 1) + text, file, "exec", dont_inherit=True)


def _accepted(
    function: Callable[..., Any], name: str, arguments: dict[str, Any], offered: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that the function's signature asks for, by name. What is offered is given where there is no default."""
    import inspect  # An isolated process starts without it.

    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [], dict(arguments)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    missing: list[str] = []
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        known = arguments if each.name in arguments or each.default is not each.empty else offered
        if each.name not in known and each.default is each.empty:
            missing.append(each.name)
        elif each.kind is each.POSITIONAL_ONLY:
            positional.append(known.get(each.name, each.default))
        elif each.name in known:
            named[each.name] = known[each.name]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        own = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD}
        named.update({name: value for name, value in arguments.items() if name not in own})
    if missing:
        wanted, given = _listed(missing), _listed(arguments)
        has = f"only {given}" if arguments else "nothing"
        raise _Stop("parameters", f"`{name}` needs {wanted}, and `args` gives {has}", missing=missing)
    return positional, named


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _awaited(value: Any, cancellable: Callable[[Callable[[], object]], None] | None) -> Any:
    """An `async def main` has an event loop of its own, so that it cannot block the engine's."""
    import asyncio  # An isolated process starts without it.

    async def whole() -> Any:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if cancellable is not None and task is not None:
            cancellable(lambda: loop.call_soon_threadsafe(task.cancel))
        return await value

    return asyncio.run(whole())


def _not_serialisable(problem: NotFriendly) -> dict[str, Any]:
    place = problem.place("result")
    return {
        "kind": "not_serialisable",
        "message": f"`{place}` {problem.reason}",
        "retryable": False,
        "helpers": {},
        "detail": {"path": place, "type": problem.type_name},
    }


def _where(code: Code, line_in_file: int) -> tuple[str, dict[str, Any]]:
    """How an author would name a line, and the same as fields."""
    line = line_in_file - max(code.line, 1) + 1
    if code.is_script:
        return f"line {line} of `{code.label}`", {"line": line}
    if not code.line:
        return f"line {line} of `code`", {"line": line}
    return f"line {line} of `code`, {code.file}:{line_in_file}", {"line": line, "yaml_line": line_in_file}


def _helpers(error: BaseException, module: str) -> dict[str, Any]:
    kind = type(error)
    own = kind.__module__ == module
    return {"py": {"exception_type": kind.__name__, "exception_module": "__main__" if own else str(kind.__module__)}}


def _syntax(error: BaseException, code: Code) -> _Stop:
    reason = str(getattr(error, "msg", "") or error) or "the code is too complex to compile"
    hint = syntax_hint(reason)
    fields: dict[str, Any] = {}
    where = ""
    line = getattr(error, "lineno", None)
    if line:
        where, fields = _where(code, line)
        column = getattr(error, "offset", None) or 0
        shown = _source(code, line)
        caret = " " * max(column - 1 - (len(shown) - len(shown.lstrip())), 0) + "^"
        fields["traceback"] = f'  File "{code.file}", line {line}\n    {shown.strip()}\n    {caret}'
    name = type(error).__name__ if isinstance(error, SyntaxError) else "SyntaxError"
    message = f"{name}: {reason}" + (f" ({where})" if where else "") + (f"; {hint}" if hint else "")
    helpers = {"py": {"exception_type": name, "exception_module": "builtins"}}
    return _Stop("syntax", _bounded(message, MAX_MESSAGE), helpers, **fields)


def _describe(error: BaseException, code: Code, module: str) -> dict[str, Any]:
    """A failure that names the author's line, and keeps the frames from the author's code on."""
    detail: dict[str, Any] = {}
    where = ""
    lines = [line for frame, line in _frames(error.__traceback__) if frame.co_filename == code.file]
    if lines:
        where, detail = _where(code, lines[-1])
    raised_at = _raised_at(error, code)
    if raised_at:
        where = f"{where}; raised at {raised_at}" if where else f"raised at {raised_at}"
        detail["raised_at"] = raised_at
    text = _traceback(error, code, set()).replace(f"{module}.", "")
    detail["traceback"] = _bounded(text, MAX_TRACEBACK)
    kind, retryable = "memory" if isinstance(error, MemoryError) else "exception", _flag(error, "retryable")
    message = f"{type(error).__name__}: {_message(error)}".removesuffix(": ").replace(f"{module}.", "")
    helpers = _helpers(error, module)
    base = sys.modules.get("penstock.tools.base")
    if base is not None and isinstance(error, base.ToolFailure):
        kind, message = error.kind, error.message
        detail = {**_friendly_or_empty(error.detail), **detail}
        helpers = {**_friendly_or_empty(error.helpers), **helpers}
    return {
        "kind": kind,
        "message": _bounded(message, MAX_MESSAGE) + (f" ({where})" if where else ""),
        "retryable": retryable,
        "helpers": helpers,
        "detail": detail,
    }


def _raised_at(error: BaseException, code: Code) -> str:
    """Where in a module of the author's, beside the code, it happened; "" when it happened in the code itself."""
    for frame, line in reversed(_frames(error.__traceback__)):
        if frame.co_filename == code.file:
            return ""
        if not frame.co_filename.startswith("<") and not _is_library(frame.co_filename):
            return f"{frame.co_filename}:{line} in {frame.co_name}"
    return ""


def _friendly_or_empty(fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(to_json_friendly(fields))
    except NotFriendly:
        return {}


def _flag(error: BaseException, name: str) -> bool:
    try:
        return getattr(error, name, False) is True
    except Exception:  # an author's property may raise anything
        return False


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an author's __str__ may raise anything
        return "(its text cannot be shown)"


def _frames(traceback: TracebackType | None) -> list[tuple[CodeType, int]]:
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame.f_code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _source(code: Code, line: int) -> str:
    lines = code.text.split("\n")
    index = line - max(code.line, 1)
    return lines[index] if 0 <= index < len(lines) else ""


def _traceback(error: BaseException, code: Code, seen: set[int]) -> str:
    """As Python prints it, causes first, with the author's frames alone: code, and modules beside it."""
    import linecache  # An isolated process starts without it.

    seen.add(id(error))
    frames = _frames(error.__traceback__)
    first = next((index for index, (frame, _) in enumerate(frames) if frame.co_filename == code.file), len(frames))
    lines: list[str] = []
    for frame, line in frames[first:]:
        own = frame.co_filename == code.file
        if not own and _is_library(frame.co_filename):
            continue
        source = _source(code, line) if own else linecache.getline(frame.co_filename, line)
        lines.append(f'  File "{frame.co_filename}", line {line}, in {frame.co_name}\n    {source.strip()}'.rstrip())
    if len(lines) > 20:
        lines[5:-15] = [f"  … {len(lines) - 20} more frames …"]
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    lines.append(f"{name}: {_message(error)}".removesuffix(": "))
    if isinstance(error, BaseExceptionGroup):
        lines.extend(f"  - {type(inner).__name__}: {_message(inner)}" for inner in error.exceptions[:10])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is None or id(cause) in seen or len(seen) >= 4:
        return "\n".join(lines)
    joint = (
        "The above was the direct cause of:" if error.__cause__ else "While that was handled, another error occurred:"
    )
    return _traceback(cause, code, seen) + f"\n{joint}\n" + "\n".join(lines)


def _is_library(file: str) -> bool:
    standard = os.path.dirname(os.__file__)
    return file.startswith((standard, "<frozen")) or "site-packages" in file or "dist-packages" in file


def _bounded(text: str, limit: int) -> str:
    clean = text.encode("utf-8", "replace").decode()  # an exception's text may hold what JSON cannot
    return clean if len(clean) <= limit else clean[: limit * 2 // 3] + " … " + clean[-(limit // 3) :]
