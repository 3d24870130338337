"""`penstock catalog put|list|show|versions|remove`: documents that a server keeps by path and version."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.doors import door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.kernel.errors import Refused
from penstock.remote.client import Client, at

TITLES = ("PATH", "VERSION", "KIND", "KEPT", "BY")


def main(options: Namespace) -> int:
    act = {"put": _put, "list": _list, "show": _show, "versions": _versions, "remove": _remove}[options.action]
    return act(door_of(options), options)


def _put(door: Client, options: Namespace) -> int:
    from penstock.library import Library
    from penstock.remote.sending import Sent, as_seen_here

    sent = Sent(Library(), options.file)
    if not sent.is_here:
        raise CommandLineError(f"there is no file `{options.file}`")
    body = {"text": sent.text, "sources": sent.taken_in}
    try:
        kept = door.ask("PUT", _at(options), body=body, is_safe=True)
    except Refused as error:
        raise as_seen_here(error, sent) from error
    if options.json:
        put_json(kept)
    else:
        say(f"`{kept['path']}` is kept as version {kept['version']}")
    return 0


def _list(door: Client, options: Namespace) -> int:
    return _told(door.get("/api/documents", prefix=options.prefix), options, "the catalog is empty")


def _versions(door: Client, options: Namespace) -> int:
    return _told(door.get(at("versions", *options.path.split("/"))), options, "")


def _told(found: Any, options: Namespace, otherwise: str) -> int:
    if options.json:
        put_json(found)
    elif found["documents"]:
        put(table(TITLES, map(_row, found["documents"])))
    else:
        say(otherwise)
    return 0


def _row(one: Any) -> tuple[str, ...]:
    return one["path"], str(one["version"]), one["kind"], one["created_at"][:16].replace("T", " "), one["created_by"]


def _show(door: Client, options: Namespace) -> int:
    found = door.get(_at(options), version=options.version)
    if options.json:
        put_json(found)
    else:
        put(found["text"].rstrip("\n"))
    return 0


def _at(options: Namespace) -> str:
    return at("documents", *options.path.split("/"))


def _remove(door: Client, options: Namespace) -> int:
    door.ask("DELETE", _at(options))
    if options.json:
        put_json({"path": options.path, "status": "removed", "exit_code": 0})
    else:
        say(f"`{options.path}` is not in the catalog any more; its runs stay")
    return 0
