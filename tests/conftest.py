"""How the suite is dealt out to the processes that run it, and what is kept of how it ended."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.dealing import Dealing, is_long, turned
from tests.evidence import Evidence, attach_clauses, wants_all


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
