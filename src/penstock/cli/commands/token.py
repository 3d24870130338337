"""`penstock token add|list|revoke`: who may ask a server for what."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.doors import door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.remote.client import Client, at


def main(options: Namespace) -> int:
    act = {"add": _add, "list": _list, "revoke": _revoke}[options.action]
    return act(door_of(options), options)


def _add(door: Client, options: Namespace) -> int:
    asked = {"name": options.name, "scope": options.scope, "expires_in_s": options.expires}
    made = door.post(at("tokens"), asked)
    if options.json:
        put_json(made)
        return 0
    put(made["secret"])
    say(f"token `{made['name']}` ({made['scope']}, id {made['id']}); its secret is shown this once: keep it now")
    return 0


def _list(door: Client, options: Namespace) -> int:
    tokens = door.get(at("tokens"))["tokens"]
    if options.json:
        put_json({"tokens": tokens})
    elif not tokens:
        say("no tokens yet: a server that only this machine can reach is open; `penstock token add NAME` makes one")
    else:
        titles = ("ID", "NAME", "SCOPE", "MADE", "EXPIRES", "LAST USED")
        put(table(titles, (_row(one) for one in tokens)))
    return 0


def _row(one: Any) -> tuple[str, ...]:
    dates = (one["created_at"][:10], (one["expires_at"] or "never")[:10], (one["last_used_at"] or "never")[:16])
    return one["id"], one["name"], one["scope"], *dates


def _revoke(door: Client, options: Namespace) -> int:
    tokens = door.get(at("tokens"))["tokens"]
    meant = [one for one in tokens if options.token in (one["id"], one["name"])]
    if len(meant) > 1:
        meant = [one for one in meant if one["id"] == options.token]
    if len(meant) != 1:
        raise CommandLineError(
            f"there is no token `{options.token}`, or there are several of that name",
            "`penstock token list` shows their ids",
        )
    door.ask("DELETE", at("tokens", meant[0]["id"]))
    if options.json:
        put_json({"id": meant[0]["id"], "status": "revoked", "exit_code": 0})
    else:
        say(f"token `{meant[0]['name']}` ({meant[0]['id']}) is revoked")
    return 0
