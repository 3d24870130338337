"""sleep and wait_for_file, on a clock that does not make anybody wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .support import ScriptedClock, failed, run


def test_sleep_sleeps_on_the_clock_of_the_run() -> None:
    clock = ScriptedClock()
    assert run("sleep", {"seconds": 3600}, clock=clock).result == {"slept": 3600.0}
    assert clock.elapsed == 3600
    assert failed("sleep", {"seconds": -1}).kind == "parameters"


def wait(folder: Path, clock: ScriptedClock, **params: Any) -> Any:
    return run("wait_for_file", {"path": "in.csv", **params}, folder=folder, clock=clock)


def test_a_file_that_is_there_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1")
    clock = ScriptedClock()
    ran = wait(tmp_path, clock)
    assert clock.elapsed == 0
    assert ran.after == {"FOUND": True, "WAITED": 0.0, "FILENAME": str(tmp_path / "in.csv"), "COUNT": 1}
    assert (ran.result["count"], ran.result["files"][0]["name"]) == (1, "in.csv")


def test_a_file_is_waited_for_until_it_comes(tmp_path: Path) -> None:
    clock = ScriptedClock({12.5: lambda: (tmp_path / "in.csv").write_text("1")})
    assert wait(tmp_path, clock).after["WAITED"] == 13.0


def test_an_empty_file_may_not_count_yet(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.touch()
    clock = ScriptedClock({3: lambda: path.write_text("1")})
    assert wait(tmp_path, clock, min_size=1).after["WAITED"] == 3.0


def test_a_file_that_still_grows_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    clock = ScriptedClock({time: lambda time=time: path.write_text("x" * time) for time in (2, 3, 4, 5)})
    ran = wait(tmp_path, clock, settled=4)
    assert (ran.after["WAITED"], ran.result["files"][0]["size"]) == (9.0, 5)


def test_several_files_of_a_pattern_are_waited_for_in_a_folder_that_comes_later(tmp_path: Path) -> None:
    def drop(name: str) -> None:
        (tmp_path / "drop").mkdir(exist_ok=True)
        (tmp_path / "drop" / name).touch()

    clock = ScriptedClock({2: lambda: drop("a.csv"), 4: lambda: drop("b.txt"), 6: lambda: drop("b.csv")})
    ran = wait(tmp_path, clock, path="drop", pattern="*.csv", count=2)
    assert ran.after == {"FOUND": True, "WAITED": 6.0, "FILENAME": str(tmp_path / "drop" / "a.csv"), "COUNT": 2}


def test_waiting_for_a_file_ends_when_the_time_is_up(tmp_path: Path) -> None:
    clock = ScriptedClock()
    failure = failed("wait_for_file", {"path": "in.csv", "timeout": 30, "poll": 7}, folder=tmp_path, clock=clock)
    assert (failure.kind, failure.retryable, clock.elapsed) == ("timeout", True, 30)
    assert failure.message == f"after 30 s `{tmp_path / 'in.csv'}` was not there yet, or not complete"


def test_a_folder_can_be_waited_for_too(tmp_path: Path) -> None:
    (tmp_path / "in.csv").mkdir()
    assert wait(tmp_path, ScriptedClock(), min_size=10**9).after["FOUND"] is True
