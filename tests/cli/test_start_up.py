"""What a run does not need is not loaded: a playbook starts without all that only jobs have."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.support import HELLO, environment, write

pytestmark = pytest.mark.usefixtures("folder")

LOADED = """
import sys
from penstock.cli.main import main
code = main(["run", "hello.yaml", "--quiet"])
only = ("penstock.components", "penstock.dialects.job", "penstock.data")
print(sorted(name for name in sys.modules if name.startswith(only)))
sys.exit(code)
"""


def test_a_playbook_without_jobs_loads_nothing_of_jobs() -> None:
    write("hello.yaml", HELLO)
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, env=environment(), check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
