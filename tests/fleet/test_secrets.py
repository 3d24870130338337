"""A secret that a worker lacks: another worker may have it, and when none has it the run says so at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.ports.results import decode
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

STEP = """
keychain:
- {name: api, kind: env, var: API_TOKEN}
workflow:
- step: start
  tool:
  - {name: use, kind: python, args: {token: "{{ keychain.api }}"}, code: "result = len(token)"}
"""
RANGES = STEP.replace(
    "  tool:", "  loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel}}\n  spec: {loop_mode: fanout}\n  tool:"
)
JOB = """
apiVersion: penstock/v1
kind: Job
metadata: {name: uses}
keychain:
- {name: api, kind: env, var: API_TOKEN}
components:
  use: {type: python, params: {code: "result = 1"}}
"""
KINDS = {"step": STEP, "ranges": RANGES, "job": JOB}


@pytest.fixture(params=sorted(KINDS))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "uses.yaml"
    path.write_text(JOB if request.param == "job" else document(KINDS[request.param]), encoding="utf-8")
    return path


def test_a_secret_that_no_worker_has_fails_the_run_and_says_which(tmp_path: Path, file: Path) -> None:
    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        scene.work("w1", environ={})
        scene.work("w2", environ={})
        run = await scene.submit(file)
        assert (await scene.ended(run, 60)).status == "failed"
        return [entry for entry in scene.entries(run) if entry.type in ("job.failed", "playbook.failed")]

    ended: Any = decode(on_fleet(tmp_path, scenario)[0].payload)
    assert "API_TOKEN" in ended["error"]["message"]
    assert "worker_lost" not in str(ended["error"])


def test_a_worker_that_lacks_a_secret_leaves_the_work_to_one_that_has_it(tmp_path: Path, file: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("poor", environ={})
        scene.work("rich", environ={"API_TOKEN": "abc"})
        run = await scene.submit(file)
        assert (await scene.ended(run, 60)).status == "completed"

    on_fleet(tmp_path, scenario)
