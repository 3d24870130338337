"""Errors of the YAML parser, explained.

The parser names the broken rule; an author needs the mistake that broke it. Each reader below recognises one mistake from the
error and the lines around it; the first match is reported, and the parser's own message is the last resort.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yaml.error import MarkedYAMLError

from penstock.dialects.problems import Position, Problem, Severity


@dataclass(frozen=True, slots=True)
class Slip:
    """Line and columns are 0-based here, as the parser counts."""

    code: str
    message: str
    line: int
    column: int
    width: int = 1
    label: str = ""
    hint: str = ""
    rewrite: str = ""


LONGEST_LINE = 1000


class Scene:
    """The error and the lines it happened on."""

    def __init__(self, error: MarkedYAMLError, lines: Sequence[str]) -> None:
        self.lines = lines
        self.words = error.problem or ""
        self.context = error.context or ""
        mark, context = error.problem_mark, error.context_mark
        self.line, self.column = self._within(mark.line, mark.column) if mark else (0, 0)
        self.context_line, self.context_column = (
            self._within(context.line, context.column) if context else (self.line, self.column)
        )
        self.at_end = mark is not None and mark.line >= len(lines) - 1 and self.column >= len(self.text.rstrip())

    def _within(self, line: int, column: int) -> tuple[int, int]:
        """Errors at the end of the stream stand below the last line; they are shown at the end of the last text."""
        if line < len(self.lines) and (self.lines[line].strip() or line == 0):
            return line, column
        line = min(line, len(self.lines) - 1)
        while line > 0 and not self.lines[line].strip():
            line -= 1
        return line, len(self.lines[line].rstrip())

    def hand_written(self, line: int) -> str:
        """The line, or nothing when it is far longer than people write: patterns are not let loose on a megabyte."""
        text = self.lines[line]
        return text if len(text) <= LONGEST_LINE else ""

    @property
    def text(self) -> str:
        return self.lines[self.line]

    @property
    def character(self) -> str:
        return self.text[self.column : self.column + 1]

    def above(self, line: int) -> int | None:
        """The nearest line above that is neither blank nor a comment."""
        for number in range(line - 1, -1, -1):
            stripped = self.lines[number].strip()
            if stripped and not stripped.startswith("#"):
                return number
        return None


def quoted(text: str) -> str:
    """The text as a YAML scalar between the quotes that need the fewest changes."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def explain(error: MarkedYAMLError, lines: Sequence[str], file: str, path: str) -> Problem:
    scene = Scene(error, lines)
    slip = next((slip for reader in _READERS if (slip := reader(scene)) is not None), None) or _unrecognised(scene)
    position = Position(file, slip.line + 1, slip.column + 1, slip.column + 1 + slip.width)
    return Problem(
        slip.code,
        Severity.ERROR,
        slip.message,
        position,
        label=slip.label,
        hint=slip.hint,
        rewrite=slip.rewrite,
        path=path,
    )


UNQUOTED_TEMPLATE = (
    "a value that starts with a template must be quoted",
    "quote the template",
    "to YAML, `{` at the start of a value opens a mapping",
)
"""Message, label and hint: the same whether YAML choked on the template or swallowed it as a mapping."""

_CONFLICT = re.compile(r"(<{7}|={7}|>{7})(\s|\Z)")


def _conflict(scene: Scene) -> Slip | None:
    for line in {scene.line, scene.context_line}:
        if _CONFLICT.match(scene.lines[line]):
            return Slip(
                "Y0110",
                "a merge conflict was left in this file",
                line,
                0,
                7,
                hint="choose one version and delete the marks",
            )
    return None


# What may stand before a value on its line: list dashes and one key.
_LEAD = r"(?P<lead>\s*(?:-\s+)*(?:(?:[^\s'\"#:{}\[\],][^'\"#:{}\[\],]*|\"[^\"]*\"|'[^']*')\s*:\s+(?:-\s+)*)?)"
_TEMPLATE_VALUE = re.compile(_LEAD + r"(?P<value>\{[{%].*?)(?P<comment>\s+#.*)?\s*\Z")
_TEMPLATE_INSIDE = re.compile(r"[:,\[{]\s*(\{[{%])")


def _template(scene: Scene) -> Slip | None:
    suspects = [scene.line]
    if "flow" in scene.context:
        suspects.append(scene.context_line)
    above = scene.above(scene.line)
    if above is not None and scene.lines[above].count("{{") > scene.lines[above].count("}}"):
        suspects.append(above)
    for line in suspects:
        text = scene.hand_written(line)
        if match := _TEMPLATE_VALUE.match(text):
            value = match["value"]
            whole = value.endswith(("}}", "%}")) or "}}" in value or "%}" in value
            rewrite = match["lead"].strip(" ") + (" " if match["lead"].strip() else "") + quoted(value) if whole else ""
            return _template_slip(line, match.start("value"), len(value), rewrite)
        if (inside := _TEMPLATE_INSIDE.search(text)) and _outside_quotes(text, inside.start(1)):
            return _template_slip(line, inside.start(1), 2, "")
    return None


def _template_slip(line: int, column: int, width: int, rewrite: str) -> Slip:
    message, label, hint = UNQUOTED_TEMPLATE
    return Slip("Y0102", message, line, column, width, label=label, hint=hint, rewrite=rewrite)


def _outside_quotes(text: str, column: int) -> bool:
    bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:''|[^'])*'", lambda match: "x" * len(match[0]), text)
    return bare[column] == text[column] and '"' not in bare[:column]


def _tab(scene: Scene) -> Slip | None:
    text = scene.hand_written(scene.line)
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    if "\t" not in indent or not (scene.character == "\t" or "tab" in scene.words or scene.column >= len(indent)):
        return None
    column = indent.index("\t")
    return Slip(
        "Y0103",
        "a tab is used to indent; YAML indents with spaces",
        scene.line,
        column,
        label="replace the tab by spaces",
        rewrite=indent.replace("\t", "  ") + text[len(indent) :],
    )


def _open_quote(scene: Scene) -> Slip | None:
    if "quoted scalar" not in scene.context or not re.search(
        "end of stream|document indicator|document separator", scene.words
    ):
        return None
    quote = scene.lines[scene.context_line][scene.context_column : scene.context_column + 1]
    return Slip(
        "Y0105",
        f"the quote `{quote}` that opens here is never closed",
        scene.context_line,
        scene.context_column,
        hint="inside single quotes a quote is written twice: 'it''s'"
        if quote == "'"
        else 'inside double quotes a quote is written \\"',
    )


def _escape(scene: Scene) -> Slip | None:
    if not re.search("escape|hexdecimal|hexadecimal", scene.words):
        return None
    column = scene.text.rfind("\\", 0, scene.column + 1)
    if column < 0:
        return None
    escape = scene.text[column : column + 2]
    if re.match(r"\\u[dD][89abAB]", scene.text[column:]):
        hint = "write the character itself, or `\\U` with eight digits; YAML has no surrogate pairs"
    else:
        hint = "use single quotes, in which a backslash is just a backslash, or write it twice"
    return Slip("Y0109", f"`{escape}` is not an escape that YAML knows", scene.line, column, 2, hint=hint)


_GLUED = re.compile(r"(?P<lead>\s*(?:-\s+)*)(?P<key>[A-Za-z_][\w.-]*):(?P<value>[^\s/:].*)\Z")


def _glued_colon(scene: Scene) -> Slip | None:
    """`kind:http`. The parser notices only when the next line does not fit under that one word."""
    if "mapping values" in scene.words:
        line = scene.above(scene.line)
    elif "expected ':'" in scene.words:
        line = scene.context_line
    else:
        return None
    match = _GLUED.match(scene.hand_written(line)) if line is not None else None
    if line is None or match is None:
        return None
    return Slip(
        "Y0104",
        f"there is no space after the colon of `{match['key']}:`",
        line,
        match.end("key"),
        rewrite=f"{match['lead'].strip()} {match['key']}: {match['value']}".strip(),
    )


_KEY_VALUE = re.compile(_LEAD + r"(?P<value>[^\s'\"\[{|>&*!#].*?)(?P<comment>\s+#.*)?\s*\Z")


def _colon_in_value(scene: Scene) -> Slip | None:
    if "mapping values" not in scene.words:
        return None
    match = _KEY_VALUE.match(scene.hand_written(scene.line))
    if match is None or ":" not in match["lead"] or scene.column < match.start("value"):
        return None
    return Slip(
        "Y0106",
        "a value that holds `: ` must be quoted",
        scene.line,
        match.start("value"),
        len(match["value"]),
        label="quote this value",
        rewrite=match["lead"].strip() + " " + quoted(match["value"]),
    )


def _special_start(scene: Scene) -> Slip | None:
    """`@x`, `%x`, a back-tick, `*.txt`, `& x`: characters that may not start a value."""
    starts_nothing = "cannot start any token" in scene.words
    if not starts_nothing and not re.search("an alias|an anchor|a tag", scene.context):
        return None
    line, column = (scene.line, scene.column) if starts_nothing else (scene.context_line, scene.context_column)
    text = scene.hand_written(line)
    value = re.sub(r"\s+#.*\Z", "", text[column:]).rstrip()
    if not value:
        return None
    lead = text[:column].strip()
    rewrite = f"{lead} {quoted(value)}" if lead.endswith((":", "-")) and not set(lead) & set("[{") else ""
    message = f"a value may not start with {_shown(value[0])} unless it is quoted"
    return Slip("Y0106", message, line, column, len(value), label="quote this value", rewrite=rewrite)


def _shown(character: str) -> str:
    return "a back-tick" if character == "`" else f"`{character}`"


def _block_text(scene: Scene) -> Slip | None:
    if "block scalar" not in scene.context:
        return None
    if "line break" in scene.words:
        return Slip(
            "Y0101",
            "text may not stand on the line of `|` or `>`",
            scene.line,
            scene.column,
            max(1, len(scene.text.rstrip()) - scene.column),
            label="move this to the next line, indented",
        )
    return None


def _open_bracket(scene: Scene) -> Slip | None:
    if "flow" not in scene.context or not re.search(r"expected ',' or|node content", scene.words):
        return None
    opening = scene.lines[scene.context_line][scene.context_column : scene.context_column + 1]
    if opening not in ("[", "{"):
        message = "the file ends inside a `[` or `{` that is not closed"
        return Slip("Y0108", message, scene.line, scene.column) if scene.at_end else None
    closing = "]" if opening == "[" else "}"
    if scene.line != scene.context_line or scene.column >= len(scene.text.rstrip()):
        return Slip(
            "Y0108",
            f"the `{opening}` that opens here is not closed",
            scene.context_line,
            scene.context_column,
            hint=f"add `{closing}`, or a comma between the values",
        )
    return Slip("Y0108", f"a comma or `{closing}` is missing before this", scene.line, scene.column)


def _missing_value(scene: Scene) -> Slip | None:
    """`a: ]`, `[1, , 2]`, `a: - b`."""
    if "sequence entries are not allowed" in scene.words:
        return Slip(
            "Y0101",
            "a list item may not stand on the line of its key",
            scene.line,
            scene.column,
            max(1, len(scene.text.rstrip()) - scene.column),
            label="move this to the next line, indented",
        )
    if scene.character == ":" and re.search("node content|expected key|block end", scene.words):
        return Slip("Y0101", "a key is missing before `:`", scene.line, scene.column)
    if "node content" not in scene.words or scene.character not in ("]", "}", ","):
        return None
    if scene.character == "," or "flow" in scene.context:
        return Slip("Y0101", f"a value is missing before `{scene.character}`", scene.line, scene.column)
    return Slip("Y0101", f"`{scene.character}` closes nothing that was opened", scene.line, scene.column)


def _after_quote(scene: Scene) -> Slip | None:
    """`"a" b`: the quotes end before the value does."""
    before = scene.text[: scene.column].rstrip()
    if not re.search("expected key|block end|'-' indicator|',' or|document start", scene.words) or before[-1:] not in (
        "'",
        '"',
    ):
        return None
    return Slip(
        "Y0106",
        "there is text after the closing quote",
        scene.line,
        scene.column,
        max(1, len(scene.text.rstrip()) - scene.column),
        hint="put the whole value between one pair of quotes; inside, write '' for ' or \\\" for \"",
    )


def _indentation(scene: Scene) -> Slip | None:
    if "mapping values" in scene.words:
        return _too_deep(scene)
    if "expected ':'" in scene.words:
        line = scene.context_line
        text = scene.lines[line].strip()
        return Slip(
            "Y0101",
            "a key with a colon was expected here",
            line,
            scene.context_column,
            max(1, len(scene.lines[line].rstrip()) - scene.context_column),
            hint="text of several lines goes under `|`, indented further than its key"
            if " " in text
            else f"write `{text}:`",
        )
    if not re.search("expected key|block end|'-' indicator", scene.words):
        return None
    indent = len(scene.text) - len(scene.text.lstrip(" "))
    if scene.column > indent:
        return None
    inside = "a list" if "collection" in scene.context or "sequence" in scene.context else "a mapping"
    opened = f"the line belongs to {inside} that starts on line {scene.context_line + 1}, in column {scene.context_column + 1}"
    if scene.character == "-" and inside == "a mapping" and indent == scene.context_column:
        return Slip("Y0107", "a list item stands among the keys of a mapping", scene.line, scene.column, hint=opened)
    if inside == "a list" and indent == scene.context_column:
        message = "a key stands among the items of a list, which start with `- `"
        return Slip("Y0107", message, scene.line, scene.column, hint=opened)
    return Slip(
        "Y0107",
        "this line does not line up with the ones it belongs to",
        scene.line,
        scene.column,
        max(1, len(scene.text.rstrip()) - scene.column),
        label=f"indented by {indent}",
        hint=opened,
    )


def _too_deep(scene: Scene) -> Slip | None:
    above = scene.above(scene.line)
    if above is None:
        return None
    start = len(scene.text) - len(scene.text.lstrip(" "))
    return Slip(
        "Y0107",
        f"line {above + 1} already gave its key a value, so nothing can be nested under it",
        scene.line,
        start,
        max(1, scene.column - start),
        hint="bring the line under the key above, or give that key no value of its own",
    )


def _unrecognised(scene: Scene) -> Slip:
    found = f" before {_shown(scene.character)}" if scene.character.strip() else ""
    words = (
        re.sub("^did not find expected", "the parser did not find the expected", scene.words)
        or "the parser stopped here"
    )
    context = f" {scene.context}" if scene.context else ""
    return Slip("Y0101", f"this is not YAML: {words}{found}{context}", scene.line, scene.column)


_READERS: tuple[Callable[[Scene], Slip | None], ...] = (
    _conflict,
    _template,
    _tab,
    _open_quote,
    _escape,
    _glued_colon,
    _colon_in_value,
    _special_start,
    _block_text,
    _missing_value,
    _after_quote,
    _open_bracket,
    _indentation,
)
