"""Text that is no text: half of a surrogate pair, which UTF-8 has no form for, and the character 0, which PostgreSQL does not store.
Wherever a task lets it out, the task runs once; what it says comes out escaped, and a result that cannot be written is told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.service import Api, Crew, serving
from tests.engine import document
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

ODD = [r"\udcff", r"a\ud800b", r"nul\x00nul", r"\udc80\x00\ud83d"]
WAYS = {
    "print": "print('X')",
    "stderr": "import sys; sys.stderr.write('X\\n')",
    "result": "result = 'X'",
    "deep": "result = {'a': [{'b': 'X'}]}",
    "name": "result = {'X': 1}",
    "error": "raise ValueError('X')",
    "kind": "raise type('E', (Exception,), {})('X', b'\\xff')",
    "bytes": "result = b'\\xff\\x00'",
}


def playbook(code: str, marks: Path) -> str:
    counted = f"f = open({str(marks)!r}, 'a'); f.write('x'); f.close(); {code}"
    return document(f"- step: start\n  tool: [{{name: odd, kind: python, code: {quoted(counted)}}}]\n")


def job(code: str, marks: Path) -> str:
    counted = f"f = open({str(marks)!r}, 'a'); f.write('x'); f.close(); {code}"
    return f"components:\n  - {{name: odd, type: python, params: {{code: {quoted(counted)}}}}}\n"


def quoted(code: str) -> str:
    return "'" + code.replace("'", "''") + "'"


@pytest.mark.parametrize("make", [playbook, job], ids=["playbook", "job"])
def test_a_task_that_lets_it_out_runs_once_on_a_fleet(tmp_path: Path, postgres_url: str, make: object) -> None:
    assert callable(make)
    with serving(tmp_path / "s", postgres_url) as running, Crew(tmp_path / "w", postgres_url, name="w"):
        api = Api(running.url)
        runs = {}
        ways = WAYS if make is playbook else {way: WAYS[way] for way in ("print", "stderr", "error", "kind")}
        for way, code in ways.items():
            for number, odd in enumerate(ODD if way in ("print", "result") and make is playbook else ODD[-1:]):
                marks = tmp_path / f"{way}-{number}"
                runs[way, odd] = (api.submit(make(code.replace("X", odd), marks)), marks)
        for (way, odd), (run, marks) in runs.items():
            status = api.ended(run)
            # A result is data: it is refused, and not changed.
            is_refused = way in ("result", "deep", "name") and r"\ud" in odd
            fails = is_refused or way in ("error", "kind")
            assert status == ("failed" if fails else "completed"), (way, odd, api.events(run)[-1])
            assert marks.read_text() == "x", (way, odd)
            assert api.get(f"/api/executions/{run}").status_code == 200
            lines = api.get(f"/api/executions/{run}/logs")
            assert lines.status_code == 200
            if way in ("print", "stderr"):
                assert len(lines.content.splitlines()) == 1, lines.text
        api.close()
