"""Inputs of a run, from any source: `--set`, `--payload`, Python, the API, schedules, hooks, documents that call others.

Law: there is one rule for all of them. An input is known if the document declares it, in `workload` or `context`, or in a
context group; if something in the document reads it; or if it is `event`, which schedules and hooks supply. Any other name
is taken for a typing error and refused, unless the document says `inputs: open`, or reads its inputs as a whole. Within a
declared mapping keys are free, as it may be a table of anything: a key is refused only if it is nearly a key that the
document reads by name, and is itself read nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from penstock.dialects.problems import closest
from penstock.expr.check import inspect
from penstock.expr.lexer import is_template
from penstock.kernel.errors import Refused
from penstock.kernel.kept import STATE
from penstock.kernel.net import Net

EVENT = "event"
MOST_NAMED = 20
_NOT_READ = frozenset({"name", "label", "kind", "target", "source", "local", "port", "to_port", "iterator", "joins"})
"""Fields of a net that hold names of the document's own parts, which read nothing."""
_WHOLE = r"""(?!\w)(?!\s*(?:\[\s*['"]|\.get\(\s*['"]|\.(?!get\b|items\b|keys\b|values\b)\w))"""
"""What may follow the name of a mapping that is used as a whole: `{{ context }}` passed on, or `workload[key]` in code."""


class UnknownInput(Refused):
    """A run was given an input that its document does not have."""


def require_known(net: Net, given: Mapping[str, Any]) -> None:
    """Raises UnknownInput for the first name that the document neither declares nor reads."""
    if net.open_inputs or not given:
        return
    declared = dict.fromkeys([*net.workload, *(name for group in net.contexts.values() for name in group)])
    reads = _Reads(net)
    for name, value in given.items():
        if name == EVENT:
            continue
        if name in declared:
            _require_known_keys(name, net.workload.get(name), value, reads)
        elif not reads.all_of(_namespace(net)) and not reads.word(name):
            _refuse(net, name, list(declared))


def needed(net: Net) -> list[str]:
    """Inputs without a default that the document reads by name in parameters, entries and collections."""
    if net.open_inputs:
        return []
    space = _namespace(net)
    declared = {*net.workload, EVENT, STATE}
    places = [(task.params, node.fan and node.fan.collection) for node in net.nodes.values() for task in node.tasks]
    found: dict[str, None] = {}
    for text in _texts([*places, *net.keychain]):
        for use in inspect(text).uses if is_template(text) else ():
            if use.path[0] == space and len(use.path) > 1 and not use.guarded and use.path[1] not in declared:
                found[str(use.path[1])] = None
    return list(found)


def _require_known_keys(path: str, default: Any, given: Any, reads: _Reads) -> None:
    if not isinstance(default, dict) or not isinstance(given, dict):
        return
    for key, value in given.items():
        if key in default:
            _require_known_keys(f"{path}.{key}", default[key], value, reads)
            continue
        meant = closest(key, [one for one in default if one not in given])
        if meant and reads.key(meant) and not reads.word(key) and not reads.mapping(path.rpartition(".")[2]):
            raise UnknownInput(
                f"`{path}` has no `{key}`, and nothing in the document reads it", f"did you mean `{path}.{meant}`?"
            )


def _namespace(net: Net) -> str:
    return "context" if net.kind == "job" else "workload"


def _refuse(net: Net, name: str, declared: Sequence[str]) -> None:
    meant = closest(name, declared)
    more = f" and {len(declared) - MOST_NAMED:,} more" if len(declared) > MOST_NAMED else ""
    known = ", ".join(f"`{one}`" for one in declared[:MOST_NAMED])
    space = _namespace(net)
    opened = "job_config.inputs" if net.kind == "job" else "executor.spec.inputs"
    hint = (
        f"did you mean `{meant}`?" if meant else f"the {space} has {known}{more}" if known else f"it has no `{space}`"
    )
    raise UnknownInput(
        f"the {space} has no `{name}`, and nothing in the {net.kind} reads it",
        hint if meant else f"{hint}; `{opened}: open` takes any name",
    )


class _Reads:
    """The names that the texts of a net mention, gathered when the first undeclared name is looked up."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._found: str | None = None

    @property
    def _text(self) -> str:
        if self._found is None:
            net = self._net
            self._found = "\n".join(_texts([*net.nodes.values(), *net.links, *net.keychain]))
        return self._found

    def word(self, name: str) -> bool:
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._text) is not None

    def key(self, name: str) -> bool:
        """Whether it is read by name, as `x.name` or `x['name']`."""
        found = re.search(rf"""(?:\.\s*|\[\s*['"]|\.get\(\s*['"]){re.escape(name)}(?!\w)""", self._text)
        return found is not None

    def mapping(self, name: str) -> bool:
        """Whether the mapping is used as a whole anywhere."""
        return re.search(rf"(?<!\w){re.escape(name)}{_WHOLE}", self._text) is not None

    def all_of(self, namespace: str) -> bool:
        return re.search(rf"(?<![\w.]){namespace}{_WHOLE}", self._text) is not None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name not in _NOT_READ:
                yield from _texts(getattr(value, field.name))
