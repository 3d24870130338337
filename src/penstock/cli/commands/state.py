"""`penstock state list|show|set|rm`: what documents keep from run to run."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from penstock.cli.output import answer, listed, put_json, say
from penstock.cli.remote.api_client import client_of
from penstock.remote.client import Client, at
from penstock.views.wording import counted

CATALOG = "catalog:"


def state(options: Namespace) -> int:
    act = {"list": _list, "show": _list, "set": _set, "rm": _remove}[options.action]
    return act(client_of(options, for_servers=False), options)


def document_of(text: str) -> str:
    """A file as runs of it are recorded, else a path in the catalog."""
    if text.startswith(CATALOG):
        return text
    file = Path(text)
    is_file = file.is_file() or file.is_absolute() or file.suffix in (".yaml", ".yml")
    return str(file.resolve()) if is_file else f"{CATALOG}/{text.strip('/')}"


def _list(client: Client, options: Namespace) -> int:
    is_one = options.action == "show"
    found = client.get(at("state"), **({"document": document_of(options.document)} if is_one else {}))["state"]
    nothing = f"`{options.document}` keeps nothing" if is_one else "no document keeps anything yet"
    titles: tuple[str, ...] = ("KIND", "KEY", "VALUE", "CHANGED", "BY", "")
    rows = [_row(one) for one in found]
    if not is_one:
        titles, rows = ("DOCUMENT", *titles), [(one["document"], *row) for one, row in zip(found, rows, strict=True)]
    return listed(options, {"state": found, "exit_code": 0}, titles, rows, nothing)


def _row(one: Any) -> tuple[str, ...]:
    lost = ""
    if one["lost_run"]:
        lost = f"run {one['lost_run']} ended with {_shown(one['lost_value'])} after this, and was not taken"
    return one["kind"], one["key"], _shown(one["value"]), one["changed_at"][:19], one["run"] or "hand", lost


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set(client: Client, options: Namespace) -> int:
    try:
        value = json.loads(options.value)
    except ValueError:
        value = options.value
    asked = {
        "document": document_of(options.document),
        "key": options.key,
        "kind": "watermark" if options.watermark else "value",
        "value": value,
    }
    kept = client.ask("PUT", at("state"), body=asked, is_safe=True)
    if options.json:
        put_json({**kept, "exit_code": 0})
    else:
        say(
            f"the next run of `{kept['document']}` begins with {kept['kind']} `{kept['key']}` = {_shown(kept['value'])}"
        )
    return 0


def _remove(client: Client, options: Namespace) -> int:
    params: dict[str, Any] = {"document": document_of(options.document)}
    if options.key is not None:
        params |= {"key": options.key, "kind": "watermark" if options.watermark else "value"}
    elif options.watermark:
        params["kind"] = "watermark"
    done = json.loads(client.raw("DELETE", at("state"), params=params))
    return answer(
        options, {**done, "exit_code": 0}, f"`{done['document']}` keeps {counted(done['dropped'], 'value')} less"
    )
