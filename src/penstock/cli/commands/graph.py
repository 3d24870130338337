"""`penstock graph FILE`: the steps and arcs of a playbook, or the components and links of a job, as a picture."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import put, say
from penstock.cli.remote import server_of

_ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json"}


def main(options: Namespace) -> int:
    ending = Path(options.output).suffix.lower() if options.output else ""
    kind = options.format or _ENDINGS.get(ending, "mermaid")
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote_documents import drawn

        picture = drawn(url, options.file, kind)
    else:
        picture = _drawn(Path(options.file), kind)
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


def _drawn(file: Path, kind: str) -> str:
    from penstock.app.library import Library
    from penstock.ports.results import encode

    compiled = Library().valid(file)
    assert compiled.net is not None
    graph = import_module(f"penstock.dialects.{compiled.net.kind}.graph")
    if kind != "json":
        return str(getattr(graph, kind)(compiled.net))
    if compiled.net.kind != "job":
        raise CommandLineError("only the graph of a job is given as JSON", "`penstock plan --json` has a playbook's")
    return encode(graph.as_json(compiled.net)).decode()
