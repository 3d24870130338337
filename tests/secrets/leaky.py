"""A playbook that does with its secrets all that may not be done: prints, returns, raises, sends, stores and fails with them."""

from __future__ import annotations

import itertools
from typing import Any

from tests.secrets.vault_of import USES

RETURNS = """
import base64, sys, urllib.parse
print("out", s)
print("err", repr(s), file=sys.stderr)
sys.stdout.write("no line end " + s)
result = {
    "plain": s, "list": [s, [s]], s: "as a key", "joined": "before" + s + "after",
    "base64": [base64.b64encode(("x" * n + s + "tail").encode()).decode() for n in range(3)],
    "safe": base64.urlsafe_b64encode(s.encode()).decode(),
    "url": [urllib.parse.quote(s), urllib.parse.quote(s, safe=""), urllib.parse.quote_plus(s)],
    "hex": [s.encode().hex(), s.encode().hex().upper()],
    "bytes": s.encode(),
}
"""
RAISES = """
class Leak(Exception):
    retryable = False
try:
    raise KeyError(s)
except KeyError as error:
    raise Leak("this is " + s, {"detail": s}) from error
"""
BIG = 'result = {"rows": [{"n": n, "secret": s} for n in range(3000)]}'


def leaky(keychain: list[dict[str, Any]], server: str) -> dict[str, Any]:
    """Every task of it runs, whatever came of the one before."""
    steps = [
        _step("start", [*_codes(), _task("big", "python", args={"s": USES["k_env"]}, code=BIG)]),
        _step("loops", _codes("iter.use"), loop={"in": _picked(), "iterator": "use"}),
        _step("web", _requests(server)),
        _step("local", _local_things(server)),
        _step("sub", _subs()),
        {"step": "end", "tool": {"name": "all", "kind": "noop", "value": "{{ ctx }}"}},
    ]
    for step, after in itertools.pairwise(steps):
        step["next"] = {
            "arcs": [
                {
                    "step": after["step"],
                    "when": "{{ true }}",
                    "args": {"result": "{{ event.result }}", "error": "{{ event.error }}"},
                }
            ]
        }
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "leaky"},
        "keychain": keychain,
        "workload": {"given": "nothing"},
        "workflow": steps,
    }


def child(keychain: list[dict[str, Any]]) -> dict[str, Any]:
    """A sub-playbook with a keychain of its own, which says what it was given."""
    tasks = [
        _task("told", "log", message="{{ workload.told }}"),
        _task("own", "python", args={"s": "{{ keychain.own }}", "told": "{{ workload.told }}"}, code=RETURNS),
        _task("raises", "python", args={"s": "{{ keychain.own }}"}, code=RAISES),
        _task("last", "python", args={"s": "{{ keychain.own }}", "t": "{{ workload.told }}"}, code="result = [s, t]"),
    ]
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "child"},
        "keychain": keychain,
        "workload": {"told": ""},
        "workflow": [{"step": "start", "tool": tasks}],
    }


def failing(keychain: list[dict[str, Any]], code: str) -> dict[str, Any]:
    """A playbook that fails with a secret in its error."""
    task = {"name": "fails", "kind": "python", "args": {"s": USES["k_env"]}, "code": code}
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "failing"},
        "keychain": keychain,
        "workflow": [{"step": "start", "tool": task}],
    }


def _step(name: str, tasks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"step": name, "spec": {"policy": {"failure": {"mode": "best_effort"}}}, **more, "tool": tasks}


def _task(name: str, kind: str, **params: Any) -> dict[str, Any]:
    writes = {"append_ctx": {"seen": "{{ outcome.result }}", "errors": "{{ outcome.error }}"}}
    spec = params.pop("spec", {})
    rules = [{"else": {"then": {"do": "continue", **writes}}}]
    return {"name": name, "kind": kind, **params, "spec": {**spec, "policy": {"rules": rules}}}


def _picked() -> list[str]:
    """Names only: the text of a secret is no element of a loop."""
    return ["k_env", "k_file"]


def _codes(which: str | None = None) -> list[dict[str, Any]]:
    uses = {"it": f"{{{{ keychain[{which}] }}}}"} if which else USES
    tasks = []
    for name, use in uses.items():
        tasks.append(_task(f"returns_{name}", "python", args={"s": use}, code=RETURNS))
        tasks.append(_task(f"raises_{name}", "python", args={"s": use, "deep": [{"x": use}]}, code=RAISES))
    return tasks


def _requests(server: str) -> list[dict[str, Any]]:
    env, basic = USES["k_env"], USES["k_basic"]
    auths = ["k_bearer", "k_basic", "k_key", "k_query", "k_oauth"]
    tasks = [_task(f"auth_{name}", "http", url=f"{server}/echo", auth=name) for name in auths]
    tasks += [_task(f"auth_fails_{name}", "http", url=f"{server}/401", auth=name) for name in auths]
    tasks += [
        _task("header", "http", url=f"{server}/echo", headers={"X-Key": "{{ keychain.k_key.value }}", "X-Note": "hi"}),
        _task("query", "http", url=f"{server}/echo", params={"key": env, "more": [basic]}),
        _task("in_url", "http", url=f"{server}/echo?key={{{{ (keychain.k_query.value ~ '') | urlencode }}}}"),
        _task("json", "http", method="POST", url=f"{server}/echo", json={"password": basic, "list": [env]}),
        _task("form", "http", method="POST", url=f"{server}/500", form={"password": basic}),
        _task("body", "http", method="POST", url=f"{server}/text", body=f"the body {env}"),
        _task("as_bytes", "http", method="POST", url=f"{server}/text", body=env, response="bytes"),
        _task("as_stream", "http", method="POST", url=f"{server}/text", body=env, response="stream"),
        _task("redirect", "http", url=f"{server}/elsewhere", auth="k_query"),
        _task("nobody", "http", url="http://127.0.0.1:9/", params={"key": env}, auth="k_basic"),
        _task("no_url", "http", url=f"not a url {env}"),
        _task("webhook", "notify", via="webhook", url=f"{server}/echo", text=f"psst {env}", auth="k_bearer"),
        _task("webhook_fails", "notify", via="webhook", url=f"{server}/500", json={"x": env}),
    ]
    return tasks


def _local_things(server: str) -> list[dict[str, Any]]:
    env, file = USES["k_env"], USES["k_file"]
    return [
        _task(
            "echo", "shell", command='printf "%s\\n" "$S"; printf %s "$S" >&2; printf %s "$S" | base64', env={"S": env}
        ),
        _task("echo_fails", "shell", command='printf "%s\\n" "$S" >&2; exit 3', env={"S": env}),
        _task("arguments", "shell", command=["echo", env, file]),
        _task("no_program", "shell", command=[env, "x"]),
        _task("no_folder", "shell", command=["true"], cwd=env),
        _task("stdin", "shell", command=["cat"], stdin=env),
        _task("apart", "python", isolation="process", args={"s": env}, code=RETURNS),
        _task("apart_raises", "python", isolation="process", args={"s": env}, code=RAISES),
        _task("apart_crashes", "python", isolation="process", args={"s": env}, code="print(s); import os; os.abort()"),
        _task("no_script", "python", script=f"{env}.py"),
        _task("syntax", "python", args={"s": env}, code="{{ 'def main(:' }}"),
        _task("write", "files", action="write", path="../outside.txt", content=f"password={env}\n"),
        _task("read", "files", action="read", path="../outside.txt"),
        _task("read_bytes", "files", action="read", path="../outside.txt", format="bytes"),
        _task("no_file", "files", action="read", path=f"nowhere/{env}"),
        _task("log", "log", message=f"a secret: {env}", level="warning", data={"s": [file]}),
        _task("sql", "sqlite", path=":memory:", query="SELECT :s AS s, hex(:s) AS h", params={"s": env}),
        _task("sql_fails", "sqlite", path=":memory:", query=f"SELECT * FROM [{env}]"),
        _task("duck", "duckdb", path=":memory:", query="SELECT $s AS s", params={"s": env}),
        _task("duck_fails", "duckdb", path=":memory:", query=f'SELECT * FROM "{env}"'),
        _task("postgres", "postgres", auth="k_postgres", query="SELECT 1", spec={"timeout": 5}),
        _task("mysql", "mysql", auth="k_mysql", query="SELECT 1", spec={"timeout": 5}),
        _task("parameters", "sleep", seconds="{{ keychain.k_env }}"),
        _task("no_step", "playbook", path=f"{env}.yaml"),
        _task("nats", "nats", operation="publish", subject="s", data=env, url="nats://127.0.0.1:9", token=env),
        _task("nats_key", "nats", operation="publish", subject="s", auth={"url": "nats://127.0.0.1:9", "nkey": env}),
        _task("nats_url", "nats", operation="publish", subject="s", url=f"http://u:{env}@127.0.0.1:9"),
        _task("artifact", "artifact", action="put", data={"it": env}),
        _task("no_artifact", "artifact", result_ref=f"penstock:{env}"),
        _task("container", "container", image=f"i:{env}", volumes=[f"{env}:/v"], env={"S": env}),
        _task(
            "mail",
            "notify",
            via="smtp",
            host="127.0.0.1",
            port=9,
            **{"from": "a@b.c"},
            to="b@c.d",
            text=env,
            auth="k_basic",
        ),
        _task("undefined", "http", url=f"{server}/echo", json={"s": env, "x": "{{ workload.nothing.there }}"}),
    ]


def _subs() -> list[dict[str, Any]]:
    return [
        _task("sub", "playbook", path="child.yaml", args={"told": USES["k_file"]}),
        _task("sub_joined", "playbook", path="child.yaml", args={"told": f"see {USES['k_env']}"}),
    ]
