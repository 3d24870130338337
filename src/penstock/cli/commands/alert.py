"""`penstock alert add|list|show|test|rm`: notifications about what went wrong."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from penstock.cli.arguments import CommandLineError
from penstock.cli.layout import listed
from penstock.cli.output import answer
from penstock.cli.remote.api_client import client_of, remove_named
from penstock.remote.client import Client, at

COUNTS = ("delivered", "pending", "failed")


def alert(options: Namespace) -> int:
    client = client_of(options)
    if options.action == "rm":
        return remove_named(client, options, "alert")
    return {"add": _add, "list": _list, "show": _show, "test": _test}[options.action](client, options)


def _add(client: Client, options: Namespace) -> int:
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


def _list(client: Client, options: Namespace) -> int:
    found = client.get(at("alerts"))
    rows = [
        (one["name"], _what(one), _where(one), *(str(one[name]) for name in COUNTS), one["last_error"] or "")
        for one in found["alerts"]
    ]
    titles = ("NAME", "ON", "TO", *(name.upper() for name in COUNTS), "")
    nothing = "no alerts yet; `penstock alert add NAME --on failed --mail TO` makes one"
    return listed(options, {**found, "exit_code": 0}, titles, rows, nothing)


def _show(client: Client, options: Namespace) -> int:
    found = client.get(at("alerts", options.name, "deliveries"))["deliveries"]
    rows = [(one["at"][:19], one["state"], str(one["attempts"]), one["about"], one["error"] or "") for one in found]
    titles, nothing = ("AT", "STATE", "ATTEMPTS", "ABOUT", ""), f"alert `{options.name}` has had nothing to tell yet"
    return listed(options, {"deliveries": found, "exit_code": 0}, titles, rows, nothing)


def _test(client: Client, options: Namespace) -> int:
    done = client.post(at("alerts", options.name, "test"))
    return answer(options, {**done, "exit_code": 0}, f"a test of alert `{options.name}` was delivered")
