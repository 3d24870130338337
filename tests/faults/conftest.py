"""One fleet for all the tests of this folder, in each process that runs them: its start is what costs most."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.documents import Effects, works
from tests.faults.fleet import Fleet, own_fleet
from tests.faults.oracle import unbroken_timeline
from tests.faults.processes import Nursery
from tests.faults.trial import Trials
from tests.servers import postgres_server

__all__ = ["postgres_server"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs these tests, so that one fleet is started and not one in each process there is."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("faults"))


@pytest.fixture(scope="package")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="package")
def fleet(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with own_fleet(nursery, tmp_path_factory.mktemp("fleet"), wired=("s0", "w0")) as fleet:
        yield fleet


@pytest.fixture(scope="package")
def effects(postgres_server: str) -> Effects:
    return Effects(postgres_server)


@pytest.fixture(scope="package")
def trials(fleet: Fleet, effects: Effects, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    all_works = works(effects)
    folder = tmp_path_factory.mktemp("unbroken")
    with ThreadPoolExecutor() as threads:
        found = threads.map(lambda work: unbroken_timeline(work, folder / work.name), all_works)
        unbroken = dict(zip([work.name for work in all_works], found, strict=True))
    return Trials(fleet, effects, all_works, unbroken)
