"""All control stores give the same answers to the same calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.postgres.control import PostgresControl
from penstock.adapters.sqlite.control import MemoryControl, SqliteControl
from penstock.kernel.errors import Refused
from penstock.ports.control import HIDDEN, ControlStore, Filed, Hook, Missed, Schedule, Scope, Slot, SlotState, Token
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

NAMES = ["a", "b", "a/b", "é", "", "x\ny"]
Call = Callable[[ControlStore], Any]


def drawn(chance: random.Random) -> Call:
    """A call with arguments that now and then are the same as before, or wrong."""
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    number, text = chance.randint(0, 3), f"text {chance.randint(0, 2)}"
    time, later = float(chance.randint(0, 4)), float(chance.randint(0, 6))
    outcome = chance.choice([{}, {"slot": later, "run": text}, {"slot": later, "error": text}, {"error": text}])
    schedule = Schedule(
        name, text, other, version=number or None, missed=chance.choice(list(Missed)), fired_to=time, last_run=text
    )
    slot = Slot(name, time, chance.choice(list(SlotState)), text, ended=chance.choice([None, text]), revision=number)
    hook = Hook(name, other, number or None, chance.choice([None, HIDDEN, text]), {"a": number}, number > 1)
    calls: list[Call] = [
        lambda one: one.file(name, text, "job", "d", {"s": str(number)}, other),
        lambda one: one.document(name, number or None),
        lambda one: one.documents(name[:1], number, after=other),
        lambda one: one.versions(name),
        lambda one: one.unfile(name),
        lambda one: one.put_schedule(schedule),
        lambda one: one.schedule(name),
        lambda one: one.schedules(),
        lambda one: one.fired(name, time, later, **outcome),
        lambda one: one.fired(name, time, time + 1, **outcome),
        lambda one: one.drop_schedule(name),
        lambda one: one.claim_slot(slot),
        lambda one: one.change_slot(slot),
        lambda one: one.slots(name, time, later, number),
        lambda one: one.open_slots(),
        lambda one: one.trim_slots(name, number),
        lambda one: one.put_hook(hook),
        lambda one: one.hook(name),
        lambda one: one.hooks(),
        lambda one: one.drop_hook(name),
        lambda one: one.add_token(name, Scope.RUN, time)[0],
        lambda one: one.tokens(),
        lambda one: [one.revoke(token.id) for token in one.tokens()[number:]],
    ]
    weights = [4, 2, 2, 1, 1, 4, 2, 1, 4, 4, 1, 4, 4, 2, 2, 1, 4, 2, 1, 1, 1, 1, 1]
    return chance.choices(calls, weights)[0]


def answer(call: Call, control: ControlStore) -> Any:
    try:
        return plain(call(control))
    except Refused as error:
        return error.message


def plain(value: Any) -> Any:
    """Without what is drawn or read from a clock."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Filed):
        return replace(value, created_at=0.0)
    if isinstance(value, Token):
        return replace(value, id="", created_at=0.0)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_the_same_calls_have_the_same_answers(seed: int, tmp_path: Path, postgres_url: str) -> None:
    chance = random.Random(seed)
    with ExitStack() as stack:
        stores: list[ControlStore] = [
            MemoryControl(),
            SqliteControl(tmp_path, environ={}),
            PostgresControl(postgres_url, environ={}),
        ]
        for store in stores:
            stack.callback(store.close)
        for turn in range(400):
            call = drawn(chance)
            in_memory, in_sqlite, in_postgres = (answer(call, store) for store in stores)
            assert in_memory == in_sqlite == in_postgres, f"call {turn}"
