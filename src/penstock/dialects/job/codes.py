"""Every code this dialect reports, with its reason and its remedy: the page of problems is made from these tables.

    J00xx the document    J01xx shapes and words    J02xx components    J03xx links and sub-jobs    J04xx conditions
    J05xx parameters    J06xx columns    J07xx names and secrets    J08xx lint    J09xx joblets

Problems of structure have a NAME, which their message begins with. Examples are whole documents.
"""

from __future__ import annotations

from penstock.dialects.job.codes_document import DOCUMENT, SHAPES
from penstock.dialects.job.codes_links import LINKS
from penstock.dialects.job.codes_parts import COMPONENTS, JOBLETS
from penstock.dialects.job.codes_values import COLUMNS, CONDITIONS, LINT, NAMES_AND_SECRETS, PARAMS
from penstock.dialects.playbook.codes import register_all as register_playbook_codes
from penstock.dialects.problems import CodeDoc, register

TABLE: dict[str, CodeDoc] = {
    **DOCUMENT, **SHAPES, **COMPONENTS, **LINKS, **CONDITIONS, **PARAMS, **COLUMNS, **NAMES_AND_SECRETS, **LINT, **JOBLETS,
}  # fmt: skip

NAMES: dict[str, str] = {
    "BAD_NAME": "J0201",
    "DUPLICATE_NAME": "J0202",
    "UNKNOWN_TYPE": "J0203",
    "BROKEN_TYPE": "J0204",
    "BAD_COLUMN": "J0205",
    "ROLE_PLACE": "J0206",
    "BAD_LINK": "J0301",
    "UNKNOWN_COMPONENT": "J0302",
    "UNKNOWN_PORT": "J0303",
    "UNCONNECTED_NODE": "J0304",
    "PORT_ARITY": "J0305",
    "CYCLE_DETECTED": "J0306",
    "PARALLELISE_ARITY": "J0307",
    "AMBIGUOUS_JOIN": "J0308",
    "BODY_ESCAPE": "J0309",
    "DUPLICATE_LINK": "J0310",
    "NOT_AN_ITERATOR": "J0311",
    "EMPTY_BODY": "J0312",
    "ROLE_LINK": "J0313",
    "EARLY_START": "J0314",
    "UNSHARED_TRANSACTION": "J0315",
    "BESIDE_TRANSACTION": "J0316",
    "BAD_CONDITION": "J0401",
    "BAD_PARAM": "J0501",
    "UNKNOWN_PARAM": "J0502",
    "MISSING_PARAM": "J0503",
    "MISSING_FILE": "J0504",
    "TEMPLATE_KEY": "J0505",
    "BAD_GLOBAL": "J0506",
    "BAD_URL": "J0507",
    "BAD_PYTHON": "J0508",
    "UNKNOWN_COLUMN": "J0601",
    "TYPE_MISMATCH": "J0602",
    "BAD_SQL": "J0603",
    "UNKNOWN_NAME": "J0701",
    "UNSEEN_NAME": "J0702",
    "SECRET_IN_LOG": "J0703",
    "UNKNOWN_SECRET": "J0704",
    "UNWRITTEN_GLOBAL": "J0705",
    "UNDECLARED_SECRET": "J0706",
    "BLANKS_BESIDE": "J0720",
    "UNQUOTED_VALUE": "J0721",
    "UNREAD_OUTPUT": "J0801",
    "LEFT_OUT": "J0802",
    "JOBLET_NOT_FOUND": "J0901",
    "JOBLET_PORT": "J0902",
    "JOBLET_RECURSION_DEPTH": "J0903",
    "NOT_A_JOBLET": "J0904",
    "JOB_TOO_LARGE": "J0905",
}
"""NAME -> code. The NAME is what a message begins with and what people search for."""


def register_all() -> None:
    """With the codes of playbooks: secrets and expressions are the same in both, and so are their problems."""
    register_playbook_codes()
    register(TABLE)
