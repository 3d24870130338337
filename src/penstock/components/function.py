"""A component from a function: parameters named like input ports receive rows, the others are the component's parameters.

    @component("initials", inputs=("input",), outputs=("main",))
    def initials(input: list[dict], column: str = "name") -> list[dict]:
        return [row | {"initial": row[column][:1]} for row in input]

The annotation says in which form rows are wanted: `list[dict]`, `Iterator[dict]` (read as they are needed), `pyarrow.Table`,
`polars.DataFrame`, `pandas.DataFrame` or `Relation`. `inputs` receives all ports as a mapping, `call` the Call. What it returns
or yields are the rows of its first output (mappings, a frame or a Relation), or a mapping of output port to rows; without output
ports it is the component's result. A plain `def` runs in a thread, an `async def` on the event loop, where nothing may block.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast, get_args

import msgspec

from penstock.components.base import Action, Call, Port
from penstock.components.forms import Form, form_of, given, put_rows
from penstock.kernel.errors import Refused

WHOLE = "inputs"
"""A parameter of this name receives every input port, those of a wild-card included."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """What the parameters of the function are for."""

    rows: dict[str, Form]
    optional: frozenset[str]
    fields: tuple[Any, ...]
    wants_call: bool


def component(
    type: str,
    *,
    inputs: Iterable[str | Port] = (),
    outputs: Iterable[str | Port] = ("main",),
    family: str = "code",
    startable: bool = False,
    example: str = "",
) -> Callable[[Callable[..., Any]], type[Action[Any]]]:
    """Make a component of a function; its docstring is the reference page."""
    into = tuple(_port(port) for port in inputs)
    out = tuple(_port(port) for port in outputs)

    def make(function: Callable[..., Any]) -> type[Action[Any]]:  # type: ignore[valid-type]
        signature = _read(function, into)
        name = "".join(part.title() for part in type.split("_"))
        model = msgspec.defstruct(f"{name}Params", signature.fields, kw_only=True, forbid_unknown_fields=True)
        ports = tuple(
            Port(port.name, False, port.many, port.reject, port.description)
            if port.name in signature.optional
            else port
            for port in into
        )
        body = {
            "type": type,
            "family": family,
            "Params": model,
            "inputs": ports,
            "outputs": out,
            "startable": startable,
            "example": example,
            "run": _runner(function, signature, model, out),
            "function": staticmethod(function),
            "__doc__": function.__doc__,
            "__module__": function.__module__,
        }
        return _made(f"{name}Component", body)

    return make


def _made(name: str, body: dict[str, Any]) -> type[Action[Any]]:
    return cast("type[Action[Any]]", type(name, (Action,), body))


def _port(port: str | Port) -> Port:
    return port if isinstance(port, Port) else Port(port)


def _read(function: Callable[..., Any], ports: tuple[Port, ...]) -> _Signature:
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise Refused(f"`{function.__name__}`: the annotation `{error.name}` is not known", "import it") from error
    named = {port.name for port in ports if not port.is_wild}
    rows: dict[str, Form] = {}
    optional: set[str] = set()
    fields: list[Any] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise Refused(f"`{function.__name__}`: `{parameter}` cannot be filled", "name every parameter")
        annotation = object if parameter.annotation is parameter.empty else parameter.annotation
        has_default = parameter.default is not parameter.empty
        if name in named or name == WHOLE:
            rows[name] = form_of(get_args(annotation)[-1] if name == WHOLE and get_args(annotation) else annotation)
            if has_default:
                optional.add(name)
        elif name != "call":
            fields.append((name, annotation, parameter.default) if has_default else (name, annotation))
    unread = sorted(named - {*rows}) if WHOLE not in rows else []
    if unread:
        hint = f"add a parameter of that name, or `{WHOLE}` for all of them"
        raise Refused(f"`{function.__name__}` has no parameter for its input port `{unread[0]}`", hint)
    return _Signature(rows, frozenset(optional), tuple(fields), "call" in signature.parameters)


def _runner(
    function: Callable[..., Any], signature: _Signature, model: type[msgspec.Struct], outputs: tuple[Port, ...]
) -> Callable[..., Any]:
    def arguments(params: Any, call: Call) -> dict[str, Any]:
        filled = {name: getattr(params, name) for name in model.__struct_fields__}
        for name, form in signature.rows.items():
            if name == WHOLE:
                filled[name] = {port: given(call, port, form) for port in sorted(call.inputs)}
            elif call.inputs.get(name) or name not in signature.optional:
                filled[name] = given(call, name, form)
        return filled | {"call": call} if signature.wants_call else filled

    def deliver(value: Any, call: Call) -> Any:
        if not outputs:
            return list(value) if inspect.isgenerator(value) else value
        return put_rows(call, outputs, value)

    async def run_async(self: Any, params: Any, call: Call) -> Any:
        filled = await call.threads.run(arguments, params, call)
        value = function(**filled)
        if inspect.isasyncgen(value):
            value = await _collected(value)
        elif inspect.isawaitable(value):
            value = await value
        return await call.threads.run(deliver, value, call)

    def run(self: Any, params: Any, call: Call) -> Any:
        return deliver(function(**arguments(params, call)), call)

    return run_async if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) else run


async def _collected(rows: AsyncIterator[Any]) -> list[Any]:
    return [row async for row in rows]
