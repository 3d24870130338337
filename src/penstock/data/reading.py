"""How often a query reads each of its tables, CTEs followed."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from penstock.data.sql_dialect import read


def times_read(query: str, table: str) -> int:
    """0, 1 or 2 for any number above one. What cannot be told counts as more than one, which is slower but never wrong."""
    try:
        tree = read(query)
    except (ParseError, TokenError, RecursionError):
        return 2
    ctes = list(tree.find_all(exp.CTE))
    names = [cte.alias.lower() for cte in ctes]
    if len(set(names)) < len(names) or table.lower() in names or any(_is_recursive(cte) for cte in ctes):
        return 2
    return min(2, _times(tree, table.lower(), dict(zip(names, ctes, strict=True))))


def _is_recursive(cte: exp.CTE) -> bool:
    parent = cte.parent
    return isinstance(parent, exp.With) and bool(parent.args.get("recursive"))


def _times(tree: exp.Expr, table: str, ctes: Mapping[str, exp.CTE], within: exp.CTE | None = None) -> int:
    count = 0
    for node in tree.find_all(exp.Table):
        if node.find_ancestor(exp.CTE) is not within:
            continue
        name = node.name.lower()
        if name == table:
            count += 1
        elif name in ctes and ctes[name] is not within:
            count += _times(ctes[name], table, ctes, ctes[name])
    return count
