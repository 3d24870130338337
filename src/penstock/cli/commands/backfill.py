"""`penstock backfill SCHEDULE`: runs for slots of the past."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.commands.schedule import slot_row
from penstock.cli.doors import LocalClient, door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.projections.wording import counted
from penstock.remote.client import Client, at

POLL_S = 1.0
PENDING = ("due", "queued", "running")


def main(options: Namespace) -> int:
    door = door_of(options)
    if options.stop:
        return _stop(door, options)
    if options.since is None or options.until is None:
        raise CommandLineError(
            "`penstock backfill` needs `--from` and `--to`", "such as `--from 2026-03-01 --to 2026-03-31`"
        )
    asked = {
        "from": options.since,
        "to": options.until,
        "which": "missing" if options.missing else "failed" if options.failed else "all",
        "at_once": options.at_once,
        "name": options.label,
        "dry_run": options.dry_run,
    }
    begun = door.ask("POST", at("schedules", options.name, "backfill"), body=asked, is_safe=True)
    if options.dry_run:
        return _shown(begun, options)
    queued = [one["slot"] for one in begun["slots"] if one["is_queued"]]
    going = [one["slot"] for one in begun["slots"] if one["is_queued"] or one["status"] in PENDING]
    left = len(begun["slots"]) - len(going)
    if not options.json:
        others = f", {len(going) - len(queued)} already under way" if len(going) > len(queued) else ""
        others += f", {left} left out" if left else ""
        say(f"backfill `{begun['backfill']}` of `{begun['schedule']}`: {counted(len(queued), 'slot')} queued{others}")
    if isinstance(door, LocalClient) and queued and not options.json:
        say("a server runs them: `penstock serve` or `penstock up` starts one")
    if not going or options.detach or isinstance(door, LocalClient):
        if options.json:
            put_json({**begun, "exit_code": 0})
        return 0
    return _followed(door, options, begun, set(going))


def _stop(door: Client, options: Namespace) -> int:
    done = door.ask("DELETE", at("schedules", options.name, "backfill"), is_safe=True)
    if options.json:
        put_json({**done, "exit_code": 0})
    else:
        say(f"{counted(done['stopped'], 'slot')} of `{options.name}` will not be run; what is running goes on")
    return 0


def _shown(begun: Any, options: Namespace) -> int:
    if options.json:
        put_json({**begun, "exit_code": 0})
        return 0
    rows = [
        (
            one["slot"],
            "would run" if one["is_queued"] else f"left out: {one['why']}",
            one["status"] or "",
            one["run"] or "",
        )
        for one in begun["slots"]
    ]
    if rows:
        put(table(("SLOT", "", "LAST", "RUN"), rows))
    say(f"{counted(begun['queued'], 'slot')} of {len(begun['slots'])} would run")
    return 0


def _followed(door: Client, options: Namespace, begun: Any, waited_for: set[str]) -> int:
    """Until every slot is over. Whoever interrupts this stops looking; the server goes on."""
    path = at("schedules", options.name, "slots")
    over: dict[str, Any] = {}
    try:
        while len(over) < len(waited_for):
            found = door.get(path, since=begun["since"], until=begun["until"], limit=10_000)["slots"]
            for one in found:
                if one["slot"] in waited_for and one["slot"] not in over and one["status"] not in PENDING:
                    over[one["slot"]] = one
                    if not options.json:
                        slot, status, run, note = slot_row(one)
                        reason = f"  {note}" if one["run"] is None else ""
                        say(f"{slot}  {status}  {run}{reason}  ({len(over)} of {len(waited_for)})")
            if len(over) < len(waited_for):
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        say(f"the server goes on with it; `penstock backfill {options.name} --stop` stops it")
        raise
    failed = [one for one in over.values() if one["status"] != "completed"]
    code = 1 if failed else 0
    if options.json:
        put_json({**begun, "slots": list(over.values()), "failed": len(failed), "exit_code": code})
    else:
        say(f"{counted(len(over) - len(failed), 'slot')} completed, {len(failed)} did not")
    return code
