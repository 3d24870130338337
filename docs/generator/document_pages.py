"""Every key of a playbook, a job and a joblet, scope by scope, and what each link fires on."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.markdown import code, page, table
from docs.generator.schemas import default_of, kind_of
from penstock.dialects.job.words import CONTROL
from penstock.dialects.job.words import SCOPES as JOB_SCOPES
from penstock.dialects.playbook.words import SCOPES as PLAYBOOK_SCOPES
from penstock.dialects.word import Scope, Strictness
from penstock.kernel.errors import Bug

_BESIDES_JOB = {"keychain": ("keychain entry", "One secret, and how it is found: see [keychain](keychain.md).")}
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
            f"the links {sorted({*LINKS} ^ {*CONTROL})} are not the same in docs.generator.document_pages and in the dialect"
        )
    return page(
        "Keys of a job",
        "A file with `kind: Job`, or with `components` and no header, is a job; one with `kind: Joblet` is a joblet. This page "
        "lists every key in every scope. `penstock schema` prints the same as a JSON Schema for editors, with the parameters of "
        "the [components](components/index.md). What it all means is told in [jobs](../concepts/jobs.md).",
        *_sections(JOB_SCOPES, _BESIDES_JOB),
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


_BESIDES_PLAYBOOK = {
    "tool": ("tool", "A task, or a list of tasks. A list runs in order, as one pipeline on one worker."),
    "keychain": ("keychain entry", "One secret, and how it is found: see [keychain](keychain.md)."),
    "workbook": ("workbook", "A list of tasks with a `name`, or a mapping from names to tasks."),
}


def playbook_page() -> str:
    return page(
        "Keys of a playbook",
        "A playbook is a mapping of sections. This page lists every key in every scope. `penstock schema` prints the same as a "
        "JSON Schema for editors, with the parameters of the tools.",
        *_sections(PLAYBOOK_SCOPES, _BESIDES_PLAYBOOK),
        "## Other names for the same thing",
        "These are read without a warning: a task's `input` is its `args`; in expressions `output` is `outcome`, and "
        "`output.data` is `outcome.result`; `set` on a step, task, rule or arc writes `ctx.x` to ctx and `iter.x` to iter. "
        "A task may also be written as a map from its label to the rest of it, which gives a style warning.",
    )


_FURTHER = {
    Strictness.CLOSED: "Any other key is an error.",
    Strictness.HINTS: "Any other key does nothing, and is warned about.",
    Strictness.OPEN: "Further keys are allowed.",
}
_FURTHER_SAID = "urther key"


def _sections(scopes: Mapping[str, Scope], besides: Mapping[str, tuple[str, str]]) -> list[str]:
    titles = {name: scope.title for name, scope in scopes.items()} | {
        name: title for name, (title, _) in besides.items()
    }
    parts = [part for name, scope in scopes.items() for part in _section(name, scope, titles)]
    for name, (title, about) in besides.items():
        parts += [f'<a id="{name}"></a>\n\n## {title}', about]
    return parts


def _section(name: str, scope: Scope, titles: Mapping[str, str]) -> list[str]:
    rows = [
        (f"`{key}`", kind_of(word.schema, titles), "yes" if word.required else "", default_of(word.schema), word.about)
        for key, word in scope.words.items()
    ]
    one_of = " or ".join(f"`{key}`" for key in scope.need_one_of)
    about = [scope.about]
    if one_of:
        about.append(f"It needs {one_of}.")
    if _FURTHER_SAID not in scope.about:
        about.append(_FURTHER[scope.strictness])
    return [
        f'<a id="{name}"></a>\n\n## {scope.title}',
        " ".join(about),
        table(("key", "type", "required", "default", "what it is"), rows),
    ]
