"""Every code a document can be refused or warned with, why it exists and what to do about it."""

from __future__ import annotations

from itertools import groupby

from docs.generator.markdown import anchor, code, page
from penstock.dialects.job.codes import NAMES, register_all
from penstock.dialects.problems import CODES, CodeDoc

FAMILIES = {
    "E01": "Expressions",
    "J00": "Jobs: the document",
    "J01": "Jobs: shapes and words",
    "J02": "Jobs: components",
    "J03": "Jobs: links and sub-jobs",
    "J04": "Jobs: conditions",
    "J05": "Jobs: parameters",
    "J06": "Jobs: columns",
    "J07": "Jobs: names and secrets",
    "J08": "Jobs: what lint says",
    "J09": "Jobs: joblets",
    "P00": "The document",
    "P01": "Shapes and words",
    "P02": "Words that are refused",
    "P03": "Steps and names",
    "P04": "Policies",
    "P05": "Tasks and tools",
    "P06": "Loops",
    "P07": "Names and secrets",
    "P08": "Where tokens can go",
    "P09": "Keychain",
    "Y00": "Files",
    "Y01": "YAML syntax",
    "Y02": "YAML values",
    "Y03": "Limits",
    "Y04": "Projects and the catalog",
    "Y05": "Calls of other documents",
}
_SAID = {code: name for name, code in NAMES.items()}
"""The NAME that the message of a problem of structure begins with."""


def codes() -> dict[str, CodeDoc]:
    register_all()
    return dict(sorted(CODES.items()))


def diagnostics_page() -> str:
    known = codes()
    parts = []
    for family, members in groupby(known, key=lambda one: one[:3]):
        parts.append(f"## {FAMILIES[family]}")
        parts += [_entry(name, known[name]) for name in members]
    return page(
        "Diagnostics",
        "Every problem has a code, a place (`file:line:col`), the line itself with a caret, and a hint where one helps. All "
        "problems of a file are reported at once. `penstock validate` reports errors, `penstock lint` also warnings and notes; "
        "`--strict` makes errors of warnings, and `--json` prints the problems for editors and scripts.",
        "\n".join(f"- [{title}](#{anchor(title)})" for title in _titles(known)),
        *parts,
    )


def _titles(known: dict[str, CodeDoc]) -> list[str]:
    return [FAMILIES[family] for family in dict.fromkeys(name[:3] for name in known)]


def _entry(name: str, doc: CodeDoc) -> str:
    said = f"`{_SAID[name]}`. " if name in _SAID else ""
    parts = [f'<a id="{name.lower()}"></a>', f"### {name}: {doc.title}", f"{said}{doc.why} **What to do:** {doc.fix}"]
    if doc.bad:
        parts += ["Reported for:", code("yaml", doc.bad)]
    if doc.good:
        parts += ["Right:", code("yaml", doc.good)]
    return "\n\n".join(parts)
