"""Checks of expressions that both languages share: the part that is reported, constants, declared secrets, shell quoting."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.dialects.problems import Findings, Position
from penstock.dialects.reader import listed
from penstock.expr import nodes
from penstock.expr.check import Use
from penstock.expr.errors import ExpressionError
from penstock.expr.parse import parse


def named_part(text: str, use: Use, namespaces: Collection[str]) -> tuple[int, int]:
    """As far as names are checked: a namespace with its first key, or a bare name. Positions in the text."""
    written = ".".join(use.path[: 2 if use.path[0] in namespaces else 1])
    return use.start, use.start + len(written) if text.startswith(written, use.start) else use.end


def is_plain_true(text: str) -> bool:
    """`{{ true }}` is deliberate; any longer constant is a mistake."""
    return text.strip("{}- \n\t").casefold() == "true"


def warn_constant(findings: Findings, text: str, value: bool, position: Position, example: str) -> None:
    hint = f"names stand without quotes: `{example}`" if "'" in text or '"' in text else ""
    findings.warning("E0108", f"this condition is always {'true' if value else 'false'}", position, hint=hint)


def blanks_beside(text: str) -> tuple[str, str]:
    """The message and the hint for a text that is one expression but for white space (D61)."""
    message = "blanks stand beside this expression, so it gives text and not the value"
    if text.endswith("\n"):
        return (
            message,
            "a block ends with a line break: write `|-` or `>-`, or put the expression on the line of its key",
        )
    return message, "leave the blanks out; if they are meant, write them inside: `{{ ' ' ~ name }}`"


def declared_secrets(names: Collection[str]) -> str:
    """The hint beside a secret that is not declared."""
    return f"`keychain` declares {listed(sorted(names))}" if names else "the document has no `keychain`"


# What these give cannot end a word of a shell command.
_SAFE_WORDS = frozenset({"quote", "int", "float", "length", "count", "round", "abs"})
UNQUOTED = "this value becomes part of a shell command as it is: what is in it, the shell would run"
QUOTE_HINT = "write `{{ name | quote }}`, or give the command as a list: each entry is one argument, whatever is in it"


def unquoted(command: str) -> list[tuple[int, int]]:
    """Where values stand in the text of a shell command that nothing keeps from being read by the shell."""
    try:
        body = parse(command).body
    except ExpressionError:  # Reported with the names.
        return []
    return [(expr.start, expr.end) for expr in _outputs(body) if not _is_quoted(expr)]


def _outputs(body: nodes.Body) -> Iterator[nodes.Expr]:
    for part in body:
        match part:
            case nodes.Output():
                yield part.expr
            case nodes.If():
                for _, inner in part.branches:
                    yield from _outputs(inner)
                yield from _outputs(part.otherwise)
            case nodes.For():
                yield from _outputs(part.body)
                yield from _outputs(part.otherwise)


def _is_quoted(expr: nodes.Expr) -> bool:
    match expr:
        case nodes.Const():
            return True
        case nodes.Choice():
            return _is_quoted(expr.then) and (expr.otherwise is None or _is_quoted(expr.otherwise))
        case nodes.Chain(operator="~"):
            return all(map(_is_quoted, expr.operands))
        case nodes.Word(kind="filter", name="join", of=nodes.Word(kind="filter", name="map") as mapped):
            named = mapped.arguments.positional[:1]
            return bool(named) and isinstance(named[0], nodes.Const) and named[0].value == "quote"
        case nodes.Word(kind="filter"):
            return expr.name in _SAFE_WORDS
    return False
