"""`cmds` of the `shell` tool: several scripts, each in a process of its own, and the folder that each runs in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.tools.base import Settings
from penstock.tools.shell import _paths
from tests.cases import cases
from tests.tools.running import PATIENCE, Ended, Runner, is_gone, is_reaped, waits_for

BACKGROUND = "sleep 1000 & echo $$ $!; "


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    (tmp_path / "document").mkdir()
    return Runner("shell", tmp_path / "document")


# ---- entries


def test_each_entry_is_a_script_of_its_own_and_the_last_one_gives_the_result(run: Runner):
    ended = run({"cmds": ["echo one; echo oops >&2", "echo two"]})
    assert ended.result == {
        "exit_code": 0,
        "stdout": "two\n",
        "stderr": "",
        "data": "two",
        "commands": [
            {"command": "echo one; echo oops >&2", "exit_code": 0, "stdout": "one\n", "stderr": "oops\n"},
            {"command": "echo two", "exit_code": 0, "stdout": "two\n", "stderr": ""},
        ],
    }
    assert sorted(ended.said) == ["one", "oops", "two"]


def test_no_folder_and_no_variable_lives_on_into_the_next_entry(run: Runner, tmp_path: Path):
    ended = run({"cmds": ["mkdir sub; cd sub; export HERE=1; pwd -P", "echo ${HERE:-none}; pwd -P"]})
    assert ended.result["commands"][0]["stdout"] == f"{tmp_path}/document/sub\n"
    assert ended.result["stdout"] == f"none\n{tmp_path}/document\n"


def test_a_text_is_one_script_whatever_lines_it_has(run: Runner):
    ended = run({"cmds": "a=1\necho $a"})
    assert (ended.result["data"], len(ended.result["commands"])) == ("1", 1)


def test_entries_run_in_bash_unless_the_task_says_otherwise(run: Runner):
    assert run({"cmds": ["a=(1 2 3); echo ${#a[@]}"]}).result["data"] == "3"
    assert run({"cmds": ["echo $0"], "shell": "sh"}).result["data"] == "/bin/sh"
    assert run({"command": "echo $0"}).result["data"] == "/bin/sh"


def test_a_missing_bash_is_named_with_what_to_do(run: Runner, tmp_path: Path):
    ended = run({"cmds": ["true"], "env": {"PATH": str(tmp_path)}})
    assert ended.kind == "not_found"
    assert ended.message == "there is no program `bash`, which runs `cmds`: install it, or write `shell: sh`"


def test_the_first_entry_that_fails_is_the_last_and_is_named(run: Runner, tmp_path: Path):
    ended = run({"cmds": ["echo one", "echo out; echo why >&2; exit 3", "touch never"]})
    assert ended.kind == "exit_code"
    assert ended.message == "entry 2 of 3 (`echo out; echo why >&2; exit 3`) failed: exit code 3, expected `0`: why"
    assert ended.detail == {
        "exit_code": 3,
        "stdout": "out\n",
        "stderr": "why\n",
        "commands": [
            {"command": "echo one", "exit_code": 0, "stdout": "one\n", "stderr": ""},
            {"command": "echo out; echo why >&2; exit 3", "exit_code": 3, "stdout": "out\n", "stderr": "why\n"},
        ],
    }
    assert not (tmp_path / "document/never").exists()


def test_exit_codes_variables_input_and_folder_hold_for_each_entry(run: Runner, tmp_path: Path):
    (tmp_path / "document/sub").mkdir()
    line = "read x; echo $x $MODE $(basename $PWD); exit 3"
    ended = run({"cmds": [line, line], "ok_codes": [3], "env": {"MODE": "m"}, "stdin": "in\n", "cwd": "sub"})
    assert [each["stdout"] for each in ended.result["commands"]] == ["in m sub\n", "in m sub\n"]
    assert [each["exit_code"] for each in ended.result["commands"]] == [3, 3]


def test_the_output_of_the_last_entry_is_what_data_is_made_of(run: Runner):
    assert run({"cmds": ["echo nonsense", "echo '[1]'"], "output": "json"}).result["data"] == [1]
    ended = run({"cmds": ["echo '[1]'", "echo nonsense"], "output": "json"})
    assert ended.kind == "output"
    assert [each["stdout"] for each in ended.detail["commands"]] == ["[1]\n", "nonsense\n"]


def test_entries_that_print_without_end_keep_their_beginnings_and_ends_within_one_limit(run: Runner):
    ended = run({"cmds": ["seq 1 200000"] * 4}, settings=Settings(max_output_bytes=4000))
    listed = [each["stdout"] for each in ended.result["commands"]]
    assert all(text.startswith("1\n2\n") and text.endswith("200000\n") for text in listed)
    assert all(len(text) < 1100 for text in listed)
    assert len(ended.result["stdout"]) < 4100
    assert sum(len(line) + 1 for line in ended.said[:-1]) <= 4000
    assert ended.said[-1] == "… output truncated"


def test_a_failure_tells_of_the_last_entries_and_of_each_only_a_part(run: Runner):
    script = f"seq 1 5000; : {'x' * 3000}"
    ended = run({"cmds": [*[script] * 30, "exit 1"]})
    told = ended.detail["commands"]
    assert len(told) == 20
    assert all(len(each["stdout"]) <= 1000 and len(each["command"]) <= 1001 for each in told)
    assert (told[-1]["command"], told[-2]["stdout"][-5:]) == ("exit 1", "5000\n")


def test_what_a_failure_shows_is_never_cut_in_the_middle_of_a_secret(run: Runner):
    secret = "s3cr3t-" * 20
    script = f"{'x' * 110} {secret}"
    ended = run({"cmds": [script]}, holds_secret=lambda text: secret in text)
    assert ended.message.startswith("entry 1 of 1 (`…`) failed: exit code 127")
    line = f"{secret}{'y' * 250}"
    ended = run({"cmds": [f"echo {line} >&2; seq 1 2000; exit 1"]}, holds_secret=lambda text: secret in text)
    assert ended.message.endswith("failed: exit code 1, expected `0`: …")
    assert (ended.detail["stdout"][:4], ended.detail["commands"][0]["stdout"][:4]) == ("1202", "1802")


def test_of_an_entry_of_several_lines_the_first_one_is_named(run: Runner):
    assert run({"cmds": ["a=1\nexit 1\n"]}).message.startswith("entry 1 of 1 (`a=1…`) failed")


# ---- the end of an entry in the middle


def test_the_time_is_that_of_all_entries_and_the_one_that_runs_is_ended_with_all_it_started(run: Runner):
    ended = run({"cmds": ["echo one", f"{BACKGROUND} sleep 1000", "true"], "timeout": 1})
    assert ended.kind == "timeout"
    assert ended.message == f"entry 2 of 3 (`{BACKGROUND} sleep 1000`) was still running after 1 s"
    assert [each["exit_code"] for each in ended.detail["commands"]] == [0, None]
    own, background = map(int, ended.detail["stdout"].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(background))


def test_entries_that_are_each_quick_enough_can_still_take_too_long(run: Runner):
    ended = run({"cmds": ["sleep 0.1"] * 200, "timeout": 0.5})
    assert ended.kind == "timeout"
    assert 1 <= len(ended.detail["commands"]) <= 20


def test_a_task_that_is_cancelled_in_its_second_entry_leaves_nothing_running(run: Runner, tmp_path: Path):
    said: list[str] = []

    async def whole() -> None:
        task = asyncio.ensure_future(run.start(said, {"cmds": ["echo one", f"{BACKGROUND} sleep 1000", "touch never"]}))
        async with asyncio.timeout(PATIENCE):
            while len(said) < 2:
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(whole())
    own, background = map(int, said[1].split())
    assert is_reaped(own)
    waits_for(lambda: is_gone(background))
    assert not (tmp_path / "document/never").exists()


def test_an_entry_may_clean_up_when_its_task_is_cancelled(run: Runner, tmp_path: Path):
    run.cancelled({"cmds": ["true", "trap 'touch cleaned; exit 0' TERM; echo ready; while true; do sleep 0.01; done"]})
    assert (tmp_path / "document/cleaned").exists()


def test_an_entry_that_a_signal_ends_fails_the_task(run: Runner):
    ended = run({"cmds": ["echo one", "kill -KILL $$", "echo three"]})
    assert "entry 2 of 3 (`kill -KILL $$`) failed: ended by SIGKILL" in ended.message
    assert ended.said == ["one"]


# ---- the caller's folder


@pytest.fixture
def caller(tmp_path: Path) -> Path:
    for folder in ("caller/scripts", "caller/conf", "document"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "caller/scripts/where.sh").write_text("pwd -P\n")
    (tmp_path / "caller/both.txt").write_text("the caller's\n")
    (tmp_path / "document/both.txt").write_text("the document's\n")
    return tmp_path / "caller"


def _ran_at_the_caller(ended: Ended, caller: Path) -> list[bool]:
    assert ended.failure is None
    return [each["stdout"].splitlines()[-1] == str(caller) for each in ended.result["commands"]]


def test_an_entry_that_names_a_file_of_the_callers_folder_alone_runs_there_and_says_so(run: Runner, caller: Path):
    ended = run({"cmds": ["pwd -P", "bash scripts/where.sh", "cat both.txt; pwd -P"]}, caller=caller)
    assert _ran_at_the_caller(ended, caller) == [False, True, False]
    assert ended.result["commands"][2]["stdout"].startswith("the document's")
    line = f"entry 2 runs in `{caller}`: `scripts/where.sh` is there, and not beside the document"
    assert [each for each in ended.said if each.startswith("entry")] == [line]


@cases(
    "script, is_there",
    [
        ("ls scripts", True),
        ("cd scripts && cd .. && pwd -P", True),
        ("./scripts/where.sh 2>/dev/null || pwd -P", True),
        ("bash 'scripts/where.sh'", True),
        ('bash "scripts"/where.sh', True),
        ("bash --rcfile=scripts/where.sh -c true; pwd -P", True),
        ("DIR=conf; pwd -P", True),
        ("bash <scripts/where.sh", True),
        ("(cat scripts/where.sh >/dev/null); pwd -P", True),
        ("scripts 2>/dev/null; pwd -P", False),  # a bare command is looked for on the path
        ("# see scripts/where.sh\npwd -P", False),
        ("cat nowhere.txt 2>/dev/null; pwd -P", False),
        ("cat both.txt; pwd -P", False),
        ("ls -d . ..; pwd -P", False),
        ("echo 'unclosed; pwd -P", None),
    ],
)
def test_words_are_found_as_a_shell_would_read_them(run: Runner, caller: Path, script: str, is_there: bool | None):
    ended = run({"cmds": [script + ("" if is_there is None else "; pwd -P")]}, caller=caller)
    if is_there is None:
        assert ended.kind == "exit_code"  # bash's own complaint
    else:
        assert _ran_at_the_caller(ended, caller) == [is_there]


def test_a_file_that_an_earlier_entry_makes_beside_the_document_keeps_the_next_one_there(
    run: Runner, caller: Path, tmp_path: Path
):
    (caller / "made.txt").write_text("")
    ended = run({"cmds": ['touch "$(printf made).txt"', "ls made.txt; pwd -P"]}, caller=caller)
    assert ended.result["stdout"] == f"made.txt\n{tmp_path}/document\n"


def test_a_folder_of_the_tasks_own_and_a_command_are_not_moved(run: Runner, caller: Path, tmp_path: Path):
    ended = run({"cmds": ["cat scripts/where.sh; pwd -P"], "cwd": ".", "ok_codes": [0, 1]}, caller=caller)
    assert ended.result["stdout"] == f"{tmp_path}/document\n"
    assert run({"command": "cat scripts/where.sh"}, caller=caller).kind == "exit_code"


def test_where_there_is_no_caller_an_entry_runs_beside_the_document(run: Runner, caller: Path):
    assert run({"cmds": ["bash scripts/where.sh"]}).kind == "exit_code"


@cases(
    "script, paths",
    [
        ('a b=c/d --e=f -g \'h i\' "j\\"k"', ["b=c/d", "c/d", "f", "h i", 'j"k']),
        ("X=1 Y=z run/it arg", ["1", "z", "run/it", "arg"]),
        ("if test -f one; then two three; fi", ["one", "three"]),
        ("a |b/c&& d e;f `g h` $(i j)", ["b/c", "e", "h", "j"]),
        ("a b\\ c d\\\ne", ["b c", "de"]),
        ("echo a#b # c d\ne", ["a#b"]),
        ("echo 'a\nb' \"", ["a\nb"]),
    ],
)
def test_paths_in_a_script(script: str, paths: list[str]):
    assert list(_paths(script)) == paths


def test_a_long_script_with_quotes_of_all_kinds_is_looked_through():
    script = "cat <<'E' >/dev/null\n" + "it's \"a\" \\ line' of $(text)\n" * 20_000 + "E\npwd -P"
    assert len(list(_paths(script))) > 20_000
