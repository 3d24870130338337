"""`penstock schedule add|list|show|on|off|remove`: runs that start by the clock."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli import inputs
from penstock.cli.doors import door_of
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.remote.client import Client, at

SAID = ("cron", "path", "zone", "version", "payload", "context", "missed", "overlap", "deadline_s", "is_on")
"""What people have said about a schedule, as the API takes it."""


def main(options: Namespace) -> int:
    act = {"add": _add, "list": _list, "show": _show, "on": _switch, "off": _switch, "remove": _remove}[options.action]
    return act(door_of(options), options)


def _add(door: Client, options: Namespace) -> int:
    asked = {
        "cron": options.cron,
        "path": options.path,
        "zone": options.zone,
        "version": options.version,
        "payload": inputs.workload(options.payload, options.set),
        "context": options.context,
        "missed": options.missed,
        "overlap": options.overlap,
        "deadline_s": options.deadline,
    }
    return _kept(door, options, asked)


def _switch(door: Client, options: Namespace) -> int:
    there = door.get(at("schedules", options.name))
    return _kept(door, options, {**{name: there[name] for name in SAID}, "is_on": options.action == "on"})


def _kept(door: Client, options: Namespace, asked: dict[str, Any]) -> int:
    kept = door.ask("PUT", at("schedules", options.name), body=asked, is_safe=True)
    if options.json:
        put_json(kept)
    elif not kept["is_on"]:
        say(f"schedule `{kept['name']}` is off")
    else:
        say(f"schedule `{kept['name']}` runs `{kept['path']}` next at {kept['next_at']}")
    return 0


def _list(door: Client, options: Namespace) -> int:
    found = door.get(at("schedules"))
    if options.json:
        put_json(found)
    elif not found["schedules"]:
        say("no schedules yet; `penstock schedule add NAME CRON PATH` makes one")
    else:
        titles = ("NAME", "CRON", "ZONE", "RUNS", "NEXT", "LAST RUN", "")
        put(table(titles, map(_row, found["schedules"])))
    return 0


def _row(one: Any) -> tuple[str, ...]:
    following = (one["next_at"] or "never")[:19] if one["is_on"] else "off"
    version = f"@{one['version']}" if one["version"] else ""
    return (
        one["name"],
        one["cron"],
        one["zone"],
        f"{one['path']}{version}",
        following,
        one["last_run"] or "",
        _news(one),
    )


def _news(one: Any) -> str:
    """What somebody should know of it."""
    late = [f"late: the slot {slot} has not ended" for slot in one["late"][:1]]
    waiting = [f"{one['waiting']} waiting"] if one["waiting"] else []
    return "; ".join([*late, *([one["last_error"]] if one["last_error"] else waiting)])


def _show(door: Client, options: Namespace) -> int:
    found = door.get(at("schedules", options.name))
    slots = door.get(at("schedules", options.name, "slots"), limit=options.limit)["slots"]
    if options.json:
        put_json({**found, "slots": slots, "exit_code": 0})
        return 0
    version = f"@{found['version']}" if found["version"] else ""
    following = found["next_at"] or "never" if found["is_on"] else "off"
    say(f"schedule `{found['name']}`: `{found['cron']}` in {found['zone']}, runs `{found['path']}{version}`")
    deadline = "" if found["deadline_s"] is None else f"; deadline: {found['deadline_s']:g} s after the slot"
    say(f"next: {following}; overlap: {found['overlap']}; missed: {found['missed']}{deadline}")
    if slots:
        put(table(("SLOT", "STATUS", "RUN", ""), map(slot_row, slots)))
    else:
        say("no slot has come yet")
    return 0


def slot_row(one: Any) -> tuple[str, ...]:
    notes = [one["note"] or "", "late" if one["is_late"] else ""]
    if one["backfill"]:
        notes.append(f"backfill {one['backfill']}")
    return one["slot"], one["status"], one["run"] or "", "; ".join(filter(None, notes))


def _remove(door: Client, options: Namespace) -> int:
    door.ask("DELETE", at("schedules", options.name))
    if options.json:
        put_json({"name": options.name, "status": "removed", "exit_code": 0})
    else:
        say(f"schedule `{options.name}` is gone")
    return 0
