"""Reads templates and expressions into trees.

The grammar is Jinja's, without what reaches outside the text (macro, include, import, extends, block, call).
Any text gives a tree or an ExpressionError; the depth of the tree is bounded, so what walks it later may recurse.
"""

from __future__ import annotations

from typing import Final, Literal, cast

from msgspec.structs import replace

from penstock.expr import nodes
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import (
    Piece,
    Token,
    TokenStream,
    expression_tokens,
    is_template,
    pieces,
    read_float,
    read_integer,
    read_text,
)
from penstock.expr.nodes import Arguments, Body, Expr, Statement, Template, WordKind, children

# ---- Expressions, by precedence climbing.
#
# From loose to tight: `a if c else b`, `or`, `and`, `not`, comparisons, `+ -`, `~`, `* / // %`, `**`, unary signs, then
# what follows a value: `.name`, `[…]`, `(…)`, `| filter`, `is test`. As in Jinja, `**` groups to the left and a sign binds
# tighter than `**`.


MAX_DEPTH: Final = 100
_MAX_NESTING: Final = 40

_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "elif", *_CONSTANTS})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_OR, _AND, _NOT, _COMPARE, _SUM, _JOIN, _PRODUCT, _POWER = range(8)
_ARITHMETIC = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT, "**": _POWER}


class ExpressionParser(TokenStream):
    def __init__(self, text: str, tokens: tuple[Token, ...]) -> None:
        super().__init__(text, tokens)
        self.nesting = 0

    # Entry points

    def whole(self) -> Expr:
        """The expression all tokens make up."""
        if self.token.kind == "end":
            self._fail("there is no expression here", self.token.start, max(self.token.end, self.token.start + 1))
        found = self.expression()
        self.finish(found)
        return found

    def finish(self, *found: Expr) -> None:
        """No tokens are left, and what was found is no deeper than later code may recurse."""
        for expr in found:
            if _depth(expr) > MAX_DEPTH:
                self._fail("the expression is too deep; split it, or do this work in a task", expr.start, expr.end)
        if self.token.kind != "end":
            hint = ""
            if self.token.value == "," and self.token.kind == "sign":
                hint = "a list is written `[a, b]`"
            elif self._is("sign", "."):
                hint = "to look into what a filter gives, use parentheses: `(x | first).name`"
            self._unexpected("the expression should end here", hint)

    def targets(self) -> tuple[str, ...]:
        """The names on the left of `in` or `=`."""
        wrapped = self._takes_sign("(")
        names = [self._target()]
        while self._takes_sign(","):
            names.append(self._target())
        if wrapped:
            self.sign(")")
        return tuple(names)

    def _target(self) -> str:
        token = self.token
        if token.kind != "name" or token.value in _KEYWORDS:
            self._unexpected("a variable name is expected here")
        if token.value == "loop" or (token.value.startswith("__") and token.value.endswith("__")):
            self._fail(f"`{token.value}` cannot be set", token.start, token.end)
        return self._next().value

    # Expressions, from loose to tight

    def _enter(self) -> None:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            self._fail("the expression is nested too deeply", self.token.start, self.token.end)

    def expression(self) -> Expr:
        self._enter()
        found = self.operand()
        while self.takes("if"):
            test = self.operand()
            otherwise = self.expression() if self.takes("else") else None
            found = nodes.Choice(found.start, (otherwise or test).end, test, found, otherwise)
        self.nesting -= 1
        return found

    def operand(self, power: int = _OR) -> Expr:
        """An expression without `if` whose operators bind at least as tight as `power`."""
        left = self._negation() if power <= _NOT and self._is("name", "not") else self._signed()
        while True:
            token = self.token
            if token.kind == "name" and token.value in ("or", "and"):
                level = _OR if token.value == "or" else _AND
                if level < power:
                    return left
                left = self._chain(left, cast(Literal["and", "or"], token.value), level)
            elif self._comparison_ahead():
                if power > _COMPARE:
                    return left
                left = self._compare(left)
            elif token.kind == "sign" and token.value == "~":
                if power > _JOIN:
                    return left
                left = self._chain(left, "~", _JOIN)
            elif token.kind == "sign" and token.value in _ARITHMETIC:
                level = _ARITHMETIC[token.value]
                if level < power:
                    return left
                self.index += 1
                right = self.operand(level + 1)
                left = nodes.Binary(left.start, right.end, token.value, left, right)
            else:
                return left

    def _negation(self) -> Expr:
        start = self._next().start
        self._enter()
        operand = self.operand(_NOT)
        self.nesting -= 1
        return nodes.Unary(start, operand.end, "not", operand)

    def _chain(self, first: Expr, operator: Literal["and", "or", "~"], level: int) -> Expr:
        operands = [first]
        while self.token.value == operator and self.token.kind in ("name", "sign"):
            self.index += 1
            operands.append(self.operand(level + 1))
        return nodes.Chain(first.start, operands[-1].end, operator, tuple(operands))

    def _comparison_ahead(self) -> bool:
        token = self.token
        if token.kind == "sign":
            return token.value in _COMPARISONS
        if token.kind == "name" and token.value == "not":
            following = self.tokens[self.index + 1]
            return following.kind == "name" and following.value == "in"
        return token.kind == "name" and token.value == "in"

    def _compare(self, first: Expr) -> Expr:
        rest: list[tuple[str, Expr]] = []
        while self._comparison_ahead():
            operator = self._next().value
            if operator == "not":
                self.index += 1
                operator = "not in"
            rest.append((operator, self.operand(_COMPARE + 1)))
        return nodes.Compare(first.start, rest[-1][1].end, first, tuple(rest))

    def _signed(self, with_words: bool = True) -> Expr:
        token = self.token
        if token.kind == "sign" and token.value in ("-", "+"):
            self.index += 1
            self._enter()
            operand = self._signed(with_words=False)
            self.nesting -= 1
            found: Expr = self._with_sign(token, operand)
        else:
            found = self._postfix(self._primary())
        while with_words:
            if self._takes_sign("|"):
                found = self._filter(found)
            elif self.takes("is"):
                found = self._test(found)
            else:
                break
        return found

    def _with_sign(self, sign: Token, operand: Expr) -> Expr:
        if sign.value == "-" and isinstance(operand, nodes.Const) and type(operand.value) in (int, float):
            # A negative number is a constant too, so `x[-1]` is a plain path.
            return nodes.Const(sign.start, operand.end, -cast(float, operand.value))
        return nodes.Unary(sign.start, operand.end, cast(Literal["-", "+"], sign.value), operand)

    def _filter(self, of: Expr) -> Expr:
        name = self.token
        if name.kind != "name" or name.value in _KEYWORDS:
            self._unexpected("the name of a filter is expected here", "write `or`" if self._is("sign", "|") else "")
        self.index += 1
        arguments, end = self._arguments() if self._is("sign", "(") else (Arguments(), name.end)
        return self._word("filter", of, name, arguments, end)

    def _test(self, of: Expr) -> Expr:
        negated = self.takes("not")
        name = self.token
        if name.kind != "name" or name.value in {"and", "or", "not", "is", "if", "else"}:
            self._unexpected("the name of a test is expected here, such as `defined`")
        self.index += 1
        arguments, end = Arguments(), name.end
        following = self.token
        if self._is("sign", "("):
            arguments, end = self._arguments()
        elif following.kind in ("text", "int", "float") or (
            following.value in ("[", "{")
            if following.kind == "sign"
            else following.kind == "name" and (following.value not in _KEYWORDS or following.value in _CONSTANTS)
        ):
            argument = self._postfix(self._primary())
            arguments, end = Arguments((argument,)), argument.end
        return self._word("test", of, name, arguments, end, negated=negated)

    def _word(
        self, kind: WordKind, of: Expr, name: Token, arguments: Arguments, end: int, *, negated: bool = False
    ) -> Expr:
        return nodes.Word(
            of.start, end, kind, of, name.value, at=name.start, until=name.end, arguments=arguments, negated=negated
        )

    # What follows a value

    def _postfix(self, found: Expr) -> Expr:
        while True:
            if self._takes_sign("."):
                found = self._dot(found)
            elif self._is("sign", "["):
                found = self._subscript(found)
            elif self._is("sign", "("):
                if not isinstance(found, nodes.Name):
                    self._fail("only functions and methods can be called", found.start, self.token.end)
                arguments, end = self._arguments()
                found = nodes.Word(
                    found.start, end, "function", None, found.name, at=found.start, until=found.end, arguments=arguments
                )
            else:
                return found

    def _dot(self, of: Expr) -> Expr:
        token = self.token
        if token.kind == "int":
            self.index += 1
            return nodes.Get(
                of.start, token.end, of, nodes.Const(token.start, token.end, read_integer(self.text, token)), True
            )
        if token.kind != "name":
            self._unexpected("a name is expected behind the dot")
        self.index += 1
        if self._is("sign", "("):
            arguments, end = self._arguments()
            return self._word("method", of, token, arguments, end)
        return nodes.Get(of.start, token.end, of, nodes.Const(token.start, token.end, token.value), True)

    def _subscript(self, of: Expr) -> Expr:
        self.index += 1
        bounds: list[Expr | None] = []
        colons = 0
        while True:
            bounds.append(None if self._is("sign", ":") or self._is("sign", "]") else self.expression())
            if colons < 2 and self._takes_sign(":"):
                colons += 1
            else:
                break
        end = self.sign("]").end
        if colons:
            first, last, step = (*bounds, None, None)[:3]
            return nodes.Slice(of.start, end, of, first, last, step)
        if bounds[0] is None:
            self._fail("there is nothing between the brackets", of.end, end)
        return nodes.Get(of.start, end, of, bounds[0], False)

    def _arguments(self) -> tuple[Arguments, int]:
        opening = self.sign("(")
        positional: list[Expr] = []
        keywords: list[tuple[str, Expr]] = []
        given: set[str] = set()
        while not self._is("sign", ")"):
            token = self.token
            following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
            if token.kind == "name" and following.kind == "sign" and following.value == "=":
                self.index += 2
                if token.value in given:
                    self._fail(f"`{token.value}` is given twice", token.start, token.end)
                given.add(token.value)
                keywords.append((token.value, self.expression()))
            elif keywords:
                self._unexpected("behind `name=value`, all other arguments need a name too")
            elif token.kind == "sign" and token.value in ("*", "**"):
                self._fail(f"`{token.value}` arguments are not allowed; write each one", token.start, token.end)
            else:
                positional.append(self.expression())
            if not self._takes_sign(","):
                break
        if self.token.kind == "end":
            self._fail("`(` is never closed", opening.start, opening.end)
        return Arguments(tuple(positional), tuple(keywords)), self.sign(")").end

    # Values

    def _primary(self) -> Expr:  # noqa: RET503 (the last case never returns)
        token = self.token
        match token.kind:
            case "name":
                if token.value in _CONSTANTS:
                    self.index += 1
                    return nodes.Const(token.start, token.end, _CONSTANTS[token.value])
                if token.value in _KEYWORDS:
                    self._unexpected("a value is expected here")
                self.index += 1
                return nodes.Name(token.start, token.end, token.value)
            case "text":
                return self._text()
            case "int":
                self.index += 1
                return nodes.Const(token.start, token.end, read_integer(self.text, token))
            case "float":
                self.index += 1
                return nodes.Const(token.start, token.end, read_float(self.text, token))
            case "sign" if token.value == "(":
                return self._parenthesis()
            case "sign" if token.value == "[":
                self.index += 1
                items, end = self._items("]", token)
                return nodes.ListOf(token.start, end, items)
            case "sign" if token.value == "{":
                return self._dict()
            case _:
                self._unexpected("a value is expected here")

    def _parenthesis(self) -> Expr:
        opening = self._next()
        if self._takes_sign(")"):
            return nodes.ListOf(opening.start, self.tokens[self.index - 1].end, ())
        first = self.expression()
        if self._takes_sign(","):
            rest, end = self._items(")", opening)
            return nodes.ListOf(opening.start, end, (first, *rest))
        # The parentheses belong to the span of what is inside them, so that messages quote them whole.
        return replace(first, start=opening.start, end=self._closing(")", opening))

    def _items(self, closing: str, opening: Token) -> tuple[tuple[Expr, ...], int]:
        found: list[Expr] = []
        while not self._is("sign", closing):
            found.append(self.expression())
            if not self._takes_sign(","):
                break
        return tuple(found), self._closing(closing, opening)

    def _dict(self) -> Expr:
        opening = self._next()
        pairs: list[tuple[Expr, Expr]] = []
        while not self._is("sign", "}"):
            key = self.expression()
            self.sign(":", "a mapping is written `{'key': value}`")
            pairs.append((key, self.expression()))
            if not self._takes_sign(","):
                break
        return nodes.DictOf(opening.start, self._closing("}", opening), tuple(pairs))

    def _closing(self, sign: str, opening: Token) -> int:
        if self.token.kind == "end":
            self._fail(f"`{opening.value}` is never closed", opening.start, opening.end)
        return self.sign(sign).end

    def _text(self) -> Expr:
        first = self.token
        parts: list[str] = []
        last = first
        while self.token.kind == "text":
            last = self._next()
            parts.append(read_text(self.text, last))
        return nodes.Const(first.start, last.end, "".join(parts))


def _depth(root: Expr) -> int:
    """Chains such as `1 + 1 + 1` make deep trees without nesting, so the tree itself is measured, without recursion."""
    deepest = 0
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in children(node))
    return deepest


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
