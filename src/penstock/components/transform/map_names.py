"""The names an expression of `map` may use, and what they stand for.

`input.amount`, `lookup_x.name` and `var.total` are exact. A bare `amount` is a variable, else a column of `input`, else one of
the lookup that has it. In the joined rows every value has a flat name, `"lookup_x.name"`, that no author can have meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.components.transform.base import actual
from penstock.ports.rows import Schema
from penstock.tools.parameters import similar

if TYPE_CHECKING:
    from sqlglot import exp

MAIN = "input"
VARIABLES = "var"

Spelling = "Callable[[str, str], exp.Expr]"


@dataclass(slots=True)
class Names:
    """What is visible at one place: the input, the lookups joined so far and the variables computed so far."""

    ports: Mapping[str, Schema]
    variables: list[str] = field(default_factory=list)

    def rewritten(self, text: str, spell: Callable[[str, str], exp.Expr]) -> exp.Expr:
        """The author's expression with every name replaced by `spell(owner, column)`. Raises SqlMistake."""
        from sqlglot import exp

        from penstock.data import select

        tree = select.expression(text)

        def replace(node: exp.Expr) -> exp.Expr:
            return self._replaced(node, spell) if isinstance(node, exp.Column) else node

        return tree.transform(replace)

    def _replaced(self, node: exp.Column, spell: Callable[[str, str], exp.Expr]) -> exp.Expr:
        from sqlglot import exp

        parts = node.parts
        words = [part.name for part in parts]
        found = self._owner(words)
        if found is None:
            if node.find_ancestor(exp.Query) is not None:
                return node  # a name of an inner query's own
            raise self._unknown(node, words)
        owner, column, used = found
        value = spell(owner, column)
        for rest in parts[used:]:
            value = exp.Dot(this=value, expression=rest.copy())
        return value

    def _owner(self, words: list[str]) -> tuple[str, str, int] | None:
        """(owner, column, how many words that took); further words are fields of a structure."""
        first = words[0].lower()
        if len(words) > 1:
            port = next((port for port in self.ports if port.lower() == first), None)
            column = None if port is None else actual(words[1], self.ports[port])
            if port is not None and column is not None:
                return port, column, 2
            if first == VARIABLES and (variable := self._variable(words[1])) is not None:
                return VARIABLES, variable, 2
        if (variable := self._variable(first)) is not None:
            return VARIABLES, variable, 1
        having = [port for port, schema in self.ports.items() if actual(first, schema) is not None]
        # The ports come in the order of the links, so the input need not be the first of them.
        owner = MAIN if MAIN in having else having[0] if len(having) == 1 else None
        return None if owner is None else (owner, actual(first, self.ports[owner]) or first, 1)

    def _variable(self, word: str) -> str | None:
        return next((name for name in self.variables if name.lower() == word.lower()), None)

    def _unknown(self, node: exp.Column, words: list[str]) -> Exception:
        from penstock.data.sql_rules import SqlMistake, place

        offset, length = place(node)
        said = ".".join(words)
        having = [
            f"`{port}.{words[-1]}`" for port, schema in self.ports.items() if actual(words[-1], schema) is not None
        ]
        if len(words) == 1 and having:
            message = f"`{said}` is in several lookups: say {' or '.join(having)}"
            return SqlMistake(message, offset, length, kind="column")
        known = [name for name in self.all_names() if ("." in name) == (len(words) > 1)]
        return SqlMistake(f"there is no column `{said}`{similar(said, known)}", offset, length, kind="column")

    def all_names(self) -> Iterator[str]:
        for port, schema in self.ports.items():
            for column in schema:
                yield column.name
                yield f"{port}.{column.name}"
        for variable in self.variables:
            yield variable
            yield f"{VARIABLES}.{variable}"


def flat(owner: str, column: str) -> str:
    return f"{owner}.{column}"


def flat_column(owner: str, column: str) -> exp.Expr:
    from penstock.data import select

    return select.column(flat(owner, column))


def qualified(owner: str, column: str) -> exp.Expr:
    from penstock.data import select

    return select.column(column, owner)
