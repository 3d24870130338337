"""`penstock alert add|list|show|test|rm`: people are told what went wrong."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.layout import table
from penstock.cli.output import put, put_json, say
from penstock.cli.remote.api_client import door_of
from penstock.remote.client import Client, at


def alert(options: Namespace) -> int:
    act = {"add": _add, "list": _list, "show": _show, "test": _test, "rm": _remove}[options.action]
    return act(door_of(options), options)


def _add(door: Client, options: Namespace) -> int:
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
    kept = door.ask("PUT", at("alerts", options.name), body=asked, is_safe=True)
    if options.json:
        put_json({**kept, "exit_code": 0})
    else:
        say(f"alert `{kept['name']}` notifies {_where(kept)} of runs that are {_what(kept)}")
    return 0


def _where(one: Any) -> str:
    return str(one["mail_to"] or one["url"])


def _what(one: Any) -> str:
    of = [f"{name} `{one[name]}`" for name in ("schedule", "document", "label") if one[name]]
    return " or ".join(one["on"]) + (f", of {', '.join(of)}" if of else "")


def _list(door: Client, options: Namespace) -> int:
    found = door.get(at("alerts"))
    if options.json:
        put_json({**found, "exit_code": 0})
    elif not found["alerts"]:
        say("no alerts yet; `penstock alert add NAME --on failed --mail TO` makes one")
    else:
        rows = [
            (
                one["name"],
                _what(one),
                _where(one),
                str(one["delivered"]),
                str(one["pending"]),
                str(one["failed"]),
                one["last_error"] or "",
            )
            for one in found["alerts"]
        ]
        put(table(("NAME", "ON", "TO", "DELIVERED", "PENDING", "FAILED", ""), rows))
    return 0


def _show(door: Client, options: Namespace) -> int:
    found = door.get(at("alerts", options.name, "deliveries"))["deliveries"]
    if options.json:
        put_json({"deliveries": found, "exit_code": 0})
    elif not found:
        say(f"alert `{options.name}` has had nothing to tell yet")
    else:
        rows = [(one["at"][:19], one["state"], str(one["attempts"]), one["about"], one["error"] or "") for one in found]
        put(table(("AT", "STATE", "ATTEMPTS", "ABOUT", ""), rows))
    return 0


def _test(door: Client, options: Namespace) -> int:
    done = door.post(at("alerts", options.name, "test"))
    if options.json:
        put_json({**done, "exit_code": 0})
    else:
        say(f"a test of alert `{options.name}` was delivered")
    return 0


def _remove(door: Client, options: Namespace) -> int:
    door.ask("DELETE", at("alerts", options.name))
    if options.json:
        put_json({"name": options.name, "status": "removed", "exit_code": 0})
    else:
        say(f"alert `{options.name}` is gone")
    return 0
