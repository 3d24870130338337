"""The event log in a PostgreSQL schema: any number of processes on any number of machines, each with one writer.

Law: what `durable` has acknowledged is committed, and survives what PostgreSQL survives. An execution has one owner in the
whole fleet, alive by the clock of the database or not at all (`executions`), under one epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import date
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import psycopg

from penstock.adapters.log_queue import kept_of, kept_values, unknown
from penstock.adapters.postgres import executions
from penstock.adapters.postgres.database import PATIENCE_SECONDS, SQL, Connection, open_database, words_of
from penstock.adapters.postgres.executions import Birth, Born, Claim, Holder, Months, create
from penstock.adapters.postgres.rows import as_given, given, given_values, kept, kept_or_none, stored_values
from penstock.adapters.postgres.writer import PostgresWriter
from penstock.adapters.sql_files import filtered
from penstock.kernel.errors import PenstockError, Refused, Unavailable
from penstock.ports.checksums import verified
from penstock.ports.kept_state import Change, Kept, Kind
from penstock.ports.log import Entry, Header, Request, Status, lowered
from penstock.ports.together import Together

T = TypeVar("T")

LEASE_SECONDS = 10.0
# Read in pages of at most this size: no connection is held while a reader processes a page.
PAGE_ENTRIES = 2_000
PAGE_BYTES = 8 * 1024 * 1024


class PostgresLog:
    """The log of one schema; the tables are made when they are not there. `name` is what others see of this process."""

    def __init__(
        self, url: str, *, name: str, lease_s: float = LEASE_SECONDS, patience_s: float = PATIENCE_SECONDS
    ) -> None:
        self._database = open_database(url, patience_s)
        self._claims: dict[str, Claim] = {}
        self._claiming: set[str] = set()
        self._reserved: dict[str, Claim] = {}
        """Created here for an owner of this process, who has not claimed it yet."""
        self._creating = Together(self._create)
        self._releasing = Together(self._release)
        self._months = Months()
        self._holder = Holder(self._database, name, lease_s, self._lose_all)
        self._writer = PostgresWriter(self._database, self._claims, self._holder.stop)
        self._is_closed = False

    async def create(self, header: Header, document: bytes, key: str | None = None, owner: str | None = None) -> str:
        self._check()
        if owner is not None:
            self._holder.watch()
        return await self._creating.ask(Birth(header, document, key, owner))

    async def claim(self, execution_id: str, owner: str) -> int:
        self._check()
        reserved = self._reserved.pop(execution_id, None)
        if reserved is not None and reserved.owner == owner and not reserved.lost:
            self._keep(reserved)
            return reserved.epoch
        if execution_id in self._claiming:
            raise Refused(f"`{execution_id}` is already being worked on by this process", "claim it once")
        self._holder.watch()
        self._claiming.add(execution_id)
        work = self._database.submit(partial(_storing, partial(self._claim, execution_id, owner)))
        work.add_done_callback(lambda _: self._claiming.discard(execution_id))
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            # The claim may still succeed without a holder: it is then returned at once.
            work.add_done_callback(partial(self._give_back, execution_id))
            raise

    async def release(self, execution_id: str) -> None:
        if execution_id in self._claims or execution_id in self._reserved:
            await self._releasing.ask(execution_id)

    async def forget(self, execution_id: str) -> None:
        await self._apart(partial(executions.forget, self._database, execution_id))

    async def prune(self, before: float, limit: int = 1000) -> list[str]:
        return await self._apart(partial(executions.prune, self._database, before, max(limit, 0)))

    def append(
        self,
        execution_id: str,
        epoch: int,
        entries: Sequence[Entry],
        status: Status | None = None,
        changes: Sequence[Change] = (),
        is_last: bool = False,
    ) -> int:
        self._check_open()
        return self._writer.append(execution_id, epoch, entries, status, changes, is_last)

    async def durable(self, ticket: int) -> None:
        await self._writer.durable(ticket)

    @property
    def backlog(self) -> int:
        return self._writer.backlog

    def read(self, execution_id: str, after: int = 0) -> Iterator[Entry]:
        rows = self._rows(SQL["extent"], execution_id=kept(execution_id))
        if not rows:
            raise unknown(execution_id)
        born, last = rows[0]
        return self._pages(execution_id, born, max(after, 0), last)

    def header(self, execution_id: str) -> Header | None:
        rows = self._rows(SQL["header"], execution_id=kept(execution_id))
        return _header(rows[0]) if rows else None

    def headers(
        self,
        limit: int = 100,
        *,
        after: str | None = None,
        status: Status | None = None,
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        kind: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> list[Header]:
        values = {
            "after": kept_or_none(after),
            "status": status,
            "name": kept_or_none(name),
            "since": since,
            "until": until,
            "kind": kept_or_none(kind),
            "label": kept_or_none(label),
            "text": kept_or_none(text and lowered(text)),
        }
        query = filtered(SQL, "headers", values)
        return [_header(row) for row in self._rows(query, limit=max(limit, 0), **values)]

    def named(self, name: str, limit: int = 10) -> list[Header]:
        return [_header(row) for row in self._rows(SQL["named"], name=kept(name), limit=max(limit, 0))]

    def submitted(self, key: str) -> str | None:
        rows = self._rows(SQL["submitted"], key=kept(key))
        return given(rows[0][0]) if rows else None

    def unfinished(self, partitions: Collection[int] | None = None) -> list[str]:
        if partitions is None:
            return [given(name) for (name,) in self._rows(SQL["unfinished"])]
        return [given(name) for (name,) in self._rows(SQL["unfinished_of"], partitions=list(partitions))]

    def document(self, execution_id: str) -> bytes:
        rows = self._rows(SQL["document"], execution_id=kept(execution_id))
        if not rows:
            raise unknown(execution_id)
        return bytes(rows[0][0])

    def kept(self, document: str | None = None) -> list[Kept]:
        return [kept_of(given_values(row)) for row in self._rows(SQL["kept"], document=kept_or_none(document))]

    def keep(self, kept: Kept) -> None:
        values = stored_values(kept_values(kept))
        _storing(partial(self._database.run, lambda connection: connection.execute(SQL["keep"], values)))

    def drop_kept(self, document: str, kind: Kind | None = None, key: str | None = None) -> int:
        values = {"document": kept(document), "kind": kind, "key": kept_or_none(key)}
        return self._database.run(lambda connection: connection.execute(SQL["drop_kept"], values).rowcount)

    def snapshot(self, execution_id: str, format: int, upto: int) -> tuple[int, bytes] | None:
        rows = self._rows(SQL["snapshot"], execution_id=kept(execution_id), format=format, upto=upto)
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def keep_snapshot(self, execution_id: str, format: int, seq: int, data: bytes) -> None:
        values = {"execution_id": kept(execution_id), "format": format, "seq": seq, "data": data}
        _storing(partial(self._database.run, lambda connection: connection.execute(SQL["keep_snapshot"], values)))

    def ask(self, execution_id: str, what: str, payload: bytes = b"{}") -> None:
        values = {"execution_id": kept(execution_id), "what": kept(what), "payload": payload, "token": uuid4()}

        def job(connection: Connection) -> object:
            return connection.execute(SQL["ask"], values).fetchone()

        if not _storing(partial(self._database.run, job)):
            raise unknown(execution_id)

    def asked(self, execution_id: str | None = None) -> list[Request]:
        if execution_id is None:
            return [_request(row) for row in self._rows(SQL["asked_of_all"])]
        return [_request(row) for row in self._rows(SQL["asked"], execution_id=kept(execution_id))]

    def answered(self, number: int) -> None:
        self._database.run(lambda connection: connection.execute(SQL["answered"], {"number": number}))

    def has_owner(self, execution_id: str) -> bool:
        return bool(self._rows(SQL["has_owner"], execution_id=kept(execution_id)))

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._writer.flush()
        finally:
            await self._database.apart(self._let_go)

    # -- for many at once ---------------------------------------------------------------------------------------------

    async def _create(self, births: list[Birth]) -> list[str | Exception]:
        def job() -> list[Born | Exception]:
            is_owned = any(birth.owner is not None for birth in births)
            return create(self._database, self._months, births, self._holder.be_alive() if is_owned else None)

        found = await self._database.apart(job)
        for one in found:
            if isinstance(one, Born) and one.claim is not None:
                self._reserved[one.execution_id] = one.claim
                # Lost in the meantime, when it could not be found among the claims yet.
                one.claim.lost = not self._holder.is_alive_as(one.claim.holder)
        return [one.execution_id if isinstance(one, Born) else _unfit(one) for one in found]

    async def _release(self, execution_ids: list[str]) -> list[None]:
        """Once everything appended is durable."""
        await self._writer.flush()
        found = [self._claims.pop(one, None) or self._reserved.pop(one, None) for one in execution_ids]
        claims = [one for one in found if one is not None]
        if claims and not self._writer.has_failed:
            await self._database.apart(lambda: self._database.run(lambda one: executions.release(one, claims)))
        return [None] * len(execution_ids)

    # -- on a thread that may wait ------------------------------------------------------------------------------------

    def _claim(self, execution_id: str, owner: str) -> int:
        holder = self._holder.be_alive()
        held = self._claims.get(execution_id)
        held = None if held and held.lost else held

        def job(connection: Connection) -> Claim:
            return executions.claim(connection, execution_id, owner, holder, held)

        claim = self._database.run(job)
        self._keep(claim)
        # Lost in the meantime, when it could not be found among the claims yet.
        claim.lost = not self._holder.is_alive_as(holder)
        return claim.epoch

    def _keep(self, claim: Claim) -> None:
        self._writer.begin_epoch(claim.execution_id, claim.epoch)
        self._claims[claim.execution_id] = claim

    def _give_back(self, execution_id: str, work: Future[int]) -> None:
        if not work.cancelled() and work.exception() is None:
            with suppress(Refused):  # closed by now, and so released
                self._database.submit(partial(self._give_back_now, execution_id))

    def _give_back_now(self, execution_id: str) -> None:
        claim = self._claims.pop(execution_id, None)
        if claim and not self._writer.has_failed:
            self._database.run(lambda connection: executions.release(connection, [claim]))

    def _let_go(self) -> None:
        claims = [*self._claims.values(), *self._reserved.values()]

        def job(connection: Connection) -> None:
            executions.release(connection, claims)
            self._holder.leave(connection)

        try:
            self._holder.stop()
            if self._writer.has_failed:
                # The error has been told. What cannot be given back now is free when the lease has run out.
                with suppress(psycopg.Error):
                    self._database.transact_once(job)
            elif claims or self._holder.is_known:
                self._database.transact(job)
        finally:
            self._holder.join()
            self._writer.close()
            self._claims.clear()
            self._reserved.clear()
            self._database.close()

    def _lose_all(self) -> None:
        for claim in (*list(self._claims.values()), *list(self._reserved.values())):
            claim.lost = True

    # -- reading ------------------------------------------------------------------------------------------------------

    def _rows(self, query: str, **values: object) -> list[Any]:
        """The rows of a query, in the binary form, which keeps every number as it is. A name that no database can hold
        names nothing."""

        def job(connection: Connection) -> list[Any]:
            return connection.execute(query, values, binary=True).fetchall()

        try:
            return self._database.run(job)
        except UnicodeError:
            return []

    def _pages(self, execution_id: str, born: date, after: int, last: int) -> Iterator[Entry]:
        where = {"born": born, "execution_id": kept(execution_id), "last": last}
        while after < last:
            rows = self._rows(SQL["read_page"], **where, after=after, limit=PAGE_ENTRIES, bytes=PAGE_BYTES)
            if not rows or rows[-1][0] != after + len(rows):
                raise Unavailable(
                    f"`{execution_id}` has no entry {after + 1}, or one soon after it, though it has {last}",
                    f"it was forgotten while it was read, or {self._database.place} is damaged",
                )
            yield from verified(execution_id, map(as_given, rows), self._database.place)
            after += len(rows)

    async def _apart(self, call: Callable[[], T]) -> T:
        self._check()
        return await self._database.apart(partial(_storing, call))

    def _check(self) -> None:
        self._check_open()
        self._writer.check()

    def _check_open(self) -> None:
        if self._is_closed:
            raise Refused("the log is closed", "open it again first")


def _storing(call: Callable[[], T]) -> T:
    """`call`, with values that cannot be kept told as what they are."""
    try:
        return call()
    except (psycopg.Error, UnicodeError, TypeError, OverflowError) as error:
        raise _unfit(error) from error


def _unfit(error: Exception) -> Exception:
    """An error that the values are to blame for, as the caller is told of it."""
    if isinstance(error, PenstockError):
        return error
    return Refused(f"this cannot be stored: {words_of(error) if isinstance(error, psycopg.Error) else error}")


def _header(row: Sequence[object]) -> Header:
    return Header(*given_values(row))  # type: ignore[arg-type]


def _request(row: Sequence[object]) -> Request:
    return Request(*given_values(row))  # type: ignore[arg-type]
