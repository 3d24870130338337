"""`penstock keychain set|list|remove`: the encrypted local store. A value is never printed and never on the command line."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import Any

from penstock.app.state_folder import home_here
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import answer, put, put_json, say, table
from penstock.keychain import LocalStore


def keychain(options: Namespace) -> int:
    store = LocalStore(home_here(options.store))
    match options.action:
        case "set":
            return _set(store, options)
        case "remove":
            return _remove(store, options)
    return _list(store, as_json=options.json)


def _set(store: LocalStore, options: Namespace) -> int:
    text = _asked(options.name)
    store.set(options.name, _mapping(text) if options.mapping else text)
    return answer(
        options, {"status": "stored", "exit_code": 0, "name": options.name}, f"stored `{options.name}` in {store.path}"
    )


def _asked(name: str) -> str:
    if sys.stdin is None:
        text = ""  # Closed before the start (`<&-`).
    elif sys.stdin.isatty():
        from getpass import getpass  # Only a terminal needs it.

        text = getpass(f"value of {name} (not shown): ")
    else:
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise CommandLineError("the value on stdin is not UTF-8 text", "store it as base64") from error
        text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise CommandLineError(
            "the value is empty; nothing was stored", f"`penstock keychain set {name} < file`, or type it when asked"
        )
    return text


def _mapping(text: str) -> dict[str, Any]:
    from penstock.dialects.source.loader import load_text  # Only mappings need it.
    from penstock.dialects.source.node import to_json

    loaded = load_text(text, "value")
    value = to_json(loaded.root) if loaded.root is not None and not loaded.problems else None
    if not isinstance(value, dict):  # The problem's own text is not shown: it may quote the secret.
        raise CommandLineError("the value is not a mapping", "give JSON or YAML such as `{user: …, password: …}`")
    return value


def _list(store: LocalStore, *, as_json: bool) -> int:
    names = store.names()
    if as_json:
        put_json({"store": str(store.path), "names": [one._asdict() for one in names]})
    elif not names:
        say(f"no secrets in {store.path}")
    else:
        rows = ((one.name, one.shape, time.strftime("%Y-%m-%d %H:%M", time.localtime(one.updated_at))) for one in names)
        put(table(("NAME", "SHAPE", "SET"), rows))
    if store.key_is_open_to_others():
        say(f"warning: others can read the key file {store.key_path}; `chmod 600` it")
    return 0


def _remove(store: LocalStore, options: Namespace) -> int:
    if not store.remove(options.name):
        known = [one.name for one in store.names()]
        there = f"it has {', '.join(f'`{name}`' for name in known)}" if known else "it is empty"
        raise CommandLineError(f"the local keychain has no `{options.name}`", there)
    return answer(options, {"status": "removed", "exit_code": 0, "name": options.name}, f"removed `{options.name}`")
