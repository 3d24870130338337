"""`penstock new KIND NAME` and `penstock init DIR`: a small document, or a small project, to start from. All of it runs."""

from __future__ import annotations

import re
from argparse import Namespace
from importlib.resources import files
from pathlib import Path

from penstock.cli.arguments import KINDS, CommandLineError
from penstock.cli.output import say

PROJECT = (
    "README.md", "daily.yaml", "jobs/load_orders.yaml", "jobs/joblets/clean.yaml", "data/orders.csv",
    "config/dev.json", "config/prod.json", "tests/test_orders.py", ".gitignore", ".penstockignore",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def _template(path: str, name: str) -> str:
    """The text of a template with the name filled in. Code and hidden files are stored as `.txt`, so that no tool takes them for
    source or settings of Penstock itself."""
    stored = f"{path.replace('/.', '/')}.txt" if path.endswith(".py") or "/." in path else path
    return files("penstock.cli.commands").joinpath("templates", stored).read_text("utf-8").replace("{name}", name)


def new(options: Namespace) -> int:
    kind = options.kind or "playbook"
    if options.kind is None and options.name in KINDS:
        raise CommandLineError(
            f"`penstock new {options.name}` needs a name, too", f"for example `penstock new {options.name} first`"
        )
    name = options.name.removesuffix(".yaml").removesuffix(".yml")
    path = Path(name).with_name(f"{Path(name).name}.yaml") if Path(name).name else Path(".yaml")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", Path(name).name):
        raise CommandLineError(
            f"`{options.name}` is no name for a {kind}",
            "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
        )
    try:
        with path.open("w" if options.force else "x", encoding="utf-8") as file:
            file.write(_template(f"{kind}.yaml", Path(name).name))
    except FileExistsError as error:
        raise CommandLineError(f"`{path}` is there already", "`--force` replaces it") from error
    except OSError as error:
        raise CommandLineError(f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}") from error
    if kind == "joblet":
        say(f'wrote {path}; a job beside it calls it with the type "@{Path(name).name}"')
    else:
        say(f"wrote {path}; to run it: penstock run {path}")
    return 0


def init(options: Namespace) -> int:
    folder = Path(options.folder)
    name = folder.resolve().name
    if _NAME.fullmatch(name) is None:
        raise CommandLineError(
            f"`{name}` is no name for a project",
            "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
        )
    there = [path for path in PROJECT if (folder / path).exists()]
    if there:
        raise CommandLineError(f"`{folder / there[0]}` is there already", "give a folder that is new or empty")
    try:
        for path in PROJECT:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_template(f"project/{path}", name), encoding="utf-8")
    except OSError as error:
        raise CommandLineError(
            f"`{error.filename or folder}` cannot be written: {(error.strerror or str(error)).lower()}"
        ) from error
    say(f"wrote {len(PROJECT)} files into {folder}; to run it: cd {folder} && penstock run daily.yaml")
    return 0
