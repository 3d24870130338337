"""`penstock validate`, `lint`, `plan` and `graph`: what is wrong with a document, and what it is lowered to, as text and as a
picture."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from penstock.app.library import Examined, Library
from penstock.app.state_folder import home_for
from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.cli.output import has_colour, put, put_json, say
from penstock.cli.targets import server_of
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.report import as_json, render, summary
from penstock.ports.results import encode
from penstock.remote.client import Client, Sent, problems_of, seen_here

ERRORS = frozenset({"error"})
WITHOUT_NOTES = ERRORS | {"warning"}
EVERYTHING = WITHOUT_NOTES | {"note"}


class _Asked:
    """Files as a server sees them, which may have other tools than this machine."""

    def __init__(self, url: str, options: Namespace, given: Mapping[str, Any]) -> None:
        self._client = Client(url)
        self._asked = {"strict": options.strict, "payload": given, "context": options.context}

    def examined(self, path: Path) -> Examined:
        sent = Sent(Library(), str(path))
        found = self._client.ask("POST", "/api/validate", body={"document": sent.body, **self._asked}, is_safe=True)
        texts = {str(path): sent.text, **getattr(sent.compiled, "texts", {})}
        return Examined(str(path), tuple(seen_here(problems_of(found["problems"]), sent)), texts)


class _LookedAt:
    """Files as they would run on this machine."""

    def __init__(self, options: Namespace, given: Mapping[str, Any]) -> None:
        self._library = Library(strict=options.strict)
        self._options = options
        self._given = given

    def examined(self, path: Path) -> Examined:
        home = home_for(path, self._options.store)
        return asyncio.run(self._library.examined(path, self._given, self._options.context, home))


def validate(options: Namespace) -> int:
    return _check(options, shown=WITHOUT_NOTES if not options.quiet else ERRORS)


def lint(options: Namespace) -> int:
    return _check(options, shown=EVERYTHING)


def _check(options: Namespace, *, shown: frozenset[str]) -> int:
    url = server_of(options)
    given = inputs.workload(options.payload, options.set)
    examined = (_LookedAt(options, given) if url is None else _Asked(url, options, given)).examined
    reported: list[Problem] = []
    left_out: list[Problem] = []
    sources: dict[str, str] = {}
    files = []
    for file in dict.fromkeys(options.files):
        found = examined(Path(file))
        sources.update(found.texts)
        errors = sum(problem.severity is Severity.ERROR for problem in found.problems)
        files.append({"file": file, "status": "invalid" if errors else "valid", "errors": errors})
        for problem in found.problems:
            (reported if problem.severity.value in shown else left_out).append(problem)
    is_invalid = any(one["errors"] for one in files)
    code = 2 if is_invalid else 0
    if options.json:
        status = "invalid" if is_invalid else "valid"
        put_json({"status": status, "exit_code": code, "files": files, "problems": as_json(reported)})
        return code
    if reported:
        say(render(reported, sources, color=has_colour(sys.stderr)).rstrip("\n"))
    for one in files:
        if not one["errors"]:
            say(f"{one['file']}: valid")
    if left_out:
        say(f"{summary(left_out)} not shown; `penstock lint` shows them")
    return code


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
    dialect = import_module(f"penstock.dialects.{compiled.net.kind}.plan")
    if kind != "json":
        return str(getattr(dialect.picture(compiled.net), kind)())
    if compiled.net.kind != "job":
        raise CommandLineError("only the graph of a job is given as JSON", "`penstock plan --json` has a playbook's")
    return encode(dialect.graph_json(compiled.net)).decode()
