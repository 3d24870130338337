"""Commands as components."""

from __future__ import annotations

from pathlib import Path

from tests.components.harness import mistakes

from .support import failed, run


def test_a_script_runs_in_the_documents_folder(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("hello\n")
    ran = run("shell", {"command": "cat data.txt; echo oh >&2"}, folder=tmp_path)
    assert ran.result == {"exit_code": 0, "stdout": "hello\n", "stderr": "oh\n"}
    assert ran.after == {"EXIT_CODE": 0, "STDOUT": "hello\n", "STDERR": "oh\n"}
    assert sorted(ran.said) == ["hello", "oh"]


def test_arguments_reach_the_program_as_they_are(tmp_path: Path) -> None:
    text = "a b; echo 'x' $(false)"
    expected = text + "\n"
    assert run("shell", {"command": "echo", "args": [text]}, folder=tmp_path).result["stdout"] == expected
    assert run("shell", {"command": ["echo", text]}, folder=tmp_path).result["stdout"] == expected


def test_a_command_has_its_input_its_variables_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    params = {"command": 'cat; echo "$WHO"; pwd', "stdin": "in\n", "env": {"WHO": "ann"}, "cwd": "sub"}
    assert run("shell", params, folder=tmp_path).result["stdout"] == f"in\nann\n{tmp_path / 'sub'}\n"


def test_the_lines_of_the_output_can_be_rows(tmp_path: Path) -> None:
    ran = run("shell", {"command": "printf 'b\\na\\n'"}, folder=tmp_path)
    assert ran.main == [{"number": 1, "line": "b"}, {"number": 2, "line": "a"}]
    assert run("shell", {"command": "true"}, connected=["main"], folder=tmp_path).main == []


def test_a_bad_exit_code_is_a_failure_that_does_not_become_the_jobs_own(tmp_path: Path) -> None:
    failure = failed("shell", {"command": "echo why >&2; exit 3"}, folder=tmp_path)
    assert (failure.kind, failure.exit_code, failure.detail["exit_code"]) == ("exit_code", None, 3)
    assert failure.message == "the command failed: exit code 3, expected `0`: why"


def test_without_the_check_every_exit_code_is_a_result(tmp_path: Path) -> None:
    assert run("shell", {"command": "exit 3", "check": False}, folder=tmp_path).after["EXIT_CODE"] == 3
    assert run("shell", {"command": "kill -9 $$", "check": False}, folder=tmp_path).after["EXIT_CODE"] == -9


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    failure = failed("shell", {"command": "sleep 30", "timeout": 0.05}, folder=tmp_path)
    assert (failure.kind, failure.retryable) == ("timeout", True)


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    failure = failed("shell", {"command": ["no-such-program-here"]}, folder=tmp_path)
    assert (failure.kind, "no-such-program-here" in failure.message) == ("not_found", True)


def test_a_list_has_its_arguments_in_it() -> None:
    (mistake,) = mistakes("shell", {"command": ["ls"], "args": ["-l"]})
    assert (mistake.path, "leave `args` out" in mistake.message) == (("args",), True)


def test_the_output_in_after_variables_is_bounded(tmp_path: Path) -> None:
    ran = run("shell", {"command": "yes | head -c 50000"}, folder=tmp_path, connected=[])
    assert (len(ran.after["STDOUT"]), len(ran.result["stdout"])) == (10_000, 50_000)
