"""Parameters are bound, never pasted: placeholders of any accepted spelling become the driver's own.

With a mapping, `:name` and `%(name)s` are placeholders (and `$name` in sqlite and duckdb); with a list, `%s`, `$1` and `?`.
Without parameters the text is not touched at all, so a lone `%` means what the database says it means.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.tools.base import ToolFailure
from penstock.tools.sql.lexer import Dialect, Kind, Piece, Statement

Parameters = dict[str, Any] | list[Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement ready for its driver. `args` is None when nothing is bound.

    They are named `p1`, `p2` … in the order of their first use; MySQL's driver takes a list, one value per placeholder.
    """

    text: str
    verb: str
    words: frozenset[str]
    source: str
    """As the author wrote it: what errors quote."""
    args: dict[str, Any] | list[Any] | None = None
    as_json: frozenset[str] = frozenset()
    """Names of the arguments that are cast to json right in the text, so lists and mappings go as JSON."""

    @property
    def excerpt(self) -> str:
        line = " ".join(self.source.split())
        return line if len(line) <= 120 else line[:117] + "..."

    @property
    def writes(self) -> bool:
        """May it change data? Errs on the side of yes."""
        reading = self.verb in _READING or (self.verb == "with" and not _CHANGING & self.words)
        return not reading or (self.verb == "pragma" and "=" in self.text)


_READING = {"select", "values", "table", "explain", "show", "describe", "from", "pragma"}
_CHANGING = {"insert", "update", "delete", "merge", "replace", "into"}
_JSON_CAST = re.compile(r"\s*::\s*jsonb?\b(?!\s*\[)", re.IGNORECASE)

# How each driver wants a placeholder written, given the canonical name `p1`, `p2` …
_WRITTEN: dict[Dialect, Callable[[str], str]] = {
    Dialect.POSTGRES: lambda name: f"${name[1:]}",
    Dialect.MYSQL: lambda name: "%s",
    Dialect.SQLITE: lambda name: f":{name}",
    Dialect.DUCKDB: lambda name: f"${name}",
}


class _Binder:
    """Walks one statement, writing the driver's placeholders and collecting the values they stand for."""

    def __init__(self, params: Parameters, dialect: Dialect) -> None:
        self.params = params
        self.dialect = dialect
        self.written: list[str] = []
        self.args: dict[str, Any] = {}
        self.ordered: list[Any] = []
        self.names: dict[str, str] = {}
        self.json_names: set[str] = set()
        self._following = 0
        self._spellings: set[Kind] = set()

    def walk(self, pieces: tuple[Piece, ...]) -> None:
        for index, piece in enumerate(pieces):
            key = self._key(piece)
            if key is None:
                self.written.append(self._verbatim(piece))
                continue
            name = self.names.setdefault(key, f"p{len(self.names) + 1}")
            self.args[name] = value = self._value(key)
            self.ordered.append(value)
            after = "".join(piece.text for piece in pieces[index + 1 : index + 6])
            if _JSON_CAST.match(after):
                self.json_names.add(name)
            self.written.append(_WRITTEN[self.dialect](name))

    def _key(self, piece: Piece) -> str | None:
        """What the piece stands for: a name, or a position from 1; None when it is not a placeholder here."""
        if isinstance(self.params, dict):
            return piece.name if piece.kind is Kind.NAMED else None
        if piece.kind is Kind.NUMBERED:
            self._spellings.add(piece.kind)
            return piece.name
        if piece.kind is Kind.NEXT:
            self._spellings.add(piece.kind)
            self._following += 1
            return str(self._following)
        return None

    def _value(self, key: str) -> Any:
        if isinstance(self.params, dict):
            if key not in self.params:
                raise ToolFailure("parameters", _unknown_name(key, self.params))
            return self.params[key]
        if len(self._spellings) > 1:
            raise ToolFailure(
                "parameters", "the command mixes numbered placeholders (`$1`) with `%s` or `?`; use one of them"
            )
        if not 1 <= int(key) <= len(self.params):
            raise ToolFailure(
                "parameters", f"the command has a placeholder for value {key}, but `params` has {_values(self.params)}"
            )
        return self.params[int(key) - 1]

    def _verbatim(self, piece: Piece) -> str:
        # `%%` in code is how some drivers spell the operator `%` when there are parameters; both spellings are taken.
        text = "%" if piece.kind is Kind.OTHER and piece.text == "%%" else piece.text
        # This driver formats the text itself as soon as there are arguments.
        return text.replace("%", "%%") if self.dialect is Dialect.MYSQL else text


def _values(params: list[Any]) -> str:
    return f"{len(params)} value" + ("" if len(params) == 1 else "s")


def _unknown_name(key: str, params: dict[str, Any]) -> str:
    near = difflib.get_close_matches(key, params, n=1)
    hint = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(f'`{name}`' for name in params) or 'none'}"
    return f"the command uses `:{key}`, which is not in `params`{hint}"


def bind(statement: Statement, params: Parameters | None, dialect: Dialect) -> Bound:
    if params is None:
        return Bound(statement.text, statement.verb, statement.words, statement.text)
    binder = _Binder(params, dialect)
    binder.walk(statement.pieces)
    if isinstance(params, list) and len(binder.names) != len(params):
        used = len(binder.names)
        raise ToolFailure("parameters", f"the command has placeholders for {used} of the {_values(params)} in `params`")
    if not binder.names:
        return Bound(statement.text, statement.verb, statement.words, statement.text)
    text = "".join(binder.written).strip()
    args: dict[str, Any] | list[Any] = binder.ordered if dialect is Dialect.MYSQL else binder.args
    return Bound(text, statement.verb, statement.words, statement.text, args, frozenset(binder.json_names))
