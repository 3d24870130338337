"""Output taken in with a bound, however it is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.tools.output import TRUNCATED, Kept, Lines


def said_of(pieces: list[bytes], limit: int = 1_000_000) -> list[str]:
    said: list[str] = []
    lines = Lines(said.append, limit)
    for piece in pieces:
        lines.feed(piece)
    lines.close()
    return said


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@given(st.text(alphabet="aä€😀\n", max_size=60), st.lists(st.integers(0, 1000), max_size=8))
def test_lines_do_not_depend_on_how_the_bytes_arrive(text: str, places: list[int]):
    expected = text.split("\n")
    if not expected[-1]:
        expected.pop()
    assert said_of(cut(text.encode(), places)) == expected


@given(st.binary(max_size=80), st.lists(st.integers(0, 1000), max_size=8), st.integers(2, 100))
def test_what_is_kept_is_the_whole_or_both_ends(data: bytes, places: list[int], limit: int):
    kept = Kept(limit)
    for piece in cut(data, places):
        kept.feed(piece)
    assert kept.size == len(data)
    assert kept.is_whole == (len(data) <= limit)
    if kept.is_whole:
        assert kept.text() == data.decode("utf-8", "replace")
    else:
        head, tail = data[: limit - limit // 2], data[len(data) - limit // 2 :]
        left_out = len(data) - limit
        assert (
            kept.text()
            == f"{head.decode('utf-8', 'replace')}\n… {left_out} bytes left out …\n{tail.decode('utf-8', 'replace')}"
        )


def test_after_the_limit_one_line_says_so():
    assert said_of([b"aaa\n"] * 10, limit=8) == ["aaa", "aaa", TRUNCATED]


def test_a_line_without_end_is_handed_over_in_pieces():
    said = said_of([b"x" * 10_000] * 20)
    assert "".join(said) == "x" * 200_000
    assert len(said) == 3


def test_bytes_that_are_not_text_are_replaced():
    assert said_of([b"a\xff", b"b\n\xe2\x82"]) == ["a\ufffdb", "\ufffd"]
