"""Names that `--set` gives to a job: one that the job neither declares nor reads is a slip of the pen.

A job may read a variable without declaring it, so that `--set` must bring it. So a name is refused only where nothing in the job
mentions it; and a job without a `context` takes what it is given, as a playbook takes any name into its workload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from penstock.cli import inputs
from penstock.cli.arguments import CommandLineError
from penstock.kernel.net import Net
from penstock.kernel.values import Template

MOST_NAMED = 20
_WHOLE = re.compile(
    r"""(?<![\w.])context(?!\w)(?!\s*(?:\[\s*['"]|\.get\(\s*['"]|\.(?!get\b|items\b|keys\b|values\b)\w))"""
)
"""The context itself rather than one name of it: `{{ context }}` handed on to another job, `context[key]` in code."""


def require_known(settings: Sequence[str], net: Net) -> None:
    declared = [*net.workload, *(name for group in net.contexts.values() for name in group)]
    if net.kind != "job" or not declared:
        return
    for name in inputs.workload(None, settings):
        if name not in declared and not _is_mentioned(name, net):
            _refuse(name, list(dict.fromkeys(declared)))


def _refuse(name: str, declared: Sequence[str]) -> None:
    from penstock.dialects.problems import closest

    meant = closest(name, declared)
    more = f" and {len(declared) - MOST_NAMED:,} more" if len(declared) > MOST_NAMED else ""
    known = ", ".join(f"`{one}`" for one in declared[:MOST_NAMED])
    raise CommandLineError(
        f"`--set {name}`: the context has no `{name}`, and nothing in the job reads it",
        f"did you mean `{meant}`?" if meant else f"the context has {known}{more}",
    )


def _is_mentioned(name: str, net: Net) -> bool:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(word.search(text) or _WHOLE.search(text) for text in _texts(net))


def _texts(net: Net) -> Iterator[str]:
    yield from (link.when for link in net.links if isinstance(link.when, str))
    for node in net.nodes.values():
        for task in node.tasks:
            yield from _inside(task.params.values())


def _inside(values: Iterable[Template]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _inside(value)
        elif isinstance(value, dict):
            yield from _inside(value.values())
