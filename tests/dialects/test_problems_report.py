"""A report shows the line, puts the caret under the right cell, and lets no text of a document act on the terminal."""

from __future__ import annotations

import unicodedata

from penstock.dialects.problems import Position, Problem, Severity
from penstock.dialects.report import as_json, render, render_one, summary
from penstock.dialects.source.loader import load_text
from tests.cases import cases


def problem(line: int, column: int, end_column: int, message: str = "wrong", **more: str) -> Problem:
    return Problem("P0412", Severity.ERROR, message, Position("f.yaml", line, column, end_column), **more)


def test_a_problem_shows_its_line_with_a_caret_and_all_that_helps() -> None:
    text = "a: 1\n" * 7 + "        then: { do: rety, attempts: 5 }\n"
    found = problem(
        8,
        21,
        25,
        "`rety` is not a directive",
        label="did you mean `retry`?",
        hint="directives are words\nof five kinds",
        rewrite="then:\n  do: retry",
        path="workflow[0].then",
    )
    assert render([found], {"f.yaml": text}) == (
        "f.yaml:8:21: error[P0412]: `rety` is not a directive\n"
        "    8 |         then: { do: rety, attempts: 5 }\n"
        "      |                     ^^^^ did you mean `retry`?\n"
        "      in `workflow[0].then`\n"
        "      hint: directives are words\n"
        "            of five kinds\n"
        "      write instead:\n"
        "          then:\n"
        "            do: retry\n"
        "\n"
        "1 error\n"
    )


def test_no_problems_render_as_nothing() -> None:
    assert render([], {}) == ""


def test_a_problem_of_the_whole_file_has_no_position() -> None:
    found = Problem("Y0001", Severity.ERROR, "there is no file `x.yaml`", Position.whole("x.yaml"), hint="look again")
    assert render_one(found, "") == "x.yaml: error[Y0001]: there is no file `x.yaml`\n      hint: look again\n"


def test_without_the_source_the_label_is_still_shown() -> None:
    assert render([problem(8, 21, 25, label="here")], {}) == (
        "f.yaml:8:21: error[P0412]: wrong\n      here\n\n1 error\n"
    )


def carets(source: str, column: int, end_column: int) -> tuple[str, str]:
    """The two lines of the snippet, without the gutter."""
    _, shown, marked = render_one(problem(1, column, end_column), source).splitlines()[:3]
    assert shown.startswith("    1 | ") or shown == "    1 |"
    return shown[8:], marked[8:]


def cells(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


@cases(
    "source, column, end_column, shown, marked",
    [
        ("abc", 2, 3, "abc", " ^"),
        ("abc", 2, 2, "abc", " ^"),
        ("abc", 4, 4, "abc", "   ^"),
        ("abc", 9, 12, "abc", "   ^"),
        ("abc", 2, 99, "abc", " ^^"),
        ("\tabc", 2, 3, "    abc", "    ^"),
        ("a\tb", 3, 4, "a   b", "    ^"),
        ("\tabc", 1, 2, "    abc", "^^^^"),
        ("好: 世界", 4, 6, "好: 世界", "    ^^^^"),
        ("e\u0301x", 3, 4, "e\u0301x", " ^"),
        ("Zoë x", 5, 6, "Zoë x", "    ^"),
        ("😀 x", 3, 4, "😀 x", "   ^"),
        ("", 1, 1, "", "^"),
    ],
)
def test_the_caret_stands_under_the_cell_it_means(
    source: str, column: int, end_column: int, shown: str, marked: str
) -> None:
    source = source or "\nx"
    assert carets(source, column, end_column) == (shown, marked)


@cases("fill", ["x", "好", "é", "\t"])
@cases("before", [0, 10, 90, 5000])
@cases("after", [0, 10, 90, 5000])
def test_a_long_line_is_cut_around_the_caret(fill: str, before: int, after: int) -> None:
    shown, marked = carets(fill * before + "@@@" + fill * after, before + 1, before + 4)
    assert cells(shown) <= 102
    start = marked.index("^")
    assert marked.strip() == "^^^"
    assert cells(shown[: shown.index("@@@")]) == start


def test_a_range_longer_than_the_window_ends_with_it() -> None:
    shown, marked = carets("x" * 1000, 1, 1001)
    assert (shown, marked) == ("x" * 100 + "…", "^" * 100)


def test_text_of_a_document_cannot_act_on_the_terminal() -> None:
    found = problem(
        1, 1, 2, "bad \x1b[31m\u202e`x`\nnext", label="\x07", hint="\x9b2J", rewrite="a\x1b]0;x\x07", path="\x1b"
    )
    text = render([found], {"f.yaml": "a\x1b[2J\u202eb\x00\x85c\n"})
    assert not set(text) & set("\x1b\x07\x9b\x00\x85\u202e")
    assert text.splitlines()[0] == "f.yaml:1:1: error[P0412]: bad �[31m�`x` next"


def test_colour_is_only_where_it_is_asked_for() -> None:
    found = problem(1, 1, 2, label="here", hint="h")
    painted = render_one(found, "abc\n", color=True)
    assert "\x1b[1;31merror[P0412]\x1b[0m" in painted
    assert "\x1b[1;31m^ here\x1b[0m" in painted
    assert "\x1b" not in render_one(found, "abc\n")


def test_the_summary_counts_each_kind() -> None:
    here = Position("f", 1, 1, 2)
    kinds = [Severity.ERROR, Severity.WARNING, Severity.ERROR, Severity.NOTE]
    assert summary(Problem("P1", kind, "m", here) for kind in kinds) == "2 errors, 1 warning, 1 note"
    assert summary([]) == "no problems"


def test_after_a_hundred_problems_the_rest_are_counted() -> None:
    text = render([problem(1, 1, 2, f"m{i}") for i in range(1050)], {"f.yaml": "x"})
    assert text.count("error[P0412]") == 100
    assert text.endswith("… and 950 more\n\n1,050 errors\n")


def test_a_line_number_of_any_length_keeps_the_gutter_straight() -> None:
    found = render_one(problem(1_000_000, 1, 2), "\n" * 999_999 + "x").splitlines()
    assert found[1:] == ["1000000 | x", "        | ^"]


def test_editors_get_one_flat_object_for_each_problem() -> None:
    found = load_text("a: 1\nurl: {{ x }}\n", "f.yaml").problems
    assert as_json(found) == [
        {
            "code": "Y0102",
            "severity": "error",
            "message": "a value that starts with a template must be quoted",
            "file": "f.yaml",
            "line": 2,
            "column": 6,
            "end_column": 13,
            "label": "quote the template",
            "hint": "to YAML, `{` at the start of a value opens a mapping",
            "rewrite": 'url: "{{ x }}"',
            "path": "url",
        }
    ]
    whole = as_json([Problem("Y0007", Severity.ERROR, "the document is empty", Position.whole("f"))])
    assert (whole[0]["line"], whole[0]["column"], whole[0]["end_column"]) == (1, 1, 1)
