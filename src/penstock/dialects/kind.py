"""The kind of a document, from its top-level keys alone.

Law: cheap and never wrong about a valid document. A file that cannot be read at all counts as a playbook, whose reader reports
the reason. Nothing below the first level is built: the YAML parser is followed event by event, and no further than
into what a document may hold. The parser keeps a record for every open bracket and looks through all of them at each event.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import yaml

from penstock.dialects.problems import closest
from penstock.dialects.source.node import DEFAULT_LIMITS

Kind = Literal["playbook", "job", "joblet"]

LARGEST = 64 * 1024 * 1024
OURS = ("noetl.io/", "penstock/")
"""What versions of our languages begin with."""
MOST_EVENTS = 3 * DEFAULT_LIMITS.nodes
"""A value has at most one event for its key, and two for itself."""
_BY_NAME: dict[str, Kind] = {"Job": "job", "Joblet": "joblet", "Playbook": "playbook"}
_BOM = "\ufeff"
_OF_JOBS = frozenset({"components", "connections", "job_config"})
_OF_PLAYBOOKS = frozenset({"workflow", "workload", "workbook", "executor"})
"""Words that only one of the languages has at its top."""


def kind_of(text: str) -> Kind:
    """`kind` decides; without one, `components` makes a job and `inputs` or `outputs` beside them a joblet."""
    keys: dict[str, str | None] = {}
    for key, value in _top_level(text.removeprefix(_BOM)):
        keys[key] = value
        if key == "kind" and value in _BY_NAME:
            return _BY_NAME[value]
    if "workflow" in keys or ("components" not in keys and not _is_meant_as_job(keys)):
        return "playbook"
    return "joblet" if {"inputs", "outputs"} & keys.keys() else "job"


def _is_meant_as_job(keys: Collection[str]) -> bool:
    """`components` is not there, perhaps because it is misspelt: are the other words those of a job?"""
    if not _OF_PLAYBOOKS.isdisjoint(keys):
        return False
    if not _OF_JOBS.isdisjoint(keys):
        return True
    return any(closest(key, sorted(_OF_JOBS)) is not None for key in keys)


def document_kind(text: str) -> Kind | None:
    """The same of a file that may be something else altogether: None for YAML that is no document of ours."""
    keys = dict(_top_level(text.removeprefix(_BOM)))
    version = keys.get("apiVersion")
    if version is not None and not version.startswith(OURS):
        return None
    is_ours = keys.get("kind") in _BY_NAME or bool({"components", "workflow"} & keys.keys())
    return kind_of(text) if is_ours else None


def kind_of_file(path: Path) -> Kind:
    """A file that cannot be read is left to the reader of playbooks, which says why. So is a pipe: it can be read only once, and
    its reader should do that; the text then tells what it is."""
    try:
        if not path.is_file():
            return "playbook"
        with path.open("rb") as file:
            data = file.read(LARGEST)
    except (OSError, ValueError):
        return "playbook"
    return kind_of(data.decode("utf-8", "replace"))


def _top_level(text: str) -> Iterator[tuple[str, str | None]]:
    """The keys of the outermost mapping, each with its value if that is a plain scalar."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    key: str | None = None
    try:
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            if depth > DEFAULT_LIMITS.depth or number > MOST_EVENTS:
                return
            if isinstance(event, yaml.CollectionStartEvent):
                if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                    return
                if depth == 1 and key is not None:
                    yield key, None
                    key = None
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
                if depth == 0:
                    return
            elif depth == 1 and isinstance(event, yaml.ScalarEvent):
                if key is None:
                    key = event.value
                else:
                    yield key, event.value
                    key = None
            elif depth == 1 and isinstance(event, yaml.AliasEvent):
                if key is not None:
                    yield key, None
                key = None
    except yaml.YAMLError:
        return
