"""What goes over NATS comes out as it went in, in parts or whole; and what is none of ours is known as such."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.nats.wire import (
    VERSION,
    AskingTime,
    Beating,
    Claiming,
    Enlisting,
    GivingUp,
    Letter,
    Listening,
    Names,
    Parts,
    Request,
    Retiring,
    Saying,
    SayingAll,
    Ticket,
    Unreadable,
    consumer,
    frames,
    packed,
    plain,
    read_answer,
    read_letter,
    read_ticket,
)
from penstock.ports.dispatch import MessageKind, Pulse, WorkerCard


@given(data=st.binary(max_size=500), largest=st.integers(18, 80), seed=st.integers(0, 1000))
def test_parts_make_the_whole_again_in_whatever_order_they_come(data: bytes, largest: int, seed: int) -> None:
    messages = list(frames(data, largest))
    assert all(len(message) <= largest for message in messages)
    random.Random(seed).shuffle(messages)
    parts = Parts()
    found = [parts.add(message) for message in messages]
    assert found == [None] * (len(messages) - 1) + [data]


@given(one=st.binary(min_size=1, max_size=300), two=st.binary(min_size=1, max_size=300), seed=st.integers(0, 1000))
def test_parts_of_two_sendings_are_not_taken_for_those_of_one(one: bytes, two: bytes, seed: int) -> None:
    messages = [*frames(one, 30), *frames(two, 30)]
    random.Random(seed).shuffle(messages)
    parts = Parts()
    assert sorted(found for message in messages if (found := parts.add(message)) is not None) == sorted([one, two])


def test_a_part_that_comes_twice_counts_once() -> None:
    first, *others = frames(bytes(100), 40)
    parts = Parts()
    assert [parts.add(first), parts.add(first)] == [None, None]
    assert [found for message in others if (found := parts.add(message)) is not None] == [bytes(100)]


@pytest.mark.parametrize(
    "request_",
    [
        Enlisting(WorkerCard("w#1", "ä", "gpu", 7, frozenset({"http"}), "1.0")),
        Claiming("w#1", "gpu", 4, 2, uuid4(), 3, True),
        GivingUp("w#1", "gpu", uuid4(), ["k", "with \x00"]),
        Beating("w#1", {"k": Pulse(2, -5, b"at"), "j": Pulse(1, 10**15, None, b"rows")}, True),
        SayingAll([Saying("w#1", "k", 1, MessageKind.DONE, [b"", b"\xff"], uuid4())]),
        Listening("w#1", [1, 2**40]),
        Retiring("w#1"),
        AskingTime(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_letter_is_read_as_it_was_written(request_: Request) -> None:
    letter = Letter(VERSION, True, request_)
    assert read_letter(packed(letter)) == letter


def test_a_ticket_is_read_as_it_was_written() -> None:
    ticket = Ticket("k/ä", "run", "gpu", frozenset({"gpu"}), True)
    assert read_ticket(packed(ticket)) == ticket


@pytest.mark.parametrize("read", [read_letter, read_answer, read_ticket])
@pytest.mark.parametrize("data", [b"", b"\xc1", b"text", packed({"key": "k"}), packed([1, 2, 3])])
def test_what_is_none_of_ours_is_known_as_such(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(data)


@pytest.mark.parametrize("frame", [b"X", b"", b"P", b"P" + bytes(15)])
def test_what_is_no_part_is_known_as_such(frame: bytes) -> None:
    with pytest.raises(Unreadable):
        Parts().add(frame)


@given(names=st.lists(st.text(min_size=1), unique=True, max_size=20))
def test_two_names_have_two_plain_words(names: list[str]) -> None:
    words = {plain(name) for name in names if _is_text(name)}
    assert len(words) == sum(map(_is_text, names))
    for word in words:
        assert word.isascii()
        assert not set(word) & set(" .*>/\\\t\r\n")
        assert 0 < len(word) <= 64


def test_names_that_are_plain_stay_readable() -> None:
    names = Names("penstock")
    assert names.work("default", "step") == "penstock.work.default.step"
    assert consumer("gpu-1", "range") == "gpu-1-range"
    assert names.work("gpü", "step") != names.work("gpu", "step")


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)
