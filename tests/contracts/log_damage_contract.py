"""What every event log keeps to when what it has kept is not what was written any more."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import pytest

from penstock.kernel.errors import Damaged
from penstock.ports.log import EventLog
from tests.contracts.entries import entries
from tests.contracts.log_scenes import LogScenes

FIELDS = ("ts", "type", "scope", "task", "clock", "cause", "source", "worker", "payload")


class LogDamageContract(LogScenes):
    @abstractmethod
    def damage(self, seq: int, field: str) -> None:
        """Change one bit of one field of an entry of `run-1` where it is kept."""

    @abstractmethod
    def take_checksums(self) -> None:
        """As if the first release had written all entries of `run-1`."""

    @pytest.mark.parametrize("field", FIELDS)
    def test_an_entry_in_which_a_bit_has_flipped_is_not_read(self, field: str) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 5)))
            self.damage(3, field)
            with pytest.raises(Damaged, match="the log is damaged: event 3 of run `run-1`") as told:
                list(log.read("run-1"))
            assert "penstock doctor --log" in (told.value.hint or "")
            assert [found.seq for found in log.read("run-1", after=3)] == [4, 5]

        self.play_owned(scene)

    def test_entries_of_the_first_release_have_no_checksum_and_are_read(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 3)))
            self.take_checksums()
            assert list(log.read("run-1")) == entries(1, 3)
            await log.durable(log.append("run-1", epoch, entries(4, 5)))
            assert list(log.read("run-1")) == entries(1, 5)
            self.damage(5, "payload")
            with pytest.raises(Damaged, match="event 5 of run `run-1`"):
                list(log.read("run-1"))

        self.play_owned(scene)

    def test_an_entry_of_the_first_release_that_cannot_be_decoded_is_damaged(self) -> None:
        async def scene(log: EventLog, epoch: int) -> None:
            await log.durable(log.append("run-1", epoch, entries(1, 3)))
            self.take_checksums()
            self.damage(2, "payload")
            with pytest.raises(Damaged, match=r"event 2 of run `run-1`.*cannot be read"):
                list(log.read("run-1"))

        self.play_owned(scene)


def flipped(value: Any) -> Any:
    """The same with one bit changed: the lowest of its first character, or of its number."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:]
    return float(value) + 2.0**-20
