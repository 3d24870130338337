"""The machine the figures belong to."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from pathlib import Path
from statistics import median

SYNCS = 200


def describe(folder: Path) -> dict[str, str]:
    return {
        "cpu": f"{os.cpu_count()} × {_cpu()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "fsync": f"{fsync_ms(folder):.2f} ms for 4 KiB",
        "load": f"{os.getloadavg()[0]:.1f} at the start",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()}",
    }


def fsync_ms(folder: Path) -> float:
    """The median of appending one page and having it on the disk."""
    path = folder / "fsync"
    took: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    path.unlink()
    return median(took) * 1000


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
