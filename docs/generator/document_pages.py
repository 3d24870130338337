"""Every key of a playbook, a job and a joblet, scope by scope, and what each link fires on."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.markdown import code, page, table, words
from docs.generator.schemas import default_of, kind_of
from penstock.dialects.job.words import CONTROL
from penstock.dialects.job.words import SCOPES as JOB_SCOPES
from penstock.dialects.playbook.public import WORDS, Treatment
from penstock.dialects.playbook.words import SCOPES as PLAYBOOK_SCOPES
from penstock.dialects.words import Scope, Strictness
from penstock.kernel.errors import Bug

_BESIDES_JOB = {"keychain": ("keychain entry", "One secret, and how it is found: see [keychain](keychain.md).")}


def job_page() -> str:
    texts = words("documents")
    links = texts["links"]
    if {*links} != {*CONTROL}:
        raise Bug(
            f"the links {sorted({*links} ^ {*CONTROL})} are not the same in words/documents.yaml and in the dialect"
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
            [(f"`{name}`", f"`{one['written']}`", one["about"]) for name, one in links.items()],
        ),
        "Every link is fired or dead in the end. A component that waits for links none of which fired is skipped, and so is one "
        "whose required rows can no longer come.",
        "## Spellings of links",
        "Both sections take a block of lines, a list of lines, a list of mappings, or a list of both. They give the same plan. "
        "In a data link a port that is left out is the main one: `orders -> totals`.",
        code("yaml", texts["spellings"]),
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


_TREATED = {
    Treatment.ALIAS: "read",
    Treatment.HINT: "read, with a hint",
    Treatment.IGNORED: "no effect, with a hint",
    Treatment.REFUSED: "refused, with the remedy",
}
_PLACES = {
    "root": "The document", "step": "A step", "loop": "A loop", "then": "A directive of a policy", "task": "Any task",
    "sql": "Tasks of databases", "keychain": "Entries of `keychain`", "kind": "Tools that are not there",
    "expression": "Expressions",
}  # fmt: skip


def public_words_page() -> str:
    scopes = list(dict.fromkeys(alias.scope for alias in WORDS))
    parts: list[str] = []
    for scope in scopes:
        rows = [
            (f"`{one.word}`", one.meaning, _TREATED[one.treatment], one.instead, one.since)
            for one in WORDS
            if one.scope == scope
        ]
        parts += [
            f"## {_PLACES.get(scope, f'`kind: {scope}`')}",
            table(("word", "meaning", "here", "today", "since"), rows),
        ]
    return page(
        "Words of other engines",
        "Playbooks were written for several engines, which did not always agree. This page lists their words that are not words "
        "of today's language: what each means, what becomes of it, and what to write today. `penstock convert` writes it. "
        "Where Penstock means something else on purpose is told in [from NoETL](../how-to/from-noetl.md).",
        *parts,
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
