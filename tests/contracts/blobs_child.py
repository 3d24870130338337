"""A second process that uses a result store: `python -m tests.contracts.blobs_child SPEC HOME`.

It says that it is ready, waits for a line on standard input, puts results that other children put at the same time, and says
their keys.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from penstock.adapters.blob_stores import open_blobs
from penstock.adapters.objects import ObjectBlobs
from penstock.ports.blobs import KeptBlobs
from tests.warm import starting

IN_A_FOLDER = "objects+"
ROOT = Path(__file__).parents[2]
CONTENTS = [str(number).encode() * 60_000 for number in range(4)]


def start(spec: str, home: Path) -> subprocess.Popen[str]:
    words = ("-m", "tests.contracts.blobs_child", spec, str(home))
    return starting(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def opened(spec: str, home: Path) -> KeptBlobs:
    """A folder as object storage is for tests only, and has no setting."""
    if spec.startswith(IN_A_FOLDER):
        return ObjectBlobs(spec.removeprefix(IN_A_FOLDER), home / "cache")
    return open_blobs(spec, home)


def main(spec: str, home: str) -> None:
    store = opened(spec, Path(home))
    print("ready", flush=True)
    sys.stdin.readline()
    print(*(store.put([content]).key for content in CONTENTS * 3))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
