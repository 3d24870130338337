"""Codes about the document as a whole and the shapes of its values."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

MINIMAL = """\
apiVersion: penstock/v1
kind: Job
metadata: { name: hello }
components:
  - { name: wait, type: sleep, params: { seconds: 1 } }
"""

DOCUMENT = {
    "J0001": CodeDoc(
        "the document is not a mapping",
        "A job is a mapping of sections; a list or a text has none.",
        "Begin with `components`.",
        "- name: wait\n  type: sleep\n",
        MINIMAL,
    ),
    "J0002": CodeDoc(
        "a section that a job does not have",
        "The root of a job has a fixed set of sections; `params`, `inputs` and `outputs` belong to joblets.",
        "Correct the spelling, or move what it holds to where it belongs.",
        MINIMAL + "connectons: {}\n",
        MINIMAL + "connections: {}\n",
    ),
    "J0003": CodeDoc(
        "the version of the language is not known",
        "This version reads jobs of `penstock/v1`.",
        "Write `apiVersion: penstock/v1`, or leave the line out.",
        MINIMAL.replace("penstock/v1", "penstock/v7"),
        MINIMAL,
    ),
    "J0004": CodeDoc(
        "the kind of document is not known",
        "`kind` says what the document is, for people and for tools.",
        "Write `kind: Job` or `kind: Joblet`.",
        MINIMAL.replace("kind: Job", "kind: Jop"),
        MINIMAL,
    ),
    "J0005": CodeDoc(
        "the job has no components",
        "A job without components does nothing.",
        "Give `components` at least one that is active.",
        "kind: Job\ncomponents: []\n",
        MINIMAL,
    ),
    "J0006": CodeDoc(
        "the document is a playbook",
        "Playbooks have steps, jobs have components; each is read by its own rules.",
        "Name a job here, or call the playbook with a component of type `playbook`.",
        "kind: Playbook\nworkflow:\n  - step: start\n",
        MINIMAL,
    ),
}

SHAPES = {
    "J0101": CodeDoc(
        "a value of the wrong shape",
        "A mapping stands where a list is expected, a number where text is, and so on.",
        "Give it the shape the message names.",
        "components:\n  - { name: wait, type: sleep, params: 1 }\n",
        MINIMAL,
    ),
    "J0102": CodeDoc(
        "a word that is not known here",
        "An unknown key would be read by nobody, so it is a mistake.",
        "Correct the spelling; the hint lists the words that may stand here.",
        "components:\n  - { name: wait, type: sleep, parms: { seconds: 1 } }\n",
        MINIMAL,
    ),
    "J0103": CodeDoc(
        "a required word is missing",
        "Without it the part has no meaning.",
        "Add it; the hint says what it is.",
        "components:\n  - { name: wait }\n",
        MINIMAL,
    ),
    "J0104": CodeDoc(
        "a value that is not one of the choices",
        "Only a few words are allowed as this value.",
        "Choose one of those the hint lists.",
        MINIMAL + "job_config: { fail_strategy: stop }\n",
        MINIMAL + "job_config: { fail_strategy: halt }\n",
    ),
    "J0105": CodeDoc(
        "a number out of its bounds",
        "Beyond that bound the number has no meaning.",
        "Give one within it.",
        MINIMAL + "job_config: { max_in_flight_rows: 0 }\n",
        MINIMAL + "job_config: { max_in_flight_rows: 100000 }\n",
    ),
    "J0106": CodeDoc(
        "a template where none is rendered",
        "`context` and `job_config` are taken as they are written, so the braces would stay in the text.",
        "Put the expression into the parameter where the value is used.",
        MINIMAL + 'context: { path: "{{ folder }}/in.csv" }\n',
        MINIMAL + "context: { path: in.csv }\n",
    ),
    "J0107": CodeDoc(
        "an amount of memory that cannot be read",
        "An amount is a number with a unit.",
        "Write it like `256MB` or `2GB`.",
        MINIMAL + "job_config: { memory_limit: much }\n",
        MINIMAL + "job_config: { memory_limit: 256MB }\n",
    ),
}
