"""Reads templates and expressions into trees.

The grammar is Jinja's, without what reaches outside the text (macro, include, import, extends, block, call).
Any text gives a tree or an ExpressionError; the depth of the tree is bounded, so what walks it later may recurse.
"""

from __future__ import annotations

from penstock.expr import nodes
from penstock.expr.errors import ExpressionError
from penstock.expr.grammar import MAX_DEPTH, ExpressionParser
from penstock.expr.lexer import Piece, Token, expression_tokens, is_template, pieces
from penstock.expr.nodes import Body, Expr, Statement, Template

_REFUSED = {
    "macro": "give the text a place in `workload`, or make it in a task",
    "include": "a template has no files beside it",
    "import": "a template has no files beside it",
    "from": "a template has no files beside it",
    "extends": "a template has no files beside it",
    "block": "a template has no files beside it",
    "call": "call functions inside `{{ … }}`",
    "filter": "write the filter inside `{{ … | name }}`",
    "with": "use `{% set x = … %}`",
    "autoescape": "nothing is escaped here",
    "do": "an expression changes nothing",
    "break": "filter the collection instead: `{% for x in xs if … %}`",
    "continue": "filter the collection instead: `{% for x in xs if … %}`",
}
_INSIDE = {"elif": "if", "else": "if", "endif": "if", "endfor": "for", "endraw": "raw", "endset": "set"}


def parse(text: str) -> Template:
    return _TemplateParser(text).template()


def parse_condition(text: str) -> Expr:
    """The expression of a condition, written bare or as one `{{ … }}`."""
    if not is_template(text):
        if not text.strip():
            raise ExpressionError("the condition is empty", text, 0, len(text), code="E0101")
        return ExpressionParser(text, expression_tokens(text)).whole()
    template = parse(text)
    if (lone := template.lone) is not None:
        return lone
    first = next((part for part in template.body if isinstance(part, nodes.Text) and not part.value.isspace()), None)
    start, end = (first.start, first.end) if first else (0, len(text))
    raise ExpressionError(
        "a condition is one expression, and this one mixes expressions with text",
        text,
        start,
        end,
        code="E0109",
        hint="put all of it inside one pair of braces: `{{ a == 'x' and b }}`",
    )


class _TemplateParser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces = pieces(text)
        self.index = 0
        self.depth = 0

    def template(self) -> Template:
        body, _ = self._body(())
        return Template(self.text, body)

    def _body(self, until: tuple[str, ...], opened: Piece | None = None) -> tuple[Body, Piece | None]:
        """Statements up to a tag that starts with one of the words `until`; that tag is returned, not consumed by anyone else."""
        self.depth += 1
        if opened is not None and self.depth > MAX_DEPTH // 4:
            raise ExpressionError("statements are nested too deeply", self.text, opened.start, opened.end, code="E0101")
        found: list[Statement] = []
        while self.index < len(self.pieces):
            piece = self.pieces[self.index]
            self.index += 1
            if piece.kind == "text":
                found.append(nodes.Text(piece.start, piece.end, piece.value))
            elif piece.kind == "output":
                found.append(nodes.Output(piece.start, piece.end, self._expression(piece).whole()))
            elif piece.tokens[0].value in until:
                self.depth -= 1
                return tuple(found), piece
            else:
                found.append(self._statement(piece))
        if opened is not None:
            word = opened.tokens[0].value
            raise ExpressionError(
                f"`{{% {word} %}}` is never closed; it ends with `{{% end{word} %}}`",
                self.text,
                opened.start,
                opened.end,
                code="E0101",
            )
        self.depth -= 1
        return tuple(found), None

    def _statement(self, piece: Piece) -> Statement:
        word = piece.tokens[0]
        match word.value:
            case "if":
                return self._if(piece)
            case "for":
                return self._for(piece)
            case "set":
                return self._set(piece)
        name = word.value
        if name in _INSIDE:
            message = f"`{{% {name} %}}` stands without its `{{% {_INSIDE[name]} %}}`"
            raise ExpressionError(message, self.text, piece.start, piece.end, code="E0101")
        start, end = (word.start, word.end) if word.kind == "name" else (piece.start, piece.end)
        message = f"the statement `{name}` is not allowed" if name in _REFUSED else f"`{name}` is not a statement"
        hint = _REFUSED.get(name, "statements are `if`, `for`, `set` and `raw`")
        raise ExpressionError(message, self.text, start, end, code="E0107", hint=hint)

    def _if(self, piece: Piece) -> nodes.If:
        branches: list[tuple[Expr, Body]] = []
        otherwise: Body = ()
        test: Expr | None = self._expression(piece, skip=1).whole()
        closing: Piece | None = piece
        while test is not None:
            body, closing = self._body(("elif", "else", "endif"), piece)
            assert closing is not None
            branches.append((test, body))
            test = self._expression(closing, skip=1).whole() if closing.tokens[0].value == "elif" else None
        assert closing is not None
        if closing.tokens[0].value == "else":
            self._alone(closing)
            otherwise, closing = self._body(("endif",), piece)
            assert closing is not None
        self._alone(closing)
        return nodes.If(piece.start, closing.end, tuple(branches), otherwise)

    def _for(self, piece: Piece) -> nodes.For:
        parser = self._expression(piece, skip=1)
        targets = parser.targets()
        parser.word("in")
        over = parser.operand()
        where = parser.expression() if parser.takes("if") else None
        parser.finish(over, *(() if where is None else (where,)))
        body, closing = self._body(("else", "endfor"), piece)
        assert closing is not None
        otherwise: Body = ()
        if closing.tokens[0].value == "else":
            self._alone(closing)
            otherwise, closing = self._body(("endfor",), piece)
            assert closing is not None
        self._alone(closing)
        return nodes.For(piece.start, closing.end, targets, over, where, body, otherwise)

    def _set(self, piece: Piece) -> nodes.Assign:
        parser = self._expression(piece, skip=1)
        targets = parser.targets()
        parser.sign("=", "`{% set %}` is written `{% set name = value %}`")
        value = parser.whole()
        return nodes.Assign(piece.start, piece.end, targets, value)

    def _alone(self, piece: Piece) -> None:
        if len(piece.tokens) > 2:
            extra: Token = piece.tokens[1]
            message = f"`{piece.tokens[0].value}` takes nothing behind it"
            raise ExpressionError(message, self.text, extra.start, extra.end, code="E0101")

    def _expression(self, piece: Piece, skip: int = 0) -> ExpressionParser:
        return ExpressionParser(self.text, piece.tokens[skip:])
