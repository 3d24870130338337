"""Why work waits, as it is told from what the store shows."""

from __future__ import annotations

import pytest

from penstock.ports.dispatch import LeaseSeen, WorkerCard, WorkerSeen
from penstock.server.wait_reasons import reason, waits


def worker(
    name: str = "w", pool: str = "default", held: int = 0, *, alive: bool = True, drains: bool = False
) -> WorkerSeen:
    return WorkerSeen(WorkerCard(f"{name}#1", name, pool, 2, frozenset({"python"})), held, 0.1, alive, drains)


def lease(key: str = "run/a@0", **more: object) -> LeaseSeen:
    return LeaseSeen(key, "run", "default", 1, None, 5.0, None, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workers", "terms", "is_stuck", "words"),
    [
        ([], {}, True, "no worker is there"),
        ([worker(alive=False)], {}, True, "no worker is there"),
        ([worker(pool="a"), worker(pool="a")], {}, True, "no worker is in pool `default`, only 2 workers in `a`"),
        ([worker()], {"needs": frozenset({"python", "gpu"})}, True, "`w#1` lacks `gpu`"),
        ([worker(drains=True)], {}, True, "`w#1` is draining"),
        ([worker(held=2)], {}, False, "1 worker of pool `default` can take it, and all 2 places of them are taken"),
        ([worker()], {"limits": (("api", 3),)}, False, "no more than 3 of `api` run at a time"),
        ([worker()], {}, False, "1 worker of pool `default` can take it, and will soon"),
    ],
)
def test_the_reason_is_what_is_missing(
    workers: list[WorkerSeen], terms: dict[str, object], is_stuck: bool, words: str
) -> None:
    told, why = reason(lease(**terms), workers)
    assert told is is_stuck
    assert any(words in line for line in why), why


def test_the_ranges_of_a_loop_wait_together_and_what_is_held_does_not_wait() -> None:
    held = LeaseSeen("run/each@0#0", "run", "default", 1, "w#1", 5.0, 3.0)
    found = waits([held, lease("run/each@0#1"), lease("run/each@0#2"), lease("run/a@0/b@1")], [worker()])
    assert [(one["scope"], one["offers"], one["is_range"]) for one in found] == [  # type: ignore[index,call-overload]
        ("each@0", 2, True),
        ("a@0/b@1", 1, False),
    ]
