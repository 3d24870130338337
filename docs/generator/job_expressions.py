"""What the expressions of a job see, and the smaller language of its conditions."""

from __future__ import annotations

from docs.generator.markdown import code, table
from penstock.dialects.job.check_names import AFTER_VARIABLES, NAMESPACES
from penstock.dialects.job.conditions import FUNCTIONS
from penstock.kernel.errors import Bug

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
            f"the names {sorted({*NAMES} ^ {*NAMESPACES})} of jobs have no words in docs.generator.job_expressions"
        )
    functions = ", ".join(f"`{name}`" for name in sorted(FUNCTIONS))
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
