"""What all kinds of paged collections have in common: how they are described, kept, and tried again."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.dialects.playbook import compile_text
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.problems import Severity
from penstock.kernel.errors import Unavailable
from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef
from penstock.ports.collections import PAGED, Described, Page, described
from penstock.ports.results import view
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import (
    KINDS,
    CheckedPages,
    KeptPages,
    PatientPages,
    describe_pages,
    example_of,
    reader_of,
)
from penstock.tools.parameters import convert
from penstock.tools.registry import Registry
from tests.cases import cases
from tests.tools.fetching import TicklessClock
from tests.tools.support import make_call


class Letters:
    """Pages of letters, whatever size is asked for; the collection can be changed, and reading it can fail."""

    def __init__(self, *pages: str) -> None:
        self.pages = pages
        self.errors: list[Exception] = []
        self.read: list[Json] = []

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        self.read.append(token)
        if self.errors:
            raise self.errors.pop(0)
        at = token if isinstance(token, int) else 0
        letters = list(self.pages[at])
        return Page(letters, at + 1, at + 1 == len(self.pages), [f"{at}{letter}" for letter in letters])


async def walk(pages: KeptPages, most: int) -> list[tuple[Json, Page]]:
    found: list[tuple[Json, Page]] = []
    token: Json = None
    while True:
        page = await pages.page(token, most)
        found.append((token, page))
        if page.is_end:
            return found
        token = page.next


def letters_of(found: list[tuple[Json, Page]]) -> list[str]:
    return ["".join(page.items) for _, page in found]


# ---- kept pages


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, ["a", "b", "c", "d", "e", "f"]),
        (2, ["ab", "c", "de", "f"]),
        (3, ["abc", "def"]),
        (9, ["abc", "def"]),
    ],
)
def test_a_large_page_is_handed_out_in_parts_and_read_once(tmp_path: Path, most: int, expected: list[str]) -> None:
    source = Letters("abc", "def")
    found = asyncio.run(walk(KeptPages(source, make_call(tmp_path)), most))
    assert letters_of(found) == expected
    assert source.read == [None, 1]
    assert [key for _, page in found for key in page.keys or ()] == ["0a", "0b", "0c", "1d", "1e", "1f"]


def test_a_kept_page_is_the_same_again_in_another_process_and_when_the_source_has_changed(tmp_path: Path) -> None:
    async def scene() -> None:
        found = await walk(KeptPages(Letters("abc", "abc", "d"), make_call(tmp_path)), 2)
        assert letters_of(found) == ["ab", "c", "ab", "c", "d"]
        other = KeptPages(Letters("x"), make_call(tmp_path))
        for opened_by, page in found:
            token, until = json.loads(json.dumps([opened_by, page.next]))
            again = await other.page(token, 100, until)
            assert (again.items, again.keys, again.is_end) == (page.items, page.keys, page.is_end)
            assert (await other.page(token, 1, until)).items == page.items[:1]

    asyncio.run(scene())


def test_a_token_may_hold_a_view_in_the_place_of_a_reference(tmp_path: Path) -> None:
    """The log gives references as views when an execution is taken up again."""

    async def scene() -> None:
        call = make_call(tmp_path)
        (_, first), (second, last) = await walk(KeptPages(Letters("abc"), call), 2)
        assert isinstance(second, dict)
        assert isinstance(second["page"], dict)
        seen: Any = {**second, "page": view(ResultRef.from_json(second["page"]), call.load)}
        other = KeptPages(Letters("x"), call)
        assert (await other.page(seen, 2)).items == ["c"] == last.items
        assert (await other.page(None, 2, seen)).items == ["a", "b"] == first.items

    asyncio.run(scene())


def test_an_empty_collection_keeps_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        call = make_call(tmp_path)
        pages = KeptPages(Letters(""), call)
        page = await pages.page(None, 5)
        assert (page.items, page.is_end) == ([], True)
        assert (await pages.page(page.next, 5)).is_end
        assert list((tmp_path / ".blobs").iterdir()) == []

    asyncio.run(scene())


# ---- checked pages


def test_a_checked_page_is_read_again_from_the_source_and_compared(tmp_path: Path) -> None:
    async def scene() -> None:
        source = Letters("abc", "de")
        pages = CheckedPages(source)
        first = await pages.page(None, 3)
        again = await pages.page(None, 2, first.next)
        assert (again.items, again.keys) == (["a", "b"], ["0a", "0b"])
        second = await pages.page(first.next, 3)
        for changed in ("abx", "ab", "abcd", "acb"):
            source.pages = (changed, "de")
            with pytest.raises(ToolFailure, match="leave out `keep: false`"):
                await pages.page(None, 2, first.next)
            assert (await pages.page(first.next, 3, second.next)).items == ["d", "e"]

    asyncio.run(scene())


# ---- trying again


def patient(source: Letters, call: Call, reads: int = 5) -> Page:
    return asyncio.run(PatientPages(source, call, reads).page(None, 5))


def test_what_may_pass_is_waited_for_and_told(tmp_path: Path) -> None:
    source, clock, lines = Letters("abc"), TicklessClock(), list[str]()
    call = make_call(tmp_path, clock=clock, say=lines.append)
    source.errors = [ToolFailure("connect", "gone", retryable=True), Unavailable("the store is full")]
    assert patient(source, call).items == ["a", "b", "c"]
    assert clock.slept == [0.25, 1.0]
    assert [line.rpartition(": ")[2] for line in lines] == ["gone", "the store is full"]


@pytest.mark.parametrize(
    ("error", "reads", "tried"),
    [
        (ToolFailure("syntax", "wrong"), 5, 1),
        (ToolFailure("connect", "gone", retryable=True), 5, 5),
        (ToolFailure("connect", "gone", retryable=True), 1, 1),
        (Unavailable("the store is full"), 1, 5),
    ],
)
def test_what_does_not_pass_is_given_up(tmp_path: Path, error: Exception, reads: int, tried: int) -> None:
    source = Letters("abc")
    source.errors = [error] * 9
    with pytest.raises(type(error)):
        patient(source, make_call(tmp_path, clock=TicklessClock()), reads)
    assert len(source.read) == tried


# ---- descriptions


def test_every_kind_that_a_document_may_name_can_be_opened() -> None:
    assert set(KINDS) == set(PAGED)


@cases("kind", KINDS)
def test_every_kind_is_described_and_its_example_is_valid(kind: str) -> None:
    reader, description = reader_of(kind), describe_pages(kind)
    assert description is not None
    assert reader.kind == description.kind == kind
    assert inspect.getdoc(reader)
    assert all(param.description for param in description.params.values())
    given = yaml.safe_load(example_of(kind))["in"]
    found = described(given, given)
    assert isinstance(found, Described)
    assert found.is_paged
    values = {"kind" if name == "engine" else name: value for name, value in found.collection.items() if name != "kind"}
    convert(kind, reader.Params, values)


@cases("kind", KINDS)
def test_the_words_of_a_document_are_the_parameters_of_the_reader(kind: str) -> None:
    description = describe_pages(kind)
    assert description is not None
    assert set(SCOPES[f"collection_{kind}"].words) == set(description.params)


@cases("kind", KINDS)
def test_a_loop_with_the_example_is_a_valid_playbook(kind: str) -> None:
    step = {
        "step": "start",
        "loop": {**yaml.safe_load(example_of(kind)), "iterator": "it"},
        "tool": {"kind": "noop"},
    }
    keychain = [{"name": name, "kind": "static", "value": "x"} for name in ("warehouse", "lake", "orders_api")]
    document = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "it"},
        "keychain": keychain,
        "workflow": [step],
    }
    problems = compile_text(yaml.safe_dump(document), "it.yaml", Registry()).problems
    assert [one for one in problems if one.severity is Severity.ERROR] == []


def test_what_is_no_kind_is_not_described() -> None:
    assert describe_pages("tape") is None
