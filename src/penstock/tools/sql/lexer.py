"""SQL text cut into pieces, so that nothing inside a string, a quoted name or a comment is ever taken for code.

Law: joining the pieces gives the text back, character for character. The lexer knows no grammar; it knows where code stops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from typing import NamedTuple


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
    "comment": Kind.COMMENT,
    "quoted": Kind.QUOTED,
    "space": Kind.SPACE,
    "semicolon": Kind.SEMICOLON,
    "word": Kind.WORD,
    "numbered": Kind.NUMBERED,
    "following": Kind.NEXT,
    "named": Kind.NAMED,
}
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
