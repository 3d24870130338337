"""What goes over NATS between workers and servers: names of subjects, letters, answers and tickets.

Law: everything here may be lost, come twice or come late. A letter says all that is needed to answer it, so that any server can;
and nothing is larger than a message may be: what is, goes in parts.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

from msgspec import MsgspecError, Raw, Struct
from msgspec.msgpack import Decoder, Encoder

from penstock.kernel.errors import Refused
from penstock.ports.dispatch import Held, MessageKind, Pulse, WorkerCard
from penstock.ports.leases import DEFAULT_POOL

VERSION = 1
PREFIX = "penstock"
# Names of subjects, streams and consumers are made of these; other names are made shorter and plainer.
_PLAIN = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Names:
    """Several fleets on one NATS have a prefix each."""

    prefix: str = PREFIX

    def __post_init__(self) -> None:
        if not _PLAIN.fullmatch(self.prefix):
            raise Refused(
                f"`{self.prefix}` cannot be the prefix of a fleet's subjects in NATS",
                "use up to 64 letters, digits, `-` and `_`",
            )

    @property
    def rpc(self) -> str:
        """Where letters go; one of the servers gets each."""
        return f"{self.prefix}.rpc"

    @property
    def hello(self) -> str:
        """Every server that is awake answers here, with its name and nothing else."""
        return f"{self.prefix}.hello"

    def server(self, name: str) -> str:
        """Where letters to one server go."""
        return f"{self.prefix}.rpc.{name}"

    def commands(self, worker: str) -> str:
        return f"{self.prefix}.told.{plain(worker)}"

    def work(self, pool: str, kind: str) -> str:
        return f"{self.prefix}.work.{plain(pool)}.{kind}"

    @property
    def all_work(self) -> str:
        return f"{self.prefix}.work.*.*"

    def dead(self, pool: str) -> str:
        return f"{self.prefix}.dead.{plain(pool)}"

    @property
    def work_stream(self) -> str:
        return f"{self.prefix}_WORK"

    @property
    def dead_stream(self) -> str:
        return f"{self.prefix}_DEAD"


NO_TICKET = "no ticket"
"""Why a message of the work queue is not to be delivered again."""
STEP, RANGE = "step", "range"
KINDS = (STEP, RANGE)
"""Tickets of two kinds, since a worker may have room for steps and none for pieces of a large loop."""


def consumer(pool: str, kind: str) -> str:
    return f"{plain(pool)}-{kind}"


def plain(name: str) -> str:
    """The name as a word of a subject; two names have two words."""
    if _PLAIN.fullmatch(name):
        return name
    return f"_{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}"


# ---- letters


class Enlisting(Struct, frozen=True, array_like=True, tag="enlist"):
    card: WorkerCard


class Claiming(Struct, frozen=True, array_like=True, tag="claim"):
    """`tickets`: how many the worker has in its hand. `is_deaf`: it could not ask for any."""

    worker: str
    pool: str
    room: int
    ranges: int
    token: UUID
    tickets: int
    is_deaf: bool


class GivingUp(Struct, frozen=True, array_like=True, tag="give_up"):
    worker: str
    pool: str
    token: UUID
    keys: list[str]


class Beating(Struct, frozen=True, array_like=True, tag="beat"):
    worker: str
    pulses: dict[str, Pulse]
    is_draining: bool


class Saying(Struct, frozen=True, array_like=True):
    worker: str
    key: str
    attempt: int
    kind: MessageKind
    bodies: list[bytes]
    token: UUID
    is_repeated: bool = False


class SayingAll(Struct, frozen=True, array_like=True, tag="say"):
    said: list[Saying]


class Listening(Struct, frozen=True, array_like=True, tag="told"):
    worker: str
    seen: list[int]


class AskingPressure(Struct, frozen=True, array_like=True, tag="pressed"):
    worker: str


class Retiring(Struct, frozen=True, array_like=True, tag="retire"):
    worker: str


class AskingTime(Struct, frozen=True, array_like=True, tag="now"):
    pass


Request = Enlisting | Claiming | GivingUp | Beating | SayingAll | Listening | AskingPressure | Retiring | AskingTime


class Letter(Struct, frozen=True, array_like=True):
    """`is_repeated`: it has been sent before, and perhaps carried out."""

    version: int
    is_repeated: bool
    request: Request


# ---- answers


class Problem(Struct, frozen=True, array_like=True):
    is_refused: bool
    """The caller's fault; else the world's."""
    message: str
    hint: str | None


class Granted(Struct, frozen=True, array_like=True):
    leases: list[Held]
    has_more: bool
    """Work is left in the pool, which this worker is not to have now. Said only to those who have tickets left."""


class Answer(Struct, frozen=True, array_like=True):
    """`server`: the subject of the one who answers."""

    server: str
    problem: Problem | None
    value: Raw


class Ticket(Struct, frozen=True, array_like=True):
    """An offer waits in a pool. It is a call to come and look, no more: what is granted then is the store's to say."""

    key: str
    execution_id: str
    pool: str = DEFAULT_POOL
    needs: frozenset[str] = frozenset()
    is_range: bool = False

    @property
    def kind(self) -> str:
        return RANGE if self.is_range else STEP


_encoder = Encoder()
_letters = Decoder(Letter)
_answers = Decoder(Answer)
_tickets = Decoder(Ticket)


class Unreadable(Exception):
    """A message that is none of ours."""


def packed(value: Any) -> bytes:
    return _encoder.encode(value)


def read_letter(data: bytes) -> Letter:
    try:
        return _letters.decode(data)
    except MsgspecError as error:
        raise Unreadable(str(error)) from error


def read_answer(data: bytes) -> Answer:
    try:
        return _answers.decode(data)
    except MsgspecError as error:
        raise Unreadable(str(error)) from error


def read_ticket(data: bytes) -> Ticket:
    try:
        return _tickets.decode(data)
    except MsgspecError as error:
        raise Unreadable(str(error)) from error


# ---- parts

_WHOLE = b"W"
_PART = b"P"
_HEAD = struct.Struct(">QII")
_numbers = count(1)


def frames(data: bytes, largest: int) -> Iterable[bytes]:
    """`data` as messages of no more than `largest` bytes."""
    if len(data) < largest:
        yield _WHOLE + data
        return
    size = largest - 1 - _HEAD.size
    total = -(-len(data) // size)
    number = next(_numbers)
    for index in range(total):
        yield _PART + _HEAD.pack(number, index, total) + data[index * size : (index + 1) * size]


@dataclass(slots=True)
class Parts:
    """Messages on their way to be whole again. The parts of two sendings are not taken for those of one."""

    size: int = 0
    _found: dict[int, dict[int, bytes]] = field(default_factory=dict)

    def add(self, frame: bytes) -> bytes | None:
        """The whole, when this was the last that was missing."""
        if frame[:1] == _WHOLE:
            return frame[1:]
        if frame[:1] != _PART or len(frame) <= _HEAD.size:
            raise Unreadable("it is neither a message nor a part of one")
        number, index, total = _HEAD.unpack_from(frame, 1)
        found = self._found.setdefault(number, {})
        if index not in found:
            self.size += len(frame)
        found[index] = frame[1 + _HEAD.size :]
        if len(found) < total:
            return None
        del self._found[number]
        return b"".join(found[place] for place in range(total))
