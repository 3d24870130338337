"""`penstock init DIR`: a small project to start from. All of it runs, as its README says."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import say

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def main(options: Namespace) -> int:
    from penstock.cli.project_template import FILES

    folder = Path(options.folder)
    name = folder.resolve().name
    if _NAME.fullmatch(name) is None:
        raise CommandLineError(
            f"`{name}` is no name for a project",
            "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
        )
    there = [path for path in FILES if (folder / path).exists()]
    if there:
        raise CommandLineError(f"`{folder / there[0]}` is there already", "give a folder that is new or empty")
    try:
        for path, text in FILES.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace("{name}", name) if path == "README.md" else text, encoding="utf-8")
    except OSError as error:
        raise CommandLineError(
            f"`{error.filename or folder}` cannot be written: {(error.strerror or str(error)).lower()}"
        ) from error
    say(f"wrote {len(FILES)} files into {folder}; to run it: cd {folder} && penstock run daily.yaml")
    return 0
