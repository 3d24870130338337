"""Every example once more, by a server and two workers on PostgreSQL: it ends as in one process, with the same timeline."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import api_module
from tests.acceptance.examples import EXAMPLES, Desk, desk
from tests.cli.children import running
from tests.depth import some
from tests.servers import fresh_schema, postgres_server

__all__ = ["postgres_server"]


@dataclass(frozen=True)
class Case:
    """What is run. `again`: a file to be made, after which what failed is resumed."""

    example: str
    file: str
    settings: tuple[str, ...] = ()
    needs_api: bool = False
    exit_code: int = 0
    again: tuple[str, str] | None = None

    @property
    def words(self) -> list[str]:
        return [word for setting in self.settings for word in ("--set", setting)]


CASES = [
    Case("api-changes", "api-changes.yaml", needs_api=True),
    Case("bridges", "bridges.yaml", needs_api=True),
    Case("bridges", "invoices.yaml", ("month=2026-02",), needs_api=True),
    Case("choose", "choose.yaml", ("amount=200",)),
    Case("daily-orders", "daily-orders.yaml"),
    Case("etl", "etl.yaml"),
    Case("fan-out", "fan-out.yaml"),
    Case("file-drop", "file-drop.yaml"),
    Case("fork-join", "fork-join.yaml"),
    Case("fork-join", "fork-join.yaml", ("visits=nowhere.csv",)),
    Case("hello", "hello.yaml"),
    Case("incremental", "incremental.yaml"),
    Case("isolation", "isolation.yaml"),
    Case("joblets", "joblets.yaml"),
    Case("join", "join.yaml"),
    Case("many-formats", "many-formats.yaml", ("tolerated_percent=60",)),
    Case("notify", "notify.yaml", ("fail=true",), needs_api=True),
    Case("orders", "orders.yaml", needs_api=True),
    Case("pagination", "pagination.yaml", needs_api=True),
    Case("parallel", "parallel.yaml"),
    Case("polling", "polling.yaml", needs_api=True),
    Case("quality-gate", "quality-gate.yaml"),
    Case("quality-gate", "quality-gate.yaml", ("delivery=broken.csv",), exit_code=3),
    Case("recovery", "recovery.yaml", ("bank=closed",), exit_code=5, again=("bank-is-open", "")),
    Case("repair", "repair.yaml", exit_code=1),
    Case("rest-to-warehouse", "rest-to-warehouse.yaml", needs_api=True),
    Case("resume", "resume.yaml", exit_code=1, again=("inbox.json", "[1, 2, 3]")),
    Case("retry", "retry.yaml", needs_api=True),
    Case("scale", "scale.yaml", ("rows=20000",)),
    Case("scd-customers", "scd-customers.yaml"),
    Case("secrets", "secrets.yaml", needs_api=True),
    Case("sub-playbooks", "cities.yaml"),
]
DIFFERENT = {
    "bridges", "daily-orders", "fan-out", "incremental", "isolation", "joblets", "orders", "quality-gate", "recovery", "resume",
}  # fmt: skip
"""Between them: jobs, playbooks and bridges, loops, joblets, kept state, failures, resumes, an API, code in a process of its own."""
ALWAYS = [case for case in CASES if case.example in DIFFERENT]
OTHERS = [case for case in CASES if case.example not in DIFFERENT]
SECRET = {"SHOP_TOKEN": "demo-token"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[str]:
    """The address of a server with two workers."""
    home, before = tmp_path_factory.mktemp("fleet"), Path.cwd()
    os.chdir(home)
    try:
        with ExitStack() as stack:
            database = stack.enter_context(fresh_schema(postgres_server))
            common = ["--database", database, "--grace", "0"]
            names = ["--store", "s1", "--name", "s1", "--listen", "127.0.0.1:0"]
            serving = stack.enter_context(running("serve", *common, *names))
            for name in ("w1", "w2"):
                worker = running(
                    "worker", *common, "--allow-address", "loopback", "--store", name, "--name", name, **SECRET
                )
                stack.enter_context(worker).until_said("worker w")
            yield serving.url
    finally:
        os.chdir(before)


def played(case: Case, tmp_path: Path, place: list[str], port: int = 0) -> tuple[Any, str, int]:
    """What `run --json` printed, the canonical timeline, and where the API was."""
    here: Desk = desk(case.example, tmp_path)
    with api_module().serving(port) as (url, _):
        words = [*case.words, *(["--set", f"api_url={url}"] if case.needs_api else [])]
        said = here.penstock("run", case.file, "--json", *words, *place, **SECRET)
        assert said.exit_code == case.exit_code, said.out + said.words
        if case.again is not None:
            name, text = case.again
            (here.folder / name).write_text(text, encoding="utf-8")
            said = here.penstock("resume", "@last", "--json", *place, **SECRET)
            assert said.exit_code == 0, said.out + said.words
        assert here.penstock("replay", "@last", *place, **SECRET).exit_code == 0
        timeline = here.penstock("events", "@last", "--canonical", *place)
        assert timeline.exit_code == 0, timeline.words
    shutil.rmtree(here.folder)
    return said.json, timeline.out, int(url.rpartition(":")[2])


@pytest.mark.parametrize("case", [*ALWAYS, *some(OTHERS, 2)], ids=lambda case: "-".join((case.example, *case.settings)))
def test_an_example_has_the_same_timeline_on_a_fleet(tmp_path: Path, server: str, case: Case) -> None:
    """Twice in a folder of the same name, which is as new each time: only where it runs differs."""
    here, here_line, port = played(case, tmp_path, ["--store", str(tmp_path / "home")])
    there, there_line, _ = played(case, tmp_path, ["--server", server], port)
    assert there_line.splitlines() == here_line.splitlines()
    assert (there["status"], there["result"]) == (here["status"], here["result"])


def test_every_example_is_among_them() -> None:
    assert {case.example for case in CASES} == {file.parent.name for file in EXAMPLES.glob("*/*.yaml")}
