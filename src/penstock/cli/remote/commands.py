"""What commands ask of a server: run, resume, cancel, plan, graph. It may have other tools and components than this machine."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from typing import Any

from penstock.app.library import Library, sources_of
from penstock.cli import inputs
from penstock.cli.errors import tell_changes, tell_pressing
from penstock.cli.output import put, put_json, say
from penstock.cli.remote.feed import ServerFeed
from penstock.cli.show.watched import Watched
from penstock.cli.targets import next_command
from penstock.dialects.report import summary
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.folders import CATALOG, is_address
from penstock.ports.kept_state import document_key
from penstock.remote.client import Client, Sent, as_seen_here, at, decoded, problems_of
from penstock.remote.engine import RemoteEngine
from penstock.server.changes import Change, changes, text_on_disk
from penstock.server.documents import DocumentInvalid, Pinned

POLL_S = 0.1


def run(options: Namespace, url: str) -> int:
    client = _patient(url, options)
    payload = inputs.workload(options.payload, options.set)
    sent = Sent(Library(strict=False), options.file)
    if options.strict:
        _check_strictly(client, sent)
    body = {"document": sent.body, "payload": payload, "context": options.context, "label": options.name}
    if options.keep:
        body["keep"] = options.keep
    try:
        answer = client.post(at("executions"), body, key=os.urandom(16).hex())
    except Refused as error:
        raise as_seen_here(error, sent) from error
    run_id = str(answer["execution_id"])
    if options.ui:
        from penstock.cli.commands.page import at_run, show  # Only this opens a browser.

        show(at_run(client.url, run_id), opens=not options.no_open)
    if options.detach:
        _left(run_id, url, as_json=options.json)
        return 0
    if not options.json and sent.compiled is not None and sent.compiled.problems:
        tell_pressing(sent.compiled.problems, sources_of(sent.compiled))
        say(f"{summary(sent.compiled.problems)} in {options.file}; `penstock lint {options.file}` shows them")
    return watched_at(client, run_id, options, options.file, sent).followed()


def resume(options: Namespace, url: str) -> int:
    client = _patient(url, options)
    header = RemoteEngine(client).log.header(options.run)
    found = _changes(client, header.execution_id)
    answer = client.post(at("executions", header.execution_id, "resume"), {"failed": True} if options.failed else None)
    if not options.json:
        tell_changes(found, header.path)
    run_id, seq = str(answer["execution_id"]), int(answer["seq"])
    return watched_at(client, run_id, options, "resumed", after=seq, changed=found).followed()


def watched_at(
    client: Client,
    run_id: str,
    options: Namespace,
    title: str,
    sent: Sent | None = None,
    *,
    after: int = 0,
    changed: list[Change] | None = None,
) -> Watched:
    """`after`: the last event before the part of the run that is to be shown."""
    feed, compiled = ServerFeed(client, run_id, after), None if sent is None else sent.compiled
    return Watched(
        RemoteEngine(client), feed, run_id, options, title, target=client.given, compiled=compiled, changed=changed
    )


def _changes(client: Client, run_id: str) -> list[Change]:
    """Files that have changed, among those that this machine or the catalog of the server has."""
    document = Pinned.from_mapping(client.get(at("executions", run_id, "document")))

    def text_now(file: str) -> str | None:
        if not is_address(file):
            return text_on_disk(file)
        path = document_key(file).removeprefix(CATALOG).strip("/")
        try:
            return str(client.get(at("documents", *path.split("/")))["text"])
        except (Refused, KeyError, TypeError):
            return None

    return changes(document, text_now)


def _patient(url: str, options: Namespace) -> Client:
    client = Client(url, patience_s=options.patience)
    client.note = say
    return client


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


def _check_strictly(client: Client, sent: Sent) -> None:
    found = client.ask("POST", "/api/validate", body={"document": sent.body, "strict": True}, is_safe=True)
    if found["status"] == "invalid":
        raise as_seen_here(DocumentInvalid(sent.file, problems_of(found["problems"]), sent.text), sent)


def _left(run_id: str, url: str, *, as_json: bool) -> None:
    if as_json:
        put_json({"execution_id": run_id, "status": "running", "exit_code": 0})
        return
    put(run_id)
    say(f"the run goes on at the server; to see it: {next_command(f'watch {run_id}', url)}")


def planned(url: str, file: str) -> Any:
    """The lowered form."""
    return decoded(_asked(url, file, "/api/plan", {}))


def planned_text(url: str, file: str) -> str:
    """The lowered form of a job as text."""
    return _asked(url, file, "/api/plan", {"format": "text"}).decode()


def drawn(url: str, file: str, form: str) -> str:
    return _asked(url, file, "/api/graph", {"format": form}).decode()


def _asked(url: str, file: str, path: str, more: dict[str, Any]) -> bytes:
    sent = Sent(Library(), file)
    try:
        return Client(url).raw("POST", path, body={"document": sent.body, **more}, is_safe=True)
    except Refused as error:
        raise as_seen_here(error, sent) from error
