"""The expression language: its words, what each place in a document sees, and the smaller language of a job's conditions."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.markdown import code, page, table, words
from penstock.dialects.job.checks.names import AFTER_VARIABLES, NAMESPACES
from penstock.dialects.job.checks.names import FUNCTIONS as CONDITION_FUNCTIONS
from penstock.dialects.playbook.checks.names import SEEN
from penstock.expr.words.table import FILTERS, FUNCTIONS, METHODS, TESTS, Entry
from penstock.kernel.errors import Bug


def expressions_page() -> str:
    texts = words("expressions")
    return page(
        "Expressions",
        "Expressions have the syntax of Jinja. The words are a fixed list: one that is not on this page does not exist, and is "
        "reported before the run.",
        texts["syntax"],
        "## Operators",
        code("text", texts["operators"]),
        "## Regular expressions",
        texts["patterns"],
        "## Which names are seen where in a playbook",
        _seen(),
        "A task's result is read by the task's name, a step's last result by the step's name. `iter.parent` is the iteration "
        "around the current one. `keychain` is seen in tool parameters only.",
        *_job_names(texts["names_in_jobs"], texts["conditions"]),
        "## Filters",
        _words(FILTERS),
        "## Tests",
        "Written after `is` or `is not`.",
        _words(TESTS),
        "## Functions",
        _words(FUNCTIONS),
        "## Methods",
        "Methods of text, lists and mappings that can be called. They change nothing.",
        _words(METHODS),
    )


def _seen() -> str:
    return table(
        ("place", "names"),
        [(where.value, ", ".join(f"`{name}`" for name in sorted(names))) for where, names in SEEN.items()],
    )


def _words(entries: Mapping[str, Entry]) -> str:
    """Aliases are listed in the row of the word they stand for."""
    rows: dict[object, list[Entry]] = {}
    for entry in entries.values():
        rows.setdefault((entry.run, entry.summary), []).append(entry)
    written = []
    for same in rows.values():
        names = [f"`{same[0].signature()}`", *(f"`{entry.name}`" for entry in same[1:])]
        written.append((", ".join(names), same[0].summary))
    return table(("word", "what it gives"), written)


def _job_names(names: dict[str, dict[str, str]], conditions: str) -> list[str]:
    if {*names} != {*NAMESPACES}:
        raise Bug(f"the names {sorted({*names} ^ {*NAMESPACES})} of jobs have no words in words/expressions.yaml")
    functions = ", ".join(f"`{name}`" for name in sorted(CONDITION_FUNCTIONS))
    after = ", ".join(f"`{name}`" for name in AFTER_VARIABLES)
    return [
        "## Which names are seen where in a job",
        table(
            ("name", "seen in", "what it is"),
            [(f"`{name}`", one["seen_in"], one["about"]) for name, one in names.items()],
        ),
        "Bare names are looked up among the component's own after-variables (in its `if` links), then the globals, then the "
        f"context. Every component sets {after} and, for each output port that is linked, `NB_LINE_OUT_<port>`.",
        "Expressions over rows (`where`, `columns`, `measures` …) are not templates: they are SQL in DuckDB's dialect.",
        "## Conditions of a job",
        "The condition of an `if` link and the `while` of `iterate_while` are one expression without braces, in a smaller "
        "language: literals, names, comparison, `and`, `or`, `not`, arithmetic, and the functions "
        f"{functions}. Filters other than `default`, tests other than `is defined`, `is undefined` and `is none`, methods, "
        "choices, slices, mappings, `~`, and names such as `__class__` are refused before the run.",
        code("text", conditions),
        "A global that is missing makes the whole condition false, unless it is asked about with `is defined` or given a "
        "`default`. A condition that cannot be evaluated, or runs out of its budget, puts its component into ERROR.",
    ]
