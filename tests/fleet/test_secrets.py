"""A secret that a worker lacks: another worker may have it, and when none has it the run says so at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.keychain import KeychainError
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


UNDECLARED = """
workload: {which: shop}
workflow:
- step: start
  tool: [{name: pick, kind: noop, set: {ctx.picked: shop}}]
  next: {arcs: [{step: ask}]}
- step: ask
  tool: [{name: ask, kind: sqlite, auth: AUTH, query: SELECT 1 AS one}]
"""


@pytest.mark.parametrize("auth", ["shop", "'{{ which }}'", "'{{ ctx.picked }}'"])
def test_a_worker_finds_a_name_that_is_not_declared(tmp_path: Path, auth: str) -> None:
    file = tmp_path / "uses.yaml"
    file.write_text(document(UNDECLARED.replace("AUTH", auth)), encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1", environ={"PENSTOCK_SHOP": str(tmp_path / "data.db")})
        run = await scene.submit(file)
        assert (await scene.ended(run, 60)).status == "completed"

    on_fleet(tmp_path, scenario)


@pytest.mark.parametrize("auth", ["shop", "'{{ which }}'", "'{{ ctx.picked }}'"])
def test_a_name_that_no_worker_has_fails_the_run_and_says_which(tmp_path: Path, auth: str) -> None:
    file = tmp_path / "uses.yaml"
    file.write_text(document(UNDECLARED.replace("AUTH", auth)), encoding="utf-8")

    async def scenario(scene: Fleet) -> Any:
        await scene.serve()
        scene.work("w1", environ={})
        run = await scene.submit(file)
        assert (await scene.ended(run, 60)).status == "failed"
        return [entry for entry in scene.entries(run) if entry.type == "playbook.failed"]

    ended: Any = decode(on_fleet(tmp_path, scenario)[0].payload)
    assert "looked for `shop` in the local keychain" in ended["error"]["message"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{name: api, kind: env, var: '{{ workload.nothing }}'}", "`workload.nothing` is undefined"),
        ("{name: api, kind: secret_manager, map: {a: x}, key: y}", "`key` is not a field"),
    ],
)
def test_what_no_worker_could_resolve_is_refused_at_submission(tmp_path: Path, entry: str, says: str) -> None:
    file = tmp_path / "uses.yaml"
    file.write_text(
        document(f"keychain: [{entry}]\nworkflow: [{{step: start, tool: {{kind: noop}}}}]"), encoding="utf-8"
    )

    async def scenario(scene: Fleet) -> KeychainError:
        await scene.serve()
        with pytest.raises(KeychainError) as caught:
            await scene.submit(file)
        return caught.value

    error = on_fleet(tmp_path, scenario)
    assert says in error.message
    assert "uses.yaml:" in error.message
