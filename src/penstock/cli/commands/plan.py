"""`penstock plan FILE` and `penstock graph FILE`: the lowered form of a document, as text and as a picture."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.app.library import Library
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import put, put_json, say
from penstock.cli.places import server_of
from penstock.ports.results import encode


def plan(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        return _planned_there(url, options)
    from penstock.dialects.job import CompiledJob  # Only jobs need it.

    compiled = Library().valid(Path(options.file))
    assert compiled.net is not None
    if isinstance(compiled, CompiledJob):
        from penstock.dialects.job.plan import plan as job_plan  # Only jobs need it.
        from penstock.dialects.job.plan import plan_text

        if options.json:
            put_json(job_plan(compiled))
        else:
            put(plan_text(compiled))
        return 0
    from penstock.dialects.playbook.plan import plan  # Only documents that are compiled here need it.

    lowered = plan(compiled.net)
    if options.json:
        put_json(lowered)
    else:
        put(_yaml(lowered))
    return 0


def _planned_there(url: str, options: Namespace) -> int:
    from penstock.cli.remote.commands import planned, planned_text  # Only runs at a server need it.

    lowered = planned(url, options.file)
    if options.json:
        put_json(lowered)
    else:
        put(_yaml(lowered) if "workload" in lowered else planned_text(url, options.file))
    return 0


def _yaml(value: Any) -> str:
    """As YAML, which is what the author reads; code and other long texts as blocks."""
    import yaml  # Rarely needed, and not worth the start-up time.

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


_ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json"}


def graph(options: Namespace) -> int:
    ending = Path(options.output).suffix.lower() if options.output else ""
    kind = options.format or _ENDINGS.get(ending, "mermaid")
    url = server_of(options)
    if url is not None:
        from penstock.cli.remote.commands import drawn  # Only runs at a server need it.

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
    compiled = Library().valid(file)
    assert compiled.net is not None
    graph = import_module(f"penstock.dialects.{compiled.net.kind}.graph")
    if kind != "json":
        return str(getattr(graph.picture(compiled.net), kind)())
    if compiled.net.kind != "job":
        raise CommandLineError("only the graph of a job is given as JSON", "`penstock plan --json` has a playbook's")
    return encode(graph.as_json(compiled.net)).decode()
