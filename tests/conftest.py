"""How the suite is dealt out to the processes that run it, and what is kept of how it ended."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.dealing import Dealing, is_long, turned
from tests.depth import times
from tests.evidence import Evidence, attach_clauses, wants_all

HERE = Path(__file__).parent

# The machine may be busy: no example is judged by how long it took.
settings.register_profile("suite", deadline=None, max_examples=times(40), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the long tests (see tests/dealing.py)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.option.quick or not collection_path.is_relative_to(HERE):
        return None
    return is_long(f"{collection_path.relative_to(HERE)}{'/' * collection_path.is_dir()}") or None


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            config.args = turned(str(config.workerinput["workerid"]))
    elif wants_all(config):
        config.pluginmanager.register(Evidence())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    attach_clauses(items)
    items.sort(key=lambda item: (not is_long(item.nodeid), item.nodeid.partition("::")[0]))


def pytest_collection_finish() -> None:
    """Thousands of tests are there from the beginning to the end: nobody need look through them for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_unconfigure() -> None:
    """Else libraries that count what is left at the end take what was set aside for leaks of theirs, and say so."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    return Dealing(config, log) if config.getoption("dist") == "loadgroup" else None
