"""Canaries in every kind of keychain entry, and a server that says back whatever it is told, secrets included."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.keychain.store import LocalStore
from penstock.ports.ambient import SystemClock
from tests.tools.support import Reply, Request, Server, serve

AWKWARD = "/+ &=%\"'<>é\\"
HEADERS = ("bearer", "api_header", "vault_token", "issued")
"""These go into headers, which take ASCII only."""


@dataclass
class Canaries:
    """Secrets by name; what they are is chance, but the same chance for the same seed."""

    seed: int
    texts: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        if name not in self.texts:
            chance = random.Random(f"{self.seed} {name}")
            letters = "".join(chance.choices(string.ascii_letters + string.digits, k=20))
            allowed = AWKWARD.replace("é", "") if name in HEADERS else AWKWARD
            awkward = "".join(chance.sample(allowed, len(allowed))) if self.seed % 2 else "-"
            self.texts[name] = f"Cn{letters[:10]}{awkward}{letters[10:]}"
        return self.texts[name]


@contextmanager
def echo_server(canaries: Canaries) -> Iterator[Server]:
    """Says back the headers, the target and the body; `/token` is an OAuth2 issuer, `/v1/` a Vault, `/NNN` answers NNN."""

    def answer(request: Request) -> Reply:
        said = {"headers": request.headers, "target": request.target, "body": request.body.decode("utf-8", "replace")}
        if request.path == "/token":
            return Reply(body={"access_token": canaries["issued"], "token_type": "Bearer", "expires_in": 3600})
        if request.path.startswith("/v1/"):
            return Reply(body={"data": {"data": {"password": canaries["vault"], "note": "x"}}})
        if request.path == "/elsewhere":
            return Reply(status=302, headers={"Location": f"/echo?again={canaries['api_query'].encode().hex()}"})
        if request.path == "/text":
            return Reply(
                body=json.dumps(said, ensure_ascii=False), headers={"Content-Type": "text/plain; charset=utf-8"}
            )
        status = int(request.path[1:]) if request.path[1:].isdigit() else 200
        return Reply(
            status=status, body=said, headers={"X-Said": request.headers.get("x-key", "nothing").encode().hex()}
        )

    with serve(answer) as server:
        yield server


def entries(canaries: Canaries, server: str) -> list[dict[str, Any]]:
    """One keychain entry of every kind, and in every way of writing it down."""
    return [
        {"name": "k_env", "kind": "env", "var": "C_ENV"},
        {"name": "k_file", "kind": "file", "path": "secret.txt"},
        {"name": "k_static", "kind": "static", "value": canaries["static"]},
        {"name": "k_bearer", "kind": "bearer", "token": {"env": "C_BEARER"}},
        {"name": "k_basic", "kind": "basic", "username": "ann", "password": {"env": "C_BASIC"}},
        {"name": "k_key", "kind": "api_key", "value": {"env": "C_API_HEADER"}, "header": "X-Key"},
        {"name": "k_query", "kind": "api_key", "value": {"env": "C_API_QUERY"}, "query": "key"},
        {
            "name": "k_oauth",
            "kind": "oauth2",
            "token_url": f"{server}/token",
            "client_id": "me",
            "client_secret": {"env": "C_CLIENT"},
        },
        {"name": "k_postgres", "kind": "postgres_credential", "url": {"env": "C_POSTGRES_URL"}},
        {
            "name": "k_mysql",
            "kind": "mysql_credential",
            "host": "127.0.0.1",
            "port": 9,
            "user": "ann",
            "password": {"env": "C_MYSQL"},
            "database": "shop",
        },
        {"name": "k_vault", "kind": "secret_manager", "provider": "vault", "key": "secret/app", "field": "password"},
        {"name": "k_local", "kind": "secret_manager", "provider": "local", "key": "kept"},
        {"name": "k_managed", "kind": "secret_manager", "provider": "environment", "key": "managed"},
    ]


def environment(canaries: Canaries, server: str) -> dict[str, str]:
    from urllib.parse import quote

    return {
        "C_ENV": canaries["env"],
        "C_BEARER": canaries["bearer"],
        "C_BASIC": canaries["basic"],
        "C_API_HEADER": canaries["api_header"],
        "C_API_QUERY": canaries["api_query"],
        "C_CLIENT": canaries["client"],
        "C_POSTGRES_URL": f"postgresql://ann:{quote(canaries['postgres'], safe='')}@127.0.0.1:9/shop?connect_timeout=1",
        "C_MYSQL": canaries["mysql"],
        "VAULT_ADDR": server,
        "VAULT_TOKEN": canaries["vault_token"],
        "PENSTOCK_MANAGED": canaries["managed"],
    }


def furnish(folder: Path, home: Path, canaries: Canaries, environ: dict[str, str]) -> None:
    """The files that the entries speak of."""
    secret = folder / "secret.txt"
    secret.write_text(canaries["file"] + "\n", encoding="utf-8")
    secret.chmod(0o600)
    LocalStore(home, environ, SystemClock()).set("kept", canaries["local"])


USES = {
    "k_env": "{{ keychain.k_env }}",
    "k_file": "{{ keychain.k_file }}",
    "k_static": "{{ keychain.k_static }}",
    "k_bearer": "{{ keychain.k_bearer }}",
    "k_basic": "{{ keychain.k_basic.password }}",
    "k_key": "{{ keychain.k_key.value }}",
    "k_query": "{{ keychain.k_query.value }}",
    "k_postgres": "{{ keychain.k_postgres.password }}",
    "k_mysql": "{{ keychain.k_mysql.password }}",
    "k_vault": "{{ keychain.k_vault }}",
    "k_local": "{{ keychain.k_local }}",
    "k_managed": "{{ keychain.k_managed }}",
}
