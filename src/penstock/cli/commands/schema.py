"""`penstock schema [playbook|job|joblet]`: the JSON Schema of a document, for editors."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.cli.output import put


def main(options: Namespace) -> int:
    import msgspec

    from penstock.app.library import Library
    from penstock.ports.results import encode

    library = Library()
    if options.kind == "playbook":
        from penstock.dialects.playbook.schema import json_schema

        schema = json_schema(library.tools.at(Path.cwd()))
    else:  # Jobs and joblets have one schema between them, which tells them apart by `kind`.
        from penstock.dialects.job.schema import json_schema as job_schema

        schema = job_schema(library.components.at(Path.cwd()))
    put(msgspec.json.format(encode(schema), indent=2).decode())
    return 0
