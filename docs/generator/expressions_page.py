"""The expression language: its words, what each place in a document sees, and the smaller language of a job's conditions."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.markdown import code, page, table
from penstock.dialects.job.check_names import AFTER_VARIABLES, NAMESPACES
from penstock.dialects.job.conditions import FUNCTIONS as CONDITION_FUNCTIONS
from penstock.dialects.playbook.known_names import SEEN
from penstock.expr.table import Entry
from penstock.expr.words import FILTERS, FUNCTIONS, METHODS, TESTS
from penstock.kernel.errors import Bug

SYNTAX = """\
A text with `{{ … }}` in it is a template. When the whole text is one `{{ … }}`, the value itself is taken, with its type;
otherwise the result is text. The statements `{% if %}`, `{% for %}`, `{% set %}` and `{% raw %}` can be used in templates, and no
others.

A condition (`when`) is one expression, with or without braces. Undefined, null, false, 0 and whatever is empty is false.

A name that is missing is undefined, and so is everything looked up in it: `a.b.c | default(1)` works at any depth. An undefined
value in a tool's parameter is an error of that task, which names the variable.

In a playbook bare names are looked up in `args`, then `ctx`, then `iter`, then `workload`, then among the results of the tasks of
this pipeline and of the steps before.

Every expression has a budget of 500,000 steps and of 64 MiB of memory, not of time: the same expression fails in the same way on
any machine. Every operation pays before it runs, for the most it can cost; what is larger is the work of a task. What a server
looks at together (all arcs of a step with their `args`, its admission rules, the `if` links of a component) has 2,000,000 steps
together, at least 50 for each expression. Values may be nested 200 levels deep where they are written as text or JSON. No word
knows the time, chance, files or the network.
"""
PATTERNS = """\
Patterns (`regex_replace`, `regex_search`, `regex_findall`, `is matching`) run on RE2, which needs linear time on any text. What
is different from Python's `re`:

- there is no look-ahead, no look-behind and no back-reference inside a pattern; a constant pattern that has one is refused before
  the run (E0111), any other is an error of the expression. In a replacement `\\1` and `\\g<name>` are groups;
- `\\d`, `\\w`, `\\s` and `\\b` know ASCII only; `\\pL`, `\\p{Greek}` and the like are Unicode;
- `$` is the end of the text, not also before a line break at its end; with `(?m)` it is the end of a line;
- a pattern has at most 1,000 characters and a repeat counts to 1,000, repeats inside repeats included. Searching costs the length
  of the text times the size of the compiled pattern. Finding all matches of a pattern that combines `|` or a repeated group
  with `*` or `+` costs that for every match.
"""
OPERATORS = """\
a + b   a - b   a * b   a / b   a // b   a % b   a ** b   a ~ b        numbers; `+` also joins lists; `~` joins as text
a == b  a != b  a < b   a <= b  a > b    a >= b  a in b   a not in b
a and b         a or b          not a            x if a else y
a.b             a["b"]          a[0]             a[1:3]
a | filter      a is test       a is not test    function(a)
[1, 2]          {"a": 1}        "text"           true  false  none
"""


def expressions_page() -> str:
    return page(
        "Expressions",
        "Expressions have the syntax of Jinja. The words are a fixed list: one that is not on this page does not exist, and is "
        "reported before the run.",
        SYNTAX,
        "## Operators",
        code("text", OPERATORS),
        "## Regular expressions",
        PATTERNS,
        "## Which names are seen where in a playbook",
        _seen(),
        "A task's result is read by the task's name, a step's last result by the step's name. `iter.parent` is the iteration "
        "around the current one. `keychain` is seen in tool parameters only.",
        *job_names(),
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
    """Aliases stand in the row of the word they are other names for."""
    rows: dict[object, list[Entry]] = {}
    for entry in entries.values():
        rows.setdefault((entry.run, entry.summary), []).append(entry)
    written = []
    for same in rows.values():
        names = [f"`{same[0].signature()}`", *(f"`{entry.name}`" for entry in same[1:])]
        written.append((", ".join(names), same[0].summary))
    return table(("word", "what it gives"), written)


NAMES: dict[str, tuple[str, str]] = {
    "context": ("parameters, conditions", "The variables of the run. They never change."),
    "global": (
        "parameters, conditions",
        "Globals that components before this one wrote, and their after-variables: `global.rows_loaded`, `global.load.NB_LINE`.",
    ),
    "globals": ("parameters, conditions", "Another name for `global`."),
    "iteration": (
        "the body of an iterator",
        "`iteration.item` is the element, `iteration.index` its number from 0, `iteration.parent` the iteration around it.",
    ),
    "params": ("joblets", "The parameters of the joblet, as its caller gave them. They are filled in before the run."),
    "execution": ("parameters, conditions", "About the run: `execution.id`."),
    "execution_id": ("parameters, conditions", "The id of the run."),
    "keychain": ("parameters", "Secrets. Not in conditions, nor where a value is recorded in the log."),
}
CONDITION = """\
NB_LINE > 0                                     the component's own after-variables, by bare name
global.load.NB_LINE_OUT_reject == 0             those of another component
context.mode == 'full' and attempts < 3         a variable of the context; a global by its bare name
(price * qty) > 1000                            arithmetic
len(global.files) > 0
global.last_run is defined and global.last_run != context.day
(global.retries | default(0)) < 5
"""


def job_names() -> list[str]:
    if {*NAMES} != {*NAMESPACES}:
        raise Bug(
            f"the names {sorted({*NAMES} ^ {*NAMESPACES})} of jobs have no words in docs.generator.expressions_page"
        )
    functions = ", ".join(f"`{name}`" for name in sorted(CONDITION_FUNCTIONS))
    after = ", ".join(f"`{name}`" for name in AFTER_VARIABLES)
    return [
        "## Which names are seen where in a job",
        table(("name", "seen in", "what it is"), [(f"`{name}`", *about) for name, about in NAMES.items()]),
        "Bare names are looked up among the component's own after-variables (in its `if` links), then the globals, then the "
        f"context. Every component sets {after} and, for each output port that is linked, `NB_LINE_OUT_<port>`.",
        "Expressions over rows (`where`, `columns`, `measures` …) are not templates: they are SQL in DuckDB's dialect.",
        "## Conditions of a job",
        "The condition of an `if` link and the `while` of `iterate_while` are one expression without braces, in a smaller "
        "language: literals, names, comparison, `and`, `or`, `not`, arithmetic, and the functions "
        f"{functions}. Filters other than `default`, tests other than `is defined`, `is undefined` and `is none`, methods, "
        "choices, slices, mappings, `~`, and names such as `__class__` are refused before the run.",
        code("text", CONDITION),
        "A global that is missing makes the whole condition false, unless it is asked about with `is defined` or given a "
        "`default`. A condition that cannot be evaluated, or runs out of its budget, puts its component into ERROR.",
    ]
