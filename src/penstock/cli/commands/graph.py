"""`penstock graph FILE`: the steps and arcs as a picture."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import put, say

_ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid"}


def main(options: Namespace) -> int:
    from penstock.dialects.playbook.graph import dot, mermaid, svg
    from penstock.server.documents import Documents
    from penstock.tools.registry import Registry

    documents = Documents(Registry())
    net, _ = documents.compile(documents.open(Path(options.file)))
    ending = Path(options.output).suffix.lower() if options.output else ""
    kind = options.format or _ENDINGS.get(ending, "mermaid")
    picture = {"mermaid": mermaid, "dot": dot, "svg": svg}[kind](net)
    if options.output is None or options.output == "-":
        put(picture)
        return 0
    target = Path(options.output)
    try:
        target.write_text(picture if picture.endswith("\n") else picture + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandLineError(f"`{target}` cannot be written: {(error.strerror or str(error)).lower()}") from error
    say(f"wrote {target}")
    return 0
