"""`penstock lineage FILE`: where the columns of a job come from."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.lineage import Lineage, as_json, as_mermaid, as_text
from penstock.cli.output import put, put_json


def main(options: Namespace) -> int:
    from penstock.app.library import Library

    if options.json and options.mermaid:
        raise CommandLineError("`--json` and `--mermaid` are two forms of the same; choose one")
    job = Library().valid_job(Path(options.file), "lineage of columns")
    assert job.net is not None
    lineage = Lineage(job.net, job.schemas, job.lineage)
    chosen = lineage.chosen(options.column)
    if options.json:
        put_json(as_json(lineage, chosen))
    elif options.mermaid:
        put(as_mermaid(lineage, chosen))
    else:
        put(as_text(lineage, chosen))
    return 0
