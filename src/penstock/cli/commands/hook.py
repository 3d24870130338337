"""`penstock hook add|list|on|off|remove`: runs that start on a request from outside."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.cli.doors import door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.remote.client import Client, at

SAID = ("path", "version", "payload", "context", "is_on")


def main(options: Namespace) -> int:
    act = {"add": _add, "list": _list, "on": _switch, "off": _switch, "remove": _remove}[options.action]
    return act(door_of(options), options)


def _add(door: Client, options: Namespace) -> int:
    asked: dict[str, Any] = {
        "path": options.path,
        "version": options.version,
        "payload": inputs.workload(options.payload, options.set),
        "context": options.context,
    }
    if options.secret:
        asked["secret"] = _secret()
    return _kept(door, options, asked)


def _secret() -> str:
    if sys.stdin.isatty():
        import getpass

        text = getpass.getpass("secret: ")
    else:
        text = sys.stdin.readline().rstrip("\n")
    if not text:
        raise CommandLineError("no secret was given", "write it to stdin, one line")
    return text


def _switch(door: Client, options: Namespace) -> int:
    there = door.get(at("hooks", options.name))
    return _kept(door, options, {**{name: there[name] for name in SAID}, "is_on": options.action == "on"})


def _kept(door: Client, options: Namespace, asked: dict[str, Any]) -> int:
    kept = door.ask("PUT", at("hooks", options.name), body=asked, is_safe=True)
    if options.json:
        put_json(kept)
    else:
        how = "signed requests" if kept["is_signed"] else "requests with a token"
        state = "" if kept["is_on"] else ", and is off"
        say(f"`POST /hooks/{kept['name']}` runs `{kept['path']}`; it takes {how}{state}")
    return 0


def _list(door: Client, options: Namespace) -> int:
    found = door.get(at("hooks"))
    if options.json:
        put_json(found)
    elif not found["hooks"]:
        say("no hooks yet; `penstock hook add NAME PATH` makes one")
    else:
        put(table(("NAME", "RUNS", "SIGNED", "STATUS"), map(_row, found["hooks"])))
    return 0


def _row(one: Any) -> tuple[str, ...]:
    version = f"@{one['version']}" if one["version"] else ""
    signed = "yes" if one["is_signed"] else "no: token"
    return one["name"], f"{one['path']}{version}", signed, "on" if one["is_on"] else "off"


def _remove(door: Client, options: Namespace) -> int:
    door.ask("DELETE", at("hooks", options.name))
    if options.json:
        put_json({"name": options.name, "status": "removed", "exit_code": 0})
    else:
        say(f"hook `{options.name}` is gone")
    return 0
