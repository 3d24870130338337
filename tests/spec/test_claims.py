"""A loop over rows that a statement claims: a work queue in a table, on one worker and fanned out."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.app.embedded import embedded
from penstock.cli.show.live import turns
from penstock.ports.blobs import is_ref
from penstock.server.documents import Pinned
from penstock.server.runs import RunSummary
from penstock.views.run_view import RunView
from tests.chaos.engines import MemoryHome, Told, resumed, started, virtually
from tests.claiming import CLAIM, Jobs, book, queue, recorded, worked_on
from tests.cli.support import call
from tests.depth import times
from tests.engine import Played, document, play, resume
from tests.fanning import Shaky, play_with
from tests.replaying import assert_engine_replays
from tests.servers import postgres_server, postgres_url
from tests.views.support import entries, explained, text_of

__all__ = ["postgres_server", "postgres_url"]

EVERYWHERE = pytest.mark.parametrize("mode", ["local", "fanout"])


def run(step: dict[str, Any], home: Path, **more: Any) -> Played:
    return play(book(step, *more.pop("steps", ())), home, **more)


def failing(number: int) -> dict[str, Any]:
    """Fails for one job."""
    return {"name": "risky", "kind": "noop", "value": f"{{{{ 1 // (iter.job.id - {number}) }}}}"}


# ---- what is claimed


@EVERYWHERE
@pytest.mark.parametrize(("count", "rows", "at_once"), [(0, 1, 1), (5, 1, 1), (7, 3, 1), (20, 2, 4), (3, 50, 8)])
def test_every_row_is_worked_on_once(tmp_path: Path, mode: str, count: int, rows: int, at_once: int) -> None:
    jobs = Jobs.at(tmp_path, count)
    played = run(queue(rows=rows, at_once=at_once, mode=mode), tmp_path)
    assert played.status == "completed", played.error
    assert {key: played.result[key] for key in ("total", "done", "failed")} == {
        "total": count,
        "done": count,
        "failed": 0,
    }
    assert len(played.result["results"]) == count
    assert jobs.worked() == dict.fromkeys(range(count), 1)


def test_an_element_is_the_row_and_its_key_the_first_column(tmp_path: Path) -> None:
    Jobs.at(tmp_path, 2)
    told = {"name": "told", "kind": "noop", "value": "{{ [iter.job, iter.iter_key, iter.index] }}"}
    step = {**queue(), "tool": told}
    played = run(step, tmp_path)
    assert played.result["results"] == [[{"id": 0, "n": 0}, "0", 0], [{"id": 1, "n": 10}, "1", 1]]
    assert [one["outcome"]["meta"]["iter_key"] for one in played.payloads("task.done")] == ["0", "1"]


def test_a_claim_is_an_event_before_the_iterations_over_its_rows(tmp_path: Path) -> None:
    Jobs.at(tmp_path, 3)
    played = run(queue(rows=2), tmp_path)
    assert played.types("loop.started", "loop.claimed", "loop.iteration.started", "loop.iteration.done") == [
        "loop.started",
        "loop.claimed",
        "loop.iteration.started",
        "loop.iteration.done",
        "loop.iteration.started",
        "loop.iteration.done",
        "loop.claimed",
        "loop.iteration.started",
        "loop.iteration.done",
    ]
    assert played.payloads("loop.started")[0]["total"] is None
    first, second = played.payloads("loop.claimed")
    assert first == {"lo": 0, "hi": 2, "items": [{"id": 0, "n": 0}, {"id": 1, "n": 10}], "keys": ["0", "1"]}
    assert (second["lo"], second["hi"]) == (2, 3)


@EVERYWHERE
def test_rows_that_the_work_itself_adds_are_claimed_too(tmp_path: Path, mode: str) -> None:
    """Each job makes the two below it in a tree: the table is empty while they are made."""
    jobs = Jobs.at(tmp_path, 1)
    more = {
        "name": "more",
        "kind": "sqlite",
        "path": "jobs.db",
        "command": "INSERT INTO jobs SELECT column1, 0, NULL FROM (VALUES (:id * 2 + 1), (:id * 2 + 2)) WHERE column1 < 31",
        "params": {"id": "{{ iter.job.id }}"},
    }
    played = run(queue(more, at_once=4, mode=mode), tmp_path)
    assert played.status == "completed", played.error
    assert jobs.worked() == dict.fromkeys(range(31), 1)


def test_what_a_sequential_loop_writes_is_seen_by_the_next_row(tmp_path: Path) -> None:
    Jobs.at(tmp_path, 4)
    adds = {"name": "adds", "kind": "noop", "value": 0, "set": {"ctx.sum": "{{ (ctx.sum | default(0)) + iter.job.n }}"}}
    assert run(queue(adds), tmp_path).ctx == {"sum": 60}


@EVERYWHERE
def test_reducers_bring_together_what_claimed_rows_share(tmp_path: Path, mode: str) -> None:
    Jobs.at(tmp_path, 5)
    shares = {"name": "shares", "kind": "noop", "value": 1, "set_shared": {"sum": {"sum": "{{ iter.job.n }}"}}}
    assert run(queue(shares, at_once=3, mode=mode, reducers=True), tmp_path).ctx == {"sum": 100}


@EVERYWHERE
def test_the_statement_reads_how_many_rows_it_may_take_by_either_name(tmp_path: Path, mode: str) -> None:
    Jobs.at(tmp_path, 6)
    sql = CLAIM.replace(":rows", "{{ __frame_max_rows }}")
    step = queue(sql=sql, mode=mode)
    step["loop"]["in"]["claim"]["rows"] = "{{ workload.size }}"
    played = run(step, tmp_path, payload={"size": 4})
    assert played.result["total"] == 6
    opened = played.payloads("loop.claimed" if mode == "local" else "loop.shard.done")
    assert sorted(one["hi"] - one["lo"] for one in opened if one["hi"] > one["lo"]) == [2, 4]


def test_the_rows_of_a_large_claim_are_in_the_result_store(tmp_path: Path) -> None:
    jobs = Jobs.at(tmp_path, 40)
    sql = f"{CLAIM}, printf('%.5000c', 'x') AS text"
    played = run(queue(failing(33), rows=40, sql=sql), tmp_path)
    assert is_ref(played.payloads("loop.claimed")[0]["items"])
    assert played.error["row"] == {"id": 33, "n": 330}
    assert len(jobs.worked()) == 33


# ---- rows that fail


@EVERYWHERE
def test_a_failure_says_which_row_it_is_about(tmp_path: Path, mode: str) -> None:
    Jobs.at(tmp_path, 5)
    played = run(queue(failing(3), rows=2, mode=mode), tmp_path)
    assert played.status == "failed"
    assert played.error["message"] == "iteration 3 of step `start` failed: division by zero (row id = 3, n = 30)"
    (failure,) = played.payloads("loop.iteration.failed" if mode == "local" else "loop.shard.failed")
    assert failure["error"]["row"] == {"id": 3, "n": 30}


@EVERYWHERE
def test_with_fail_fast_nothing_is_claimed_after_a_failure(tmp_path: Path, mode: str) -> None:
    jobs = Jobs.at(tmp_path, 30)
    played = run(queue(failing(1), mode=mode, fanout={"max_concurrent": 1}), tmp_path)
    assert played.status == "failed"
    assert 1 in jobs.taken()
    assert len(jobs.taken()) <= (2 if mode == "local" else 4)


@EVERYWHERE
def test_with_best_effort_the_other_rows_are_worked_on(tmp_path: Path, mode: str) -> None:
    jobs = Jobs.at(tmp_path, 8)
    arcs = {"arcs": [{"step": "end", "when": "{{ fanin.status == 'partial' }}", "args": {"fanin": "{{ fanin }}"}}]}
    end = {"step": "end", "tool": {"kind": "noop", "value": "{{ [args.fanin.total, args.fanin.failed] }}"}}
    step = {**queue(failing(3), rows=2, at_once=3, mode=mode, failure="best_effort"), "next": arcs}
    played = run(step, tmp_path, steps=[end])
    assert played.result == [8, 1]
    assert jobs.worked() == dict.fromkeys({*range(8)} - {3}, 1)


@EVERYWHERE
def test_a_statement_that_cannot_claim_fails_the_step(tmp_path: Path, mode: str) -> None:
    Jobs.at(tmp_path, 2)
    for sql, words in (
        ("UPDATE absent SET x = 1 RETURNING x", "no such table: absent"),
        ("UPDATE jobs SET taken_by = :claim", "`sql` of a claim must give the rows that it claims"),
    ):
        home = tmp_path / sql[:12]
        home.mkdir()
        Jobs.at(home, 2)
        played = run(queue(sql=sql, mode=mode), home)
        assert played.status == "failed"
        assert f"`loop.in` of step `start`: {words}" in played.error["message"]


def test_when_a_later_claim_fails_the_rows_that_were_claimed_are_worked_on(tmp_path: Path) -> None:
    jobs = Jobs.at(tmp_path, 6)
    gone = {
        "name": "gone",
        "kind": "sqlite",
        "path": "jobs.db",
        "command": "{{ 'ALTER TABLE jobs RENAME COLUMN n TO m' if iter.job.id == 0 else 'SELECT 1' }}",
    }
    played = run(queue(gone, rows=4), tmp_path)
    assert played.status == "failed"
    assert "no such column: n" in played.error["message"]
    (end,) = played.payloads("step.failed")
    assert {key: end["result"][key] for key in ("total", "done", "failed")} == {"total": 4, "done": 4, "failed": 0}
    assert jobs.worked() == dict.fromkeys(range(4), 1)
    jobs.do("ALTER TABLE jobs RENAME COLUMN m TO n")
    again = resume(tmp_path)
    assert again.result["total"] == 6
    assert jobs.worked() == dict.fromkeys(range(6), 1)


@EVERYWHERE
def test_a_resume_goes_on_with_claimed_rows_and_then_claims_on(tmp_path: Path, mode: str) -> None:
    jobs = Jobs.at(tmp_path, 7)
    checks = {
        "name": "checks",
        "kind": "sqlite",
        "path": "jobs.db",
        "query": "SELECT 1 / 0 AS x, json_extract(CASE WHEN :id = 2 AND (SELECT count(*) FROM jobs WHERE id = 100) = 0 "
        "THEN 'broken' ELSE '{}' END, '$') AS y",
        "params": {"id": "{{ iter.job.id }}"},
    }
    # One range at a time: the failure would stop what is under way beside it.
    played = run(queue(checks, rows=4, mode=mode, fanout={"max_concurrent": 1}), tmp_path)
    assert played.status == "failed"
    jobs.add(range(100, 101))
    again = resume(tmp_path)
    assert again.status == "completed", again.error
    assert again.result["total"] == 8
    assert jobs.worked() == dict.fromkeys([*range(7), 100], 1)


# ---- crashes


def knows(entries: list[Any]) -> tuple[set[int], set[int]]:
    """The jobs that a log knows to be claimed, and of these the ones that it knows to be done."""
    claimed, ended = recorded(entries), worked_on(entries)
    return set(claimed.values()), {claimed[index] for index in ended}


@pytest.mark.parametrize("seed", range(times(6)))
def test_whenever_a_run_loses_its_power_no_claimed_row_is_lost_and_none_done_twice_without_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    count = chance.choice([1, 5, 12])
    step = queue(rows=chance.randint(1, 5), at_once=chance.choice([1, 2, 4]))
    file = tmp_path / "playbook.yaml"
    file.write_text(document(book(step)), encoding="utf-8")
    Jobs.at(tmp_path, count)
    home = MemoryHome.at(tmp_path)
    whole: Told = virtually(home.open, lambda engine: started(engine, file))
    assert whole.status == "completed", whole.summary.error
    starts = next(entry.seq for entry in whole.entries if entry.type == "step.started")
    for _ in range(6):
        jobs = Jobs.at(tmp_path, count)
        home = MemoryHome.at(tmp_path)
        virtually(home.open, lambda engine, home=home: started(engine, file))
        cut = home.cut(chance.randint(starts, len(home.entries()) - 1))
        claimed, ended = knows(cut.entries())
        # What was worked on and is not known to be done is worked on again; what nobody knows to be claimed is free in time.
        jobs.free(but=claimed)

        async def goes_on(engine: Any) -> Told:
            told = await resumed(engine)
            await assert_engine_replays(engine)
            return told

        told: Told = virtually(cut.open, goes_on)
        assert told.status == "completed", told.summary.error
        assert told.summary.result["total"] == count
        assert jobs.worked() == {number: 1 if number in ended else 2 for number in range(count)}


@EVERYWHERE
@pytest.mark.parametrize(("after", "grace"), [(0.0, 5.0), (1.0, 0.0), (1.0, 5.0), (4.0, 5.0)])
def test_an_interrupted_run_goes_on_with_its_claims_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, after: float, grace: float
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = Jobs.at(tmp_path, 9)
    step = queue({"name": "slowly", "kind": "sleep", "seconds": 2}, rows=2, at_once=2, mode=mode)
    file = tmp_path / "playbook.yaml"
    file.write_text(document(book(step)), encoding="utf-8")
    home = MemoryHome.at(tmp_path)

    async def stops(run: Any) -> None:
        await asyncio.sleep(after)
        run.interrupt("enough", grace)

    told: Told = virtually(home.open, lambda engine: started(engine, file, None, stops))
    assert told.status == "interrupted"
    jobs.free(but=set(recorded(told.entries).values()) if mode == "local" else jobs.taken())

    async def goes_on(engine: Any) -> Told:
        again = await resumed(engine)
        await assert_engine_replays(engine)
        return again

    again: Told = virtually(home.open, goes_on)
    assert again.status == "completed", again.summary.error
    if mode == "local":
        assert set(jobs.worked()) == set(range(9))
    # What a range has done since its last report is done again.
    assert max(jobs.worked().values()) <= (1 if mode == "local" else 2)
    assert again.summary.result["total"] == len(jobs.worked())


@pytest.mark.parametrize("seed", range(times(4)))
def test_claimed_rows_of_a_fan_out_survive_their_workers(tmp_path: Path, seed: int) -> None:
    jobs = Jobs.at(tmp_path, 25)
    tells = {"name": "tells", "kind": "noop", "value": "{{ iter.job.id }}"}
    step = queue(rows=4, mode="fanout", at_once=4, fanout={"range_size": 3})
    step["tool"].append(tells)
    played = play_with(lambda usual: Shaky(usual, seed, share=0.3), book(step), tmp_path)
    assert played.status == "completed", played.error
    known = played.result["results"]
    assert len(set(known)) == len(known) == played.result["done"] == played.result["total"]
    assert set(known) <= set(jobs.worked())
    # A range that was lost before it told what it had claimed has left those rows taken, and they are free in time.
    assert jobs.taken() == set(range(25))
    jobs.free(but=set(known))
    again = run(step, tmp_path, execution_id="run-2")
    assert sorted(known + again.result["results"]) == list(range(25))


# ---- several runs side by side


PG_CLAIM = (
    "UPDATE jobs SET taken_by = :claim, taken_at = now() WHERE id IN (SELECT id FROM jobs WHERE taken_by IS NULL "
    "ORDER BY id LIMIT :rows FOR UPDATE SKIP LOCKED) RETURNING id"
)


def pg_queue(url: str, mode: str, at_once: int, rows: int) -> str:
    claim = {"kind": "postgres", "url": url, "rows": rows, "sql": PG_CLAIM}
    work = {
        "kind": "postgres",
        "url": url,
        "command": "INSERT INTO work VALUES (:id, :run)",
        "params": {"id": "{{ iter.job.id }}", "run": "{{ execution_id }}"},
    }
    step = {
        "step": "start",
        "spec": {"loop_mode": mode},
        "loop": {"in": {"claim": claim}, "iterator": "job", "spec": {"mode": "parallel", "max_in_flight": at_once}},
        "tool": work,
    }
    return document(book(step))


@EVERYWHERE
def test_several_runs_with_several_claimers_each_work_on_every_row_once(
    tmp_path: Path, postgres_url: str, mode: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE TABLE jobs (id int PRIMARY KEY, taken_by text, taken_at timestamptz)")
        server.execute("CREATE TABLE work (id int, run text)")
        server.execute("INSERT INTO jobs SELECT generate_series(1, 200)")
        file = tmp_path / "playbook.yaml"
        file.write_text(pg_queue(postgres_url, mode, 4, 3), encoding="utf-8")

        async def main() -> list[RunSummary]:
            engine = embedded(tmp_path / ".penstock")
            try:
                pinned = Pinned(str(file), file.read_text(encoding="utf-8"))
                names = [f"run-{number}" for number in range(3)]
                starts = (engine.run(name).start(pinned, {}, label=None, trace_id=name) for name in names)
                summaries = await asyncio.gather(*starts)
                for name in names:
                    assert await engine.replay(name) is None
                return list(summaries)
            finally:
                await engine.close()

        summaries = asyncio.run(main())
        assert {one.status for one in summaries} == {"completed"}
        assert server.execute("SELECT id FROM work ORDER BY id").fetchall() == [(n,) for n in range(1, 201)]
        by_run: Any = dict(server.execute("SELECT run, count(*) FROM work GROUP BY run").fetchall())
        results: list[Any] = [one.result for one in summaries]
        assert [by_run.get(one.execution_id, 0) for one in summaries] == [result["total"] for result in results]
        # The name of a claim says whose it was.
        owners = server.execute("SELECT split_part(taken_by, '/', 1), count(*) FROM jobs GROUP BY 1").fetchall()
        assert dict(owners) == by_run


@EVERYWHERE
@pytest.mark.parametrize("at_once", [1, 4])
def test_a_duckdb_file_is_a_work_queue_too(tmp_path: Path, mode: str, at_once: int) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "jobs.duckdb")) as file:
        file.execute("CREATE TABLE jobs (id INTEGER, n INTEGER, taken_by VARCHAR)")
        file.execute("INSERT INTO jobs SELECT range, range * 10, NULL FROM range(12)")
    step = queue(rows=2, at_once=at_once, mode=mode)
    step["loop"]["in"]["claim"] |= {"kind": "duckdb", "path": "jobs.duckdb"}
    step["tool"] = {"kind": "noop", "value": "{{ iter.job.id }}"}
    played = run(step, tmp_path)
    assert played.status == "completed", played.error
    assert sorted(played.result["results"]) == list(range(12))


# ---- what people see of it


def test_a_loop_over_claimed_rows_is_explained_with_its_rows(tmp_path: Path) -> None:
    Jobs.at(tmp_path, 4)
    run(queue(failing(2), rows=2, failure="best_effort"), tmp_path)
    said = text_of(explained(tmp_path, "start@0"))
    assert "sequential loop over 4 elements: 3 done, 1 failed" in said
    assert "division by zero (row id = 2, n = 20)" in said
    one = text_of(explained(tmp_path, "start@0[2]"))
    assert 'its element: job = {"id":2,"n":20}' in one


@pytest.mark.parametrize("upto", [6, 12])
def test_while_rows_are_claimed_it_is_told_how_far_the_loop_is_but_not_of_how_many(tmp_path: Path, upto: int) -> None:
    Jobs.at(tmp_path, 4)
    run(queue(rows=2), tmp_path)
    known = RunView.of(entries(tmp_path)[:upto]).run("start@0")
    assert known is not None
    fan = known.fan
    assert fan is not None
    assert (fan.total, fan.known) == (None, 2)
    assert turns(fan) == f"{fan.settled} iterations"
    said = text_of(explained(tmp_path, "start@0", upto=upto, is_live=True))
    assert f"sequential loop over 2 elements so far: {fan.settled} done, 0 failed" in said


def test_the_events_of_claims_read_well_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Jobs.at(tmp_path, 3)
    run(queue(rows=2), tmp_path)
    monkeypatch.chdir(tmp_path)
    said = call(capsys, "events", "run-1").out
    assert "claims rows, sequential" in said
    assert "[0] to [1]" in said
