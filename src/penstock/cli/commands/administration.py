"""`penstock token`, `workers` and `prune`: who may ask a server for what, who works for it, and which old runs go."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import answer, listed, put, put_json, say, table
from penstock.cli.remote.api_client import client_of
from penstock.remote.client import Client, at
from penstock.views.wording import counted, seconds


def token(options: Namespace) -> int:
    act = {"add": _add_token, "list": _list_tokens, "revoke": _revoke_token}[options.action]
    return act(client_of(options), options)


def _add_token(client: Client, options: Namespace) -> int:
    asked = {"name": options.name, "scope": options.scope, "expires_in_s": options.expires}
    made = client.post(at("tokens"), asked)
    if options.json:
        put_json(made)
        return 0
    put(made["secret"])
    say(f"token `{made['name']}` ({made['scope']}, id {made['id']}); its secret is shown this once: keep it now")
    return 0


def _list_tokens(client: Client, options: Namespace) -> int:
    tokens = client.get(at("tokens"))["tokens"]
    titles = ("ID", "NAME", "SCOPE", "MADE", "EXPIRES", "LAST USED")
    nothing = "no tokens yet: a server that only this machine can reach is open; `penstock token add NAME` makes one"
    return listed(options, {"tokens": tokens}, titles, [_token_row(one) for one in tokens], nothing)


def _token_row(one: Any) -> tuple[str, ...]:
    dates = (one["created_at"][:10], (one["expires_at"] or "never")[:10], (one["last_used_at"] or "never")[:16])
    return one["id"], one["name"], one["scope"], *dates


def _revoke_token(client: Client, options: Namespace) -> int:
    tokens = client.get(at("tokens"))["tokens"]
    meant = [one for one in tokens if options.token in (one["id"], one["name"])]
    if len(meant) > 1:
        meant = [one for one in meant if one["id"] == options.token]
    if len(meant) != 1:
        raise CommandLineError(
            f"there is no token `{options.token}`, or there are several of that name",
            "`penstock token list` shows their ids",
        )
    client.ask("DELETE", at("tokens", meant[0]["id"]))
    return answer(
        options,
        {"id": meant[0]["id"], "status": "revoked", "exit_code": 0},
        f"token `{meant[0]['name']}` ({meant[0]['id']}) is revoked",
    )


def workers(options: Namespace) -> int:
    client = client_of(options)
    found: dict[str, Any] = {"workers": client.get(at("workers"))["workers"]}
    if options.leases:
        found["leases"] = client.get(at("leases"))["leases"]
    if options.json:
        put_json(found)
        return 0
    if not found["workers"]:
        say("nobody works: `penstock worker` starts a worker")
    else:
        put(table(("WORKER", "POOL", "SLOTS", "HOLDS", "STATUS", "SEEN", "VERSION"), map(_worker, found["workers"])))
    if options.leases:
        put("")
        put(table(("LEASE", "POOL", "ATTEMPT", "HELD BY", "FOR"), map(_lease, found["leases"])))
    return 0


def _worker(one: Any) -> tuple[str, ...]:
    busy = "working" if one["held"] else "idle"
    status = "gone" if not one["is_alive"] else "draining" if one["is_draining"] else busy
    seen = f"{seconds(one['age_s'])} ago"
    return one["id"], one["pool"], str(one["slots"]), str(one["held"]), status, seen, one["version"]


def _lease(one: Any) -> tuple[str, ...]:
    return one["key"], one["pool"], str(one["attempt"]), one["worker"] or "(waits)", seconds(one["age_s"])


def prune(options: Namespace) -> int:
    asked = {"older_than_s": options.older_than, "keep_failed": options.keep_failed, "dry_run": options.dry_run}
    done = client_of(options, for_servers=False).post(at("prune"), asked)
    if options.json:
        put_json({**done, "exit_code": 0})
    elif options.dry_run:
        say(
            f"{counted(done['runs'], 'run')} and {counted(done['results'], 'result')} ({done['bytes']:,} bytes) would go"
        )
    else:
        say(f"{counted(done['runs'], 'run')} and {counted(done['results'], 'result')} are gone")
    return 0
