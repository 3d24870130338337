"""Every code this dialect reports, with its reason and its remedy: the page of problems is made from these tables.

    P00xx the document    P01xx shapes and words    P02xx words that are refused    P03xx steps and names    P04xx policies
    P05xx tasks and tools    P06xx loops    P07xx names and secrets    P08xx reachability    P09xx keychain
    E01xx the expression language

Examples are whole documents, or begin with `- step:` (an entry of `workflow`) or with another dash (an entry of `tool`).
"""

from __future__ import annotations

from penstock.dialects.playbook.codes_document import DOCUMENT, KEYCHAIN, SHAPES
from penstock.dialects.playbook.codes_expressions import EXPRESSIONS
from penstock.dialects.playbook.codes_lint import LINT, NAMES
from penstock.dialects.playbook.codes_refused import REFUSED
from penstock.dialects.playbook.codes_steps import LOOPS, POLICIES, STEPS
from penstock.dialects.playbook.codes_tasks import TASKS
from penstock.dialects.problems import CodeDoc, register

TABLE: dict[str, CodeDoc] = {
    **DOCUMENT, **SHAPES, **REFUSED, **STEPS, **POLICIES, **TASKS, **LOOPS, **NAMES, **LINT, **KEYCHAIN,
    **EXPRESSIONS,
}  # fmt: skip


def register_all() -> None:
    register(TABLE)
