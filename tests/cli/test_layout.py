"""What fits on a terminal: cells, wrapped lines, narrow tables; and terminals that have only ASCII."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from typing import IO

import pytest

from penstock.cli.output import cells, cut, table, wrapped
from tests.cli.jobs import write_job
from tests.cli.test_terminal import Terminal

WIDE = """
components:
  - {name: first_of_all_components, type: fixed_rows, params: {columns: [n], rows: [[1]]}}
  - {name: 名前, type: log_rows}
  - {name: never_to_be_run, type: noop}
connections:
  data: [first_of_all_components.main -> 名前.input]
  control: [first_of_all_components (error) never_to_be_run]
"""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[IO[str]]:
    """A real one, 40 columns wide; nobody reads what is written to it."""
    import fcntl
    import struct
    import termios

    monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream
    os.close(ours)


def test_columns_line_up_under_wide_characters_and_paint() -> None:
    assert (cells("名前"), cells("e\u0301"), cells("\x1b[31mred\x1b[0m")) == (4, 1, 3)
    lines = table(("NAME", "N"), [("名前", "1"), ("plain", "2")]).splitlines()
    assert [cells(line[: line.index(sign)]) for line, sign in zip(lines, "N12", strict=True) if sign != "N"] == [7, 7]


def test_a_table_of_one_column_is_not_indented() -> None:
    assert table(("n",), [("1",)]) == "n\n1"


def test_where_there_is_no_terminal_nothing_is_cut_or_wrapped() -> None:
    with open(os.devnull, "w", encoding="utf-8") as stream:
        assert wrapped("word " * 50, stream) == "word " * 50
        assert len(table(("A", ""), [("a" * 100, "b" * 100)], stream).splitlines()) == 2


def test_on_a_narrow_terminal_spare_columns_go_first_then_names_are_cut(terminal: IO[str]) -> None:
    titles = ("NAME", "TYPE", "STATE", "")
    fits = table(titles, [("a" * 20, "t" * 20, "OK", "")], terminal, spare=("TYPE",), cuttable="NAME")
    assert fits.splitlines()[1] == f"{'a' * 20}  OK"
    shortened = table(
        titles, [("call.__" + "x" * 60 + "end", "t", "OK", "")], terminal, spare=("TYPE",), cuttable="NAME"
    )
    assert all(cells(line) <= 40 for line in shortened.splitlines())
    assert shortened.splitlines()[1].startswith("call.__")
    assert "end  OK" in shortened


def test_a_note_that_has_no_room_gets_lines_of_its_own(terminal: IO[str]) -> None:
    shown = table(
        ("NAME", "STATE", ""), [("alert", "SKIPPED", "the sub-job of `gate` did not end in an error")], terminal
    )
    assert shown.splitlines()[1:] == [
        "alert  SKIPPED",
        "    the sub-job of `gate` did not end in",
        "    an error",
    ]


def test_lines_are_wrapped_at_words_and_indented(terminal: IO[str]) -> None:
    lines = wrapped("sub-job orders: OK  orders, customers, priced, named", terminal).splitlines()
    assert lines == ["sub-job orders: OK  orders, customers,", "  priced, named"]


def test_a_name_that_is_cut_keeps_its_beginning_and_its_end() -> None:
    assert cut("clean_customers.__guessed", 12) == "clean_…essed"
    assert cells(cut("名前のある部品", 7)) <= 7


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("columns", [40, 80])
def test_the_summary_of_a_job_fits_the_terminal(columns: int) -> None:
    terminal = Terminal("run", write_job("job.yaml", WIDE), columns=columns)
    assert terminal.end() == 0
    table = terminal.text[terminal.text.rindex("COMPONENT") :]
    assert [line for line in table.splitlines() if cells(line) > columns] == []
    assert "名前" in table


@pytest.mark.usefixtures("folder")
def test_a_terminal_with_only_ascii_gets_signs_that_take_as_many_cells() -> None:
    only_ascii = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    terminal = Terminal("run", write_job("job.yaml", WIDE), **only_ascii)
    assert terminal.end() == 0
    assert "\\u" not in terminal.text
    assert "???? " in terminal.text[terminal.text.rindex("COMPONENT") :]
