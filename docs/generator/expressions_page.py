"""The expression language: its words, from the one table, and what each place in a document sees."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.job_expressions import job_names
from docs.generator.markdown import code, page, table
from penstock.dialects.playbook.known_names import SEEN
from penstock.expr.table import Entry
from penstock.expr.words import FILTERS, FUNCTIONS, METHODS, TESTS

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
