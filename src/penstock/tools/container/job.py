"""What is to be run in a container, and the programs that are asked to do it.

Law: a job's name is made of the task run's idempotency key, which is the same for retries and for whoever takes the task over on
another machine. So nobody starts a job before one of the same name, left by an attempt that died, has been removed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.tools.base import Call, ToolFailure
from penstock.tools.output import Kept
from penstock.tools.process import start

ASK_SECONDS = 60.0
"""How long a program may take for what is not the job itself."""
MAX_ANSWER = 4 * 1024 * 1024
TERM_SECONDS = 2.0

_UNREACHABLE = re.compile(
    r"cannot connect to|unable to connect|connection refused|daemon running|no route to host|i/o timeout", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mount:
    source: str
    """A folder or file of this machine, or the name of a volume."""
    target: str
    read_only: bool
    is_named: bool


@dataclass(frozen=True, slots=True)
class Amount:
    cpu: float | None = None
    """In processors."""
    memory: int | None = None
    """In bytes."""


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    image: str
    entry_point: list[str] | None
    arguments: list[str]
    env: dict[str, str]
    labels: dict[str, str]
    mounts: list[Mount]
    most: Amount
    least: Amount
    workdir: str | None
    network: str | None
    pull: str | None
    namespace: str | None
    service_account: str | None
    stdin: str | None
    limit: float | None
    """Seconds."""


def name_of(call: Call, wanted: str | None) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", (wanted or f"penstock-{call.task}").lower()).strip("-")[:40].strip("-")
    return f"{slug or 'penstock'}-{hashlib.sha256(call.idempotency_key.encode()).hexdigest()[:16]}"


class Ended(NamedTuple):
    code: int
    reason: str = ""
    """In the runtime's words, such as `OOMKilled`."""


Take = Callable[[str, bytes], None]
"""Is given the output, `stdout` or `stderr`, as it comes."""


class Runtime(ABC):
    def __init__(self, program: str, job: Job, call: Call, take: Take) -> None:
        self.program = program
        self.job = job
        self.call = call
        self.take = take

    @abstractmethod
    async def run(self) -> Ended:
        """Remove what an earlier attempt left, start the job and wait for its end. Raises ToolFailure when there was none."""

    @abstractmethod
    async def remove(self) -> None:
        """End the job, if it is there, and remove it. Raises ToolFailure when that is not certain."""

    async def ask(self, *arguments: str, stdin: bytes | None = None) -> Answer:
        return await ask([self.program, *arguments], stdin)


class Answer(NamedTuple):
    code: int
    text: str
    error: str

    def failure(self, what: str, kind: str = "cannot_start") -> ToolFailure:
        return failure(what, self.error or self.text, kind)


def failure(what: str, words: str, kind: str = "cannot_start") -> ToolFailure:
    """In the words of a program that is asked to run containers. That it reaches nobody may pass."""
    last = words.strip().rpartition("\n")[2][-500:]
    if _UNREACHABLE.search(words):
        return ToolFailure("unavailable", f"{what}: {last}", retryable=True)
    return ToolFailure(kind, f"{what}: {last}")


async def ask(arguments: list[str], stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Answer:
    """One command of a client, to its end."""
    output = {"stdout": Kept(MAX_ANSWER), "stderr": Kept(MAX_ANSWER)}
    child = start(
        arguments,
        env=os.environ if env is None else env,
        cwd=None,
        stdin=stdin,
        stdout=output["stdout"].feed,
        stderr=output["stderr"].feed,
    )
    try:
        async with asyncio.timeout(ASK_SECONDS):
            code = await child.ended()
    except TimeoutError:
        shown = " ".join(os.path.basename(word) if not at else word for at, word in enumerate(arguments[:2]))
        raise ToolFailure("unavailable", f"`{shown}` did not end within {ASK_SECONDS:g} s", retryable=True) from None
    finally:
        child.close()
    return Answer(code, output["stdout"].text(), output["stderr"].text())
