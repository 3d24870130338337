"""Every code a document can be refused or warned with, why it exists and what to do about it."""

from __future__ import annotations

from itertools import groupby

from penstock.dialects.playbook.codes import register_all
from penstock.dialects.problems import CODES, CodeDoc
from penstock.docs.markdown import code, page

FAMILIES = {
    "E01": "Expressions",
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
}


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
        "\n".join(f"- [{title}](#{title.lower().replace(' ', '-')})" for title in _titles(known)),
        *parts,
    )


def _titles(known: dict[str, CodeDoc]) -> list[str]:
    return [FAMILIES[family] for family in dict.fromkeys(name[:3] for name in known)]


def _entry(name: str, doc: CodeDoc) -> str:
    parts = [f'<a id="{name.lower()}"></a>', f"### {name}: {doc.title}", f"{doc.why} **What to do:** {doc.fix}"]
    if doc.bad:
        parts += ["Reported for:", code("yaml", doc.bad)]
    if doc.good:
        parts += ["Right:", code("yaml", doc.good)]
    return "\n\n".join(parts)
