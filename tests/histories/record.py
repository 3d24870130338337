"""Write down the histories of this release: `python -m tests.histories.record`. Done once per release; old ones are never changed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from penstock import __version__
from penstock.app.embedded import embedded
from penstock.ports.results import encode
from tests.engine import document, play, resume
from tests.jobs import run_job

HERE = Path(__file__).parent

BRANCHES = """
workload: {names: [a, b, c]}
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: one, args: {n: 1}}]}
  - step: each
    loop: {in: "{{ workload.names }}", iterator: name, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - {name: say, kind: noop, value: "{{ iter.name }}", set: {iter.said: yes}}
      - name: keep
        kind: noop
        spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {all: "{{ say }}"}}}}]}}
    next: {arcs: [{step: both}]}
  - step: one
    tool:
      - name: flaky
        kind: noop
        value: "{{ _attempt }}"
        spec: {policy: {rules: [{when: "{{ outcome.result < 3 }}", then: {do: retry, attempts: 5}}]}}
    next: {arcs: [{step: both, args: {n: "{{ one }}"}}, {step: start, when: "{{ false and ctx.all }}"}]}
  - step: both
    spec: {join: [each, one]}
    tool: {kind: playbook, path: child.yaml, args: {n: "{{ args.one.n }}"}}
  - step: never
    spec: {policy: {admit: {rules: [{else: {then: {allow: false}}}]}}}
"""
CHILD = "workload: {n: 0}\nworkflow:\n  - step: inner\n    tool: {kind: noop, value: '{{ workload.n * 10 }}'}\n"
FAILING = """
workload: {flag: ""}
workflow:
  - step: start
    loop: {in: [0, 1, 2], iterator: n}
    tool:
      - {name: a, kind: noop, value: "{{ iter.n }}", set: {ctx.last: "{{ iter.n }}"}}
      - {name: look, kind: files, action: stat, path: "{{ workload.flag if iter.n == 1 else '/' }}"}
"""

FANNED_OUT = """
workload: {flag: ""}
workflow:
  - step: start
    spec: {loop_mode: fanout, fanout: {range_size: 2, fail_fast: false, max_job_retries: 1, emit: per_item}, reducers: {c: count}}
    loop: {in: {range: 40}, iterator: n, spec: {mode: parallel}}
    tool:
      - {name: look, kind: files, action: stat, path: "{{ workload.flag if iter.n == 5 else '/' }}"}
      - {name: count, kind: noop, value: 0, set_shared: {c: 1}, set: {ctx.k: 0}}
"""
JOBLET = """
kind: Joblet
components:
  - {name: a, type: noop}
  - {name: b, type: noop}
connections: {control: "a (subjob_ok) b"}
"""
JOBLETS = """
components:
  - {name: it, type: iterate_list, params: {items: [5, 6], body: "@work"}}
"""


def main() -> None:
    folder = HERE / __version__
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "child.yaml").write_text(document(CHILD))
        play(BRANCHES, home, execution_id="branches")
        flag = home / "flag"
        play(FAILING, home, {"flag": str(flag)}, execution_id="mended")
        play(FANNED_OUT, home, {"flag": str(flag)}, execution_id="fanned_out")
        flag.touch()
        for name in ("mended", "fanned_out"):
            resume(home, name)
        (home / "work.yaml").write_text(JOBLET)
        run_job(JOBLETS, home, execution_id="joblets")
        asyncio.run(_write(home, folder))


async def _write(home: Path, folder: Path) -> None:
    engine = embedded(home / ".penstock")
    for name in ("branches", "mended", "fanned_out", "joblets"):
        lines = [
            encode([*entry[:-1], entry.payload.decode()]).replace(str(home).encode(), b"/home")
            for entry in engine.log.read(name)
        ]
        (folder / f"{name}.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    await engine.close()


if __name__ == "__main__":
    main()
