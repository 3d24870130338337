"""Whole commands, as a shell sees them: from the start of the process to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import playbooks
from benchmarks.peers import NotInstalled


def help_text(folder: Path) -> dict[str, float]:
    return _timed(folder, "--help")


def one_task(folder: Path) -> dict[str, float]:
    path = folder / "one.yaml"
    path.write_text(playbooks.chain(1), encoding="utf-8")
    return _timed(folder, "run", str(path))


def python_alone(folder: Path) -> dict[str, float]:
    """What any Python program pays before its first line."""
    return _wall([sys.executable, "-c", "pass"], folder)


def one_huey_task(folder: Path) -> dict[str, float]:
    return _wall([sys.executable, "-m", "benchmarks.probe", "huey-chain", str(folder), "1"], folder)


def one_dbos_task(folder: Path) -> dict[str, float]:
    return _wall([sys.executable, "-m", "benchmarks.probe", "dbos-chain", str(folder), "1"], folder)


def _timed(folder: Path, *words: str) -> dict[str, float]:
    return _wall([sys.executable, "-m", "penstock", *words], folder)


def _wall(command: list[str], folder: Path) -> dict[str, float]:
    environ = {**os.environ, "PENSTOCK_HOME": str(folder / "home")}
    began = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if ended.returncode:
        raise RuntimeError(
            f"`{' '.join(command[1:])}` gave exit code {ended.returncode}: {ended.stderr.strip()[-400:]}"
        )
    if '"missing"' in ended.stdout:
        raise NotInstalled(command[3])
    return {"s": took}
