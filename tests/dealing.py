"""How tests are dealt out to the processes that run them: the long ones first and one by one, the others module by module.

There are thousands of quick tests, and dealing them out singly takes pytest-xdist longer than running them. Tests that share
something costly stay together. (pytest-xdist 3.8 reads `xdist_group` only from ids that pytest 9.2 no longer lets it change, so that
the groups are named here, too.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

LONG = (
    "acceptance/",
    "adapters/test_nats",
    "adapters/test_postgres",
    "api/test_openapi",
    "api/test_postgres",
    "chaos/",
    "chaos_jobs/",
    "cli/test_fleet",
    "cli/test_remote",
    "cli/test_ui",
    "components/io/test_shared_transactions",
    "components/io/test_sql",
    "contracts/",
    "corpus/",
    "data/test_resources",
    "dialects/job/test_robust",
    "dialects/test_source_properties",
    "docs/",
    "expr/test_agreement",
    "expr/test_properties",
    "faults/",
    "fleet/",
    "flow/test_random_jobs",
    "kernel/test_fanout",
    "kernel/test_random_nets",
    "secrets/",
    "spark/",
    "spec/test_fanout",
    "spec_jobs/test_determinism",
    "state/test_incremental",
    "web/",
    "worker/",
)
TOGETHER = {
    "acceptance/test_on_a_fleet.py": "fleet",
    "adapters/test_object_blobs.py::TestOverS3": "s3",
    "contracts/test_blobs.py::TestObjectBlobsOverS3": "s3",
    "corpus/": "corpus",
    "adapters/test_postgres_restarts.py": "own-postgres",
    "secrets/test_canaries.py": "canaries",
    "spark/": "spark",
}


def is_long(nodeid: str) -> bool:
    return nodeid.removeprefix("tests/").startswith(LONG)


def unit_of(nodeid: str) -> str:
    """Tests with the same answer are run by one process, one after another."""
    if nodeid.rfind("@") > nodeid.rfind("]"):
        return nodeid.rpartition("@")[2]  # As pytest-xdist says it where it can.
    name = nodeid.removeprefix("tests/")
    if name.startswith("faults/"):
        return "faults"  # One process starts a fleet, which takes longer than most of these tests.
    if name.startswith("web/"):
        return name.partition("::")[0]  # The tests of a module look at one server.
    for start, group in TOGETHER.items():
        if name.startswith(start):
            return group
    return nodeid if is_long(nodeid) else nodeid.partition("::")[0]


def turned(worker: str) -> list[str]:
    """The folders of tests, for each process (`gw0`, `gw1`, …) from another one on: what one has compiled the next need not."""
    here = Path(__file__).parent
    folders = sorted(str(path) for path in here.iterdir() if any(path.glob("**/test_*.py")))
    first = int(worker.removeprefix("gw")) * len(folders) // 3 % len(folders)
    return folders[first:] + folders[:first]


class Dealing(LoadScopeScheduling):  # type: ignore[misc]
    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # The order is ours.

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
