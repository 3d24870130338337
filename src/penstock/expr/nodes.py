"""The syntax tree: every node knows the offsets in the text it was read from, and nothing about values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct


class Node(Struct, frozen=True):
    start: int
    end: int


class Const(Node, frozen=True):
    value: str | int | float | bool | None


class Name(Node, frozen=True):
    name: str


class Get(Node, frozen=True):
    """`of.key` and `of[key]` are one thing: item access."""

    of: Expr
    key: Expr
    dotted: bool


class Slice(Node, frozen=True):
    of: Expr
    first: Expr | None
    last: Expr | None
    step: Expr | None


class ListOf(Node, frozen=True):
    items: tuple[Expr, ...]


class DictOf(Node, frozen=True):
    pairs: tuple[tuple[Expr, Expr], ...]


class Arguments(Struct, frozen=True):
    positional: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()

    def all(self) -> tuple[Expr, ...]:
        return (*self.positional, *(value for _, value in self.keywords))


WordKind: TypeAlias = Literal["filter", "test", "function", "method"]


class Word(Node, frozen=True):
    """A filter, a test, a function or a method with its arguments. `at` and `until` are the offsets of its name."""

    kind: WordKind
    of: Expr | None
    name: str
    at: int
    until: int
    arguments: Arguments
    negated: bool = False


class Unary(Node, frozen=True):
    operator: Literal["-", "+", "not"]
    operand: Expr


class Binary(Node, frozen=True):
    operator: str
    left: Expr
    right: Expr


class Compare(Node, frozen=True):
    first: Expr
    rest: tuple[tuple[str, Expr], ...]


class Chain(Node, frozen=True):
    """`and`, `or` and `~`: any number of operands of one operator."""

    operator: Literal["and", "or", "~"]
    operands: tuple[Expr, ...]


class Choice(Node, frozen=True):
    """`then if test else otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr | None


Expr: TypeAlias = Const | Name | Get | Slice | ListOf | DictOf | Word | Unary | Binary | Compare | Chain | Choice


class Text(Node, frozen=True):
    value: str


class Output(Node, frozen=True):
    expr: Expr


class If(Node, frozen=True):
    branches: tuple[tuple[Expr, Body], ...]
    otherwise: Body


class For(Node, frozen=True):
    targets: tuple[str, ...]
    over: Expr
    where: Expr | None
    body: Body
    otherwise: Body


class Assign(Node, frozen=True):
    targets: tuple[str, ...]
    value: Expr


Statement: TypeAlias = Text | Output | If | For | Assign
Body: TypeAlias = tuple[Statement, ...]


class Template(Struct, frozen=True):
    text: str
    body: Body

    @property
    def single(self) -> Expr | None:
        """The expression, when the text is exactly one `{{ … }}` with nothing beside it, no blank either (D61)."""
        part = self.body[0] if len(self.body) == 1 else None
        return part.expr if isinstance(part, Output) else None

    @property
    def lone(self) -> Expr | None:
        """The same with white space around it: text, where a value is wanted, and the whole of a condition."""
        found: Expr | None = None
        for part in self.body:
            if isinstance(part, Output) and found is None:
                found = part.expr
            elif not (isinstance(part, Text) and part.value.isspace()):
                return None
        return found


def children(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Const() | Name():
            return ()
        case Get():
            return (node.of, node.key)
        case Slice():
            return tuple(part for part in (node.of, node.first, node.last, node.step) if part is not None)
        case ListOf():
            return node.items
        case DictOf():
            return tuple(part for pair in node.pairs for part in pair)
        case Word():
            return (*(() if node.of is None else (node.of,)), *node.arguments.all())
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Compare():
            return (node.first, *(operand for _, operand in node.rest))
        case Chain():
            return node.operands
        case Choice():
            return tuple(part for part in (node.test, node.then, node.otherwise) if part is not None)


def path_of(node: Expr) -> tuple[str, tuple[str | int, ...]] | None:
    """The root name and the keys of a pure path such as `workload.items[0].x`, or None."""
    keys: list[str | int] = []
    while isinstance(node, Get):
        key = node.key
        if not (isinstance(key, Const) and type(key.value) in (str, int)):
            return None
        assert isinstance(key.value, (str, int))
        keys.append(key.value)
        node = node.of
    return (node.name, tuple(reversed(keys))) if isinstance(node, Name) else None
