"""Every key of a job and a joblet, scope by scope, and what each link fires on."""

from __future__ import annotations

from docs.generator.markdown import code, page, table
from docs.generator.scopes import section
from penstock.dialects.job.words import CONTROL, SCOPES
from penstock.kernel.errors import Bug

_NOT_IN_TABLE = {"keychain": ("keychain entry", "One secret, and how it is found: see [keychain](keychain.md).")}
_TITLES = {name: scope.title for name, scope in SCOPES.items()} | {
    name: title for name, (title, _) in _NOT_IN_TABLE.items()
}

LINKS: dict[str, tuple[str, str]] = {
    "ok": ("a (ok) b", "`a` ended OK."),
    "error": ("a (error) b", "`a` ended in ERROR. Its error counts as handled when what the link leads to ends OK."),
    "if": (
        'a (if 1: "NB_LINE > 0") b',
        "`a` ended OK and the condition is true. All that are true fire, lower orders first.",
    ),
    "parallelise": ("a (parallelise) b, c", "`a` ended OK. Each target, two at least, begins a sub-job of its own."),
    "synchronise": (
        "b, c (synchronise) d",
        "The sub-jobs of `b` and `c` have ended OK or SKIPPED, and not all were skipped.",
    ),
    "subjob_ok": ("a (subjob_ok) b", "The sub-job that contains `a` ended OK."),
    "subjob_error": ("a (subjob_error) b", "The sub-job that contains `a` ended in ERROR."),
    "iterate": ("it (iterate) body", "Once for each element. What it reaches is the body, one scope per element."),
    "iteration_ok": ("it (iteration_ok) b", "The body of an iteration ended OK. `b` runs in that iteration."),
    "iteration_error": ("it (iteration_error) b", "The body of an iteration failed. `b` runs in that iteration."),
    "iterator_complete": ("it (iterator_complete) b", "No iteration is left, however they ended."),
}

SPELLINGS = """\
connections:
  data: |
    orders.main -> totals.input
  control:
    - totals (ok) tell
    - { from: totals, to: alarm, on: error }
    - { from: totals, to: celebrate, order: 1, when: NB_LINE > 1000 }
"""


def job_page() -> str:
    if {*LINKS} != {*CONTROL}:
        raise Bug(
            f"the links {sorted({*LINKS} ^ {*CONTROL})} are not the same in docs.generator.job_page and in the dialect"
        )
    parts = []
    for name, scope in SCOPES.items():
        parts += section(name, scope, _TITLES)
    for name, (title, about) in _NOT_IN_TABLE.items():
        parts += [f'<a id="{name}"></a>\n\n## {title}', about]
    return page(
        "Keys of a job",
        "A file with `kind: Job`, or with `components` and no header, is a job; one with `kind: Joblet` is a joblet. This page "
        "lists every key in every scope. `penstock schema` prints the same as a JSON Schema for editors, with the parameters of "
        "the [components](components/index.md). What it all means is told in [jobs](../concepts/jobs.md).",
        *parts,
        "## What control links fire on",
        table(
            ("link", "written", "fires when"),
            [(f"`{name}`", f"`{written}`", about) for name, (written, about) in LINKS.items()],
        ),
        "Every link is fired or dead in the end. A component that waits for links none of which fired is skipped, and so is one "
        "whose required rows can no longer come.",
        "## Spellings of links",
        "Both sections take a block of lines, a list of lines, a list of mappings, or a list of both. They give the same plan. "
        "In a data link a port that is left out is the main one: `orders -> totals`.",
        code("yaml", SPELLINGS),
    )
