"""`penstock new [playbook|job|joblet] NAME`: a small document to start from. A playbook or a job runs as it is."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from penstock.cli.arguments import KINDS, CommandLineError
from penstock.cli.output import say


def main(options: Namespace) -> int:
    from penstock.cli.templates import TEMPLATES

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
            file.write(TEMPLATES[kind].format(name=Path(name).name))
    except FileExistsError as error:
        raise CommandLineError(f"`{path}` is there already", "`--force` replaces it") from error
    except OSError as error:
        raise CommandLineError(f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}") from error
    if kind == "joblet":
        say(f'wrote {path}; a job beside it calls it with the type "@{Path(name).name}"')
    else:
        say(f"wrote {path}; to run it: penstock run {path}")
    return 0
