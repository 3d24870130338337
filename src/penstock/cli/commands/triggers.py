"""`penstock schedule`, `backfill`, `hook` and `alert`: runs that start by the clock, for past slots and on a request from
outside, and notifications about what went wrong."""

from __future__ import annotations

import getpass
import sys
import time
from argparse import Namespace
from typing import Any

from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import answer, listed, put, put_json, say, table
from penstock.cli.remote.api_client import LocalClient, client_of, remove_named
from penstock.remote.client import Client, at
from penstock.views.wording import counted

SCHEDULE_FIELDS = ("cron", "path", "zone", "version", "payload", "context", "missed", "overlap", "deadline_s", "is_on")
"""The options of a schedule, as the API takes them."""


def schedule(options: Namespace) -> int:
    client = client_of(options)
    match options.action:
        case "add":
            return _add_schedule(client, options)
        case "list":
            return _list_schedules(client, options)
        case "show":
            return _show_schedule(client, options)
        case "remove":
            return remove_named(client, options, "schedule")
        case _:
            return _put_schedule(client, options, _switched(client, options, "schedules", SCHEDULE_FIELDS))


def _switched(client: Client, options: Namespace, kind: str, fields: tuple[str, ...]) -> dict[str, Any]:
    """A schedule or hook as it is, but switched on or off."""
    there = client.get(at(kind, options.name))
    return {**{name: there[name] for name in fields}, "is_on": options.action == "on"}


def _add_schedule(client: Client, options: Namespace) -> int:
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
    return _put_schedule(client, options, asked)


def _put_schedule(client: Client, options: Namespace, asked: dict[str, Any]) -> int:
    kept = client.ask("PUT", at("schedules", options.name), body=asked, is_safe=True)
    state = f"runs `{kept['path']}` next at {kept['next_at']}" if kept["is_on"] else "is off"
    return answer(options, kept, f"schedule `{kept['name']}` {state}")


def _list_schedules(client: Client, options: Namespace) -> int:
    found = client.get(at("schedules"))
    rows = [_schedule_row(one) for one in found["schedules"]]
    titles = ("NAME", "CRON", "ZONE", "RUNS", "NEXT", "LAST RUN", "")
    return listed(options, found, titles, rows, "no schedules yet; `penstock schedule add NAME CRON PATH` makes one")


def _schedule_row(one: Any) -> tuple[str, ...]:
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
    """What needs attention."""
    late = [f"late: the slot {slot} has not ended" for slot in one["late"][:1]]
    waiting = [f"{one['waiting']} waiting"] if one["waiting"] else []
    return "; ".join([*late, *([one["last_error"]] if one["last_error"] else waiting)])


def _show_schedule(client: Client, options: Namespace) -> int:
    found = client.get(at("schedules", options.name))
    slots = client.get(at("schedules", options.name, "slots"), limit=options.limit)["slots"]
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


POLL_S = 1.0
PENDING = ("due", "queued", "running")


def backfill(options: Namespace) -> int:
    client = client_of(options)
    if options.stop:
        return _stop_backfill(client, options)
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
    begun = client.ask("POST", at("schedules", options.name, "backfill"), body=asked, is_safe=True)
    if options.dry_run:
        return _show_backfill(begun, options)
    queued = [one["slot"] for one in begun["slots"] if one["is_queued"]]
    going = [one["slot"] for one in begun["slots"] if one["is_queued"] or one["status"] in PENDING]
    left = len(begun["slots"]) - len(going)
    if not options.json:
        others = f", {len(going) - len(queued)} already under way" if len(going) > len(queued) else ""
        others += f", {left} left out" if left else ""
        say(f"backfill `{begun['backfill']}` of `{begun['schedule']}`: {counted(len(queued), 'slot')} queued{others}")
    if isinstance(client, LocalClient) and queued and not options.json:
        say("a server runs them: `penstock serve` or `penstock up` starts one")
    if not going or options.detach or isinstance(client, LocalClient):
        if options.json:
            put_json({**begun, "exit_code": 0})
        return 0
    return _follow_backfill(client, options, begun, set(going))


def _stop_backfill(client: Client, options: Namespace) -> int:
    done = client.ask("DELETE", at("schedules", options.name, "backfill"), is_safe=True)
    return answer(
        options,
        {**done, "exit_code": 0},
        f"{counted(done['stopped'], 'slot')} of `{options.name}` will not be run; what is running goes on",
    )


def _show_backfill(begun: Any, options: Namespace) -> int:
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


def _follow_backfill(client: Client, options: Namespace, begun: Any, waited_for: set[str]) -> int:
    """Watches until every slot is done. An interrupt ends the watching; the server continues."""
    path = at("schedules", options.name, "slots")
    over: dict[str, Any] = {}
    try:
        while len(over) < len(waited_for):
            found = client.get(path, since=begun["since"], until=begun["until"], limit=10_000)["slots"]
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


HOOK_FIELDS = ("path", "version", "payload", "context", "is_on")


def hook(options: Namespace) -> int:
    client = client_of(options)
    match options.action:
        case "add":
            return _add_hook(client, options)
        case "list":
            return _list_hooks(client, options)
        case "remove":
            return remove_named(client, options, "hook")
        case _:
            return _put_hook(client, options, _switched(client, options, "hooks", HOOK_FIELDS))


def _add_hook(client: Client, options: Namespace) -> int:
    asked: dict[str, Any] = {
        "path": options.path,
        "version": options.version,
        "payload": inputs.workload(options.payload, options.set),
        "context": options.context,
    }
    if options.secret:
        asked["secret"] = _secret()
    return _put_hook(client, options, asked)


def _secret() -> str:
    text = getpass.getpass("secret: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not text:
        raise CommandLineError("no secret was given", "write it to stdin, one line")
    return text


def _put_hook(client: Client, options: Namespace, asked: dict[str, Any]) -> int:
    kept = client.ask("PUT", at("hooks", options.name), body=asked, is_safe=True)
    how = "signed requests" if kept["is_signed"] else "requests with a token"
    state = "" if kept["is_on"] else ", and is off"
    return answer(options, kept, f"`POST /hooks/{kept['name']}` runs `{kept['path']}`; it takes {how}{state}")


def _list_hooks(client: Client, options: Namespace) -> int:
    found = client.get(at("hooks"))
    rows, titles = [_hook_row(one) for one in found["hooks"]], ("NAME", "RUNS", "SIGNED", "STATUS")
    return listed(options, found, titles, rows, "no hooks yet; `penstock hook add NAME PATH` makes one")


def _hook_row(one: Any) -> tuple[str, ...]:
    version = f"@{one['version']}" if one["version"] else ""
    signed = "yes" if one["is_signed"] else "no: token"
    return one["name"], f"{one['path']}{version}", signed, "on" if one["is_on"] else "off"


COUNTS = ("delivered", "pending", "failed")


def alert(options: Namespace) -> int:
    client = client_of(options)
    if options.action == "rm":
        return remove_named(client, options, "alert")
    return {"add": _add_alert, "list": _list_alerts, "show": _show_alert, "test": _test_alert}[options.action](
        client, options
    )


def _add_alert(client: Client, options: Namespace) -> int:
    host, _, port = (options.smtp or "").partition(":")
    if port and not port.isdigit():
        raise CommandLineError(f"`--smtp {options.smtp}` is not HOST or HOST:PORT", "such as `mail.example.com:587`")
    asked = {
        "on": sorted(set(options.on)),
        "schedule": options.schedule,
        "document": options.document,
        "label": options.label,
        "mail_to": options.mail,
        "mail_from": options.sender,
        "smtp_host": host or None,
        "smtp_port": int(port) if port else None,
        "smtp_security": options.security,
        "url": options.webhook,
        "auth": options.auth,
    }
    kept = client.ask("PUT", at("alerts", options.name), body=asked, is_safe=True)
    return answer(
        options,
        {**kept, "exit_code": 0},
        f"alert `{kept['name']}` notifies {_where(kept)} of runs that are {_what(kept)}",
    )


def _where(one: Any) -> str:
    return str(one["mail_to"] or one["url"])


def _what(one: Any) -> str:
    of = [f"{name} `{one[name]}`" for name in ("schedule", "document", "label") if one[name]]
    return " or ".join(one["on"]) + (f", of {', '.join(of)}" if of else "")


def _list_alerts(client: Client, options: Namespace) -> int:
    found = client.get(at("alerts"))
    rows = [
        (one["name"], _what(one), _where(one), *(str(one[name]) for name in COUNTS), one["last_error"] or "")
        for one in found["alerts"]
    ]
    titles = ("NAME", "ON", "TO", *(name.upper() for name in COUNTS), "")
    nothing = "no alerts yet; `penstock alert add NAME --on failed --mail TO` makes one"
    return listed(options, {**found, "exit_code": 0}, titles, rows, nothing)


def _show_alert(client: Client, options: Namespace) -> int:
    found = client.get(at("alerts", options.name, "deliveries"))["deliveries"]
    rows = [(one["at"][:19], one["state"], str(one["attempts"]), one["about"], one["error"] or "") for one in found]
    titles, nothing = ("AT", "STATE", "ATTEMPTS", "ABOUT", ""), f"alert `{options.name}` has had nothing to tell yet"
    return listed(options, {"deliveries": found, "exit_code": 0}, titles, rows, nothing)


def _test_alert(client: Client, options: Namespace) -> int:
    done = client.post(at("alerts", options.name, "test"))
    return answer(options, {**done, "exit_code": 0}, f"a test of alert `{options.name}` was delivered")
