"""Ctrl-C at the moment in which a run begins to be followed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator

from penstock.cli.output import say
from penstock.cli.show.live import Nobody
from penstock.cli.show.progress import Progress
from penstock.cli.show.watched import Following, Line, early_signals
from penstock.ports.log import Entry


class Endless:
    """The feed of a run that never ends."""

    note: Callable[[str], None] = staticmethod(say)

    def earlier(self) -> Iterator[Entry]:
        return iter(())

    async def news(self) -> AsyncIterator[Entry | Line]:
        await asyncio.Event().wait()
        yield Line("", None, "never")


def test_a_signal_before_the_event_loop_handles_signals_ends_the_watching() -> None:
    before = signal.getsignal(signal.SIGINT)
    with early_signals() as early:
        os.kill(os.getpid(), signal.SIGINT)
        watching = Following(Endless(), Progress(), Nobody()).to_the_end(early)
        assert asyncio.run(watching) is False
    assert early == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before
