"""Runs probes, each in a process and a folder of its own and under a time limit, and keeps every figure they gave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Probe:
    """What to measure. `home` is copied into the probe's folder first."""

    name: str
    count: int | None = None
    limit_s: float = 120.0
    home: Path | None = None


@dataclass
class Figures:
    """What the repeats of one probe gave. `wrong` says why there is nothing, or less than was asked for."""

    runs: list[dict[str, float]] = field(default_factory=list)
    wrong: str | None = None

    def median(self, key: str = "ms") -> float | None:
        values = [run[key] for run in self.runs if key in run]
        return median(values) if values else None


class Bench:
    def __init__(self, folder: Path, repeats: int, *, quick: bool, rows: int | None = None) -> None:
        self.folder = folder
        self.repeats = repeats
        self.quick = quick
        self.rows = rows
        """Of the large table, when the caller says so."""
        self.kept: dict[str, list[dict[str, float]]] = {}

    def together(self, probes: Sequence[Probe], repeats: int | None = None) -> list[Figures]:
        """Turn by turn, so that whatever else the machine does falls on all of them alike."""
        figures = [Figures() for _ in probes]
        for _ in range(repeats or self.repeats):
            for probe, into in zip(probes, figures, strict=True):
                if into.wrong is None:
                    self._add(probe, into)
        for probe, into in zip(probes, figures, strict=True):
            key = probe.name if probe.count is None else f"{probe.name} {probe.count}"
            self.kept.setdefault(key, []).extend(into.runs)
        return figures

    def one(self, probe: Probe, repeats: int | None = None) -> Figures:
        return self.together([probe], repeats)[0]

    def _add(self, probe: Probe, into: Figures) -> None:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=f"{probe.name}-") as name:
            folder = Path(name)
            if probe.home is not None:
                shutil.copytree(probe.home, folder / "home")
            said, wrong = run(probe, folder, self.folder / "bytecode")
        sys.stderr.write(f"  {probe.name} {probe.count or ''}: {wrong or said}\n")
        if wrong is None:
            into.runs.append(said)
        else:
            into.wrong = wrong


def run(probe: Probe, folder: Path, bytecode: Path) -> tuple[dict[str, float], str | None]:
    """The probe's figures, or why there are none. Modules are compiled once into `bytecode`, as they are once installed."""
    words = [sys.executable, "-m", "benchmarks.probe", probe.name, str(folder)]
    words += [] if probe.count is None else [str(probe.count)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=probe.limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {}, f"not done after {probe.limit_s:g} s"
    if process.returncode:
        return {}, f"failed: {(err.strip().splitlines() or ['no word'])[-1][:300]}"
    said = json.loads(out.strip().splitlines()[-1])
    return ({}, "not installed") if "missing" in said else (said, None)
