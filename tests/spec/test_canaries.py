"""P2.6: random secrets go through every kind of entry and every tool, in success and in failure, and are found nowhere afterwards.

Everything a run leaves is searched: the database, results, logs, and what the command line printed; raw, base64 in every alignment,
URL-encoded, hex and JSON-escaped.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.warm import called

BEYOND_ASCII = ("env", "file", "static", "child")
NAMES = ("env", "file", "static", "basic", "bearer", "header", "pg", "manager", "child")


def spellings(secret: str) -> set[bytes]:
    raw = secret.encode()
    found = {
        raw,
        raw.hex().encode(),
        quote(secret, safe="").encode(),
        quote_plus(secret).encode(),
        json.dumps(secret)[1:-1].encode(),
    }
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + raw)
        core = coded[4 if shift else 0 : len(coded) - 4]  # Without the characters that depend on the neighbours.
        found |= {core, core.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def left_behind(home: Path) -> bytes:
    with sqlite3.connect(home / "penstock.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return b"\0".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


class _Echo(BaseHTTPRequestHandler):
    """Answers with everything it was sent; with a status of 500 when asked to."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode(errors="replace")
        self.server.seen.append(f"{self.path} {dict(self.headers)} {body}")  # type: ignore[attr-defined]
        data = json.dumps({"path": self.path, "headers": dict(self.headers), "body": body}).encode()
        self.send_response(500 if "fail" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Echo", self.headers.get("Authorization", ""))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def echo() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


PLAYBOOK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: canaries}
keychain:
  - {name: env, kind: env, var: CANARY_ENV}
  - {name: file, kind: file, path: secret.txt}
  - {name: static, kind: static, value: STATIC}
  - {name: basic, kind: basic, username: ann, password: {env: CANARY_BASIC}}
  - {name: bearer, kind: bearer, token: {env: CANARY_BEARER}}
  - {name: header, kind: api_key, value: {env: CANARY_HEADER}, header: X-Key}
  - {name: pg, kind: postgres_credential}
  - {name: manager, kind: secret_manager, provider: environment, key: CANARY_MANAGER}
executor: {spec: {policy: {limits: {max_payload_bytes: 3000}}}}
workload: {api: ""}
workflow:
  - step: start
    spec: {policy: {failure: {mode: best_effort}}}
    loop:
      in: [0, 1]
      iterator: bad
      spec: {mode: parallel, max_in_flight: 2}
    tool:
      - {name: h1, kind: http, method: POST, url: "{{ workload.api }}/{{ 'fail' if iter.bad else 'ok' }}", auth: basic, json: {s: "{{ keychain.env }}", t: "{{ 'x' ~ keychain.file }}"}, spec: &on {policy: {rules: [{else: {then: {do: continue, set_ctx: {}, append_ctx: {all: "{{ outcome.result | default(outcome.error) }}"}}}}]}}}
      - {name: h2, kind: http, url: "{{ workload.api }}/q", auth: bearer, params: {k: "{{ keychain.static }}", j: "{{ keychain.manager }}"}, spec: *on}
      - {name: h3, kind: http, url: "{{ workload.api }}/fail?k={{ keychain.env }}", auth: header, headers: {X-More: "a {{ keychain.basic.password }} b"}, spec: *on}
      - {name: h4, kind: http, method: POST, url: "{{ workload.api }}/stream", auth: bearer, json: {s: "{{ keychain.env }}", more: "{{ 'y' * 9000 }}"}, response: stream, spec: *on}
      - name: p1
        kind: python
        args: {all: ["{{ keychain.env }}", "{{ keychain.file }}", "{{ keychain.static }}", "{{ keychain.basic.password }}", "{{ keychain.bearer }}", "{{ keychain.pg.password }}", "{{ keychain.manager }}"], bad: "{{ iter.bad }}"}
        code: |
          import base64, sys, urllib.parse
          print("printing", all)
          print(base64.b64encode(("u:" + all[0]).encode()).decode(), file=sys.stderr)
          coded = [[s, base64.b64encode(s.encode()).decode(), base64.urlsafe_b64encode(("ab" + s).encode()).decode(), urllib.parse.quote(s), s.encode().hex()] for s in all]
          if bad:
              raise ValueError(coded)
          result = {"coded": coded, "large": coded * 100, all[1]: "as a name"}
        spec: *on
      - {name: p2, kind: python, isolation: process, args: {s: "{{ keychain.env }}"}, code: "print(s)\\nraise RuntimeError(s)", spec: *on}
      - {name: s1, kind: shell, command: ["sh", "-c", "echo $1; echo $1 >&2; exit 3", "x", "{{ keychain.manager }}"], spec: *on}
      - {name: l1, kind: log, message: "the secret is {{ keychain.static }}", spec: *on}
      - {name: q1, kind: sqlite, path: ":memory:", query: "SELECT :s AS s", params: {s: "{{ keychain.bearer }}"}, spec: *on}
      - {name: q2, kind: sqlite, path: ":memory:", command: "no sql {{ keychain.file }}", spec: *on}
      - {name: g1, kind: postgres, auth: pg, query: "SELECT 1", spec: *on}
      - {name: n1, kind: notify, via: webhook, url: "{{ workload.api }}/hook/{{ keychain.env }}", text: "{{ keychain.basic.password }}", spec: *on}
      - {name: n2, kind: noop, value: "{{ 5 | nosuch if false else keychain.static }}" , spec: *on}
    next: {arcs: [{step: child, args: {seen: "{{ event.result.results }}"}}]}
  - step: child
    tool:
      - {name: c, kind: playbook, path: child.yaml, args: {given: "{{ keychain.env }}"}}
"""

CHILD = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child}
keychain:
  - {name: own, kind: env, var: CANARY_CHILD}
workload: {given: ""}
workflow:
  - step: inner
    tool:
      - {name: a, kind: python, args: {s: "{{ keychain.own }}", t: "{{ workload.given }}"}, code: "print(s); result = [s, t]"}
      - {name: b, kind: python, args: {s: "{{ keychain.own }}"}, code: "raise KeyError(s)"}
"""


@pytest.mark.clause("P2.6")
def test_no_secret_is_found_in_anything_a_run_leaves_or_prints(tmp_path: Path, echo: ThreadingHTTPServer) -> None:
    # What goes into a header must be ASCII; the others may have anything.
    canaries = {name: f"K{'ä' if name in BEYOND_ASCII else 'a'}/{secrets.token_urlsafe(12)}+{name}" for name in NAMES}
    (tmp_path / "secret.txt").write_text(canaries["file"] + "\n", encoding="utf-8")
    playbook = PLAYBOOK.replace("value: STATIC", f"value: {json.dumps(canaries['static'])}").replace(
        "5 | nosuch if false else ", ""
    )
    (tmp_path / "main.yaml").write_text(playbook, encoding="utf-8")
    (tmp_path / "child.yaml").write_text(CHILD, encoding="utf-8")
    home = tmp_path / "state"
    environ = {
        **os.environ,
        **{f"CANARY_{name.upper()}": value for name, value in canaries.items()},
        "PENSTOCK_PG_HOST": "127.0.0.1",
        "PENSTOCK_PG_PORT": "1",
        "PENSTOCK_PG_USER": "ann",
        "PENSTOCK_PG_PASSWORD": canaries["pg"],
        "PENSTOCK_PG_DATABASE": "d",
        "PENSTOCK_HOME": str(home),
    }

    def penstock(*words: str) -> bytes:
        done = called(*words, cwd=tmp_path, env=environ)
        assert "Traceback" not in done.stderr, done.stderr
        return (done.stdout + done.stderr).encode()

    api = f"http://127.0.0.1:{echo.server_address[1]}"
    said = penstock("run", "main.yaml", "--set", f"api={api}")
    assert b"run " in said
    assert b"error[" not in said, said.decode()
    for words in (("show", "--json"), ("events", "--json"), ("logs",), ("explain", "start"), ("replay",), ("resume",)):
        said += penstock(words[0], "@last", *words[1:])
    heard = " ".join(echo.seen)  # type: ignore[attr-defined]
    assert f"Bearer {canaries['bearer']}" in heard, "tools must get the real thing"
    assert canaries["env"] in heard
    everything = left_behind(home) + b"\0" + said
    assert b"***" in everything
    for name, secret in canaries.items():
        for spelling in spellings(secret):
            at = everything.find(spelling)
            assert at < 0, f"the secret `{name}` is there as {spelling!r}: …{everything[max(0, at - 80) : at + 80]!r}…"
