"""Runs that take their servers with them are set aside, and those that were only beside them go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

from penstock.ports.log import Request
from penstock.ports.results import encode
from penstock.server.take_overs import (
    BEATS,
    GROUP,
    MOST,
    MOST_IDLE,
    NOTE,
    LostWithServers,
    Trials,
    idle_losses,
    notes_of,
    refusal,
)
from tests.engine import document
from tests.fleet.scene import Fleet, on_fleet

LONG = """
- step: start
  tool: [{name: wait, kind: sleep, seconds: 300}]
"""


def file_of(folder: Path, text: str = LONG) -> Path:
    file = folder / "long.yaml"
    file.write_text(document(text))
    return file


async def dies_soon(scene: Fleet, name: str, after_s: float = 1.0) -> None:
    await scene.serve(name)
    await asyncio.sleep(after_s)
    await scene.kill_server(name)
    await asyncio.sleep(15)  # Until its share is free.


def test_a_run_that_no_server_outlives_is_set_aside_and_can_be_resumed(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("first")
        run = await scene.submit(file_of(tmp_path))
        await asyncio.sleep(1)
        await scene.kill_server("first")
        await asyncio.sleep(15)
        for number in range(MOST_IDLE):
            await dies_soon(scene, f"s{number}")
            assert scene.header(run).status == "running"
        last = await scene.serve("last")
        await scene.until(lambda: scene.header(run).status == "interrupted", 30)
        ((told, error),) = last.problems
        assert told == run
        assert isinstance(error, LostWithServers)
        assert not scene.log.asked()
        await last.hosting.ask(run, "resume", {})
        scene.work("w")
        await scene.until(lambda: scene.header(run).status == "completed")

    on_fleet(tmp_path, scenario)


def test_a_run_that_was_only_there_when_servers_died_goes_on_once_one_lives(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("first")
        run = await scene.submit(file_of(tmp_path))
        await asyncio.sleep(1)
        await scene.kill_server("first")
        await asyncio.sleep(15)
        for number in range(MOST_IDLE - 1):
            await dies_soon(scene, f"s{number}")
        assert len(scene.log.asked(run)) == MOST_IDLE - 1
        await scene.serve("lives")
        await asyncio.sleep(30)
        assert not scene.log.asked(run)
        # From here on it counts anew.
        await scene.kill_server("lives")
        await asyncio.sleep(15)
        await dies_soon(scene, "again")
        await scene.serve("stays")
        scene.work("w")
        assert (await scene.ended(run)).status == "completed"

    on_fleet(tmp_path, scenario)


def test_servers_that_die_while_a_run_gets_on_are_not_held_against_it(tmp_path: Path) -> None:
    steps = "".join(
        f"- step: {name}\n  tool: [{{name: t, kind: sleep, seconds: 1}}]\n"
        + (f"  next: {{arcs: [{{step: {after}}}]}}\n" if after else "")
        for name, after in zip(
            ["start", *(f"s{n}" for n in range(40))], [*(f"s{n}" for n in range(40)), None], strict=True
        )
    )

    async def scenario(scene: Fleet) -> None:
        await scene.serve("first")
        scene.work("w")
        run = await scene.submit(file_of(tmp_path, steps))
        await asyncio.sleep(1)
        await scene.kill_server("first")
        await asyncio.sleep(15)
        for number in range(MOST_IDLE + 1):
            await dies_soon(scene, f"s{number}", 4.0)
        await scene.serve("last")
        assert (await scene.ended(run)).status == "completed"

    on_fleet(tmp_path, scenario)


def test_a_suspect_is_cancelled_without_being_taken_up(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("first")
        run = await scene.submit(file_of(tmp_path))
        await asyncio.sleep(1)
        await scene.kill_server("first")
        await asyncio.sleep(15)
        await dies_soon(scene, "second")
        scene.log.ask(run, "cancel", encode({"reason": "enough"}))
        before = len(notes_of(scene.log.asked(run))[run])
        server = await scene.serve("third")
        await scene.until(lambda: scene.header(run).status == "cancelled", 30)
        assert before == 1
        assert not server.problems
        await scene.until(lambda: not scene.log.asked(run), 30)

    on_fleet(tmp_path, scenario)


def test_a_server_that_lets_go_of_its_runs_leaves_no_note(tmp_path: Path) -> None:
    async def scenario(scene: Fleet) -> None:
        await scene.serve("first")
        run = await scene.submit(file_of(tmp_path))
        await asyncio.sleep(1)
        await scene.kill_server("first")
        await asyncio.sleep(15)
        second = await scene.serve("second")
        await asyncio.sleep(1)
        assert len(scene.log.asked(run)) == 1
        await second.close()
        del scene.servers["second"]
        assert not scene.log.asked(run)

    on_fleet(tmp_path, scenario)


def requests(*seqs: int) -> dict[str, list]:
    return notes_of(Request(number, "r", NOTE, encode({"seq": seq})) for number, seq in enumerate(seqs))


def test_what_counts_are_take_overs_since_the_last_entry_and_all_of_them():
    assert refusal(requests(5, 5)["r"], 5) is None
    assert "3 servers took the run up" in str(refusal(requests(5, 5, 5)["r"], 5))
    assert refusal(requests(1, 2, 3, 4, 5, 6, 7)["r"], 8) is None
    assert refusal(requests(*range(MOST))["r"], 99) is not None
    assert notes_of([Request(1, "r", "cancel", b"{}")]) == {}


def test_the_server_that_registered_a_run_and_wrote_no_entry_counts_as_lost_with_it():
    assert refusal(requests(0)["r"], 0) is None
    assert "3 servers took the run up" in str(refusal(requests(0, 0)["r"], 0))
    # Its first entry was written after all.
    assert refusal(requests(0, 0)["r"], 1) is None
    assert idle_losses([], 0) == 0


def test_suspects_are_taken_up_in_groups_and_the_worst_alone():
    trials = Trials()
    assert trials.has_room(2)
    for number in range(GROUP):
        assert trials.has_room(1)
        trials.begin(f"once{number}", 1)
    assert not trials.has_room(1)
    assert not trials.has_room(2)
    assert trials.has_room(0)
    for _ in range(BEATS):
        assert trials.beat() == []
    assert len(trials.beat()) == GROUP
    trials.begin("twice", 2)
    assert not trials.has_room(1)
    trials.end("twice")
    assert trials.has_room(2)
