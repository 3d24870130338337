"""The words of a job: every key, in every scope, with what it means.

This is the one table. Unknown keys and their did-you-mean, the JSON Schema that editors read and the reference page all come
from it, so none of them can know a word the others do not.
"""

from __future__ import annotations

from penstock.dialects.words import (
    BOOLEAN,
    CONNECTION_SCOPE,
    DURABILITIES,
    INPUT_RULES,
    MAPPING,
    TEXT,
    Scope,
    Strictness,
    Word,
    choice,
    integer,
    list_of,
    ref,
)
from penstock.kernel.net import On
from penstock.kernel.values import JsonMap
from penstock.ports.rows import ENGINES

API_VERSIONS = ("penstock/v1",)
KINDS = ("Job", "Joblet")
FAIL_STRATEGIES = ("halt", "continue", "continue_then_fail")
SUBJOB_POLICIES = ("continue", "abort")
STARTS = ("component", "subjob")
CONTROL = tuple(on.value for on in On if on not in (On.DATA, On.SUBJOB_DONE))
"""What a control link may fire on."""

NAME: JsonMap = {"type": "string", "pattern": r"^(?!__)[^\W\d][\w-]*$"}
ENDS: JsonMap = {"anyOf": [TEXT, list_of(TEXT, 1)]}
COLUMNS: JsonMap = {"anyOf": [list_of(ref("column"), 1), {"type": "object", "minProperties": 1}]}
SIZE: JsonMap = {"type": ["string", "integer"]}

_HEADER = {
    "apiVersion": Word("The version of the language. It may be left out.", choice(API_VERSIONS)),
    "metadata": Word("What the document is called, and anything else worth saying about it.", ref("metadata")),
    "context": Word("Variables that stay as they are for the whole run, and groups of them.", ref("context")),
    "keychain": Word("The secrets it needs, by name.", list_of(ref("keychain"))),
    "components": Word(
        "The components: a list, or a mapping from names to components.",
        {"anyOf": [list_of(ref("component"), 1), {"type": "object", "additionalProperties": ref("unnamed_component")}]},
        required=True,
    ),
    "connections": Word("The links between components, and databases that they use by name.", ref("connections")),
}


def _kind(name: str) -> Word:
    return Word("What this document is. It may be left out when it has `components`.", {"const": name})


def _ordered(kind: str, more: dict[str, Word]) -> dict[str, Word]:
    first = {"apiVersion": _HEADER["apiVersion"], "kind": _kind(kind), "metadata": _HEADER["metadata"]}
    return {**first, **more, **{name: word for name, word in _HEADER.items() if name not in first}}


_COMPONENT = {
    "type": Word("What it does: an installed component, or `@name` for a joblet.", TEXT, required=True),
    "params": Word("Its parameters; texts may hold templates.", MAPPING),
    "die_on_error": Word("End the job when it fails, after its error links have run.", {**BOOLEAN, "default": False}),
    "global_export": Word("Globals of other sub-jobs that it may overwrite for everyone.", ENDS),
    "startable": Word("It may begin without a control link having fired.", {**BOOLEAN, "default": False}),
    "active": Word("`false` leaves it out; its rows pass through.", {**BOOLEAN, "default": True}),
    "engine": Word(
        "What runs the rows of the sub-job that it lies in, of a call those inside the joblet; if not the job's.",
        {"anyOf": [TEXT, ref("engine")]},
    ),
    "schema": Word("The columns of its `main` output.", COLUMNS),
    "schemas": Word("The columns of its outputs, by port.", {"type": "object", "additionalProperties": COLUMNS}),
    "description": Word("What it is for.", TEXT),
}

SCOPES: dict[str, Scope] = {
    "job": Scope(
        "job",
        "A job: components joined by data links, which carry rows, and control links, which say what runs when.",
        _ordered(
            "Job",
            {
                "state": Word(
                    "What is kept from run to run, with the values of the first run: read as `{{ state.name }}`, and set with "
                    "`penstock state set`.",
                    MAPPING,
                ),
                "job_config": Word("How the job should run.", ref("job_config")),
            },
        ),
    ),
    "joblet": Scope(
        "joblet",
        "A joblet: a part of a job that is called as one component, with the type `@name`.",
        _ordered(
            "Joblet",
            {
                "params": Word(
                    "Its parameters with their defaults, read as `{{ params.name }}`; one without a default must be given.",
                    MAPPING,
                ),
                "inputs": Word(
                    "The ports that the caller feeds: outer port to `inner.port`, or to a list of these.",
                    {"type": "object", "additionalProperties": ENDS},
                ),
                "outputs": Word(
                    "The ports that the caller reads: outer port to `inner.port`.",
                    {"type": "object", "additionalProperties": TEXT},
                ),
            },
        ),
    ),
    "metadata": Scope(
        "metadata",
        "What the document is called. Further keys are yours.",
        {
            "name": Word("The job's name; otherwise that of the file.", TEXT),
            "version": Word("Its version.", {"type": ["string", "number"]}),
            "description": Word("What it is for.", TEXT),
            "labels": Word("Labels, as a mapping.", MAPPING),
            "tags": Word("Tags, as a list.", list_of(TEXT)),
        },
        Strictness.OPEN,
    ),
    "context": Scope(
        "context",
        "Variables and their defaults, read as `{{ context.name }}` or by their bare name. When every value is a mapping and one "
        "of them is called `default`, they are groups. Further keys are yours.",
        {"groups": Word("Named sets of values that `--context NAME` lays over the defaults.", MAPPING)},
        Strictness.OPEN,
    ),
    "job_config": Scope(
        "job_config",
        "How the job should run.",
        {
            "fail_strategy": Word(
                "What an iterator does when an iteration fails: stop; go on and end OK; go on, and end in ERROR after the last.",
                choice(FAIL_STRATEGIES, "halt"),
            ),
            "on_subjob_error": Word(
                "What the job does when a sub-job has failed: go on, or start nothing more.",
                choice(SUBJOB_POLICIES, "continue"),
            ),
            "start": Word(
                "What starts when a sub-job has a trigger: `component`, as in the rulebook, lets its sources start with the job; "
                "`subjob` lets them wait for the trigger.",
                choice(STARTS, "component"),
            ),
            "memory_limit": Word("How much memory rows may take before they go to disk, such as `256MB`.", SIZE),
            "max_in_flight_rows": Word("How many rows may wait on a link.", integer(1)),
            "max_in_flight_bytes": Word("How many bytes may wait on a link, such as `64MB`.", SIZE),
            "limits": Word("Bounds that end a run which would not end by itself.", ref("limits")),
            "engine": Word(
                "What runs the rows: a kind, the words of an engine, or a template for either.",
                {"anyOf": [TEXT, ref("engine")], "default": "duckdb"},
            ),
            "durability": Word("When an outcome is on disk.", choice(DURABILITIES, "grouped")),
            "inputs": Word(
                "Whether a run may be given inputs that the job neither declares nor reads.",
                choice(INPUT_RULES, "declared"),
            ),
        },
    ),
    "limits": Scope(
        "limits",
        "Bounds that end a run which would not end by itself.",
        {
            "max_reevaluations": Word("How often a condition may be asked again in one scope.", integer(1, 100)),
            "max_payload_bytes": Word("What is larger goes to the result store.", integer(1, 1_048_576)),
        },
    ),
    "engine": Scope(
        "engine",
        "What runs the rows.",
        {
            "kind": Word(
                "DuckDB in this process, Apache Spark, or the database that holds the tables; or a template for one of them.",
                {**TEXT, "examples": list(ENGINES), "default": "duckdb"},
            ),
            "connection": Word(
                "Of a database: the name of one of the document's `connections`, of the kind `postgres` or `duckdb`.",
                TEXT,
            ),
            "schema": Word(
                "Of a database: where tables go for as long as the run needs them; otherwise the first in its search path.",
                TEXT,
            ),
            "threads": Word("Of DuckDB: how many threads it may use; otherwise one per core.", integer(1)),
            "fuse": Word("Run chains of components as one query.", {**BOOLEAN, "default": True}),
            "remote": Word("Of Spark: its Connect server, such as `sc://host:15002`.", TEXT),
            "master": Word(
                "Of Spark, for development: start one on this machine, such as `local[*]`. Needs Java 17.", TEXT
            ),
            "folder": Word(
                "Of Spark: a folder that the cluster and Penstock both see, for rows that are kept; otherwise that of the run.",
                TEXT,
            ),
            "conf": Word("Of Spark: settings of the session, such as `spark.sql.shuffle.partitions`.", MAPPING),
        },
    ),
    "component": Scope(
        "component",
        "One component: what it does, and how.",
        {"name": Word("Its name in this document.", NAME, required=True), **_COMPONENT},
    ),
    "unnamed_component": Scope("component", "A component whose name is its key.", _COMPONENT),
    "column": Scope(
        "column",
        "A column: `{name: type}`, or with more to say about it.",
        {
            "name": Word("Its name.", TEXT, required=True),
            "type": Word("Its type, such as `BIGINT`, `VARCHAR` or `DECIMAL(18,2)`.", {**TEXT, "default": "VARCHAR"}),
            "nullable": Word("May it be empty?", {**BOOLEAN, "default": True}),
            "key": Word("Is it part of the key?", {**BOOLEAN, "default": False}),
            "pattern": Word("What its text looks like: a regular expression, or the format of a date.", TEXT),
        },
    ),
    "connections": Scope(
        "connections",
        "The links between components: as lines of text, as a list of them, or as a list of mappings. Any other key names a "
        "database, for `connection: name`.",
        {
            "data": Word("Links that carry rows: `a.main -> b.input`.", {"anyOf": [TEXT, list_of(ref("data_link"))]}),
            "control": Word(
                "Links that say what runs when: `a (ok) b`.", {"anyOf": [TEXT, list_of(ref("control_link"))]}
            ),
        },
    ),
    "connection": CONNECTION_SCOPE,
    "data_link": Scope(
        "data link",
        "A link that carries rows from an output to an input. A port that is left out is the main one.",
        {
            "from": Word("The output: `component.port`.", TEXT, required=True),
            "to": Word("The input, or a list of inputs.", ENDS, required=True),
        },
    ),
    "control_link": Scope(
        "control link",
        "A link that lets a component start.",
        {
            "from": Word("The component it begins at, or a list.", ENDS, required=True),
            "to": Word("The component it leads to, or a list.", ENDS, required=True),
            "on": Word("What makes it fire; `if` when there is a `when`.", choice(CONTROL)),
            "order": Word("Of an `if` link: lower ones are asked first.", integer()),
            "when": Word("Of an `if` link: the condition.", {"type": ["string", "boolean"]}),
        },
    ),
}

SYNONYMS: dict[str, dict[str, str]] = {
    "job": {"config": "job_config", "links": "connections", "edges": "connections", "nodes": "components"},
    "joblet": {"links": "connections", "edges": "connections", "nodes": "components", "parameters": "params"},
    "component": {
        "kind": "type", "id": "name", "args": "params", "parameters": "params", "config": "params", "with": "params",
        "columns": "schema", "enabled": "active", "disabled": "active", "globals": "global_export",
    },
    "unnamed_component": {"kind": "type", "args": "params", "parameters": "params", "config": "params", "columns": "schema"},
    "connections": {"rows": "data", "row": "data", "trigger": "control", "triggers": "control", "links": "data"},
    "data_link": {"source": "from", "target": "to"},
    "control_link": {
        "source": "from", "target": "to", "type": "on", "kind": "on", "condition": "when", "if": "when", "event": "on",
    },
    "job_config": {"on_error": "on_subjob_error", "memory": "memory_limit", "threads": "engine"},
}  # fmt: skip
