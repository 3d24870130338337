"""Memory, disk, files and servers that fail a job: the component ends in ERROR with a clear reason, the rules hold, a resume mends it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.app.embedded import Embedded
from penstock.ports.blobs import ResultRef
from tests.chaos.engines import Told
from tests.chaos.logs import FullLog
from tests.chaos_jobs import jobs
from tests.chaos_jobs.homes import leftovers, really, started
from tests.chaos_jobs.processes import begun, resumed, until
from tests.chaos_jobs.zygote import JobZygote
from tests.jobs import resume_job, run_job
from tests.servers import postgres_server, postgres_url
from tests.spec_jobs.support import each, job, python, rows, sets

__all__ = ["postgres_server", "postgres_url"]

HUNGRY = "SELECT list(md5(a.id::VARCHAR)) AS everything FROM input a, input b"


def hungry(**config: Any) -> str:
    return job(
        "big (error) told",
        "told (subjob_ok) after",
        data=("many.main -> big.input", "big.main -> sink.input"),
        many={"type": "generate_rows", "params": {"count": 2000, "columns": {"id": "i"}}},
        big={"type": "sql", "params": {"query": HUNGRY}},
        sink={"type": "log_rows"},
        told=sets(why="{{ global.big.ERROR_MESSAGE }}"),
        config=config,
    )


@pytest.mark.clause("J8.3")
def test_a_component_over_its_memory_limit_ends_in_error_and_its_error_link_runs(folder: Path) -> None:
    run = run_job(hungry(memory_limit="16MB"), folder)
    assert run.status == "completed", run.error
    assert run.states() == {"many": "OK", "big": "ERROR", "sink": "SKIPPED", "told": "OK", "after": "OK"}
    assert "not enough memory" in str(run.globals["why"])
    assert leftovers(folder / ".penstock") == []


@pytest.mark.clause("J8.3")
def test_a_sink_on_a_full_disk_ends_in_error_and_its_error_link_runs(folder: Path) -> None:
    text = job(
        "sink (error) told",
        data=("many.main -> sink.input",),
        many={"type": "generate_rows", "params": {"count": 50_000, "columns": {"id": "i"}}},
        sink={"type": "write_csv", "params": {"path": "/dev/full"}},
        told=sets(why="{{ global.sink.ERROR_MESSAGE }}"),
    )
    run = run_job(text, folder)
    assert run.states() == {"many": "OK", "sink": "ERROR", "told": "OK"}
    assert any(words in str(run.globals["why"]) for words in ("disk is full", "No space left"))


@pytest.mark.parametrize("room", [0, 9, 25])
def test_a_job_whose_log_does_not_fit_on_the_disk_stops_and_is_resumed_when_there_is_room(
    folder: Path, room: int
) -> None:
    jobs.furnish(folder)
    file = jobs.write_rich(folder)

    async def first(engine: Embedded) -> Any:
        whole, engine.log = engine.log, FullLog(engine.log, room)
        try:
            return await started(engine, file)
        finally:
            engine.log = whole

    with pytest.raises(Exception, match="disk is full"):
        really(folder, first)
    assert leftovers(folder / ".penstock") == []
    if room:
        run = resume_job(folder)
        assert run.status == "completed", run.error
        assert run.globals.items() >= jobs.GLOBALS.items()


def test_a_work_folder_that_cannot_be_made_is_an_error_of_the_component_that_needed_it(folder: Path) -> None:
    (folder / ".penstock").mkdir()
    (folder / ".penstock" / "work").write_text("a file where a folder should be")
    text = job("sink (error) told", data=("many.main -> sink.input",), many=rows(1, 2), sink={"type": "log_rows"})
    run = run_job(text, folder)
    assert run.status in ("failed", "completed")
    assert "ERROR" in run.states().values()
    (folder / ".penstock" / "work").unlink()
    assert resume_job(folder).status == "completed"


def test_a_file_that_goes_between_the_check_and_the_run_is_named(folder: Path) -> None:
    (folder / "in.csv").write_text("id\n1\n")
    text = job(
        "first (subjob_ok) read",
        data=("read.main -> sink.input",),
        first=python("import os\nos.replace('in.csv', 'away.csv')"),
        read={"type": "read_csv", "params": {"path": "in.csv"}},
        sink={"type": "log_rows"},
    )
    run = run_job(text, folder)
    assert (run.status, run.states()["read"]) == ("failed", "ERROR")
    assert "in.csv" in run.error["message"]
    shutil.move(folder / "away.csv", folder / "in.csv")
    again = resume_job(folder)
    assert again.status == "completed", again.error
    assert again.component("first")["kept"] is True


@pytest.mark.clause("J12.6")
def test_a_resumed_iterator_goes_on_over_its_files_though_some_are_gone_and_others_have_come(folder: Path) -> None:
    jobs.furnish(folder)
    code = (
        f"{jobs.LOAD}\nif iteration['index'] == 0 and not os.path.exists('flag'):\n    raise SystemError('too early')"
    )
    text = job(
        "files (iterate) load",
        "load (ok) archive",
        files={"type": "iterate_files", "params": {"path": "drop", "pattern": "*.txt"}},
        load=python(code.replace("if 'bad' in text:", "if False:").replace("int(line)", "line")),
        archive=python(jobs.ARCHIVE),
    )
    first = run_job(text, folder)
    assert first.status == "failed"
    (folder / "drop" / "aa.txt").write_text("new")
    os.replace(folder / "drop" / "c.txt", folder / "done" / "c.txt")
    (folder / "flag").touch()
    run = resume_job(folder)
    assert run.status == "completed", run.error
    assert run.globals["loaded"] == ["a.txt", "b.txt", "c.txt"]
    assert (folder / "drop" / "aa.txt").exists()


def test_a_global_over_the_payload_limit_goes_by_reference_and_comes_back_whole(folder: Path) -> None:
    text = job(
        "a (subjob_ok) b",
        "b (subjob_ok) c",
        a=python("globals['big'] = ['x' * 100] * 20_000"),
        b=python("globals['n'] = len(globals['big'])"),
        c=python("import os\nassert os.path.exists('flag')\nglobals['again'] = len(globals['big'])"),
    )
    first = run_job(text, folder)
    assert (first.status, first.globals["n"]) == ("failed", 20_000)
    assert max(len(str(event["payload"])) for event in first.events) < 20_000
    (folder / "flag").touch()
    run = resume_job(folder)
    assert (run.status, run.globals["again"]) == ("completed", 20_000)


# ---- PostgreSQL


SLOW = """
    CREATE TABLE target (id int);
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$;
    CREATE TRIGGER slow BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION slow();
"""


def loading(url: str) -> str:
    return job(
        "load (ok) after",
        data=("many.main -> load.input",),
        many={"type": "generate_rows", "params": {"count": 400, "columns": {"id": "i"}}},
        load={"type": "write_sql", "params": {"connection": url, "table": "target"}},
        after=jobs.marking("after"),
    )


def writers(connection: Any) -> list[int]:
    """The server's processes that write into the table of this test."""
    query = """
        SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        WHERE c.oid = to_regclass('target') AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_backend_pid()
    """
    return [pid for (pid,) in connection.execute(query).fetchall()]


def loaded(connection: Any) -> int:
    return int(connection.execute("SELECT count(*) FROM target").fetchone()[0])


def test_a_load_that_is_killed_is_taken_back_and_a_resume_loads_once(folder: Path, postgres_url: str) -> None:
    (folder / "job.yaml").write_text(loading(postgres_url))
    with JobZygote() as zygote, psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SLOW)
        pid = begun(zygote, folder, folder / "job.yaml")
        until(lambda: writers(connection), "the load")
        os.kill(pid, 9)
        zygote.wait(pid)
        for writer in writers(connection):  # It would notice by itself, after its rows.
            connection.execute("SELECT pg_terminate_backend(%s)", (writer,))
        until(lambda: not writers(connection), "the end of the load")
        assert loaded(connection) == 0
        connection.execute("DROP TRIGGER slow ON target")
        assert resumed(zygote, folder)["status"] == "completed"
        assert loaded(connection) == 400
    assert jobs.marks(folder) == {"after": 1}


def test_a_server_that_goes_away_in_the_middle_of_a_load_fails_it_and_a_resume_loads_once(
    folder: Path, postgres_url: str
) -> None:
    (folder / "job.yaml").write_text(loading(postgres_url))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(SLOW)

        async def take_away(run: Any) -> None:
            while not (found := writers(connection)):
                await asyncio.sleep(0.02)
            connection.execute("SELECT pg_terminate_backend(%s)", (found[0],))

        told: Told = really(folder, lambda engine: started(engine, folder / "job.yaml", None, take_away))
        assert told.status == "failed"
        error: Any = told.summary.error
        assert (error["component"], error["retryable"]) == ("load", True), error
        assert loaded(connection) == 0
        connection.execute("DROP TRIGGER slow ON target")
        run = resume_job(folder)
        assert run.status == "completed", run.error
        assert loaded(connection) == 400


def test_a_stored_output_that_is_gone_is_told_and_not_taken_for_empty(folder: Path) -> None:
    text = job(
        "fork (parallelise) left, right",
        "left, right (synchronise) met",
        data=("left.main -> met.input_a", "right.main -> met.input_b", "met.main -> last.input"),
        left=rows(1, 2),
        right=rows(3),
        met={"type": "union"},
        last=python("import os\nassert os.path.exists('flag')"),
    )
    first = run_job(text, folder)
    assert first.status == "failed"
    stored = [one["outputs"]["main"]["stored"] for one in first.payloads("component.ok") if one["component"] == "left"]
    reference = ResultRef.from_json(stored[0])
    next(
        path for path in (folder / ".penstock" / "blobs").rglob("*") if reference.checksum.endswith(path.name)
    ).unlink()
    (folder / "flag").touch()
    run = resume_job(folder)
    assert run.status == "failed"
    assert run.states()["met"] == "ERROR"
    assert "is not there" in run.error["message"]


@pytest.mark.parametrize("parallel", [1, 4])
def test_an_iteration_that_runs_out_of_memory_fails_alone(folder: Path, parallel: int) -> None:
    text = job(
        "it (iterate) many",
        data=("many.main -> big.input", "big.main -> sink.input"),
        it=each(10, 2000, 20, parallel=parallel),
        many={"type": "generate_rows", "params": {"count": "{{ iteration.item }}", "columns": {"id": "i"}}},
        big={"type": "sql", "params": {"query": HUNGRY}},
        sink={"type": "log_rows"},
        config={"memory_limit": "16MB", "fail_strategy": "continue"},
    )
    run = run_job(text, folder)
    assert run.status == "completed"
    assert [run.subjobs()[f"it[#{index}]"] for index in range(3)] == ["OK", "ERROR", "OK"]
