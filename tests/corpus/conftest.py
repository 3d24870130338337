"""What the playbooks of the corpus talk to: a shop on the web, a database, a bucket, and a server with two workers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.cli.children import running
from tests.contracts.blobs_servers import S3, s3
from tests.corpus.shop import SECRET, open_shop
from tests.servers import fresh_schema, postgres_server

__all__ = ["postgres_server", "s3"]

PLAYBOOKS = Path(__file__).parent / "playbooks"


@dataclass(frozen=True)
class Ended:
    """What `run --json` printed, and what it said besides."""

    exit_code: int
    printed: str
    said: str

    @property
    def result(self) -> Any:
        return json.loads(self.printed)["result"]


@dataclass(frozen=True)
class Around:
    """A copy of the playbooks, and what they find around them."""

    folder: Path
    api_url: str
    variables: dict[str, str]

    def penstock(self, *words: str) -> Ended:
        done = warm.called(*words, cwd=self.folder, env=self.variables)
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, file: str, *place: str) -> Ended:
        given = ["--set", f"api_url={self.api_url}"] if "api_url" in (self.folder / file).read_text() else []
        return self.penstock("run", file, "--json", *given, *place)


@pytest.fixture(scope="session")
def around(tmp_path_factory: pytest.TempPathFactory, postgres_server: str, s3: S3) -> Iterator[Around]:
    home = tmp_path_factory.mktemp("corpus")
    shutil.copytree(PLAYBOOKS, home / "playbooks")
    with ExitStack() as stack:
        shop = stack.enter_context(open_shop())
        variables = {
            **os.environ,
            "XDG_STATE_HOME": str(home / "state"),
            "PENSTOCK_PG_MAIN": stack.enter_context(fresh_schema(postgres_server)),
            "PENSTOCK_SHOP_SECRET": SECRET,
            "PENSTOCK_LAKE": json.dumps({**s3.options(), "allow_http": "true"}),
        }
        yield Around(home / "playbooks", shop.url, variables)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory, postgres_server: str, around: Around) -> Iterator[str]:
    """The address of a server with two workers."""
    home, before = tmp_path_factory.mktemp("fleet"), Path.cwd()
    os.chdir(home)
    try:
        with ExitStack() as stack:
            database = stack.enter_context(fresh_schema(postgres_server))
            common = ["--database", database, "--grace", "0", "--allow-address", "loopback"]
            listening = ["--store", "s1", "--name", "s1", "--listen", "127.0.0.1:0"]
            serving = stack.enter_context(running("serve", *common, *listening, **around.variables))
            for name in ("w1", "w2"):
                worker = running("worker", *common, "--store", name, "--name", name, **around.variables)
                stack.enter_context(worker).until_said("worker w")
            yield serving.url
    finally:
        os.chdir(before)
