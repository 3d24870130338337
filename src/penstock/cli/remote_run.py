"""Runs at a server, in the foreground here: started, gone on with or cancelled there, and shown while they go.

Law: the run is the server's. Whoever stops watching stops nothing: Ctrl-C leaves it running and says how to come back to it.
"""

from __future__ import annotations

import asyncio
import os
import time
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.cli import inputs
from penstock.cli.naming import next_command
from penstock.cli.output import put, put_json, say
from penstock.cli.remote import Client, at, problems_of
from penstock.cli.remote_engine import RemoteEngine
from penstock.kernel.errors import Refused, Unavailable

if TYPE_CHECKING:
    from penstock.cli.sending import Sent
    from penstock.dialects.problems import Problem

POLL_S = 0.1
LEFT = 3
"""The exit code of who leaves before the run is over."""


def run(options: Namespace, url: str) -> int:
    from penstock.cli.documents import Library
    from penstock.cli.sending import Sent

    client = Client(url, patience_s=options.patience)
    payload = inputs.workload(options.payload, options.set)
    sent = Sent(Library(strict=False), options.file)
    if options.strict:
        _check_strictly(client, sent)
    body = {"document": sent.body, "payload": payload, "context": options.context, "label": options.name}
    try:
        answer = client.post(at("executions"), body, key=os.urandom(16).hex())
    except Refused as error:
        raise as_seen_here(error, sent) from error
    run_id = str(answer["execution_id"])
    if options.detach:
        _left(run_id, url, as_json=options.json)
        return 0
    if not options.json and sent.compiled is not None and sent.compiled.problems:
        from penstock.dialects.report import summary

        say(f"{summary(sent.compiled.problems)} in {options.file}; `penstock lint {options.file}` shows them")
    return _Watched(client, run_id, options, sent).told(0)


def resume(options: Namespace, url: str) -> int:
    client = Client(url, patience_s=options.patience)
    answer = client.post(at("executions", options.run, "resume"))
    return _Watched(client, str(answer["execution_id"]), options, None).told(int(answer["seq"]))


def cancel(options: Namespace, url: str) -> int:
    client = Client(url)
    run_id = RemoteEngine(client).log.header(options.run).execution_id
    try:
        client.post(at("executions", run_id, "cancel"), {"reason": options.reason})
    except Refused:
        if RemoteEngine(client).log.header(run_id).status != "cancelled":
            raise
    status = _until_ended(client, run_id, options.timeout)
    if options.json:
        put_json({"execution_id": run_id, "status": status, "exit_code": 0})
    else:
        say(f"run {run_id} is {status}")
    return 0


def _until_ended(client: Client, run_id: str, patience_s: float) -> str:
    log, until = RemoteEngine(client).log, time.monotonic() + patience_s
    while (status := log.header(run_id).status) not in ("cancelled", "completed", "failed"):
        if time.monotonic() > until:
            raise Unavailable(
                f"run `{run_id}` was asked to stop and has not ended within {patience_s:g} s",
                "a task may be holding it up; `penstock events` shows what it does. It will stop when that ends",
            )
        time.sleep(POLL_S)
    return status


def as_seen_here(error: Refused, sent: Sent) -> Refused:
    """The problems of a document, with the name and the text that it has here."""
    from penstock.server.documents import DocumentInvalid

    if not isinstance(error, DocumentInvalid) or not sent.is_here:
        return error
    return DocumentInvalid(sent.given, seen_here(error.problems, sent), sent.text)


def seen_here(problems: Iterable[Problem], sent: Sent) -> list[Problem]:
    return [
        replace(one, place=replace(one.place, file=sent.given)) if one.place.file == sent.file else one
        for one in problems
    ]


def _check_strictly(client: Client, sent: Sent) -> None:
    from penstock.server.documents import DocumentInvalid

    found = client.ask("POST", "/api/validate", body={"document": sent.body, "strict": True}, is_safe=True)
    if found["status"] == "invalid":
        raise as_seen_here(DocumentInvalid(sent.file, problems_of(found["problems"]), sent.text), sent)


def _left(run_id: str, url: str, *, as_json: bool) -> None:
    if as_json:
        put_json({"execution_id": run_id, "status": "running", "exit_code": 0})
        return
    put(run_id)
    say(f"the run goes on at the server; to see it: {next_command(f'show {run_id}', url)}")


class _Watched:
    """One run at a server, from here to its exit code."""

    def __init__(self, client: Client, run_id: str, options: Namespace, sent: Sent | None) -> None:
        self._client = client
        self._run = run_id
        self._options = options
        self._sent = sent
        self._engine = RemoteEngine(client)

    @property
    def _is_silent(self) -> bool:
        return bool(self._options.json or self._options.quiet)

    @property
    def _title(self) -> str:
        return f"{getattr(self._options, 'file', None) or 'resumed'}  run {self._run}"

    def told(self, after: int) -> int:
        """`after`: the last event that is not of this going."""
        try:
            header = self._engine.log.header(self._run)
            return self._job(after) if header.kind == "job" else self._playbook(after)
        except KeyboardInterrupt:  # Before it is followed, or after.
            return self._leave()
        except Unavailable as error:
            raise Unavailable(
                f"{error.message}; run {self._run} was not followed to its end, and may go on",
                f"`{next_command(f'show {self._run}', self._client.given)}` looks again",
            ) from error

    def _playbook(self, after: int) -> int:
        from penstock.cli.progress import Progress
        from penstock.cli.running import watcher_for
        from penstock.cli.summary import tell
        from penstock.server.runs import RunSummary

        progress = Progress()
        watcher = watcher_for(self._title, is_silent=self._is_silent)
        if not self._followed(progress, watcher, after):
            return self._leave()
        view = self._view()
        if self._options.json:
            put_json({name: view[name] for name in PLAYBOOK if name in view})
            return int(view["exit_code"])
        summary = RunSummary(
            view["execution_id"],
            view["kind"],
            view["name"],
            view["status"],
            view["error"],
            view["ctx"],
            view["result"],
            view["counts"],
            view["duration_ms"],
            view["exit_code"],
        )
        tell(summary, progress, self._client.given, self._where)
        return int(view["exit_code"])

    def _job(self, after: int) -> int:
        from penstock.cli.job_progress import JobProgress
        from penstock.cli.job_summary import tell_job
        from penstock.cli.running import job_watcher_for
        from penstock.server.documents import DocumentInvalid
        from penstock.server.views import job_shown

        header = self._engine.log.header(self._run)
        try:
            net = self._engine.views.book(header).root()[0]
        except DocumentInvalid:
            return self._unwatched()
        progress = JobProgress(net)
        watcher = job_watcher_for(self._title, is_silent=self._is_silent)
        if not self._followed(progress, watcher, after):
            return self._leave()
        if self._options.json:
            view = self._view()
            put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
            return int(view["exit_code"])
        header = self._engine.log.header(self._run)
        standing = self._engine.views.job(header, with_iterations=False)
        shown = job_shown(header.status, header, standing)
        tell_job(shown, standing, self._run, self._client.given, self._where, is_quiet=self._options.quiet)
        return shown.exit_code if shown.exit_code is not None else LEFT

    def _unwatched(self) -> int:
        """The job uses what is known to its server alone, such as plug-ins of its project: only its end is waited for."""
        log = self._engine.log
        while log.header(self._run).status == "running":
            time.sleep(POLL_S)
        view = self._view()
        if self._options.json:
            put_json({name: value for name, value in view.items() if name not in ONLY_SHOWN})
        else:
            say(f"{view['status']} after {float(view['duration_ms']) / 1000:.1f} s  (run {self._run})")
            say(f"to see it:   {next_command(f'show {self._run}', self._client.given)}")
        return int(view["exit_code"])

    def _followed(self, progress: Any, watcher: Any, after: int) -> bool:
        from penstock.cli.remote_following import Following

        return asyncio.run(Following(self._client, self._run, progress, watcher).to_the_end(after))

    def _leave(self) -> int:
        say(f"run {self._run} goes on at the server")
        say(f"to see it:   {next_command(f'show {self._run}', self._client.given)}")
        say(f"to stop it:  {next_command(f'cancel {self._run}', self._client.given)}")
        return LEFT

    def _view(self) -> Any:
        return self._client.get(at("executions", self._run))

    def _where(self, step: str, task: str | None) -> str:
        """Where in the file a step is, if the file is here and can be compiled here."""
        compiled = self._sent.compiled if self._sent is not None else None
        if compiled is None or compiled.net is None:
            return ""
        found = compiled.places.tasks.get((step, task)) if task else None
        place = found or compiled.places.steps.get(step)
        return f"{place.file}:{place.line}" if place is not None and place.line else ""


PLAYBOOK = ("execution_id", "kind", "name", "status", "exit_code", "error", "ctx", "result", "counts", "duration_ms")
"""What `run --json` prints of a playbook."""
ONLY_SHOWN = ("label", "crashed", "file")
