"""SQL text cut into pieces, so that nothing inside a string, a quoted name or a comment is ever taken for code.

Law: joining the pieces gives the text back, character for character. The lexer knows no grammar; it knows where code stops.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import Any, NamedTuple

from penstock.tools.base import ToolFailure


class Dialect(str, Enum):
    POSTGRES = "postgres"
    MYSQL = "mysql"
    SQLITE = "sqlite"
    DUCKDB = "duckdb"


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted"
    COMMENT = "comment"
    SPACE = "space"
    SEMICOLON = "semicolon"
    NAMED = "named"
    """A placeholder with a name: `:name`, `%(name)s`; `$name` and `@name` where the database has them."""
    NUMBERED = "numbered"
    """`$1`, `$2` …"""
    NEXT = "next"
    """`%s`, and `?` where it is not an operator."""
    OTHER = "other"


class Piece(NamedTuple):
    kind: Kind
    text: str
    name: str = ""
    """What a named or numbered placeholder refers to."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text. `words` are those of its code, in lower case."""

    text: str
    pieces: tuple[Piece, ...]
    verb: str
    words: frozenset[str]


_NAME = r"[^\W\d]\w*"
_SINGLE = r"'[^']*(?:''[^']*)*'?"
_ESCAPED = r"[eE]'(?:[^'\\]|\\.|'')*'?"
_BACKSLASHED = r"""'(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?"""
_DOUBLE = r'"[^"]*(?:""[^"]*)*"?'
_BACKTICK = r"`[^`]*(?:``[^`]*)*`?"
_BRACKET = r"\[[^\]]*\]?"
_DOLLAR = rf"\$(?P<tag>(?:{_NAME})?)\$(?s:.*?)(?:\$(?P=tag)\$|\Z)"

_QUOTED = {
    Dialect.POSTGRES: (_ESCAPED, _SINGLE, _DOUBLE, _DOLLAR),
    Dialect.DUCKDB: (_ESCAPED, _SINGLE, _DOUBLE, _DOLLAR),
    Dialect.SQLITE: (_SINGLE, _DOUBLE, _BACKTICK, _BRACKET),
    Dialect.MYSQL: (_BACKSLASHED, _BACKTICK),
}
_NESTED_COMMENTS = {Dialect.POSTGRES, Dialect.DUCKDB}
# A colon straight after one of these is a slice, a struct key or an alias, never the start of a placeholder.
_BEFORE_NO_PLACEHOLDER = re.compile(r"""[\w\])"'`:]""")


@cache
def _pattern(dialect: Dialect) -> re.Pattern[str]:
    line_comment = r"--(?=\s|\Z)[^\n]*|\#[^\n]*" if dialect is Dialect.MYSQL else r"--[^\n]*"
    named = [rf":(?P<colon>{_NAME})", r"%\((?P<percent>[^()]+)\)s"]
    if dialect in (Dialect.SQLITE, Dialect.DUCKDB):
        named.append(rf"\$(?P<dollar>{_NAME})")
    if dialect is Dialect.SQLITE:
        named.append(rf"@(?P<at>{_NAME})")
    following = r"%s(?!\w)" if dialect is Dialect.POSTGRES else r"%s(?!\w)|\?"
    parts = {
        "comment": rf"{line_comment}|/\*(?s:.*?)(?:\*/|\Z)",
        "quoted": "|".join(_QUOTED[dialect]),
        "space": r"\s+",
        "semicolon": r";",
        "number": r"\d[\w.]*",
        "word": r"[^\W\d][\w$]*",
        "numbered": r"\$(?P<ordinal>\d+)",
        "following": following,
        "fixed": r"::|:=|%%",
        "named": "|".join(named),
        "other": r"[(),.=<>+]+|(?s:.)",
    }
    return re.compile("|".join(f"(?P<{name}>{part})" for name, part in parts.items()), re.DOTALL)


_KINDS = {
    "comment": Kind.COMMENT, "quoted": Kind.QUOTED, "space": Kind.SPACE, "semicolon": Kind.SEMICOLON,
    "word": Kind.WORD, "numbered": Kind.NUMBERED, "following": Kind.NEXT, "named": Kind.NAMED,
}  # fmt: skip
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def _end_of_nested_comment(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def scan(text: str, dialect: Dialect) -> Iterator[Piece]:
    pattern = _pattern(dialect)
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        assert match is not None  # the last alternative takes any character
        group = match.lastgroup or "other"  # of nested groups the outermost closes last
        piece = Piece(_KINDS.get(group, Kind.OTHER), match.group())
        if group == "comment" and piece.text.startswith("/*") and dialect in _NESTED_COMMENTS:
            piece = Piece(Kind.COMMENT, text[position : _end_of_nested_comment(text, position)])
        elif group == "numbered":
            piece = piece._replace(name=match.group("ordinal"))
        elif group == "named":
            named = match.groupdict()
            name = next(named[key] for key in ("colon", "percent", "dollar", "at") if named.get(key) is not None)
            before = text[position - 1] if position else " "
            if piece.text[0] == ":" and _BEFORE_NO_PLACEHOLDER.match(before):
                piece = Piece(Kind.OTHER, piece.text)
            else:
                piece = piece._replace(name=name)
        yield piece
        position += len(piece.text)


# What follows these in a CREATE may hold a body of statements between BEGIN and END.
_WITH_BODY = {"function", "procedure", "trigger", "event"}
_CREATED = _WITH_BODY | {"table", "view", "index", "schema", "database", "sequence", "type", "macro", "role", "user"}
_NOT_A_BLOCK_END = {"if", "loop", "while", "repeat"}


class _Blocks:
    """Counts BEGIN … END inside the body of a routine or trigger, where `;` does not end the statement."""

    def __init__(self) -> None:
        self.depth = 0
        self._words = 0
        self._may_have_body: bool | None = None
        self._after_end = False

    def see(self, word: str) -> None:
        self._words += 1
        if self._words == 1 and word != "create":
            self._may_have_body = False
        elif self._may_have_body is None and word in _CREATED:
            self._may_have_body = word in _WITH_BODY
        if self._may_have_body:
            self._count(word)

    def _count(self, word: str) -> None:
        after_end, self._after_end = self._after_end, False
        if (after_end and word in _NOT_A_BLOCK_END) or word == "begin" or (word == "case" and not after_end):
            self.depth += 1
        elif word == "end" and self.depth:
            self.depth -= 1
            self._after_end = True

    def at_semicolon(self) -> bool:
        """Does this `;` end the statement?"""
        self._after_end = False
        return self.depth == 0


def _statement(pieces: list[Piece]) -> Statement | None:
    first = next((piece for piece in pieces if piece.kind not in (Kind.SPACE, Kind.COMMENT)), None)
    if first is None:
        return None
    words = [piece.text.lower() for piece in pieces if piece.kind is Kind.WORD]
    text = "".join(piece.text for piece in pieces)
    return Statement(text.strip(), tuple(pieces), words[0] if words else "", frozenset(words))


def split(text: str, dialect: Dialect) -> list[Statement]:
    """The statements of a text, without the semicolons between them. Parts that are only comments are left out."""
    # A loop runs the same short text many times; long ones are mostly values, and no two alike.
    return list(_split_again(text, dialect) if len(text) <= 4096 else _split(text, dialect))


@lru_cache(maxsize=256)
def _split_again(text: str, dialect: Dialect) -> tuple[Statement, ...]:
    return tuple(_split(text, dialect))


def _split(text: str, dialect: Dialect) -> list[Statement]:
    statements: list[Statement | None] = []
    pieces: list[Piece] = []
    blocks = _Blocks()
    for piece in scan(text, dialect):
        if piece.kind is Kind.SEMICOLON and blocks.at_semicolon():
            statements.append(_statement(pieces))
            pieces, blocks = [], _Blocks()
            continue
        if piece.kind is Kind.WORD:
            blocks.see(piece.text.lower())
        pieces.append(piece)
    statements.append(_statement(pieces))
    return [statement for statement in statements if statement is not None]


# ---- Names of tables and columns, quoted the way each database wants it: whatever a name holds, it stays a name.

_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^."`]+')


def quote(name: str, dialect: Dialect) -> str:
    if not name or "\0" in name:
        raise ToolFailure("parameters", f"`{name!r}` cannot be the name of a table or column")
    mark = "`" if dialect is Dialect.MYSQL else '"'
    return mark + name.replace(mark, mark * 2) + mark


def _no_table(name: str) -> ToolFailure:
    hint = '`table` or `schema.table`; a part with a dot or a quote in it is written in quotes, as in `"a ""b"" c"`'
    return ToolFailure("parameters", f"`{name}` cannot be the name of a table; hint: {hint}")


def table_parts(name: str) -> list[str]:
    """`schema.table` as its parts; a part that holds a dot itself is written in quotes."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(name, position)
        if match is None:
            raise _no_table(name)
        part = match.group()
        parts.append(part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '"`' else part)
        position = match.end()
        if position == len(name):
            return parts
        if name[position] != ".":
            raise _no_table(name)
        position += 1


def quote_table(name: str, dialect: Dialect) -> str:
    return ".".join(quote(part, dialect) for part in table_parts(name))


def quote_all(names: Sequence[str], dialect: Dialect) -> str:
    return ", ".join(quote(name, dialect) for name in names)


def on_conflict(keys: Sequence[str], update: Sequence[str], dialect: Dialect) -> str:
    """The tail of an INSERT that makes it an upsert."""
    if dialect is Dialect.MYSQL:
        changed = update or keys[:1]  # setting a key to itself is MySQL's way of doing nothing
        return "ON DUPLICATE KEY UPDATE " + ", ".join(
            f"{quote(name, dialect)} = VALUES({quote(name, dialect)})" for name in changed
        )
    target = f"ON CONFLICT ({quote_all(keys, dialect)}) "
    if not update:
        return target + "DO NOTHING"
    return (
        target
        + "DO UPDATE SET "
        + ", ".join(f"{quote(name, dialect)} = excluded.{quote(name, dialect)}" for name in update)
    )


def insert_into(table: str, columns: Sequence[str], dialect: Dialect) -> str:
    return f"INSERT INTO {quote_table(table, dialect)} ({quote_all(columns, dialect)})"


def table_options(dialect: Dialect) -> str:
    """What comes behind the columns of a table that is made: a server of MySQL's kind may take another charset for granted, which
    has no room for most of Unicode."""
    return " CHARACTER SET utf8mb4" if dialect is Dialect.MYSQL else ""


# ---- Parameters are bound, never pasted: placeholders of any accepted spelling become the driver's own.
# With a mapping, `:name` and `%(name)s` are placeholders (and `$name` in sqlite and duckdb); with a list, `%s`, `$1` and
# `?`. Without parameters the text is not touched at all, so a lone `%` means what the database says it means.

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
