"""Every playbook in examples/, through the command line: it is valid, runs, gives what it says, and its replay decides the same."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.dialects.playbook import compile_file
from penstock.tools.registry import Registry
from tests import warm
from tests.acceptance.examples import EXAMPLES, PROJECT, desk
from tests.cases import cases

PLAYBOOKS = sorted(file for file in EXAMPLES.glob("*/*.yaml") if "kind: Playbook" in file.read_text(encoding="utf-8"))


@cases("file", PLAYBOOKS)
def test_an_example_has_no_problem_and_says_what_it_shows(file: Path) -> None:
    found = [one.code for one in compile_file(file, Registry(), strict=True).problems]
    assert found == (["P0621"] if file.stem == "resume" else [])  # Its file is not there yet: that is what it shows.
    assert file.read_text(encoding="utf-8").startswith("# ")


def test_every_example_is_in_the_documentation_and_has_a_test() -> None:
    page = (PROJECT / "docs" / "examples.md").read_text(encoding="utf-8")
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    for folder in sorted({file.parent.name for file in EXAMPLES.glob("*/*.yaml")}):
        assert f"| [{folder}](../examples/{folder}/" in page
        assert f'desk("{folder}", tmp_path)' in tests


def test_hello(tmp_path: Path) -> None:
    here = desk("hello", tmp_path)
    assert here.run("hello.yaml") == {"text": "hello, world"}
    assert here.run("hello.yaml", "--set", "who=you") == {"text": "hello, you"}


def test_orders(tmp_path: Path, api: Any) -> None:
    result = desk("orders", tmp_path).run("orders.yaml", "--set", f"api_url={api.url}")
    assert [(one["region"], one["orders"], one["pages"]) for one in result["regions"]] == [
        ("north", 20, 4),
        ("south", 20, 4),
        ("west", 20, 4),
    ]
    assert [(one["customer"], one["city"], one["orders"]) for one in result["totals"]] == [
        ("cyd", "Lyon", 15),
        ("ada", "Oslo", 15),
        ("bob", "Rome", 15),
        ("dan", "Bonn", 15),
    ]
    assert api.calls["/customers"] == 3


@pytest.mark.clause("P11.1")
def test_pagination(tmp_path: Path, api: Any) -> None:
    result = desk("pagination", tmp_path).run("pagination.yaml", "--set", f"api_url={api.url}")
    assert result["rows"] == [{"orders": 60, "regions": 3}]
    assert api.calls["/orders"] == 3


def test_retry_and_recover(tmp_path: Path, api: Any) -> None:
    here = desk("retry", tmp_path)
    assert here.run("retry.yaml", "--set", f"api_url={api.url}") == {"customers": 4, "attempts": 3, "stale": True}
    assert [event["payload"]["attempt"] for event in here.events("task.started")][:3] == [1, 2, 3]
    assert "answered 404" in here.penstock("explain", "@last", "prices").out


def test_parallel_append(tmp_path: Path) -> None:
    here = desk("parallel", tmp_path)
    assert here.run("parallel.yaml") == {"lengths": [8, 6, 4, 5], "total": 23}


@pytest.mark.clause("F1.1", "F4.2", "F5.1")
def test_fan_out(tmp_path: Path) -> None:
    here = desk("fan-out", tmp_path)
    expected = {
        "status": "partial",
        "readings": 6,
        "bad": 1,
        "litres": 43.6,
        "highest": 20.2,
        "last_line_of": {"north": "8", "south": "4", "west": "7"},
    }
    assert here.run("fan-out.yaml") == expected
    assert "it failed for good, after 2 tries" in here.penstock("explain", "@last", "measure[4]").out
    assert "fan-out partial" in here.penstock("show", "@last").out


def test_join(tmp_path: Path) -> None:
    assert desk("join", tmp_path).run("join.yaml") == {"apples": 1.5, "pears": 1.25}


def test_sub_playbooks_with_nested_loops(tmp_path: Path) -> None:
    here = desk("sub-playbooks", tmp_path)
    assert here.run("cities.yaml") == {
        "cities": [
            {"hotels": ["Fjord in Oslo", "Grand in Oslo"], "rooms": 100},
            {"hotels": ["Aurelia in Rome", "Forum in Rome", "Tiber in Rome"], "rooms": 170},
        ],
        "rooms": 270,
    }
    assert here.run("hotels.yaml") == {"hotels": ["Ritz in nowhere"], "rooms": 40}


def test_polling(tmp_path: Path, api: Any) -> None:
    assert desk("polling", tmp_path).run("polling.yaml", "--set", f"api_url={api.url}") == {"id": 7, "state": "done"}
    assert api.calls["/jobs/7"] == 3


@pytest.mark.parametrize(("amount", "to_pay"), [("40", 40), ("200", 190), ("900", 810)])
def test_choose(tmp_path: Path, amount: str, to_pay: float) -> None:
    assert desk("choose", tmp_path).run("choose.yaml", "--set", f"amount={amount}") == pytest.approx(to_pay)


def test_secrets(tmp_path: Path, api: Any) -> None:
    here = desk("secrets", tmp_path)
    arguments = ("secrets.yaml", "--set", f"api_url={api.url}")
    refused = here.penstock("run", *arguments)
    assert refused.exit_code == 2
    assert "SHOP_TOKEN" in refused.words
    assert here.run(*arguments, SHOP_TOKEN="demo-token") == {"balance": 42, "token_length": 10}
    assert "the token is ***" in here.penstock("logs", "@last").out
    kept = [path.read_bytes() for path in here.folder.rglob("*") if path.is_file() and path.name != "secrets.yaml"]
    assert not any(b"demo-token" in data for data in kept)


def test_api_changes(tmp_path: Path, api: Any) -> None:
    here = desk("api-changes", tmp_path)
    arguments = ("api-changes.yaml", "--set", f"api_url={api.url}")
    token = {"SHOP_TOKEN": "demo-token"}
    assert here.run(*arguments, **token) == {"invoices": 36, "since": "2026-03-12T08:00:00"}
    assert here.run(*arguments, **token) == {"invoices": 0, "since": "2026-03-12T08:00:00"}
    api.invoices.append({"id": "west-13", "account": "west", "amount": "1.00", "changed_at": "2026-03-13T08:00:00"})
    refused = here.penstock("run", *arguments, SHOP_TOKEN="wrong")
    assert (refused.exit_code, "answered 401" in refused.words) == (1, True)
    assert "who are you?" in api.hooks[0]["text"]
    assert here.run(*arguments, **token) == {"invoices": 1, "since": "2026-03-13T08:00:00"}
    (kept,) = here.penstock("state", "show", "api-changes.yaml", "--json").json["state"]
    assert (kept["key"], kept["value"]) == ("since", "2026-03-13T08:00:00")


def test_etl(tmp_path: Path) -> None:
    here = desk("etl", tmp_path)
    result = here.run("etl.yaml")
    assert [(row["country"], row["orders"], row["total"]) for row in result["rows"]] == [
        ("NO", 2, 184.5),
        ("IT", 2, 99.75),
        ("FR", 1, 33.25),
    ]
    with (here.folder / "out" / "per_country.csv").open(encoding="utf-8", newline="") as file:
        assert [row["country"] for row in csv.DictReader(file)] == ["NO", "IT", "FR"]
    assert (here.folder / "out" / "clean.parquet").read_bytes()[:4] == b"PAR1"


@pytest.mark.parametrize(("fail", "text"), [("false", "all good: 12 rows"), ("true", "failed: RuntimeError")])
def test_notify(tmp_path: Path, api: Any, fail: str, text: str) -> None:
    result = desk("notify", tmp_path).run("notify.yaml", "--set", f"api_url={api.url}", "--set", f"fail={fail}")
    assert result["status"] == 200
    assert len(api.hooks) == 1
    assert api.hooks[0]["text"].startswith(text)


def test_isolation(tmp_path: Path) -> None:
    assert desk("isolation", tmp_path).run("isolation.yaml") == {"greedy": "memory", "modest": 499500}


def test_resume_after_failure(tmp_path: Path) -> None:
    here = desk("resume", tmp_path)
    assert here.penstock("run", "resume.yaml").exit_code == 1
    (here.folder / "inbox.json").write_text("[1, 2, 3]", encoding="utf-8")
    resumed = here.penstock("resume", "@last", "--json")
    assert (resumed.exit_code, resumed.json["result"]) == (0, 6)
    assert (here.folder / "prepared.txt").read_text(encoding="utf-8") == "prepared once\n"
    assert here.penstock("replay", "@last").exit_code == 0


def test_the_demo_runs_and_leaves_only_its_folder_behind(tmp_path: Path) -> None:
    before, demo = _files(), tmp_path / "demo"
    environment = {
        "PYTHONPATH": str(PROJECT / "src"),
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "PENSTOCK_DEMO": str(demo),
    }
    for _ in range(2):  # It is made anew each time.
        done = subprocess.run(
            [sys.executable, "-B", EXAMPLES / "demo.py"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Lyon  cyd" in done.stdout
    assert "attempt 3: ok" in done.stdout
    assert "every decision is the same" in done.stdout + done.stderr
    assert "2026-02-30 09:11:08` is not a TIMESTAMP" in done.stdout
    assert "That failure was expected" in done.stdout
    assert f"penstock ui --project {demo}" in done.stdout
    assert list(tmp_path.iterdir()) == [demo]
    assert _files() == before
    runs = warm.called("runs", "--json", "--store", str(demo / ".penstock"))
    assert [(one["name"], one["status"]) for one in json.loads(runs.stdout)["runs"]] == [
        ("repair", "failed"),
        ("daily-orders", "completed"),
        ("orders", "completed"),
    ]


def test_the_python_example_says_what_it_does(tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(PROJECT / "src"), "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-B", EXAMPLES / "from_python.py"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split("\n") == [
        "UNKNOWN_COLUMN: there is no column `litre` (in `per_pump`)",
        "failed - missing_file",
        "completed",
        " pump litres",
        "north    700",
        "south    700",
        "replay: the same",
        "",
    ]
    assert list(tmp_path.iterdir()) == []


def _files() -> list[Path]:
    return sorted(path for path in EXAMPLES.rglob("*") if "__pycache__" not in path.parts)
