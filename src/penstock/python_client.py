"""A server from Python, with the methods that `penstock` has for this machine.

    server = penstock.connect("https://penstock.example:8470", token="…")
    run = server.run("orders.yaml", {"day": "2024-05-01"})
    run.status, run.result, run.ctx

Every call waits for its answer, so it can be used in scripts and in notebooks. A server that cannot be reached raises
`Unavailable`; what the server refuses raises `Refused`, in its words.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath, urandom
from typing import TYPE_CHECKING, Any, Literal, cast

from penstock.app.library import Library
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.ports.moments import moment_of
from penstock.ports.results import decode
from penstock.python_api import Replay, Report, Run, jsonable, name_of, names_in, replay_of, waited
from penstock.remote.client import Client, Sent, as_seen_here, at, problems_of, seen_here
from penstock.remote.engine import RemoteEngine
from penstock.server.documents import DocumentInvalid
from penstock.views.headers import RunFilter, listed

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.app.rows import Rows
    from penstock.views.headers import ShownStatus

__all__ = ["Server", "connect"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
AT_ONCE = 1_000
"""Runs that one request starts, at most."""


def _moment(time_or_text: str | datetime | None) -> float | None:
    if not isinstance(time_or_text, str):
        return None if time_or_text is None else time_or_text.timestamp()
    found = moment_of(time_or_text, time.time(), zone=None)
    if found is None:
        raise Refused(f"`{time_or_text}` is no time", "such as `2h`, `3d`, `2026-01-31` or `2026-01-31T06:00`")
    return found


def connect(url: str, *, token: str | None = None, patience_s: float = 60.0) -> Server:
    """A server, or several of one fleet with commas between their URLs. `token`: PENSTOCK_TOKEN unless it is given.
    `patience_s`: how long to look for one that answers, once one did."""
    return Server(Client(url, token, patience_s))


class Server:
    """`run` is, wherever one is asked for, a `Run`, an id, a unique beginning of one, a label or `@last`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._engine = RemoteEngine(client)

    @property
    def url(self) -> str:
        return self._client.given

    def __repr__(self) -> str:
        return f"<Server {self.url}>"

    # ---- documents

    def validate(
        self,
        path: str | PathLike[str],
        inputs: Mapping[str, Any] | None = None,
        *,
        strict: bool = False,
        context: str | None = None,
    ) -> Report:
        """Check a file with what the server knows, which may be other tools and components than this machine has."""
        sent = self._sent(path)
        body = {"document": sent.body, "strict": strict, "payload": jsonable(inputs or {}), "context": context}
        found = self._client.ask("POST", "/api/validate", body=body, is_safe=True)
        texts = {sent.given: sent.text, **getattr(sent.compiled, "texts", {})}
        return Report(sent.given, tuple(seen_here(problems_of(found["problems"]), sent)), texts)

    # ---- runs

    def submit(
        self,
        path: str | PathLike[str],
        inputs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        strict: bool = False,
        context: str | None = None,
        keep: Sequence[str] = (),
        key: str | None = None,
    ) -> str:
        """Start a run and leave it to the server: its id. `path` is a file, with which all goes that it calls, or a path in the
        catalog. The same `key` again is the same run. See `penstock.run` for the others."""
        sent = self._strictly_sent(path, strict)
        body = {
            **_what_runs(sent, context, keep),
            "payload": jsonable(inputs or {}),
            "label": name,
        }
        try:
            answer = self._client.post(at("executions"), body, key=key or urandom(16).hex())
        except Refused as error:
            raise as_seen_here(error, sent) from error
        return str(answer["execution_id"])

    def submit_many(
        self,
        path: str | PathLike[str],
        inputs: Iterable[Mapping[str, Any]],
        *,
        strict: bool = False,
        context: str | None = None,
        keep: Sequence[str] = (),
        keys: Iterable[str] | None = None,
    ) -> list[str]:
        """Start a run for each of `inputs`, as `submit` does, with one request for a thousand: their ids, in this order. `keys`:
        one for each of them, to make the same call again harmless after it broke off."""
        sent = self._strictly_sent(path, strict)
        wanted = [{"payload": jsonable(one)} for one in inputs]
        known = [urandom(16).hex() for _ in wanted] if keys is None else list(keys)
        if len(known) != len(wanted):
            raise Refused(f"there are {len(known)} keys for {len(wanted)} runs", "give one key for each run")
        made: list[str] = []
        for first in range(0, len(wanted), AT_ONCE):
            runs = [
                {**one, "idempotency_key": key}
                for one, key in zip(wanted[first : first + AT_ONCE], known[first : first + AT_ONCE], strict=True)
            ]
            body = {**_what_runs(sent, context, keep), "runs": runs}
            try:
                # With keys of their own the same request may be sent twice.
                answer = self._client.ask("POST", at("executions", "batch"), body=body, is_safe=True)
            except Refused as error:
                raise as_seen_here(error, sent) from error
            made += [str(one["execution_id"]) for one in answer["runs"]]
        return made

    def _strictly_sent(self, path: str | PathLike[str], strict: bool) -> Sent:
        sent = self._sent(path)
        if strict and (report := self.validate(path, strict=True)).errors:
            raise DocumentInvalid(report.file, report.problems, sent.text)
        return sent

    def run(
        self,
        path: str | PathLike[str],
        inputs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        strict: bool = False,
        context: str | None = None,
        keep: Sequence[str] = (),
        timeout: float | None = None,
    ) -> Run:
        """Start a run and wait for its end."""
        return self.wait(self.submit(path, inputs, name=name, strict=strict, context=context, keep=keep), timeout)

    def wait(self, run: Run | str = "@last", timeout: float | None = None) -> Run:
        """Wait until a run has ended or was interrupted. After `timeout` seconds `Unavailable` is raised; the run goes on."""
        execution_id = self._id(run)
        until, pause = None if timeout is None else time.monotonic() + timeout, FIRST_PAUSE_S
        while self._engine.log.header(execution_id).status == "running":
            if until is not None and time.monotonic() >= until:
                raise Unavailable(
                    f"run `{execution_id}` has not ended within {timeout:g} s", "it goes on at the server"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        return self._run(execution_id)

    def resume(self, run: Run | str = "@last", *, timeout: float | None = None) -> Run:
        """Go on with a run that failed or was interrupted, and wait for its end."""
        execution_id = self._id(run)
        answer = self._client.post(at("executions", execution_id, "resume"))
        before, until = int(answer["seq"]), None if timeout is None else time.monotonic() + timeout
        while self._engine.log.header(execution_id).last_seq <= before:
            if until is not None and time.monotonic() >= until:
                raise Unavailable(
                    f"run `{execution_id}` has not gone on within {timeout:g} s", "the server may be busy"
                )
            time.sleep(FIRST_PAUSE_S)
        return self.wait(execution_id, None if until is None else max(0.0, until - time.monotonic()))

    def cancel(self, run: Run | str = "@last", *, reason: str = "cancelled on request", timeout: float = 30.0) -> Run:
        """Stop a run for good, and wait for its end."""
        execution_id = self._id(run)
        self._client.post(at("executions", execution_id, "cancel"), {"reason": reason})
        return self.wait(execution_id, timeout)

    def replay(self, run: Run | str = "@last") -> Replay:
        """Decide a run again from its recorded outcomes, here, and compare."""
        execution_id = self._id(run)

        async def replayed(_: object) -> Replay:
            return replay_of(execution_id, await self._engine.replay(execution_id))

        return waited(replayed)

    # ---- looking

    def runs(
        self,
        *,
        status: ShownStatus | None = None,
        name: str | None = None,
        label: str | None = None,
        kind: Literal["playbook", "job"] | None = None,
        text: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int = 20,
    ) -> list[JsonMap]:
        """The newest runs, as `penstock runs --json` prints them. `text` is in the name, label, id or file of the run;
        `since` and `until` are times, or such as `2h`, `3d`, `2026-01-31`."""
        wanted = RunFilter(
            status=status,
            name=name,
            label=label,
            kind=kind,
            text=text,
            since=_moment(since),
            until=_moment(until),
        )
        return [listed(header, shown) for header, shown in self._engine.log.runs(wanted, limit)]

    def show(self, run: Run | str = "@last") -> JsonMap:
        """What a run came to, step by step or component by component, as `penstock show --json` prints it."""
        return cast(JsonMap, self._client.get(at("executions", name_of(run))))

    def events(self, run: Run | str = "@last", *, follow: bool = False) -> Iterator[JsonMap]:
        """The events of a run in the order they were recorded; with `follow`, until it is over."""
        for line in self._client.lines(at("executions", name_of(run), "events"), follow=follow):
            yield cast(JsonMap, decode(line))

    def rows(self, run: Run | str, name: str) -> Rows:
        """The rows that came out of `COMPONENT[.PORT]` of a job, if they were kept."""
        from penstock.app.rows import rows_of  # Only rows need it.

        header = self._engine.log.header(name_of(run))
        return rows_of(header, self._engine.log.read(header.execution_id), self._engine.blobs, name)

    # ---- how

    def _id(self, run: Run | str) -> str:
        return self._engine.log.header(name_of(run)).execution_id

    def _run(self, execution_id: str) -> Run:
        view: Any = self.show(execution_id)
        is_job = view["kind"] == "job"
        return Run(
            execution_id=view["execution_id"],
            name=view["name"],
            status=view["status"],
            error=view["error"],
            ctx=view["globals"] if is_job else view["ctx"],
            result=None if is_job else view["result"],
            counts=view["counts"],
            duration_ms=view["duration_ms"],
            home=None,
            kind=view["kind"],
            server=self.url,
            store=self,
        )

    def _sent(self, path: str | PathLike[str]) -> Sent:
        return Sent(Library(), fspath(path))


def _what_runs(sent: Sent, context: str | None, keep: Sequence[str]) -> JsonMap:
    return {"document": sent.body, "context": context, **({"keep": list(names_in(keep))} if keep else {})}
