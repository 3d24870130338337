"""Real second processes for tests of the PostgreSQL log: `python -m tests.adapters.postgres_children NAME ARGUMENT…`.

A child says on standard output how far it has come, and waits on standard input where the parent has to act first.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

from penstock.adapters.postgres.executions import PostgresPartitions
from penstock.adapters.postgres.log import PostgresLog
from penstock.kernel.errors import PenstockError
from tests.adapters.children import say
from tests.contracts.entries import entries, entry, header
from tests.warm import starting

LEASE = 2.0


def start(name: str, *arguments: object) -> subprocess.Popen[str]:
    words = ("-m", "tests.adapters.postgres_children", name, *map(str, arguments))
    return starting(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def create_many(url: str, prefix: str, count: str) -> None:
    """Open the log, whose tables may not be there yet, and make executions of one's own in it."""
    say("ready")
    sys.stdin.readline()
    log = PostgresLog(url, name=prefix)
    for number in range(int(count)):
        name = f"{prefix}-{number}"
        await log.create(header(name), name.encode())
        epoch = await log.claim(name, prefix)
        for seq in range(1, 6):
            await log.durable(log.append(name, epoch, [entry(seq)]))
        log.append(name, epoch, entries(6, 50), status="completed")
        await log.release(name)
    await log.close()


async def append_for_ever(url: str, name: str, size: str) -> None:
    """Say the number of each last entry that has been acknowledged, until killed or refused."""
    log = PostgresLog(url, name="the child", lease_s=LEASE)
    if log.header(name) is None:
        await log.create(header(name), b"document")
    epoch = await log.claim(name, "the child's own")
    seq = log.header(name).last_seq  # type: ignore[union-attr]
    try:
        while True:
            tickets = []
            for _ in range(int(size)):
                tickets.append(log.append(name, epoch, entries(seq + 1, seq + 3)))
                seq += 3
            await log.durable(tickets[-1])
            say(seq)
    except PenstockError as error:
        say(type(error).__name__, error.message)
    await log.close()


async def hold_partitions(url: str) -> None:
    """Say what is held, and as what, each time it has changed."""
    shares = PostgresPartitions(url, name="the child", lease_s=LEASE)
    before = None
    while True:
        held = await shares.hold()
        if held != before:
            say(len(held), max(held.values(), default=0))
        before = held
        await asyncio.sleep(LEASE / 3)


PARTS = {part.__name__: part for part in (create_many, append_for_ever, hold_partitions)}

if __name__ == "__main__":
    asyncio.run(PARTS[sys.argv[1]](*sys.argv[2:]))  # type: ignore[operator]
