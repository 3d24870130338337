"""Programs of Debian's for tests: the one that is installed, else Debian's package unpacked into a cache. No root is needed.

    mariadbd = debian_program("mariadbd", "mariadb-server-core")
    subprocess.Popen([mariadbd.path, …], env=mariadbd.environment())

And packages of Python that cannot be installed beside ours, because they want other versions of what we have:

    folder = python_packages("snowflake", "fakesnow[server]==0.12.1", …)

The cache is `~/.cache/penstock-tests`, or the folder that PENSTOCK_TEST_CACHE names. Tests that run side by side unpack a package once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = "PENSTOCK_TEST_CACHE"
_SBIN = ("/usr/sbin", "/usr/local/sbin", "/usr/local/bin")
_BINARIES = (
    "usr/sbin",
    "usr/bin",
    "sbin",
    "bin",
    *(f"usr/lib/jvm/java-17-openjdk-{arch}/bin" for arch in ("amd64", "arm64")),
)


@dataclass(frozen=True)
class Program:
    path: Path
    root: Path
    """What stands for `/`: the package's files are below it."""

    def environment(self) -> dict[str, str]:
        """Libraries that were unpacked along with the program are found before those of the system."""
        if self.root == Path("/"):
            return dict(os.environ)
        folders = sorted({str(found.parent) for found in self.root.glob("**/*.so*")})
        before = [os.environ["LD_LIBRARY_PATH"]] if os.environ.get("LD_LIBRARY_PATH") else []
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*folders, *before])}


def debian_program(name: str, package: str) -> Program:
    """Raises RuntimeError, which says what to install, when it is neither here nor to be had."""
    searched = os.pathsep.join([os.environ.get("PATH", ""), *_SBIN])
    installed = shutil.which(name, path=searched)
    if installed is not None:
        return Program(Path(installed), Path("/"))
    root = _cache() / package
    with _locked(root.with_suffix(".lock")):
        found = _in(root, name)
        if found is None:
            _unpack(package, root)
            found = _in(root, name)
    if found is None:
        raise _missing(name, package, f"the package has no program `{name}`")
    return found


def python_packages(name: str, *requirements: str) -> Path:
    """A folder with these packages and all that they need, to be put on a path."""
    root = (
        _cache()
        / f"{name}-{sys.implementation.cache_tag}-{hashlib.sha256(repr(requirements).encode()).hexdigest()[:8]}"
    )
    with _locked(root.with_suffix(".lock")):
        if not root.is_dir():
            with tempfile.TemporaryDirectory(dir=root.parent, prefix=f".{name}-") as made:
                tree = Path(made) / "tree"
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tree), *requirements]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise RuntimeError(
                        f"the tests need {' and '.join(requirements)}, and `pip` says: {done.stderr.strip()}"
                    )
                tree.rename(root)
    return root


def _cache() -> Path:
    given = os.environ.get(CACHE)
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {"ID": platform.system()}
    system = f"{release['ID']}-{release.get('VERSION_ID', 'rolling')}-{platform.machine()}"
    return (Path(given) if given else Path.home() / ".cache" / "penstock-tests") / system


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _in(root: Path, name: str) -> Program | None:
    """A cache that was made while the system had other libraries is of no use: the program must start."""
    for folder in _BINARIES:
        program = Program(root / folder / name, root)
        if program.path.is_file():
            asked = subprocess.run(
                [program.path, "--version"], env=program.environment(), capture_output=True, check=False
            )
            return program if asked.returncode == 0 else None
    return None


def _unpack(package: str, root: Path) -> None:
    """The package and what it needs beyond what is installed, as one tree that appears as a whole or not at all."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise _missing(package, package, "this system has no `apt-get` and `dpkg-deb` to fetch it with")
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=f".{package}-") as made:
        folder = Path(made)
        lists, downloads, tree = folder / "lists", folder / "downloads", folder / "tree"
        for each in (lists / "partial", folder / "cache" / "archives" / "partial", downloads, tree):
            each.mkdir(parents=True)
        # Lists of its own: those of the system may be missing (in containers) or name versions that are gone.
        own = [f"-oDir::State::lists={lists}", f"-oDir::Cache={folder / 'cache'}", "-oDebug::NoLocking=1"]
        apt = ["apt-get", "-qq", *own, f"-oAPT::Sandbox::User={'root' if os.geteuid() == 0 else ''}"]
        _run(package, [*apt, "update"], folder)
        asked = _run(package, [*apt, "install", "--yes", "--no-install-recommends", "--print-uris", package], folder)
        # Each line is: 'address' name_version_machine.deb size digest
        needed = [line.split()[1].partition("_")[0] for line in asked.splitlines() if line.startswith("'")]
        _run(package, [*apt, "download", *needed], downloads)
        for file in sorted(downloads.glob("*.deb")):
            _run(package, ["dpkg-deb", "--extract", str(file), str(tree)], folder)
        shutil.rmtree(root, ignore_errors=True)
        tree.rename(root)


def _run(package: str, command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _missing(package, package, f"`{' '.join(command[:1])}` says: {done.stderr.strip()}")
    return done.stdout


def _missing(name: str, package: str, reason: str) -> RuntimeError:
    return RuntimeError(
        f"the tests need `{name}` of Debian's package `{package}`, and it cannot be had: {reason}\n"
        f"hint: install it (`apt-get install {package}`), or let the tests reach Debian's mirror once"
    )


def java() -> None:
    """Makes sure that this process finds Java 17, which Spark needs."""
    found = debian_program("java", "openjdk-17-jre-headless")
    if found.root != Path("/"):
        os.environ["JAVA_HOME"] = str(found.path.parent.parent)
