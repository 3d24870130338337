"""A project folder that is put into the catalog: the files that belong to it, and the paths that its documents will not find
there.

Left out are files that `.gitignore` and `.penstockignore` name, and those that never belong to a project. The patterns are git's:
`*`, `?`, `[…]` and `**`, `/` at the end for folders only, `/` elsewhere for a path from the folder that the file lies in, `!` to
take back. The last pattern that matches counts, and everything in a folder that is left out stays out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch, fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.arguments import CommandLineError
from penstock.dialects.problems import Position, Problem, Severity
from penstock.ports.projects import LARGEST_FILE, MOST_FILES, File, check, is_decent

if TYPE_CHECKING:
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled


PATHS = frozenset({"path", "paths", "file", "files", "script", "folder", "directory", "cwd"})
"""Parameters that hold paths of files, whatever tool or component they belong to."""
OTHER_PATHS = frozenset({"to", "source", "target", "other", "attachments", "rejects"})
"""Parameters that may hold one: they do when it looks like a path."""
NO_FILES = frozenset({"playbook", "job", "run_job", "http", "http_request", "http_rows", "extract", "read_http"})
"""Kinds whose `path` is no file, or is looked for in the catalog, too."""
OWN_NAMES = frozenset(
    {"columns", "types", "values", "variables", "measures", "outputs", "headers", "params", "json", "form"}
)
"""Parameters whose keys are names of the author's own: a column called `file` is none."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DATABASE = re.compile(r"(?:sqlite|duckdb):///(?!/)(?P<path>[^?:]+)")


@dataclass(slots=True)
class Gathered:
    files: dict[str, File] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """What looks like a secret, and links that lead out of the folder."""


def gather(folder: Path) -> Gathered:
    """The files of a project. Raises CommandLineError and Refused, naming what is wrong."""
    root = Path(os.path.realpath(folder))
    if not root.is_dir():
        raise CommandLineError(f"there is no folder `{folder}`")
    found = Gathered()
    _walk(root, root, "", Rules(""), found)
    check(found.files)
    return found


def _walk(root: Path, folder: Path, name: str, rules: Rules, found: Gathered) -> None:
    rules = rules.inside(folder, name)
    for one in sorted(folder.iterdir(), key=lambda path: path.name):
        path, is_folder = f"{name}{one.name}", one.is_dir()
        if is_never(one) or rules.leave_out(path, is_folder=is_folder):
            continue
        if is_secret(one.name):
            found.left_out.append(f"{path} looks like a secret")
            continue
        if one.is_symlink() and not Path(os.path.realpath(one)).is_relative_to(root):
            found.left_out.append(f"{path} is a link that leads out of the folder")
            continue
        if is_folder:
            if one.is_symlink():  # It may link to a parent folder; its files are included anyway.
                found.left_out.append(f"{path} is a link to a folder")
                continue
            _walk(root, one, f"{path}/", rules, found)
        elif one.is_file():
            _take(one, path, found)


def _take(file: Path, path: str, found: Gathered) -> None:
    if not is_decent(path):
        raise CommandLineError(f"`{path}` cannot be the name of a file of a project", "rename it, or leave it out")
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE:
            raise CommandLineError(
                f"`{path}` has {size:,} bytes, and a file of a project may have {LARGEST_FILE:,}",
                "name it in `.penstockignore`, and keep it where workers can read it",
            )
        found.files[path] = File(file.read_bytes(), os.access(file, os.X_OK))
    except OSError as error:
        raise CommandLineError(f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(found.files) > MOST_FILES:
        raise CommandLineError(
            f"the folder has more than {MOST_FILES:,} files", "name what is not needed in `.penstockignore`"
        )


# ---- what will not be found


def unresolved(root: Path, files: Mapping[str, File] | None, compiled: Compiled | CompiledJob) -> Iterator[Problem]:
    """Each relative path in a document that names no file of the project. `files` is None for a document by itself."""
    if compiled.net is None:
        return
    bases = getattr(compiled, "bases", {})
    root = Path(os.path.realpath(root))
    for name, node in compiled.net.nodes.items():
        for task in node.tasks:
            lines = compiled.positions.lines.get((name, task.label), {})
            position = compiled.positions.tasks.get((name, task.label)) or Position.whole(compiled.file)
            folder = bases[name].folder if name in bases else Path(os.path.realpath(Path(compiled.file).parent))
            for param, path in _paths(task.kind, task.params):
                line = lines.get(param, position.line)
                judged = _judged(root, files, folder, path, is_written=_is_written(task.kind, param))
                if judged is not None:
                    text = _text_of(compiled, position.file)
                    yield replace(
                        judged, message=f"`{name}`: {judged.message}", position=_position(position, line, path, text)
                    )


def _is_written(kind: str, param: str) -> bool:
    return kind.startswith("write") or kind == "file_touch" or (kind.startswith("file_") and param == "to")


def _text_of(compiled: Compiled | CompiledJob, file: str) -> str:
    texts: Mapping[str, str] = getattr(compiled, "texts", {})
    return texts.get(file, compiled.text)


def _position(position: Position, line: int, path: str, text: str) -> Position:
    """Where the path is written: on that line, or soon after."""
    for number, one in list(enumerate(text.splitlines(), 1))[line - 1 : line + 20]:
        if (column := one.find(path)) >= 0:
            return Position(position.file, number, column + 1, column + 1 + len(path))
    return position


def _judged(
    root: Path, files: Mapping[str, File] | None, folder: Path, path: str, *, is_written: bool
) -> Problem | None:
    """The problem with a path; None when it leads to a file of the project, which is read."""
    target = Path(os.path.normpath(folder / path.partition("{{")[0]))
    code, hint = "Y0401", "workers need `--base DIR` for it; or write an absolute path"
    if files is None:
        message = f"`{path}` is relative, and a document by itself has no files beside it"
        hint = f"put its folder as a project (`penstock catalog put DIR`); otherwise {hint}"
    elif not target.is_relative_to(root):
        code, message = "Y0402", f"`{path}` leads out of the project"
        hint = "move it into the folder, or write an absolute path"
    else:
        inner = target.relative_to(root).as_posix()
        begins = inner if "{{" in path and not path.partition("{{")[0].endswith("/") else f"{inner}/"
        is_there = inner in files or any(one.startswith(begins) for one in files) or _matches(files, inner)
        if is_written and inner in files:
            code, message = "Y0404", f"`{path}` is a file of the project, and these are only read"
            hint = "write to another path"
        elif is_written:
            return Problem(
                code, Severity.NOTE, f"`{path}` is written into the base folder", Position.whole(""), hint=hint
            )
        elif is_there:
            return None
        elif "{{" not in path and target.is_file():
            code, message = "Y0403", f"`{path}` is left out of the project"
            hint = f"look into `.gitignore` and `.penstockignore`; if it is made by a run, {hint}"
        else:
            message = f"`{path}` is no file of the project"
    return Problem(code, Severity.WARNING, message, Position.whole(""), hint=hint)


def _matches(files: Iterable[str], pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[") and any(fnmatch(one, pattern) for one in files)


def _paths(kind: str, params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        if name in OWN_NAMES:
            continue
        for key, text in _texts(name, value):
            database = _DATABASE.match(text)
            if database is not None and database["path"] != ":memory:":
                yield name, database["path"]
            elif _is_path(kind, key, text):
                yield name, text


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(key, one)
    elif isinstance(value, dict):
        for inner, one in value.items():
            yield from _texts(str(inner), one)


def _is_path(kind: str, key: str, text: str) -> bool:
    if kind in NO_FILES or not text.strip() or text.startswith(("{{", "/", "~", ":", "$", "-")) or _URL.match(text):
        return False
    if "\n" in text:
        return False
    return key in PATHS or (key in OTHER_PATHS and ("/" in text or "." in text.partition("{{")[0]))


FILES = (".gitignore", ".penstockignore")
NEVER = frozenset({
    ".git", ".hg", ".svn", ".penstock", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache",
    ".mypy_cache", ".ruff_cache", ".tox", ".idea", ".vscode", ".DS_Store",
})  # fmt: skip
SECRETS = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "id_rsa*", "id_dsa*",
    "id_ecdsa*", "id_ed25519*", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".ssh", ".aws", ".gnupg", ".kube", "credentials.json",
    "*.kdbx", ".htpasswd",
)  # fmt: skip
EXAMPLES = (".env.example", ".env.sample", ".env.template")
"""What looks like a secret, and is there to show what one looks like."""


def is_never(path: Path) -> bool:
    """Caches, repositories, environments: no part of any project."""
    return path.name in NEVER or path.suffix == ".pyc" or (path / "pyvenv.cfg").is_file()


def is_secret(name: str) -> bool:
    return name not in EXAMPLES and any(fnmatchcase(name.lower(), pattern) for pattern in SECRETS)


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    is_back: bool
    only_folders: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one folder; `above` are those of its parent folders."""

    folder: str
    """From the root, with a slash at the end; empty for the root."""
    own: tuple[Rule, ...] = ()
    above: Rules | None = None

    def inside(self, folder: Path, name: str) -> Rules:
        own = tuple(rule for file in FILES for rule in read_rules(folder / file))
        return Rules(name, own, self) if own else self

    def leave_out(self, path: str, *, is_folder: bool) -> bool:
        level: Rules | None = self
        while level is not None:
            for rule in reversed(level.own):
                if (is_folder or not rule.only_folders) and rule.pattern.fullmatch(path.removeprefix(level.folder)):
                    return not rule.is_back
            level = level.above
        return False


def read_rules(file: Path) -> Iterable[Rule]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return [rule for line in lines if (rule := _rule(line)) is not None]


@lru_cache(maxsize=1000)
def _rule(line: str) -> Rule | None:
    text = re.sub(r"(?<!\\)\s+\Z", "", line)
    if not text or text.startswith("#"):
        return None
    is_back = text.startswith("!")
    text = text[1:] if is_back or text.startswith(("\\!", "\\#")) else text
    only_folders = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    found = _translated(text.removeprefix("/"))
    return Rule(re.compile(found if anchored else f"(?:.*/)?{found}", re.DOTALL), is_back, only_folders)


def _translated(text: str) -> str:
    found, at = "", 0
    while at < len(text):
        if text.startswith("**/", at):
            found, at = found + "(?:.*/)?", at + 3
        elif text.startswith("**", at):
            found, at = found + ".*", at + 2
        elif text[at] == "*":
            found, at = found + "[^/]*", at + 1
        elif text[at] == "?":
            found, at = found + "[^/]", at + 1
        elif text[at] == "[" and (end := text.find("]", at + 2)) > 0:
            inner = text[at + 1 : end].replace("\\", "\\\\")
            found, at = found + f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]", end + 1
        elif text[at] == "\\" and at + 1 < len(text):
            found, at = found + re.escape(text[at + 1]), at + 2
        else:
            found, at = found + re.escape(text[at]), at + 1
    return found
