"""P2.6 for jobs: a secret that components use is in no event, line, error, checkpoint or file that a run leaves behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.app.embedded import Embedded, embedded
from penstock.ports.wire import envelope
from tests.chaos_jobs.homes import Told, started
from tests.replaying import assert_replays
from tests.secrets.scan import Scanner, assert_clean
from tests.secrets.vault_of import Canaries, echo_server
from tests.spec_jobs.support import each, job, rows

KEYCHAIN = [
    {"name": "key", "kind": "env", "var": "C_KEY"},
    {"name": "token", "kind": "env", "var": "C_TOKEN"},
    {"name": "base", "kind": "postgres_credential", "url": {"env": "C_URL"}},
]
SAYS = 'printf "%s\\n" "$S"; printf "%s\\n" "$S" >&2; printf %s "$S" | base64 -w0; printf %s "$S" > ../outside'
RAISES = "import os\nraise ValueError('it is ' + os.popen('cat ../outside').read())"


def shell(command: str, secret: str = "{{ keychain.key }}") -> dict[str, Any]:
    return {"type": "shell", "params": {"command": command, "env": {"S": secret}}}


def leaky(server: str) -> str:
    """Every component is handed a secret, and most of them say it, or fail with it in what they say."""
    http = {"headers": {"X-Key": "{{ keychain.token }}"}}
    text = job(
        "says (ok) quotes",
        "quotes (ok) raises",
        "fails (error) told",
        "it (iterate) body",
        "calls (ok) after",
        data=("asks.main -> shown.input", "reads.main -> unread.input", "few.main -> loads.input"),
        says=shell(SAYS),
        quotes={"type": "set_global", "params": {"values": {"said": "{{ global.says.STDOUT }}"}}},
        raises={
            "type": "python",
            "params": {
                "code": RAISES.replace("os.popen('cat ../outside').read()", "open_it()"),
                "setup": "import pathlib\ndef open_it():\n    return pathlib.Path('../outside').read_text()",
            },
        },
        fails=shell('printf "%s\\n" "$S" >&2; exit 3'),
        told={"type": "set_global", "params": {"values": {"why": "{{ global.fails.ERROR_MESSAGE }}"}}},
        missing={"type": "shell", "params": {"command": ["{{ keychain.key }}", "x"]}},
        it=each(1, 2),
        body=shell(SAYS),
        asks={"type": "http_rows", "params": {"url": f"{server}/500", **http}},
        shown={"type": "log_rows"},
        posts={"type": "http_rows", "params": {"url": f"{server}/401?x={{{{ keychain.key | urlencode }}}}", **http}},
        reads={"type": "read_sql", "params": {"auth": "base", "query": "SELECT 1 AS one"}},
        unread={"type": "log_rows"},
        few=rows(1),
        loads={"type": "write_sql", "params": {"auth": "base", "table": "t"}},
        lost={"type": "file_copy", "params": {"path": "nowhere/{{ keychain.key }}", "to": "x"}},
        calls={"type": "run_job", "params": {"path": "child.yaml", "context": {"given": "{{ keychain.key }}"}}},
        context={"given": "nothing"},
    )
    return json.dumps({**json.loads(text), "keychain": KEYCHAIN})


CHILD = job(
    alone="says",
    says={"type": "shell", "params": {"command": 'printf "%s\\n" "$S"', "env": {"S": "{{ context.given }}"}}},
    context={"given": ""},
)


@pytest.mark.clause("P2.6")
@pytest.mark.parametrize("seed", [1, 2], ids=["awkward", "plain"])
def test_no_secret_gets_out_of_any_component(folder: Path, seed: int) -> None:
    canaries, heard = Canaries(seed), []
    with echo_server(canaries) as server:
        url = f"postgresql://ann:{quote(canaries['postgres'], safe='')}@127.0.0.1:9/shop?connect_timeout=1"
        environ = {"C_KEY": canaries["env"], "C_TOKEN": canaries["bearer"], "C_URL": url, "PATH": "/usr/bin:/bin"}
        (folder / "job.yaml").write_text(leaky(server.url))
        (folder / "child.yaml").write_text(CHILD)

        async def main() -> Told:
            engine: Embedded = embedded(folder / ".penstock", environ=environ)
            engine.observers.append(lambda entry: heard.append(f"{entry}"))
            engine.line_observers.append(lambda *said: heard.append(f"{said}"))
            try:
                told = await started(engine, folder / "job.yaml", {"given": canaries["env"]})
                header = engine.log.header("run-1")
                assert header is not None
                heard.extend(json.dumps(envelope(entry, header)) for entry in told.entries)
                return told
            finally:
                await engine.close()

        told = asyncio.run(main())
    states = {entry.scope: entry.type for entry in told.entries if entry.type in ("component.ok", "component.error")}
    assert states["says"] == "component.ok", heard[-1]
    assert (folder.parent / "outside").read_text() == canaries["env"], "the components did get the secret"
    assert {states[name] for name in ("fails", "missing", "reads", "loads", "lost", "asks", "posts", "raises")} == {
        "component.error"
    }
    scanner = Scanner(canaries.texts.values())
    assert_clean(scanner.in_text("\n".join([*heard, json.dumps(told.summary.as_json())]), "what was heard"))
    assert_clean(scanner.in_folder(folder / ".penstock"))
    assert_replays(folder)
