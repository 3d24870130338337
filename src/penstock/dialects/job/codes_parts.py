"""Codes about components and joblets."""

from __future__ import annotations

from penstock.dialects.job.codes_document import MINIMAL
from penstock.dialects.problems import CodeDoc

_TYPED = """\
components:
  - name: people
    type: fixed_rows
    params: { columns: [id], rows: [[1]] }
    schema: [{ id: BIGINT }]
  - { name: show, type: log_rows }
connections:
  data: people -> show
"""
_CALL = 'components:\n  - { name: clean, type: "@%s" }\n'
_JOBLET = """\
kind: Joblet
inputs: { rows: keep.input }
outputs: { kept: keep.main }
components:
  - { name: keep, type: filter, params: { where: id > 0 } }
"""

COMPONENTS = {
    "J0201": CodeDoc(
        "a name that cannot be one",
        "Names stand in links, ids and expressions, so they have letters, digits, `_` and `-` only; two underscores in front "
        "mark components of joblets.",
        "Choose another name.",
        MINIMAL.replace("name: wait", "name: a.b"),
        MINIMAL,
    ),
    "J0202": CodeDoc(
        "two components of one name",
        "Links and expressions mean a component by its name.",
        "Rename one of them.",
        MINIMAL + "  - { name: wait, type: sleep, params: { seconds: 2 } }\n",
        MINIMAL + "  - { name: wait_more, type: sleep, params: { seconds: 2 } }\n",
    ),
    "J0203": CodeDoc(
        "a type that is not installed",
        "Each component is of a type that this installation knows, or a joblet.",
        "Correct the spelling, or install the package that has it. `penstock components` lists all types.",
        MINIMAL.replace("type: sleep", "type: slep"),
        MINIMAL,
    ),
    "J0204": CodeDoc(
        "a component that cannot be loaded",
        "The package that offers this type is broken, or something it needs is not installed.",
        "Look at the message; install what is missing.",
    ),
    "J0205": CodeDoc(
        "a declared column that is wrong",
        "A column has a name of its own and a type that the engine knows.",
        "Correct the type or the name.",
        _TYPED.replace("BIGINT", "BIGNUM"),
        _TYPED,
    ),
    "J0206": CodeDoc(
        "a pre-job or post-job out of place",
        "They stand before and after the whole job, so a job has one of each at most, and joblets and bodies of "
        "iterators have none.",
        "Keep one, in the job itself.",
        MINIMAL + "  - { name: first, type: pre_job }\n  - { name: second, type: pre_job }\n",
        MINIMAL + "  - { name: first, type: pre_job }\n",
    ),
}

JOBLETS = {
    "J0901": CodeDoc(
        "a joblet that is not found",
        "`@x` is the file `x.yaml` beside the document that calls it, or in the folder `joblets` there or beside the job.",
        "Correct the name, or put the file there.",
        _CALL % "missing",
        MINIMAL,
    ),
    "J0902": CodeDoc(
        "a port of a joblet that leads nowhere",
        "`inputs` and `outputs` map each outer port to a component of the joblet and one of its ports.",
        "Correct the name of the inner component, or give an input and an output different names.",
        _JOBLET.replace("keep.input", "kep.input"),
        _JOBLET,
    ),
    "J0903": CodeDoc(
        "joblets that are nested too deep",
        "A joblet that calls itself, directly or through others, would never end; more than 20 levels are refused.",
        "Call the inner joblets from the job, or use an iterator to repeat something.",
    ),
    "J0904": CodeDoc(
        "a call of something that is not a joblet",
        "`@x` calls a joblet; a whole job has settings and a context of its own.",
        "Write `kind: Joblet`, or run the job with a component of type `run_job`.",
    ),
    "J0905": CodeDoc(
        "a job that is too large",
        "Joblets that call joblets multiply; beyond 50,000 components the plan is refused.",
        "Use an iterator where the same thing is done many times.",
    ),
}
