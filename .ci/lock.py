"""`make lock`: resolve everything that pyproject.toml names, for every Python it supports, and write `constraints.txt`.

Only pip is needed. One version of a package serves all Pythons where that is possible; where it is not, the line says for which
Python it is. The ranges in pyproject.toml say what works; this file says what is tested. It has
neither hashes nor the address of an index in it, so it can be used on any machine and with any index.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "constraints.txt"
PYTHONS = ("3.11", "3.12", "3.13")
HEAD = """\
# Made by `make lock`. The versions that `make setup` and CI install, for Python {}.
# To install the same: pip install -c constraints.txt penstock
"""


def requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for every in project["optional-dependencies"].values() for one in every]
    return sorted({*project["dependencies"], *extras})


def resolved(python: str, wanted: list[str], pinned: dict[str, str]) -> dict[str, str]:
    """Name -> version, of all that would be installed for this Python; as pinned already where that is possible."""
    with tempfile.TemporaryDirectory() as folder:
        report, constraints = Path(folder) / "report.json", Path(folder) / "pinned.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in pinned.items()), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            "--report",
            report,
        ]
        command += [
            "--target",
            folder,
            "--python-version",
            python,
            "--only-binary",
            ":all:",
            "-c",
            constraints,
            *wanted,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            if pinned:
                return resolved(python, wanted, {})
            raise SystemExit(f"Python {python}: {done.stderr.strip()}")
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {_plain(one["metadata"]["name"]): one["metadata"]["version"] for one in found}


def lines(found: dict[str, dict[str, str]]) -> list[str]:
    """`found`: Python -> name -> version."""
    said = []
    for name in sorted({name for every in found.values() for name in every}):
        versions = {python: every[name] for python, every in found.items() if name in every}
        if len(set(versions.values())) == 1:
            said.append(f"{name}=={next(iter(versions.values()))}")
        else:
            said += [f'{name}=={version} ; python_version == "{python}"' for python, version in versions.items()]
    return said


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    wanted = [*requirements(), *sys.argv[1:]]
    found: dict[str, dict[str, str]] = {}
    pinned: dict[str, str] = {}
    for python in PYTHONS:
        found[python] = resolved(python, wanted, pinned)
        pinned = {**found[python], **pinned}
    LOCK.write_text(HEAD.format(", ".join(PYTHONS)) + "\n".join(lines(found)) + "\n", encoding="utf-8")
    print(f"{LOCK.name}: {len(lines(found))} packages")


if __name__ == "__main__":
    main()
