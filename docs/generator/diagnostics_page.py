"""Every code a document can be refused or warned with, why it exists and what to do about it."""

from __future__ import annotations

from docs.generator.markdown import anchor, code, page
from penstock.dialects.diagnostics import Page, families
from penstock.dialects.job.reader import NAMES

_SAID = {code: name for name, code in NAMES.items()}
"""The NAME that the message of a problem of structure begins with."""


def diagnostics_page() -> str:
    parts = []
    for title, members in families().values():
        parts.append(f"## {title}")
        parts += [_entry(name, doc) for name, doc in members.items()]
    return page(
        "Diagnostics",
        "Every problem has a code, a place (`file:line:col`), the line itself with a caret, and a hint where one helps. All "
        "problems of a file are reported at once. `penstock validate` reports errors, `penstock lint` also warnings and notes; "
        "`--strict` makes errors of warnings, and `--json` prints the problems for editors and scripts.",
        "\n".join(f"- [{title}](#{anchor(title)})" for title, _ in families().values()),
        *parts,
    )


def _entry(name: str, doc: Page) -> str:
    said = f"`{_SAID[name]}`. " if name in _SAID else ""
    parts = [f'<a id="{name.lower()}"></a>', f"### {name}: {doc.title}", f"{said}{doc.why} **What to do:** {doc.fix}"]
    if doc.bad:
        parts += ["Reported for:", code("yaml", doc.bad)]
    if doc.good:
        parts += ["Right:", code("yaml", doc.good)]
    return "\n\n".join(parts)
