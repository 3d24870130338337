"""What translations of a query in DuckDB's dialect have in common, whichever database or cluster it is translated for.

Structure goes through sqlglot; functions through one table of each target, `Make` by DuckDB's name. What is not in the table is
refused, before the run. Types are DuckDB's everywhere in Penstock: a target casts what it gives to their counterparts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify

from penstock.data.select import DIALECT, SqlMistake, column, name, read
from penstock.ports.rows import Schema, SqlText


def written_text(node: exp.Expr, what: str, where: str) -> str:
    """The text that a literal is; another value cannot be translated. Raises SqlMistake."""
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    raise SqlMistake(f"on {where} {what} has to be a text as it stands, not something that is computed")


INSTEAD = "run this sub-job on `duckdb`: `engine: duckdb` beside the `type` of one of its components"
POSITIONS = "__"
"""Columns of our own begin so: the place of a row in its input is one of them."""
TRANSLATED = "translated"
SCANS = frozenset({"read_parquet", "read_csv", "read_json"})
"""Table functions that read files: a cluster's readers take their place; for a database the rows are read here."""


Args = list[exp.Expr]
Make = Callable[[Args], exp.Expr]


def call(name: str, *arguments: exp.Expr | str | int | None) -> exp.Anonymous:
    """A function of the target's, marked as one that needs no translation."""
    made = exp.Anonymous(this=name, expressions=[tree_of(one) for one in arguments if one is not None])
    made.meta[TRANSLATED] = True
    return made


def tree_of(value: exp.Expr | str | int) -> exp.Expr:
    if isinstance(value, exp.Expr):
        return value
    return exp.Literal.number(value) if isinstance(value, int) else exp.Literal.string(value)


def in_order(a: Args) -> tuple[Args, list[exp.Ordered]]:
    """The arguments of an aggregate, and the order that the last of them came with."""
    if a and isinstance(a[-1], exp.Order):
        return [*a[:-1], a[-1].this], list(a[-1].expressions)
    return a, []


def renamed(name: str) -> Make:
    return lambda a: call(name, *a)


def templates(dialect: Any) -> Callable[[str], Make]:
    """Functions of a few arguments, each as a template in the target's SQL with `{0}`, `{1}` … `dialect` reads it, with every
    function as it was written."""

    def template(build: str) -> Make:
        def make(a: Args) -> exp.Expr:
            tree = parse_one(build.format(*(f"__arg{number}" for number in range(len(a)))), dialect=dialect)
            for node in list(tree.find_all(exp.Column)):
                if node.name.startswith("__arg"):
                    value = a[int(node.name[5:])].copy()
                    if node is tree:
                        return value
                    node.replace(exp.Paren(this=value) if isinstance(value, (exp.Binary, exp.Connector)) else value)
            for inner in list(tree.find_all(exp.Anonymous)):
                made = call(str(inner.this), *inner.expressions)
                if inner is tree:
                    return made
                if TRANSLATED not in inner.meta:
                    inner.replace(made)
            return tree

        return make

    return template


def closed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, (exp.Binary, exp.Connector, exp.Not, exp.Case)) else node


def reads_files(query: SqlText) -> bool:
    if not any(scan in query.lower() for scan in SCANS):
        return False
    return any(str(node.this).lower() in SCANS for node in read(query).find_all(exp.Anonymous))


def is_modified(star: exp.Star) -> bool:
    return any(star.args.get(name) for name in ("except_", "except", "replace", "rename"))


def spelled_out(tree: exp.Expr, inputs: Mapping[str, Schema]) -> exp.Expr:
    """Without stars. Types of columns do not matter here."""
    return qualify(
        tree,
        schema={name: {column.name: "VARCHAR" for column in schema} for name, schema in inputs.items()} or None,
        dialect=DIALECT,
        validate_qualify_columns=False,
        quote_identifiers=True,
        identify=True,
    )


def match_names(tree: exp.Expr, columns_of: Callable[[SqlText], Schema]) -> None:
    """A union that matches columns by their names, as one that matches them by position."""
    for node in list(tree.find_all(exp.Union)):
        if not node.args.get("by_name"):
            continue
        sides = [
            (side, [one.name for one in columns_of(side.sql(dialect=DIALECT))]) for side in (node.left, node.right)
        ]
        first = {one.lower() for one in sides[0][1]}
        ordered = [*sides[0][1], *(one for one in sides[1][1] if one.lower() not in first)]
        for key, (side, found) in zip(("this", "expression"), sides, strict=True):
            known = {one.lower() for one in found}
            chosen = [
                column(one) if one.lower() in known else exp.alias_(exp.null(), name(one), quoted=True)
                for one in ordered
            ]
            inner = exp.Subquery(this=side.copy(), alias=exp.TableAlias(this=name(f"{key}_side")))
            node.set(key, exp.Select(expressions=chosen, from_=exp.From(this=inner)))
        node.set("by_name", False)
        for key in node.args["order"].find_all(exp.Column) if node.args.get("order") else ():
            key.set("table", None)  # The sides have other names now, and their columns the same.


def names_its_own(tree: exp.Expr, inputs: Mapping[str, Schema]) -> bool:
    """Does an expression use a name that the same SELECT gives to another? Many let only ORDER BY and GROUP BY do that."""
    known = {one.name.lower() for schema in inputs.values() for one in schema}
    for select in tree.find_all(exp.Select):
        named = {one.alias.lower() for one in select.expressions if isinstance(one, exp.Alias)} - known
        places = [*select.expressions, *(select.args[key] for key in ("where", "having") if select.args.get(key))]
        for node in places:
            used = {one.name.lower() for one in node.find_all(exp.Column) if not one.table}
            if used & named:
                return True
    return False


def spell_using(join: exp.Join) -> None:
    """`USING (k)` of a join that only asks whether there is a row."""
    select = join.find_ancestor(exp.Select)
    assert select is not None
    left, right = select.args["from_"].this.alias_or_name, join.this.alias_or_name
    same = [exp.EQ(this=column(one.name, left), expression=column(one.name, right)) for one in join.args["using"]]
    join.set("using", None)
    join.set("on", exp.and_(*same))


class Translation:
    """One query on its way to the target."""

    def __init__(self, inputs: Mapping[str, Schema]) -> None:
        families: dict[str, set[str]] = {}
        for schema in inputs.values():
            for one in schema:
                families.setdefault(one.name.lower(), set()).add(family(one.type))
        self.families = {name: found.pop() for name, found in families.items() if len(found) == 1}

    def whole(self, tree: exp.Expr) -> exp.Expr:
        self._name_families(tree)
        self.prepare(tree)
        # From the inside out: what a function is made of has been translated before it is.
        for node in reversed(list(tree.walk(bfs=False))):
            made = self.node(node)
            if made is not node:
                node.replace(made)
        return tree

    def prepare(self, tree: exp.Expr) -> None:
        """What has to be seen to before single nodes are."""

    def node(self, node: exp.Expr) -> exp.Expr:
        """What takes the place of a node of DuckDB's. Raises SqlMistake."""
        raise NotImplementedError

    def _name_families(self, tree: exp.Expr) -> None:
        """Names that the query gives itself; the inner ones first, because the outer ones are made of them."""
        for node in reversed(list(tree.find_all(exp.Alias))):
            found = self.family(node.this)
            if found is not None:
                self.families.setdefault(node.alias.lower(), found)

    def family(self, node: exp.Expr) -> str | None:
        """What kind of value it is, as far as it shows: `float`, `decimal`, `int`, `text`, `date`, `timestamp`, `list`, `map`."""
        match node:
            case exp.Column():
                return self.families.get(node.name.lower())
            case exp.Paren() | exp.Alias() | exp.Neg():
                return self.family(node.this)
            case exp.Cast():
                return family(node.to.sql(dialect="duckdb"))
            case exp.Literal():
                if node.is_string:
                    return "text"
                return "float" if "e" in str(node.this).lower() else "decimal" if "." in str(node.this) else "int"
            case exp.Array():
                return "list"
            case exp.Case():
                return next((found for one in node.args["ifs"] if (found := self.family(one.args["true"]))), None)
            case exp.Coalesce():
                return self.family(node.this)
            case exp.Div():
                return "float"
            case exp.Binary() if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
                sides = {self.family(node.this), self.family(node.expression)}
                return next((one for one in ("float", "decimal", "int") if one in sides and sides <= _NUMBERS), None)
            case exp.Anonymous():
                return _RESULTS.get(str(node.this).lower()) or (
                    self.family(node.expressions[0])
                    if str(node.this).lower() in _KEEPING and node.expressions
                    else None
                )
            case exp.DPipe():
                return "text"
        return None


_NUMBERS: set[str | None] = {"float", "decimal", "int"}


_KEEPING = frozenset({"round", "abs", "coalesce", "nullif", "greatest", "least", "min", "max", "sum", "floor", "ceil"})
_RESULTS = {
    "double": "float", "avg": "float", "sqrt": "float", "ln": "float", "log10": "float", "exp": "float", "power": "float",
    "string_split": "list", "split": "list", "list": "list", "transform": "list", "filter": "list", "list_transform": "list",
    "list_filter": "list", "regexp_extract_all": "list", "lower": "text", "upper": "text", "trim": "text",
    "strptime": "timestamp", "regexp_extract": "text", "list_value": "list", "range": "list",
}  # fmt: skip


def family(type: str) -> str:
    upper = type.upper()
    if upper.endswith("]"):
        return "list"
    word = upper.partition("(")[0]
    if word in ("FLOAT", "DOUBLE", "REAL"):
        return "float"
    if word in ("DECIMAL", "NUMERIC"):
        return "decimal"
    if word.endswith("INT") or word in ("INTEGER", "UINTEGER", "INT128"):
        return "int"
    if word in ("VARCHAR", "TEXT", "JSON", "UUID", "ENUM"):
        return "text"
    if word.startswith("TIMESTAMP"):
        return "timestamp"
    return word.lower()
