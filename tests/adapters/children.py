"""Real second processes for tests of the adapters: `python -m tests.adapters.children NAME ARGUMENT…`.

A child says on standard output how far it has come, and waits on standard input where the parent has to act first.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from pathlib import Path

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.sqlite.log import SqliteLog
from penstock.kernel.errors import PenstockError
from tests.contracts.entries import entries, entry, header
from tests.warm import starting

ROOT = Path(__file__).parents[2]


def start(name: str, *arguments: object) -> subprocess.Popen[str]:
    words = ("-m", "tests.adapters.children", name, *map(str, arguments))
    return starting(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(child: subprocess.Popen[str]) -> str:
    """What it still has to say; it must end well."""
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 0, said
    return said


def kill(child: subprocess.Popen[str]) -> str:
    """kill -9, and what it had said until then."""
    child.kill()
    said, _ = child.communicate(timeout=60)
    return said


def say(*words: object) -> None:
    print(*words, flush=True)


async def hold(home: str, name: str) -> None:
    """Own an execution until told to stop."""
    log = SqliteLog(home)
    await log.claim(name, "the child")
    say("holding", os.getpid())
    sys.stdin.readline()
    await log.close()


async def create_many(home: str, prefix: str, count: str) -> None:
    """Open the log, which may not be there yet, and make executions of one's own in it."""
    say("ready")
    sys.stdin.readline()
    log = SqliteLog(home)
    for number in range(int(count)):
        name = f"{prefix}-{number}"
        await log.create(header(name), name.encode())
        epoch = await log.claim(name, prefix)
        for seq in range(1, 6):
            await log.durable(log.append(name, epoch, [entry(seq)]))
        log.append(name, epoch, entries(6, 50), status="completed")
        await log.release(name)
    await log.close()


async def append_for_ever(home: str, name: str, size: str) -> None:
    """Say the number of each last entry that has been acknowledged, until killed."""
    log = SqliteLog(home)
    if log.header(name) is None:
        await log.create(header(name), b"document")
    epoch = await log.claim(name, "the child")
    seq = log.header(name).last_seq  # type: ignore[union-attr]
    while True:
        tickets = []
        for _ in range(int(size)):
            tickets.append(log.append(name, epoch, entries(seq + 1, seq + 3)))
            seq += 3
        await log.durable(tickets[-1])
        say(seq)


async def append_beyond_a_limit(home: str, limit: str) -> None:
    """Append under a limit on the size of files, as a stand-in for a disk that is full."""
    log = SqliteLog(home)
    await log.create(header(), b"document")
    epoch = await log.claim("run-1", "the child")
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    seq = 0
    try:
        while True:
            await log.durable(log.append("run-1", epoch, [entry(seq + 1, b"x" * 5_000)]))
            seq += 1
    except PenstockError as error:
        say(seq, type(error).__name__, error.message, "|", error.hint)
    await log.close()


async def put_beyond_a_limit(home: str, limit: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        FileBlobs(home).put(b"x" * 65_536 for _ in range(1_000))
    except PenstockError as error:
        say(type(error).__name__, error.message, "|", error.hint)


async def write_without_permission(home: str, what: str) -> None:
    """As somebody who may not write in `home`: root gives up being root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        if what == "log":
            log = SqliteLog(home)
            await log.create(header("run-2"), b"")
        else:
            FileBlobs(home).put([b"x"])
    except PenstockError as error:
        say(type(error).__name__, error.message, "|", error.hint)


PARTS = {
    part.__name__: part
    for part in (
        hold,
        create_many,
        append_for_ever,
        append_beyond_a_limit,
        put_beyond_a_limit,
        write_without_permission,
    )
}

if __name__ == "__main__":
    asyncio.run(PARTS[sys.argv[1]](*sys.argv[2:]))  # type: ignore[operator]
