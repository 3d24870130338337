"""What the examples of the components give, from the real engine, and the record of it that the pages are made from.

Law: a page shows an output only when a test has seen the engine give it. The record names each example by its hash, so one that
was changed has no output until it has been run again: `make docs` does that.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from penstock.components.registry import ComponentRegistry, built_in, example_of
from penstock.kernel.errors import Refused

RECORD = Path(__file__).with_name("example_outputs.json")

UNSTEADY: dict[str, str] = {
    "read_file": "the full path of the file is in its rows",
    "file_properties": "full paths and times are in its rows",
    "file_list": "full paths and times are in its rows",
    "post_job": "times are in its rows",
    "stats": "times are in its rows",
}
"""Types whose example has a different output each time, and why."""
UNREACHABLE: dict[str, str] = {"http_rows": "it calls a server on the internet"}
"""Types whose example cannot be run as it stands."""


class Given(NamedTuple):
    status: str
    error: object
    lines: list[str]


def run_example(text: str, folder: Path, registry: ComponentRegistry) -> Given:
    """Run a job in a folder of its own. The lines it printed are grouped by component, in the order of the document:
    components that run side by side show their lines in any order."""
    from penstock.app.embedded import embedded
    from penstock.server.documents import Documents

    path = folder / "example.yaml"
    path.write_text(text, encoding="utf-8")
    said: dict[str, list[str]] = {}

    async def ran() -> Given:
        engine = embedded(folder / ".penstock", components=registry)
        engine.line_observers.append(lambda scope, _, line: said.setdefault(scope, []).append(line))
        documents = Documents(engine.tools, registry)
        try:
            under_way = engine.run("example", documents)
            document = documents.open(path, None, None)
            summary = await under_way.start(document, {}, label=None, trace_id="example", context=None)
        finally:
            await engine.close()
        return Given(summary.status, summary.error, [])

    given = asyncio.run(ran())
    return given._replace(lines=[line for scope in _ordered(said, text) for line in said[scope]])


def _ordered(scopes: Iterable[str], text: str) -> list[str]:
    def place(scope: str) -> tuple[int, str]:
        member = scope.rpartition("].")[2]
        return text.find(f"name: {member}"), scope

    return sorted(scopes, key=place)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def recorded() -> dict[str, dict[str, object]]:
    """Type -> `{example: hash, lines: […]}`."""
    if not RECORD.is_file():
        return {}
    found: dict[str, dict[str, object]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def output_of(type_: str, text: str) -> list[str]:
    """What the example of a type shows; empty if it shows nothing or the record is for another version of its text."""
    found = recorded().get(type_, {})
    lines = found.get("lines", [])
    assert isinstance(lines, list)
    return [str(line) for line in lines] if found.get("example") == digest(text) else []


def steady() -> list[str]:
    """The types whose example has the same output on every machine."""
    return [type_ for type_ in built_in() if type_ not in UNSTEADY and type_ not in UNREACHABLE]


def stale() -> list[str]:
    """The types whose example is not on record as it stands."""
    registry, known = ComponentRegistry(with_lineage=False), recorded()
    return [
        type_
        for type_ in steady()
        if known.get(type_, {}).get("example") != digest(example_of(type(registry.get(type_))))
    ]


def record(types: Iterable[str]) -> int:
    """Run the examples of these types and record what they show. Returns how many were run."""
    registry, known, waiting = ComponentRegistry(with_lineage=False), recorded(), list(types)
    for type_ in waiting:
        text = example_of(type(registry.get(type_)))
        with tempfile.TemporaryDirectory() as folder:
            given = run_example(text, Path(folder), registry)
        if given.status != "completed":
            raise Refused(f"the example of `{type_}` ends in `{given.status}`: {given.error}")
        known[type_] = {"example": digest(text), "lines": list(given.lines)}
    kept = {type_: known[type_] for type_ in steady() if type_ in known}
    if waiting or kept != known:
        RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return len(waiting)
