"""State between runs on a fleet: workers read from it, the server that ends the run keeps it, whoever dies."""

from __future__ import annotations

from pathlib import Path

from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

PLAYBOOK = document("""
state: {count: 0}
workflow:
- step: start
  tool:
  - {name: wait, kind: sleep, seconds: 20}
  - {name: add, kind: noop, set: {state.count: "{{ state.count + 1 }}"}}
""")

JOB = """
metadata: {name: load}
state: {name: out}
components:
  - name: read
    type: read_csv
    params: {path: in.csv, incremental: {column: id}}
  - name: wait
    type: sleep
    params: {seconds: 20}
  - name: write
    type: write_csv
    params: {path: "{{ state.name }}.csv"}
connections:
  data: "read.main -> write.input"
  control: "read (subjob_ok) wait"
"""


def test_a_playbook_on_a_fleet_keeps_its_state_though_its_server_dies(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PLAYBOOK, encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve("s1")
        scene.work("w1")
        first = await scene.submit(file)
        assert (await scene.ended(first)).status == "completed"
        second = await scene.submit(file)
        await scene.until(lambda: len(scene.entries(second)) > 4)
        await scene.kill_server("s1")
        await scene.serve("s2")
        assert (await scene.ended(second)).status == "completed"
        assert [(one.key, one.value, one.run) for one in scene.log.kept()] == [("count", 2, second)]
        await scene.check_replay(second)

    on_fleet(tmp_path, scenario)


def test_a_job_on_a_fleet_reads_from_the_watermark_of_the_last_run(tmp_path: Path) -> None:
    file, source = tmp_path / "j.yaml", tmp_path / "in.csv"
    file.write_text(JOB, encoding="utf-8")
    source.write_text("id\n1\n2\n", encoding="utf-8")

    async def scenario(scene: Fleet) -> None:
        await scene.serve()
        scene.work("w1")
        first = await scene.submit(file)
        assert (await scene.ended(first)).status == "completed"
        assert [(one.kind, one.key, one.value) for one in scene.log.kept()] == [("watermark", "read", 2)]
        source.write_text("id\n1\n2\n3\n", encoding="utf-8")
        second = await scene.submit(file)
        assert (await scene.ended(second)).status == "completed"
        assert (tmp_path / "out.csv").read_text(encoding="utf-8").split() == ["id", "3"]
        assert [one.value for one in scene.log.kept()] == [3]
        await scene.check_replay(second)

    on_fleet(tmp_path, scenario)
