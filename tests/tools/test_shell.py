"""The `shell` tool: commands and scripts, their output, their end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import Settings
from tests.cases import cases
from tests.tools.running import Runner, is_gone, is_reaped, open_descriptors, waits_for

BACKGROUND = "sleep 1000 & echo $$ $!; "


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner("shell", tmp_path)


def test_a_script_runs_in_the_shell(run: Runner):
    ended = run({"command": "for i in 1 2; do echo line $i; done; echo oops >&2"})
    assert ended.result == {"exit_code": 0, "stdout": "line 1\nline 2\n", "stderr": "oops\n", "data": "line 1\nline 2"}


def test_a_list_is_a_program_and_its_arguments_and_no_shell_reads_them(run: Runner):
    assert run({"command": ["printf", "%s|", "$HOME", "a b", ";", 5, True]}).result["data"] == "$HOME|a b|;|5|true|"


def test_bash_can_be_asked_for(run: Runner):
    assert run({"command": "a=(1 2 3); echo ${#a[@]}", "shell": "bash"}).result["data"] == "3"


def test_every_line_is_said_as_it_comes(run: Runner):
    ended = run({"command": "echo one; echo two; printf three"})
    assert ended.said == ["one", "two", "three"]


def test_a_progress_bar_is_said_as_a_terminal_would_show_it_in_the_end(run: Runner):
    assert run({"command": r"printf '10%%\r50%%\r100%%\ndone\r\n'"}).said == ["100%", "done"]


def test_output_can_be_json(run: Runner):
    assert run({"command": """echo '{"a": [1, 2]}'""", "output": "json"}).result["data"] == {"a": [1, 2]}


def test_output_that_is_not_json_is_an_error(run: Runner):
    ended = run({"command": "echo nonsense", "output": "json"})
    assert (ended.kind, ended.detail["stdout"]) == ("output", "nonsense\n")
    assert ended.message.startswith("the output is not JSON")


def test_output_can_be_lines(run: Runner):
    assert run({"command": r"printf 'a\nb\n'", "output": "lines"}).result["data"] == ["a", "b"]
    assert run({"command": "true", "output": "lines"}).result["data"] == []


def test_bytes_that_are_not_text_are_replaced(run: Runner):
    assert run({"command": r"printf 'a\377b'"}).result["stdout"] == "a\ufffdb"


def test_an_exit_code_that_is_not_expected_is_an_error(run: Runner):
    ended = run({"command": "echo out; echo first >&2; echo last >&2; exit 3"})
    assert ended.kind == "exit_code"
    assert ended.message == "the command failed: exit code 3, expected `0`: last"
    assert ended.detail == {"exit_code": 3, "stdout": "out\n", "stderr": "first\nlast\n"}


def test_other_exit_codes_can_be_expected(run: Runner):
    assert run({"command": "exit 3", "ok_codes": [0, 3]}).result["exit_code"] == 3
    assert run({"command": "exit 0", "ok_codes": [3]}).kind == "exit_code"


def test_a_command_ended_by_a_signal_names_it(run: Runner):
    ended = run({"command": "kill -SEGV $$"})
    assert (ended.kind, ended.detail["exit_code"]) == ("exit_code", -11)
    assert "ended by SIGSEGV" in ended.message


def test_variables_are_added_to_those_of_the_engine(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FROM_ENGINE", "engine")
    ended = run({"command": "echo $FROM_ENGINE $MODE $SIZE", "env": {"MODE": "test", "SIZE": 5}})
    assert ended.result["data"] == "engine test 5"


def test_the_working_folder_is_the_documents_own(run: Runner, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    assert run({"command": "pwd -P"}).result["data"] == str(tmp_path.resolve())
    assert run({"command": ["pwd", "-P"], "cwd": "sub"}).result["data"] == str((tmp_path / "sub").resolve())


def test_stdin_is_given_to_the_command_and_is_empty_otherwise(run: Runner):
    assert run({"command": "cat", "stdin": "hällo\n"}).result["stdout"] == "hällo\n"
    assert run({"command": "cat"}).result["stdout"] == ""


def test_a_large_input_that_nobody_reads_is_no_error(run: Runner):
    assert run({"command": "exec <&-; true", "stdin": "x" * 5_000_000}).failure is None


def test_a_large_input_goes_through(run: Runner):
    assert run({"command": "wc -c", "stdin": "x" * 5_000_000}).result["data"].strip() == "5000000"


@cases(
    "params, kind, says",
    [
        ({"command": ["no-such-program-here"]}, "not_found", "there is no program `no-such-program-here`"),
        ({"command": ["./data.txt"]}, "not_found", "`./data.txt` is not a program that may be run"),
        ({"command": "true", "cwd": "nowhere"}, "not_found", "does not exist or is not a folder"),
        ({"command": []}, "parameters", "`command` is an empty list"),
        ({"command": ["echo", "a\0b"]}, "cannot_start", "`echo` cannot be started"),
        ({}, "parameters", "one of `command` and `cmds` is needed, and not both"),
        ({"command": "true", "cmds": "true"}, "parameters", "one of `command` and `cmds` is needed, and not both"),
        ({"cmds": []}, "parameters", "`cmds` is an empty list"),
        ({"command": 5.5, "shell": "zsh"}, "parameters", "`shell`: expected one of `bash`, `sh`, got `zsh`"),
        ({"command": "no-such-program-here"}, "exit_code", "exit code 127"),
    ],
)
def test_what_cannot_be_run_is_named(run: Runner, tmp_path: Path, params: dict[str, Any], kind: str, says: str):
    (tmp_path / "data.txt").write_text("data")
    ended = run(params)
    assert ended.kind == kind
    assert says in ended.message


def test_a_flood_of_output_keeps_its_beginning_and_its_end(run: Runner):
    ended = run({"command": "seq 1 200000"}, settings=Settings(max_output_bytes=1000))
    stdout = ended.result["stdout"]
    assert stdout.startswith("1\n2\n3\n")
    assert stdout.endswith("199999\n200000\n")
    assert "bytes left out" in stdout
    assert len(stdout) < 1100
    assert ended.said[-1] == "… output truncated"
    assert sum(len(line) + 1 for line in ended.said[:-1]) <= 1000


def test_json_that_was_cut_is_not_read(run: Runner):
    ended = run({"command": "seq 1 2000", "output": "json"}, settings=Settings(max_output_bytes=1000))
    assert (ended.kind, ended.message) == ("output", "the output has 8893 bytes, more than the 1000 that are kept")


def test_a_command_that_hangs_is_ended_with_all_it_started(run: Runner):
    ended = run({"command": f"{BACKGROUND} sleep 1000", "timeout": 1})
    assert (ended.kind, ended.message) == ("timeout", "the command was still running after 1 s")
    own, background = map(int, ended.detail["stdout"].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(background))


def test_the_time_out_of_the_spec_holds_as_well(run: Runner):
    ended = run({"command": "sleep 1000", "timeout": 500}, spec={"timeout": {"total": 0.1}})
    assert ended.failure is not None
    assert (ended.kind, ended.failure.retryable) == ("timeout", True)


def test_a_command_may_clean_up_when_it_is_asked_to_end(run: Runner, tmp_path: Path):
    run.cancelled({"command": "trap 'touch cleaned; exit 0' TERM; echo ready; while true; do sleep 0.01; done"})
    assert (tmp_path / "cleaned").exists()


def test_a_command_that_will_not_end_is_made_to(run: Runner):
    said = run.cancelled({"command": "trap '' TERM; echo $$; while true; do sleep 0.01; done"})
    assert is_reaped(int(said[0]))


def test_a_cancelled_command_ends_with_all_it_started(run: Runner):
    own, background = map(int, run.cancelled({"command": f"{BACKGROUND} sleep 1000"})[0].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(background))


def test_what_is_left_in_the_background_neither_holds_the_task_up_nor_outlives_it(run: Runner):
    ended = run({"command": BACKGROUND})
    own, background = map(int, ended.result["data"].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(background))


def test_output_that_comes_after_the_first_process_has_ended_is_kept(run: Runner):
    assert run({"command": "(sleep 0.05; echo late) & echo early"}).result["stdout"] == "early\nlate\n"


def test_no_descriptor_is_left_open(run: Runner):
    run({"command": "true"})
    before = open_descriptors()
    for params in (
        {"command": "echo a"},
        {"command": ["nothing-here"]},
        {"command": "sleep 9", "timeout": 0.05},
        {"command": "cat", "stdin": "x"},
    ):
        run(params)
    waits_for(lambda: open_descriptors() <= before)


def test_where_the_system_has_no_pidfd_the_exit_is_seen_all_the_same(run: Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("os.pidfd_open")
    assert run({"command": "sleep 0.05; echo x"}).result["data"] == "x"
    assert run({"command": "sleep 1000", "timeout": 0.1}).kind == "timeout"


def test_many_run_at_once(run: Runner):
    async def main() -> list[Any]:
        return await asyncio.gather(*(run.start([], {"command": f"echo {number}"}) for number in range(30)))

    assert [result["data"] for result in asyncio.run(main())] == [str(number) for number in range(30)]
