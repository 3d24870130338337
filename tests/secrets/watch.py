"""A canary for a whole test session: whatever run of whatever test got hold of it, no state folder may show it.

In a conftest.py:

    from tests.secrets.watch import canary, no_canary_in_state_folders  # noqa: F401

The canary stands in the environment variable PENSTOCK_TEST_CANARY before the first test runs, so that any playbook of any test
can have it as a secret: `keychain: [{name: canary, kind: env, var: PENSTOCK_TEST_CANARY}]`. After each test that used `tmp_path`
and left a state folder there, that folder is scanned; a test without one pays for a look into an empty folder.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from tests.secrets.scan import Scanner, assert_clean, state_folders

VARIABLE = "PENSTOCK_TEST_CANARY"


def canary_text() -> str:
    """As long and as awkward as passwords are: every encoder does something to it."""
    return f"cnry{secrets.token_hex(12)}/+ &=%\"'<>é\\{secrets.token_hex(4)}"


@pytest.fixture(scope="session")
def canary() -> str:
    return os.environ.setdefault(VARIABLE, canary_text())


@pytest.fixture(autouse=True)
def no_canary_in_state_folders(request: pytest.FixtureRequest, canary: str) -> Iterator[None]:
    place = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if place is None:
        return
    scanner = Scanner([canary])
    for folder in state_folders(place):
        assert_clean(scanner.in_folder(folder))
