"""Which files of a folder are left out of a project: by `.gitignore` and `.penstockignore`, and those that never belong to one.

The patterns are git's: `*`, `?`, `[…]` and `**`, `/` at the end for folders only, `/` elsewhere for a path from the folder that
the file lies in, `!` to take back. The last pattern that fits counts, and what lies in a folder that is left out stays out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

FILES = (".gitignore", ".penstockignore")
NEVER = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".penstock",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".tox",
        ".idea",
        ".vscode",
        ".DS_Store",
    }
)
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
    """Those of one folder; `above` are those of the folders around it."""

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
