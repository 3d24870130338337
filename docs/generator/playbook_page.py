"""Every key of a playbook, scope by scope, from the one table of words."""

from __future__ import annotations

from docs.generator.markdown import page
from docs.generator.scopes import section
from penstock.dialects.playbook.words import SCOPES

_NOT_IN_TABLE = {
    "tool": ("tool", "A task, or a list of tasks. A list runs in order, as one pipeline on one worker."),
    "keychain": ("keychain entry", "One secret, and how it is found: see [keychain](keychain.md)."),
    "workbook": ("workbook", "A list of tasks with a `name`, or a mapping from names to tasks."),
}


_TITLES = {name: scope.title for name, scope in SCOPES.items()} | {
    name: title for name, (title, _) in _NOT_IN_TABLE.items()
}


def playbook_page() -> str:
    parts = []
    for name, scope in SCOPES.items():
        parts += section(name, scope, _TITLES)
    for name, (title, about) in _NOT_IN_TABLE.items():
        parts += [f'<a id="{name}"></a>\n\n## {title}', about]
    return page(
        "Keys of a playbook",
        "A playbook is a mapping of sections. This page lists every key in every scope. `penstock schema` prints the same as a "
        "JSON Schema for editors, with the parameters of the tools.",
        *parts,
        "## Other names for the same thing",
        "These are read without a warning: a task's `input` is its `args`; in expressions `output` is `outcome`, and "
        "`output.data` is `outcome.result`; `set` on a step, task, rule or arc writes `ctx.x` to ctx and `iter.x` to iter. "
        "A task may also be written as a map from its label to the rest of it, which gives a style warning.",
    )
