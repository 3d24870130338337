"""`penstock catalog put|list|show|diff|versions|remove`: documents and projects that a server keeps by path and version."""

from __future__ import annotations

import base64
import os
import sys
from argparse import Namespace
from difflib import unified_diff
from pathlib import Path
from typing import Any

from penstock.app.library import Library, sources_of
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import answer, has_colour, listed, put, put_json, say, table
from penstock.cli.project_folder import gather, unresolved
from penstock.cli.remote.api_client import client_of
from penstock.dialects.kind import document_kind
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.report import as_json, render
from penstock.kernel.errors import Refused
from penstock.ports.projects import DOCUMENTS, Manifest, compressed, packed
from penstock.ports.projects import KIND as PROJECT
from penstock.remote.client import Client, Sent, as_seen_here, at
from penstock.server.documents import DocumentInvalid

TITLES = ("PATH", "VERSION", "KIND", "KEPT", "BY")
MOST_NAMED = 8


def catalog(options: Namespace) -> int:
    actions = {
        "put": _put,
        "list": _list,
        "show": _show,
        "diff": _diff,
        "versions": _versions,
        "remove": _remove,
    }
    return actions[options.action](client_of(options), options)


def _put(client: Client, options: Namespace) -> int:
    if options.file is None:
        folder = Path(options.path)
        if not folder.is_dir():
            raise CommandLineError(
                f"there is no folder `{options.path}`",
                "`penstock catalog put DIR` puts a project, `penstock catalog put PATH FILE` a document",
            )
        return _put_project(client, options, folder, folder.resolve().name)
    if Path(options.file).is_dir():
        return _put_project(client, options, Path(options.file), options.path)
    return _put_document(client, options)


def _put_document(client: Client, options: Namespace) -> int:
    sent = Sent(Library(), options.file)
    if not sent.is_here:
        raise CommandLineError(f"there is no file `{options.file}`")
    folder = Path(sent.file).parent
    body = {"text": sent.text, "sources": {_from(folder, file): text for file, text in sent.taken_in.items()}}
    try:
        kept = client.ask("PUT", _at(options.path), body=body, is_safe=True)
    except Refused as error:
        raise as_seen_here(error, sent) from error
    problems = list(unresolved(folder, None, sent.compiled))
    return _report(kept, problems, sources_of(sent.compiled), options, "")


def _from(folder: Path, file: str) -> str:
    """A joblet by its path from the document's folder, as the catalog keeps it."""
    found = Path(os.path.relpath(file, os.path.realpath(folder))).as_posix()
    if found.startswith("../"):
        raise CommandLineError(
            f"the joblet `{file}` does not lie in the folder of the document",
            "put the folder that both are in as a project: `penstock catalog put DIR`",
        )
    return found


def _put_project(client: Client, options: Namespace, folder: Path, name: str) -> int:
    gathered = gather(folder)
    for reason in gathered.left_out:
        say(f"left out: {reason}")
    problems: list[Problem] = []
    sources: dict[str, str] = {}
    documents: list[str] = []
    library = Library()
    for path, file in gathered.files.items():
        kind = document_kind(file.data.decode("utf-8", "replace")) if path.endswith(DOCUMENTS) else None
        if kind is None or kind == "joblet":
            continue
        documents.append(f"{name}/{path.rpartition('.')[0]}")
        compiled = library.compiled(folder / path, looks=False)
        sources.update(sources_of(compiled))
        problems += [*compiled.problems, *unresolved(folder, gathered.files, compiled)]
    errors = [one for one in problems if one.severity is Severity.ERROR]
    if errors:
        raise DocumentInvalid(errors[0].position.file, errors, sources.get(errors[0].position.file, ""))
    archive = compressed(packed(gathered.files))
    before = _newest(client, name)
    body = {"archive": base64.b64encode(archive).decode()}
    kept = client.ask("PUT", _at(name), body=body, is_safe=True)
    if before == kept["version"]:
        more = ", as it was before"
    else:
        shown = ", ".join(f"`{one}`" for one in documents[:MOST_NAMED])
        rest = f" and {len(documents) - MOST_NAMED} more" if len(documents) > MOST_NAMED else ""
        more = f": {len(gathered.files):,} files, with {shown}{rest}"
    unfound = [one for one in problems if one.code.startswith("Y04")]
    return _report(kept, list(dict.fromkeys(unfound)), sources, options, more)


def _newest(client: Client, name: str) -> int | None:
    found = client.get("/api/documents", prefix=name)["documents"]
    return next((int(one["version"]) for one in found if one["path"] == name), None)


def _report(kept: Any, problems: list[Problem], sources: dict[str, str], options: Namespace, more: str) -> int:
    if options.json:
        put_json({**kept, "problems": as_json(problems)} if problems else kept)
        return 0
    if problems:
        say(render(problems, sources, color=has_colour(sys.stderr)).rstrip("\n"))
    say(f"`{kept['path']}` is kept as version {kept['version']}{more}")
    return 0


def _list(client: Client, options: Namespace) -> int:
    return _listing(client.get("/api/documents", prefix=options.prefix), options, "the catalog is empty")


def _versions(client: Client, options: Namespace) -> int:
    return _listing(client.get(at("versions", *options.path.split("/"))), options, "")


def _listing(found: Any, options: Namespace, otherwise: str) -> int:
    return listed(options, found, TITLES, [_row(one) for one in found["documents"]], otherwise)


def _row(one: Any) -> tuple[str, ...]:
    return one["path"], str(one["version"]), one["kind"], one["created_at"][:16].replace("T", " "), one["created_by"]


def _show(client: Client, options: Namespace) -> int:
    found = client.get(_at(options.path), version=options.version)
    if options.json:
        put_json(found)
    elif found["kind"] == PROJECT:
        files = Manifest.read(found["text"]).files
        put(
            table(
                ("FILE", "BYTES", "SHA-256"),
                ((path, str(one["size"]), str(one["sha256"])[:12]) for path, one in files.items()),
            )
        )
    else:
        put(found["text"].rstrip("\n"))
    return 0


def _diff(client: Client, options: Namespace) -> int:
    """Between two versions: of a project the files that differ, and how its documents do; of a document its lines."""
    newer = client.get(_at(options.path), version=options.to)
    older = client.get(_at(options.path), version=options.since or max(int(newer["version"]) - 1, 1))
    if newer["kind"] != PROJECT:
        lines = _lines(older, newer, options.path)
    else:
        old, new = (Manifest.read(one["text"]).files for one in (older, newer))
        lines = []
        for path in sorted({*old, *new}):
            if old.get(path) != new.get(path):
                lines.append(f"{'added' if path not in old else 'removed' if path not in new else 'changed'}: {path}")
                if path in old and path in new and path.endswith(DOCUMENTS):
                    was, now = (
                        client.get(_at(f"{options.path}/{path}"), version=one["version"]) for one in (older, newer)
                    )
                    lines += _lines(was, now, path)
    if options.json:
        put_json({"path": options.path, "from": older["version"], "to": newer["version"], "lines": lines})
    elif lines:
        put("\n".join(lines))
    else:
        say(f"versions {older['version']} and {newer['version']} are the same")
    return 0


def _lines(older: Any, newer: Any, path: str) -> list[str]:
    before, after = (f"{path}@{one['version']}" for one in (older, newer))
    return list(unified_diff(older["text"].splitlines(), newer["text"].splitlines(), before, after, lineterm=""))


def _at(path: str) -> str:
    return at("documents", *path.split("/"))


def _remove(client: Client, options: Namespace) -> int:
    client.ask("DELETE", _at(options.path))
    return answer(
        options,
        {"path": options.path, "status": "removed", "exit_code": 0},
        f"`{options.path}` is not in the catalog any more; its runs stay",
    )
