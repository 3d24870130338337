"""The results of a loop in the order of its elements: in memory while small, in a file once they outgrow that.

Law: what `value` gives depends on the results alone, never on the order in which they came or on how often the loop was stopped
and taken up again. An iteration that failed leaves `null`; when a resumed run gets it done, its result takes that place.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any, cast

from penstock.kernel.state import KEPT_FAILURES, OK, Pipeline, StepRun
from penstock.kernel.values import JsonMap
from penstock.ports.blobs import BlobStore
from penstock.ports.results import Load, decode, encode, thawed, view
from penstock.ports.wire import REF_BYTES

CHUNK = 1 << 20
NULL = b"null"
SAME = 4096


def keep_result(run: StepRun, index: int, pipeline: Pipeline) -> None:
    """Add the result of a closed iteration to those of its loop, which move with the loop when it is reopened."""
    loop: Any = run.fan
    if loop.results is None:
        loop.results = LoopResults()
    if pipeline.status == OK:
        loop.results.add(index, pipeline.prev)
    else:
        loop.results.fail(index)


class LoopResults:
    def __init__(self, most: int | None = None) -> None:
        """`most`: maximum number of bytes kept; a loop whose results take more has no list of them."""
        self._most = most
        self._next = 0
        self._early: dict[int, tuple[bytes, int]] = {}
        self._late: dict[int, bytes] = {}
        self._holes: dict[int, int] = {}
        """For iterations that failed or were overtaken: where their `null` begins."""
        self._held: dict[int, bytes] = {}
        """For iterations that are not known to be done yet."""
        self._held_size = 0
        self._size = 1
        self._buffer = bytearray(b"[")
        self._spill: IO[bytes] | None = None
        self._has_refs = False

    def add(self, index: int, value: object) -> None:
        self._put(index, NULL if value is None else encode(value))

    def fail(self, index: int) -> None:
        # Bounded like the failed iterations that a resume can rerun.
        if index >= self._next and len(self._holes) < KEPT_FAILURES:
            self._holes[index] = 0
        self._put(index, NULL)

    def hold(self, index: int, value: object) -> None:
        """Hold a result back until it is known (`release`, `drop`) whether its iteration is done; until then it is `null`."""
        if self.is_too_large:
            return
        data = self._held[index] = encode(value)
        self._held_size += len(data)
        if index >= self._next:
            self._holes[index] = 0
            self._put(index, NULL)

    def held(self, index: int) -> Any:
        data = self._held.get(index)
        return None if data is None else decode(data)

    def release(self, index: int) -> None:
        data = self._held.pop(index, None)
        if data is None:
            return
        if index in self._early:
            del self._holes[index]
            self._early[index] = data, 1
        self._put(index, data)

    def drop(self, index: int) -> None:
        self._held.pop(index, None)

    def extend(self, index: int, data: bytes, count: int, *, is_same: bool = False) -> None:
        """Add `count` results at once: `data` is their JSON, separated by commas, or that of the one value that all of them
        have."""
        if is_same:
            for start in range(0, count, SAME):
                several = min(SAME, count - start)
                self._put(index + start, b",".join([data] * several), several)
        elif count:
            self._put(index, data, count)

    @property
    def is_too_large(self) -> bool:
        return self._most is not None and self._size + self._held_size > self._most

    def _put(self, index: int, data: bytes, count: int = 1) -> None:
        if self.is_too_large:
            self._early.clear()
            return
        self._has_refs = self._has_refs or REF_BYTES in data
        if index > self._next:
            self._early[index] = data, count
        elif index < self._next and count > 1:  # Each has a place of its own to fill, and some perhaps none yet.
            for offset, value in enumerate(cast("list[Any]", decode(b"[%b]" % data))):
                self._put(index + offset, encode(value))
        elif index < self._next:
            self._late[index] = data
        else:
            self._write(data, count)
            while self._early and (early := self._early.pop(self._next, None)) is not None:
                self._write(*early)

    def _write(self, data: bytes, count: int = 1) -> None:
        if self._next:
            self._grow(b",")
        if self._next in self._holes:
            self._holes[self._next] = self._size
        self._grow(data)
        self._next += count
        if len(self._buffer) > CHUNK:
            self._spill_over()

    def _grow(self, data: bytes) -> None:
        self._buffer += data
        self._size += len(data)

    def _spill_over(self) -> None:
        if self._spill is None:
            self._spill = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the loop
        self._spill.seek(0, os.SEEK_END)  # It may have been read.
        self._spill.write(self._buffer)
        self._buffer.clear()

    def value(self, blobs: BlobStore, load: Load, limit: int) -> Any:
        """All results as a list, or a view of it by reference if they take more than `limit` bytes."""
        if self.is_too_large:
            return None
        for index in sorted(self._early):  # Iterations that never ran leave gaps; what is there keeps its order.
            while self._next < index:
                self._holes[self._next] = 0
                self._write(NULL)
            self._write(*self._early.pop(index))
        late = {index: data for index, data in self._late.items() if index in self._holes}
        size = self._size + 1 + sum(len(data) - len(NULL) for data in late.values())
        if size > limit:
            hint: JsonMap = {"type": "array", "length": self._next}
            return view(blobs.put(self._chunks(late), schema_hint=hint), load)
        plain = decode(b"".join(self._chunks(late)))
        return thawed(plain, load) if self._has_refs else plain

    def _chunks(self, late: dict[int, bytes]) -> Iterator[bytes]:
        """All the bytes, with `late` results in the places that were reserved for them."""
        if self._spill is not None:
            self._spill_over()
            self._spill.seek(0)
        at = 0
        for index in sorted(late):
            yield from self._part(at, self._holes[index])
            yield late[index]
            at = self._holes[index] + len(NULL)
            if self._spill is not None:
                self._spill.seek(at)
        yield from self._part(at, self._size)
        yield b"]"

    def _part(self, start: int, end: int) -> Iterator[bytes]:
        if self._spill is None:
            yield bytes(self._buffer[start:end])
            return
        while start < end and (piece := self._spill.read(min(CHUNK, end - start))):
            start += len(piece)
            yield piece

    # ---- to another machine

    def dumped(self) -> Iterator[bytes]:
        """The whole state, for another worker to continue with."""
        head = encode(
            {
                "next": self._next,
                "early": [[index, data.decode(), count] for index, (data, count) in self._early.items()],
                "late": [[index, data.decode()] for index, data in self._late.items()],
                "holes": [[index, at] for index, at in self._holes.items()],
                "refs": self._has_refs,
            }
        )
        yield b"%d\n" % len(head)
        yield head
        if self._spill is not None:
            self._spill_over()
            self._spill.seek(0)
        yield from self._part(0, self._size)

    @staticmethod
    def restored(data: bytes) -> LoopResults:
        length, _, rest = data.partition(b"\n")
        head: Any = decode(rest[: int(length)])
        kept = LoopResults()
        kept._next, kept._has_refs = head["next"], head["refs"]
        kept._early = {index: (text.encode(), count) for index, text, count in head["early"]}
        kept._late = {index: text.encode() for index, text in head["late"]}
        kept._holes = dict(head["holes"])
        kept._buffer = bytearray(rest[int(length) :])
        kept._size = len(kept._buffer)
        return kept

    def __del__(self) -> None:
        if self._spill is not None:
            self._spill.close()
