"""A run that a server continues: after its registration, from another server, or after a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.kernel.errors import Refused
from penstock.ports.leases import Keys
from penstock.ports.log import NotOwner
from penstock.ports.results import loader
from penstock.server.documents import Pinned, inputs_of, kept_of
from penstock.server.driver import FINAL
from penstock.server.executions import ExecutionHost
from penstock.server.fleet import FleetForce
from penstock.server.runs import LocalRun, RunSummary
from penstock.server.stream import Stream


class NotFree(NotOwner):
    """Another server still works on the run, or it is gone."""


class ServerRun(LocalRun):
    polls = False
    force: FleetForce | None

    @property
    def is_over(self) -> bool:
        """Whether it has ended and the end is on disk. What was only decided may still be refused."""
        return self._root is not None and self._root.finished.is_set()

    async def go_on(
        self,
        is_ready: Callable[[], None],
        registered: bytes | None = None,
        *,
        is_claimed: Callable[[], Awaitable[None]],
        is_resumed: bool,
        failed_only: bool = False,
    ) -> RunSummary:
        """Drive the run to its end. `is_ready` is called once messages of its workers can take effect, `is_claimed` once
        this server owns the run and before anything is done with it. `registered`: its document with its inputs, if at hand."""
        services = self.services
        if registered is None:
            registered = await asyncio.to_thread(services.log.document, self.execution_id)
        document = Pinned.from_bytes(registered)
        try:
            stream = await self._claim()
        except Refused as error:
            raise NotFree(error.message, error.hint) from error
        try:
            await is_claimed()
            force = services.open_workforce(self.execution_id, self.hide)
            assert isinstance(force, FleetForce)
            self.force = force
            if not stream.is_new:
                await asyncio.to_thread(stream.fold, loader(services.blobs))
            if stream.seq == 0:
                await self._begin(stream, document, inputs_of(registered) or {})
            else:
                await self._take_up(stream, document, inputs_of(registered), is_resumed, failed_only)
            is_ready()
            assert self._root is not None
            return await self._drive(self._root)
        finally:
            is_ready()
            await self.let_go()  # A child may still wait for its holder, which will not report any more.
            await self._leave()

    def _host(self, stream: Stream, document: Pinned, keys: Keys) -> ExecutionHost:
        host = super()._host(stream, document, keys)
        assert self.force is not None
        self.force.host = host
        return host

    async def _take_up(
        self, stream: Stream, document: Pinned, inputs: dict[str, Any] | None, is_resumed: bool, failed_only: bool
    ) -> None:
        services, state = self.services, stream.tree.root
        net, _ = await services.documents.prepared(document)
        keys = await services.resolve_keychain(net, state.workload, document)
        host = self._host(stream, document, keys)
        force = self.force
        assert force is not None
        self._root = root = await host.take_up_root(document, kept_of(inputs))
        # The server that wrote its last event died before closing it; or another one has resumed it in the meantime, and it
        # is over.
        goes_on = is_resumed and (state.status == "failed" or (failed_only and state.failed_iterations > 0))
        if state.status in FINAL and not goes_on:
            stream.flush(FINAL[state.status])
            await stream.durable()
            root.finished.set()
            return
        force.is_adopting = host.adopts = True
        try:
            if is_resumed or state.status != "running":
                await root.resume(failed_only=failed_only)
            else:
                await root.go_on()
            await force.adopt_children()
        finally:
            force.is_adopting = host.adopts = False

    async def let_go(self) -> None:
        """Stop driving, and record nothing: another server continues."""
        if self.host is not None:
            await self.host.let_go()
            self.host.over()

    async def set_aside(self, reason: str) -> None:
        """Mark a run that cannot be driven as interrupted."""
        log = self.services.log
        epoch = await log.claim(self.execution_id, self.services.worker)
        try:
            header = await asyncio.to_thread(log.header, self.execution_id)
            if header is None or header.status != "running":
                return  # Another server has brought it to its end.
            await log.durable(log.append(self.execution_id, epoch, [], "interrupted"))
        finally:
            await log.release(self.execution_id)
