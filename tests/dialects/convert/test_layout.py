"""Edits to the text of a file: what they do not touch comes out as it went in."""

from __future__ import annotations

from textwrap import dedent

import yaml

from penstock.dialects.convert.layout import LaidOut
from penstock.dialects.source.edits import Drop, Move, Put
from tests.cases import cases

TEXT = """\
# above all
a:   # beside a
    one: { x: 1,   y: [ 1, 2 ] }      # spaces stay

    # above two
    two: |
        first
          second

    # above three
    three: 'single'
list:
- first
- {k: v,
   l: w}
-   last   # beside last
# at the end
"""


def edited(text: str, *edits) -> str:
    laid_out = LaidOut(text)
    for edit in edits:
        laid_out.edit(edit)
    return laid_out.result()


def test_a_file_without_edits_is_the_file():
    assert edited(TEXT) == TEXT


@cases(
    "edit, old, new",
    [
        (Move(("a", "one"), ("a", "uno")), "one: { x: 1", "    uno: {"),
        (Put(("a", "three"), "other"), "three: 'single'", "three: 'other'"),
        (Put(("a", "one", "x"), 2), "one: { x: 1", "one: {x: 2, y: [1, 2]}"),
        (Drop(("list", 0)), "- first\n", ""),
    ],
)
def test_an_edit_changes_its_line_and_no_other(edit, old, new):
    after = edited(TEXT, edit)
    assert yaml.safe_load(after) != yaml.safe_load(TEXT)
    untouched = [line for line in TEXT.splitlines() if old.strip() not in line]
    assert [line for line in after.splitlines() if line in untouched] == untouched
    assert new.strip() in after


def test_what_stands_below_an_entry_stays_when_it_moves():
    text = dedent("""\
        task:
          kind: http
          timeout: 8   # seconds

          # the certificate
          verify: false

        # the next
        next: 1
    """)
    assert edited(text, Move(("task", "timeout"), ("task", "spec", "timeout"))) == dedent("""\
        task:
          kind: http

          # the certificate
          verify: false
          spec:
            timeout: 8 # seconds

        # the next
        next: 1
    """)


def test_what_is_said_beside_an_entry_that_goes_stays_as_a_line():
    text = "a:\n  b: 1\n  c: 2   # why\n  d: 3\n"
    assert edited(text, Drop(("a", "c"))) == "a:\n  b: 1\n  # why\n  d: 3\n"


def test_a_comment_above_what_comes_first_is_kept_when_that_goes():
    text = "a:\n  b: 1\n\n  # about c\n  c: 2\n"
    after = edited(text, Drop(("a", "b")))
    assert yaml.safe_load(after) == {"a": {"c": 2}}
    assert "# about c" in after


def test_a_value_that_is_written_anew_keeps_the_comments_of_what_it_holds():
    text = dedent("""\
        - one:
            kind: python   # ours
            # the code
            code: |
              x = 1

        # behind
        - two
    """)
    laid_out = LaidOut(text)
    laid_out.replace((0,), {"name": "one", "kind": "python", "code": "x = 1\n"})
    after = laid_out.result()
    assert yaml.safe_load(after) == [{"name": "one", "kind": "python", "code": "x = 1\n"}, "two"]
    assert [line.strip() for line in after.splitlines() if "#" in line] == [
        "kind: python   # ours",
        "# the code",
        "# behind",
    ]


@cases("indent, offset", [(2, 0), (2, 2), (4, 2), (4, 4)])
def test_new_lines_are_indented_as_the_others(indent, offset):
    dash, space = " " * offset, " " * indent
    text = f"a:\n{space}b:\n{space}{space}c: 1\nlist:\n{dash}- x: 1\n{dash}- x: 2\n"
    after = edited(text, Put(("a", "b", "d", "e"), 1), Put(("more",), [1]))
    assert after == (
        f"a:\n{space}b:\n{space}{space}c: 1\n{space}{space}d:\n{space}{space}{space}e: 1\n"
        f"list:\n{dash}- x: 1\n{dash}- x: 2\nmore:\n{dash}- 1\n"
    )


def test_texts_with_templates_are_quoted_and_long_lines_are_not_broken():
    long = "word " * 60
    after = edited("a: 1\n", Put(("b",), "{{ x }}"), Put(("c",), long.strip()))
    assert after == f'a: 1\nb: "{{{{ x }}}}"\nc: {long.strip()}\n'


@cases("offset", ["", "  "])
def test_a_remark_above_what_is_written_anew_stays_above_it(offset):
    laid_out = LaidOut(f"a:\n  next:\n  {offset}# go on\n  {offset}- step: e  # there\nb: 1\n")
    laid_out.replace(("a", "next"), {"spec": {"mode": "x"}, "arcs": [{"step": "e"}]})
    text = laid_out.result()
    assert yaml.safe_load(text) == {"a": {"next": {"spec": {"mode": "x"}, "arcs": [{"step": "e"}]}}, "b": 1}
    assert [text.count(remark) for remark in ("# go on", "# there")] == [1, 1]


MIXED = """\
workflow:
- step: a
  tool:
      - name: one
        kind: http   # asked
        timeout: 8
        endpoint: http://localhost

      - {name: two, kind: noop}
  next:
    arcs:
    - step: b
- step: b
  tool:
    kind: http
    endpoint: http://localhost
"""


def test_a_file_whose_lists_are_indented_in_several_ways_keeps_them():
    first, second = ("workflow", 0, "tool", 0), ("workflow", 1, "tool")
    after = edited(
        MIXED,
        Move((*first, "timeout"), (*first, "spec", "timeout")),
        Move((*first, "endpoint"), (*first, "url")),
        Move((*second, "endpoint"), (*second, "url")),
        Put((*second, "spec", "policy", "rules"), [{"else": {"then": {"do": "fail"}}}]),
    )
    assert [line for line in MIXED.splitlines() if line not in after.splitlines()] == [
        "        timeout: 8",
        "        endpoint: http://localhost",
        "    endpoint: http://localhost",
    ]
    assert "        spec:\n          timeout: 8\n" in after
    tool = yaml.safe_load(after)["workflow"][1]["tool"]
    assert tool["spec"] == {"policy": {"rules": [{"else": {"then": {"do": "fail"}}}]}}
