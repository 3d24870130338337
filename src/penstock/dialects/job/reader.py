"""The readers of both languages, with the words and the codes of jobs.

Problems of structure begin with a NAME that people search for (`PORT_ARITY: …`); `NAMES` gives each its code.
"""

from __future__ import annotations

import re
from typing import Unpack

from penstock.dialects.job.words import SCOPES, SYNONYMS
from penstock.dialects.problems import Details, Findings, Position, Problem, Severity, nearest
from penstock.dialects.reader import NAME_HINT, Language, Reader, did_you_mean, listed
from penstock.dialects.source.node import SourceNode
from penstock.kernel.errors import PenstockError
from penstock.ports.components import ComponentCatalog, ComponentDescription

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*\Z", re.IGNORECASE)
_UNITS = {
    "b": "B", "kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "tib": "TiB",
}  # fmt: skip

NAMES: dict[str, str] = {
    "BAD_NAME": "J0201", "DUPLICATE_NAME": "J0202", "UNKNOWN_TYPE": "J0203", "BROKEN_TYPE": "J0204",
    "BAD_COLUMN": "J0205", "ROLE_PLACE": "J0206",
    "BAD_LINK": "J0301", "UNKNOWN_COMPONENT": "J0302", "UNKNOWN_PORT": "J0303", "UNCONNECTED_NODE": "J0304",
    "PORT_ARITY": "J0305", "CYCLE_DETECTED": "J0306", "PARALLELISE_ARITY": "J0307", "AMBIGUOUS_JOIN": "J0308",
    "BODY_ESCAPE": "J0309", "DUPLICATE_LINK": "J0310", "NOT_AN_ITERATOR": "J0311", "EMPTY_BODY": "J0312",
    "ROLE_LINK": "J0313", "EARLY_START": "J0314", "UNSHARED_TRANSACTION": "J0315", "BESIDE_TRANSACTION": "J0316",
    "BAD_ENGINE": "J0317", "NOT_ON_ENGINE": "J0318",
    "BAD_CONDITION": "J0401",
    "BAD_PARAM": "J0501", "UNKNOWN_PARAM": "J0502", "MISSING_PARAM": "J0503", "MISSING_FILE": "J0504",
    "TEMPLATE_KEY": "J0505", "BAD_GLOBAL": "J0506", "BAD_URL": "J0507", "BAD_PYTHON": "J0508",
    "UNKNOWN_COLUMN": "J0601", "TYPE_MISMATCH": "J0602", "BAD_SQL": "J0603",
    "UNKNOWN_NAME": "J0701", "UNSEEN_NAME": "J0702", "SECRET_IN_LOG": "J0703", "UNKNOWN_SECRET": "J0704",
    "UNWRITTEN_GLOBAL": "J0705", "UNDECLARED_SECRET": "J0706", "BLANKS_BESIDE": "J0720", "UNQUOTED_VALUE": "J0721",
    "UNREAD_OUTPUT": "J0801", "LEFT_OUT": "J0802",
    "JOBLET_NOT_FOUND": "J0901", "JOBLET_PORT": "J0902", "JOBLET_RECURSION_DEPTH": "J0903", "NOT_A_JOBLET": "J0904",
    "JOB_TOO_LARGE": "J0905",
}  # fmt: skip
"""NAME -> code. The NAME is what a message begins with and what people search for."""

_LANGUAGE = Language(
    SCOPES,
    SYNONYMS,
    roots=frozenset(("job", "joblet")),
    unknown_section="J0002",
    unknown_word="J0102",
    missing_word="J0103",
    wrong_shape="J0101",
    not_a_choice="J0104",
    out_of_bounds="J0105",
    unrendered="J0106",
)


class Reading(Reader[ComponentDescription]):
    language = _LANGUAGE

    def __init__(self, findings: Findings, catalog: ComponentCatalog) -> None:
        super().__init__(findings, catalog)
        self.catalog = catalog

    def report(
        self,
        name: str,
        message: str,
        position: Position,
        *,
        severity: Severity = Severity.ERROR,
        **more: Unpack[Details],
    ) -> None:
        """A problem of structure, by its NAME."""
        self.findings.add(Problem(NAMES[name], severity, f"{name}: {message}", position, **more))

    def name(self, node: SourceNode, what: str) -> str | None:
        """A name that links, too, can carry. Two underscores in front are what joblets put there."""
        text = super().name(node, what)
        if text is not None and text.startswith("__"):
            self.bad_name(text, what, node.position)
            return None
        return text

    def bad_name(self, text: str, what: str, position: Position, hint: str = NAME_HINT) -> None:
        more = "; `__` in front is kept for joblets" if hint == NAME_HINT else ""
        self.report("BAD_NAME", f"`{text}` cannot be {what}", position, hint=f"{hint}{more}")

    def size(self, node: SourceNode | None, what: str) -> str | None:
        """An amount of memory: `256MB`, `1.5GB`, or a number of bytes."""
        if node is None or node.is_null:
            return None
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return f"{value}B"
        found = _SIZE.match(value) if isinstance(value, str) else None
        if found is None or not float(found[1]):
            hint = "a number with a unit, such as `256MB` or `2GB`"
            self.findings.error("J0107", f"{what} cannot be {node.shown}", node.position, hint=hint)
            return None
        return f"{found[1]}{_UNITS[found[2].lower()]}"

    def describe(self, name: str, position: Position) -> ComponentDescription | None:
        """A type that is not installed is reported wherever it is used."""
        found = super().describe(name, position)
        if found is None and name not in self.broken:
            self._unknown_type(name, position)
        return found

    def cannot_load(self, name: str, error: PenstockError, position: Position) -> None:
        message = f"the component `{name}` cannot be loaded: {error.message}"
        self.report("BROKEN_TYPE", message, position, hint=error.hint or "")

    def _unknown_type(self, type_: str, position: Position) -> None:
        types = self.catalog.types()
        label = did_you_mean(type_, types)
        hint = "" if label else _hint_of_type(type_, types)
        self.report("UNKNOWN_TYPE", f"there is no component of type `{type_}`", position, label=label, hint=hint)


NEAREST = 5
_MEANT = {
    "csv": "read_csv", "csv_input": "read_csv", "tfileinputdelimited": "read_csv", "tfileoutputdelimited": "write_csv",
    "tmap": "map", "tfilterrow": "filter", "taggregaterow": "aggregate", "tsortrow": "sort", "tuniqrow": "unique",
    "tunite": "union", "treplicate": "replicate", "tlogrow": "log_rows", "tjava": "python", "tjavarow": "python",
    "tdie": "die", "twarn": "warn", "tprejob": "pre_job", "tpostjob": "post_job", "tfilelist": "iterate_files",
    "tflowtoiterate": "iterate_rows", "tloop": "iterate_range", "trunjob": "run_job",
    "tsetglobalvar": "set_global", "tcontextload": "context_load", "tsleep": "sleep", "tjoin": "join",
    "trowgenerator": "generate_rows", "tfixedflowinput": "fixed_rows", "group_by": "aggregate", "where": "filter",
    "order_by": "sort", "distinct": "unique", "rename": "select", "extract": "read_csv", "load": "write_csv",
}  # fmt: skip


def _hint_of_type(type_: str, types: list[str]) -> str:
    meant = _MEANT.get(type_.casefold())
    if meant in types:
        return f"what you look for may be `{meant}`"
    near = nearest(type_, types, NEAREST)
    return (
        f"the nearest are {listed(near)}; `penstock components` lists all {len(types)}, and a joblet is written `@name`"
    )
