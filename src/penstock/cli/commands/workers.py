"""`penstock workers`: who works, and on what."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.doors import door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.projections.wording import seconds
from penstock.remote.client import at


def main(options: Namespace) -> int:
    door = door_of(options)
    found: dict[str, Any] = {"workers": door.get(at("workers"))["workers"]}
    if options.leases:
        found["leases"] = door.get(at("leases"))["leases"]
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
