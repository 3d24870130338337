"""The words of a playbook: every key, in every scope, with what it means.

This is the one table. Unknown keys and their did-you-mean, the JSON Schema that editors read and the reference page all come
from it, so none of them can know a word the others do not.
"""

from __future__ import annotations

from penstock.dialects.words import (
    ANY,
    BOOLEAN,
    CONNECTION_SCOPE,
    DURABILITIES,
    INPUT_RULES,
    MAPPING,
    TEMPLATE,
    TEXT,
    Scope,
    Strictness,
    Word,
    choice,
    integer,
    list_of,
    number,
    or_template,
    ref,
)
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, OBJECT_STORES, READS_FILE, WEB, url

# ---- Values


API_VERSIONS = ("noetl.io/v2", "penstock/v1")

DIRECTIVES = ("continue", "retry", "jump", "break", "fail")
BACKOFFS = ("none", "linear", "exponential")
ROUTERS = ("exclusive", "inclusive")
LOOP_MODES = ("sequential", "parallel")
FAILURE_MODES = ("fail_fast", "best_effort")
LOOP_POSITIONS = ("local", "fanout")
SUGAR = ("choose", "while", "until")
EMITS = ("summary", "per_item")
SQL_KINDS = ("postgres", "mysql", "sqlite", "duckdb")

DEFAULT_MAX_IN_FLIGHT = 10

NAME: JsonMap = {"type": "string", "pattern": r"^[^\W\d][\w-]*$"}
CONDITION: JsonMap = {"type": ["string", "boolean"]}
WRITES: JsonMap = {"type": "object", "minProperties": 1}
TASKS: JsonMap = list_of(ref("task"), 1)
POOL: JsonMap = {"type": ["string", "object"]}
CONCURRENCY: JsonMap = {"type": "object", "additionalProperties": integer(1)}
OPERATION: JsonMap = choice(OPERATIONS)
REDUCERS: JsonMap = {"anyOf": [BOOLEAN, {"type": "object", "additionalProperties": OPERATION}]}
SHARED: JsonMap = {"anyOf": [{**MAPPING, "minProperties": 1}, list_of(ref("shared"), 1)]}


def fallback(then: JsonMap) -> JsonMap:
    """`else` in its spellings: empty beside `then`, with a `then` inside, or holding what `then` would."""
    nested: JsonMap = {
        "type": "object",
        "properties": {"then": then},
        "required": ["then"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "null"}, nested, then]}


# ---- Root, metadata and executor


ROOT = Scope(
    "playbook",
    "A playbook: steps that run tool pipelines, and arcs that carry tokens from step to step.",
    {
        "apiVersion": Word("The version of the language.", choice(API_VERSIONS), required=True),
        "kind": Word("What this document is.", {"const": "Playbook"}, required=True),
        "metadata": Word("What the playbook is called, and anything else worth saying about it.", ref("metadata")),
        "keychain": Word("The secrets this playbook needs, by name.", list_of(ref("keychain"))),
        "connections": Word(
            "Databases that tasks use by name: `connection: name`.",
            {"type": "object", "additionalProperties": ref("connection")},
        ),
        "executor": Word("How the engine should run it: limits, failure mode, durability.", ref("executor")),
        "workload": Word("Default inputs. A payload is merged over them; nothing changes them during a run.", MAPPING),
        "state": Word(
            "What is kept from run to run, with the values of the first run: read as `{{ state.name }}`, written with `set: "
            "{state.name: …}`, kept when the run completes.",
            MAPPING,
        ),
        "workflow": Word("The steps.", list_of(ref("step"), 1), required=True),
        "workbook": Word("Named tasks that steps call with `kind: workbook`.", ref("workbook")),
    },
)

EXECUTOR = {
    "connection": CONNECTION_SCOPE,
    "metadata": Scope(
        "metadata",
        "What the playbook is called. Further keys are yours.",
        {
            "name": Word("The playbook's name.", TEXT, required=True),
            "path": Word("Its name in a catalog.", TEXT),
            "version": Word("Its version.", {"type": ["string", "number"]}),
            "description": Word("What it is for.", TEXT),
            "labels": Word("Labels, as a mapping.", MAPPING),
            "tags": Word("Tags, as a list.", list_of(TEXT)),
        },
        Strictness.OPEN,
    ),
    "executor": Scope(
        "executor",
        "How the engine should run this playbook.",
        {
            "kind": Word("Where it is meant to run, such as `local` or `distributed`: an intent.", TEXT),
            "profile": Word("A named set of runtime defaults: an intent.", TEXT),
            "version": Word("The runtime it was written for: an intent.", {"type": ["string", "number"]}),
            "requires": Word("What it needs from the runtime: an intent.", MAPPING),
            "spec": Word("Defaults for every step and task, and the limits of the run.", ref("executor_spec")),
        },
        Strictness.OPEN,
    ),
    "executor_spec": Scope(
        "executor.spec",
        "The outermost layer of every task's `spec`. Further keys are knobs of tools.",
        {
            "policy": Word("Limits and failure mode of the whole run.", ref("executor_policy")),
            "durability": Word(
                "`strict` also waits for the disk between the tasks of a pipeline.", choice(DURABILITIES, "grouped")
            ),
            "loop_mode": Word(
                "Where loops run: each on one worker, or fanned out over all of them.", choice(LOOP_POSITIONS, "local")
            ),
            "fanout": Word(
                "How loops are fanned out; a step's own goes before it, key by key. Also read under `policy`.",
                ref("fanout"),
            ),
            "reducers": Word("The same as `fanout.reducers`.", REDUCERS),
            "shared": Word("The same as `fanout.shared`.", BOOLEAN),
            "strict": Word(
                "An undefined value written by `set`, `set_ctx`, `set_iter` or an arc's `args` is an error instead of null.",
                {**BOOLEAN, "default": False},
            ),
            "pool": Word("The worker pool that the playbook's work goes to.", POOL),
            "inputs": Word(
                "Whether a run may be given inputs that the playbook neither declares nor reads.",
                choice(INPUT_RULES, "declared"),
            ),
            "entry_step": Word("The first step; otherwise `start`, otherwise the first in the file.", TEXT),
            "timeout": Word("Time limit of a task in seconds, or a mapping such as `{connect: 5, read: 15}`."),
        },
        Strictness.OPEN,
    ),
    "executor_policy": Scope(
        "executor.spec.policy",
        "Rules for the whole run.",
        {
            "limits": Word("Bounds that end a runaway run.", ref("limits")),
            "failure": Word(
                "What a failed step means elsewhere; loops take it over too.",
                ref("failure"),
            ),
            "fanout": Word("The same as `executor.spec.fanout`.", ref("fanout")),
            "durability": Word("The same as `executor.spec.durability`.", choice(DURABILITIES)),
            "results": Word("How results are kept: an intent.", MAPPING),
            "defaults": Word("Defaults for time-outs and resources: an intent.", MAPPING),
        },
        Strictness.HINTS,
    ),
    "limits": Scope(
        "executor.spec.policy.limits",
        "Bounds that end a runaway run with a clear error.",
        {
            "max_payload_bytes": Word(
                "Results above this size are kept outside the log, by reference.", integer(1, 1_048_576)
            ),
            "max_step_visits": Word("How often one step may run.", integer(1, 10_000)),
            "max_task_runs": Word("How many tasks one pipeline may run, jumps included.", integer(1, 1_000_000)),
        },
    ),
    "failure": Scope(
        "failure",
        "`fail_fast` stops what has not started; `best_effort` lets it run.",
        {"mode": Word("The mode.", choice(FAILURE_MODES), required=True)},
    ),
}


# ---- Steps: admission, router and arcs


STEP = {
    "step": Scope(
        "step",
        "One step: an admission gate, a pipeline of tasks, and arcs to the next steps.",
        {
            "step": Word("The step's name. Its last result is read under this name.", NAME, required=True),
            "desc": Word("What the step is for.", TEXT),
            "spec": Word("Admission, time limits, joins, and defaults for its tasks.", ref("step_spec")),
            "loop": Word("Run the pipeline once per element of a collection.", ref("loop")),
            "tool": Word("The pipeline: a list of tasks, or one task.", ref("tool")),
            "set": Word("Writes when the step is done: `ctx.x: value`.", WRITES),
            "next": Word("Where tokens go when the step has ended.", ref("next")),
        },
    ),
    "step_spec": Scope(
        "step.spec",
        "Further keys are knobs of the step's tools.",
        {
            "policy": Word("Admission, time limits and failure mode.", ref("step_policy")),
            "join": Word(
                "Wait for a token from each of these steps, then run once; `args.<step>` has what each sent.",
                list_of(TEXT, 1),
            ),
            "loop_mode": Word(
                "Where this step's loop runs: on one worker, or fanned out over all of them.",
                choice(LOOP_POSITIONS, "local"),
            ),
            "fanout": Word("How the loop is fanned out. Also read under `policy`.", ref("fanout")),
            "reducers": Word("The same as `fanout.reducers`; a local loop has them too.", REDUCERS),
            "shared": Word("The same as `fanout.shared`.", BOOLEAN),
            "pool": Word("The worker pool that the step's work goes to. A mapping is a knob of the SQL tools.", POOL),
            "needs": Word(
                "Labels that the worker must have been started with (`penstock worker --label`).", list_of(TEXT, 1)
            ),
            "concurrency": Word(
                "Limits that all steps of all runs share by name, such as `{warehouse: 4}`: how many runs and ranges that name "
                "one may be worked on at a time.",
                CONCURRENCY,
            ),
            "timeout": Word("Time limit of each task in seconds, or a mapping such as `{connect: 5, read: 15}`."),
        },
        Strictness.OPEN,
    ),
    "step_policy": Scope(
        "step.spec.policy",
        "Admission, lifecycle and failure. Control actions belong to tasks.",
        {
            "admit": Word("May a token come in? Asked before the step is scheduled.", ref("admit")),
            "lifecycle": Word("Time limits of one run of the step.", ref("lifecycle")),
            "failure": Word(
                "What a failed iteration means for the others; loops are `fail_fast` by default.",
                ref("failure"),
            ),
            "fanout": Word("The same as `step.spec.fanout`.", ref("fanout")),
            "emit": Word("Which events to write: an intent.", ANY),
            "tracing": Word("Reserved.", ANY),
            "quotas": Word("Reserved.", ANY),
            "compensation": Word("Reserved.", ANY),
        },
        Strictness.HINTS,
    ),
    "admit": Scope(
        "admit",
        "Rules from top to bottom; the first match decides. No rules: everyone is let in. Rules but no match: refused.",
        {
            "mode": Word("Reserved; the first match decides.", choice(ROUTERS, "exclusive")),
            "rules": Word("The rules.", list_of(ref("admit_rule"), 1), required=True),
        },
    ),
    "admit_rule": Scope(
        "admission rule",
        "`when` and `then: {allow: …}`, or `else` as the last one.",
        {
            "when": Word("Sees ctx, workload, args and event.", CONDITION),
            "else": Word("What holds when nothing above matched.", fallback(ref("admit_then"))),
            "then": Word("The verdict.", ref("admit_then")),
        },
        need_one_of=("when", "else"),
    ),
    "admit_then": Scope(
        "verdict", "Let the token in, or not.", {"allow": Word("true or false.", BOOLEAN, required=True)}
    ),
    "lifecycle": Scope(
        "lifecycle",
        "Time limits of one run of the step; over them it ends as failed.",
        {
            "timeout_s": Word("Seconds from the start of its work.", number(0)),
            "deadline_s": Word("Seconds from the moment it was scheduled.", number(0)),
            "stall_s": Word(
                "On a fleet: a worker that is alive and shows no progress for so many seconds loses the step to another.",
                number(0),
            ),
        },
    ),
    "next": Scope(
        "next",
        "The router: which arcs carry a token on when the step has ended.",
        {
            "spec": Word("One arc, or all that match.", ref("next_spec")),
            "arcs": Word("The arcs, asked in the order of the file.", list_of(ref("arc")), required=True),
        },
    ),
    "next_spec": Scope(
        "next.spec",
        "How arcs are chosen.",
        {
            "mode": Word("`exclusive`: the first match. `inclusive`: every match.", choice(ROUTERS, "exclusive")),
            "policy": Word("Reserved.", MAPPING),
        },
        Strictness.OPEN,
    ),
    "arc": Scope(
        "arc",
        "One way on. It is considered when the step is done; when the step failed, only if its `when` reads `event`.",
        {
            "step": Word("The step the token goes to.", TEXT, required=True),
            "when": Word("Sees event, output, ctx, workload, args and steps by name.", CONDITION),
            "args": Word("What the token carries; the next step reads it as `args`.", MAPPING),
            "set": Word("`ctx.x: value` writes ctx; other keys are args.", WRITES),
            "desc": Word("What the arc is for.", TEXT),
            "spec": Word("Reserved.", MAPPING),
        },
    ),
}


# ---- Tasks: policy, control sugar, and the workbook


TASK = {
    "task": Scope(
        "task",
        "One tool call. Every further key is a parameter of the tool.",
        {
            "name": Word("The task's label: its result is read under it, and jumps name it.", NAME),
            "kind": Word("The tool.", TEXT, required=True),
            "desc": Word("What the task is for.", TEXT),
            "spec": Word("Runtime knobs of the tool, and the policy that judges its outcome.", ref("task_spec")),
            "set": Word(
                "Writes after an ok outcome: `ctx.x` to ctx, `shared.x` through a reducer, anything else to iter.",
                WRITES,
            ),
            "set_shared": Word("In a loop: what this iteration adds to values that all make together.", SHARED),
            "args": Word("Values for the tool's code, and for the other parameters of the task.", or_template(MAPPING)),
            "input": Word("The same as `args`.", or_template(MAPPING)),
        },
        Strictness.OPEN,
    ),
    "sugar": Scope(
        "control",
        "A choice or a loop inside a pipeline. It is compiled to noop tasks with jumps.",
        {
            "name": Word("The label that the generated labels begin with.", NAME),
            "desc": Word("What it is for.", TEXT),
            "choose": Word("The first branch whose `when` holds.", list_of(ref("branch"), 1)),
            "while": Word("Check, then run the body, over and over.", ref("while")),
            "until": Word("Run the body, then check, over and over.", ref("until")),
        },
        need_one_of=SUGAR,
    ),
    "branch": Scope(
        "branch",
        "`when` and `then: [tasks]`, or `else` as the last one.",
        {
            "when": Word("Sees what a task's policy sees, but no outcome of its own.", CONDITION),
            "else": Word("The branch for when nothing above matched.", fallback(list_of(ref("task")))),
            "then": Word("The tasks of this branch.", list_of(ref("task"))),
        },
        need_one_of=("when", "else"),
    ),
    "while": Scope(
        "while",
        "As long as `when` holds, run `do`.",
        {
            "when": Word("Asked before each round.", CONDITION, required=True),
            "do": Word("The tasks of one round.", TASKS, required=True),
            "max": Word("The pipeline fails rather than begin a round after this many.", integer(1)),
        },
    ),
    "until": Scope(
        "until",
        "Run `do`, and again until `when` holds.",
        {
            "do": Word("The tasks of one round.", TASKS, required=True),
            "when": Word("Asked after each round.", CONDITION, required=True),
            "max": Word("The pipeline fails rather than begin a round after this many.", integer(1)),
        },
    ),
    "task_spec": Scope(
        "task.spec",
        "The innermost layer of the task's `spec`. Further keys are knobs of the tool.",
        {
            "policy": Word("What to make of the outcome.", ref("task_policy")),
            "timeout": Word("Time limit in seconds, or a mapping such as `{connect: 5, read: 15}`."),
        },
        Strictness.OPEN,
    ),
    "task_policy": Scope(
        "task.spec.policy",
        "Rules over the outcome. Without a policy an ok outcome continues and an error fails.",
        {
            "rules": Word(
                "From top to bottom; the first match decides. No match: continue.", list_of(ref("rule")), required=True
            ),
            "mode": Word("Reserved; the first match decides.", {"const": "exclusive"}),
            "on_unmatched": Word("Reserved; no match means continue.", {"const": "continue"}),
            "before": Word("Reserved.", {"type": "array", "maxItems": 0}),
            "after": Word("Reserved.", {"type": "array", "maxItems": 0}),
            "finally": Word("Reserved.", {"type": "array", "maxItems": 0}),
        },
    ),
    "rule": Scope(
        "rule",
        "`when` and `then`, or `else` as the last one.",
        {
            "when": Word(
                "Sees outcome, iter, ctx, args, workload, _prev, _task, _attempt and tasks by name.", CONDITION
            ),
            "else": Word("What holds when nothing above matched.", fallback(ref("then"))),
            "then": Word("The directive, and writes that are made before it acts.", ref("then")),
        },
        need_one_of=("when", "else"),
    ),
    "then": Scope(
        "directive",
        "What to do with the outcome.",
        {
            "do": Word("Go on, run again, jump, stop well, or stop as failed.", choice(DIRECTIVES, "continue")),
            "attempts": Word("retry: how many runs of the task in all.", or_template(integer(1))),
            "backoff": Word("retry: how the delay grows.", choice(BACKOFFS, "none")),
            "delay": Word("retry: seconds before the next run.", or_template(number(0, 0))),
            "max_delay": Word("retry: the delay never grows above this.", number(0, 300)),
            "jitter": Word("retry: by chance the delay is longer or shorter by up to this share of it.", number(0, 0)),
            "to": Word("jump: the label of a task in this pipeline.", TEXT),
            "set_iter": Word("Writes to this iteration.", WRITES),
            "set_ctx": Word("Writes to the execution's ctx.", WRITES),
            "append_ctx": Word("Values added to lists in ctx; safe in parallel loops.", WRITES),
            "set_shared": Word("In a loop: what this iteration adds to values that all make together.", SHARED),
            "set": Word("`ctx.x` to ctx, `shared.x` through a reducer, anything else to iter.", WRITES),
        },
    ),
    "workbook_task": Scope(
        "workbook task",
        "A task that steps call by name.",
        {
            "name": Word("The name it is called by, when the workbook is a list.", TEXT),
            "tool": Word("The task itself, when it is not written beside the name.", ref("task")),
            "assert": Word("What it expects and returns: not checked.", MAPPING),
        },
        Strictness.OPEN,
    ),
}


# ---- Loops: collections, iterations, fan-out


_BOUND: JsonMap = {"type": ["integer", "string"]}
_ENTRY = or_template({"type": ["string", "object"]})


CONNECTION: dict[str, tuple[str, JsonMap]] = {
    "connection": ("A database that the document names in `connections`.", TEXT),
    "auth": ("A keychain entry that says how to connect.", {"type": ["string", "object"]}),
    "url": ("The database as one URL.", TEXT),
    "host": ("The server.", TEXT),
    "port": ("Its port.", {"type": ["integer", "string"]}),
    "user": ("Who connects.", TEXT),
    "password": ("With which password; better in `auth`.", TEXT),
    "database": ("The database on that server.", TEXT),
    "sslmode": ("Whether the connection is encrypted.", TEXT),
    "path": ("The file of a `sqlite` or `duckdb` database, relative to the document.", TEXT),
    "read_only": ("Open that file for reading only.", BOOLEAN),
}


def _or_text(scope: str) -> JsonMap:
    """A collection's one parameter, or all of them."""
    return {"anyOf": [TEXT, ref(scope)]}


_CONNECTION_WORDS = {
    name: Word(about, {**or_template(schema), **(KEYCHAIN_ENTRY if name == "auth" else {})})
    for name, (about, schema) in CONNECTION.items()
}


LOOP = {
    "loop": Scope(
        "loop",
        "Run the step's pipeline once per element, each with an `iter` of its own.",
        {
            "in": Word(
                "The collection: a template, a list, or a description such as `{range: 10}` or `{lines: orders.csv}`.",
                {"anyOf": [TEMPLATE, {"type": "array"}, ref("collection")]},
                required=True,
            ),
            "iterator": Word("The element is read as `iter.<iterator>`.", NAME, required=True),
            "spec": Word("Sequential or parallel, and how many at once.", ref("loop_spec")),
        },
    ),
    "collection": Scope(
        "loop.in",
        "A collection that is described and never written out. One key says of what kind it is.",
        {
            "range": Word(
                "Whole numbers: a count, or `{start, stop, step}`.",
                {
                    "anyOf": [
                        _BOUND,
                        {
                            "type": "object",
                            "properties": {"start": _BOUND, "stop": _BOUND, "step": _BOUND},
                            "required": ["stop"],
                            "additionalProperties": False,
                        },
                    ]
                },
            ),
            "sql": Word("The rows of a query, read in the order of a key.", ref("collection_sql")),
            "lines": Word("The lines of a text file.", _or_text("collection_lines")),
            "row_groups": Word("The row groups of Parquet files.", _or_text("collection_row_groups")),
            "files": Word("The files that a pattern finds.", _or_text("collection_files")),
            "objects": Word("The objects below a URL of an object store.", _or_text("collection_objects")),
            "http": Word("What an HTTP service lists page by page.", _or_text("collection_http")),
            "claim": Word("The rows that a statement claims, until it claims none.", ref("collection_claim")),
        },
        need_one_of=("range", "sql", "lines", "row_groups", "files", "objects", "http", "claim"),
    ),
    "collection_sql": Scope(
        "loop.in.sql",
        "The rows of a query as mappings, read page by page in the order of a key, so that nobody holds all of them. How to "
        "connect is said as for the tool that `kind` names.",
        {
            "kind": Word("The database.", or_template(choice(SQL_KINDS)), required=True),
            "query": Word("A query that gives the rows. It needs no order: the key is the order.", TEXT, required=True),
            "key": Word(
                "A column of the query with a value of its own in every row. It names each element for good.",
                TEXT,
                required=True,
            ),
            "params": Word("Values for the placeholders of the query.", or_template({"type": ["object", "array"]})),
            "args": Word("The same as `params`.", or_template({"type": ["object", "array"]})),
            **_CONNECTION_WORDS,
            "keep": Word(
                "Keep the rows of each page in the result store, for elements that are tried again. Otherwise they are read "
                "again, and fail if keys were added or removed among them.",
                or_template({**BOOLEAN, "default": True}),
            ),
            "timeout": Word("Seconds that reading one page may take.", or_template(number(0, 600))),
        },
    ),
    "collection_claim": Scope(
        "loop.in.claim",
        "The rows that a statement claims, as mappings: it is run again until it gives none. How to connect is said as for the "
        "tool that `kind` names.",
        {
            "kind": Word("The database.", or_template(choice(SQL_KINDS)), required=True),
            "sql": Word(
                "The statement that claims rows and gives them, such as `UPDATE … RETURNING …`; of several, which are one "
                "transaction, the last gives them. `:rows` is how many it may take, `:claim` the name of the claim.",
                TEXT,
                required=True,
            ),
            "rows": Word(
                "How many rows a claim may take: `:rows`, and `{{ __frame_max_rows }}`, in `sql`.",
                or_template(integer(1, 1)),
            ),
            "params": Word("Values for the placeholders of `sql`.", or_template({"type": ["object", "array"]})),
            "key": Word("The column that names a row, as `iter.iter_key`; the first one if left out.", TEXT),
            **{name: word for name, word in _CONNECTION_WORDS.items() if name != "read_only"},
            "timeout": Word("Seconds that one claim may take.", or_template(number(0, 600))),
        },
    ),
    "collection_lines": Scope(
        "loop.in.lines",
        "The lines of a text file, without their ends. `iter.iter_key` is the number of the line, from 1.",
        {
            "path": Word(
                "The file, relative to the document. One that ends in `.gz` is unpacked.",
                {**TEXT, **READS_FILE},
                required=True,
            ),
            "encoding": Word("The encoding of its text.", {**TEXT, "default": "utf-8"}),
            "skip": Word("So many lines at the beginning are no elements: a header.", or_template(integer(0, 0))),
        },
    ),
    "collection_row_groups": Scope(
        "loop.in.row_groups",
        "The row groups of Parquet files: `{path, row_group, rows, first_row}`.",
        {"path": Word("A file or a pattern, relative to the document.", {**TEXT, **READS_FILE}, required=True)},
    ),
    "collection_files": Scope(
        "loop.in.files",
        "Files in the order of their paths: `{path, name, size, modified}`. `iter.iter_key` is the path.",
        {
            "path": Word(
                "A pattern such as `inbox/*.csv`, or a folder, relative to the document.", TEXT, required=True
            ),
            "recursive": Word("Look into the folders below, too.", or_template(BOOLEAN)),
        },
    ),
    "collection_objects": Scope(
        "loop.in.objects",
        "Objects of a store in the order of their keys: `{key, name, size, modified, url}`. `iter.iter_key` is the key.",
        {
            "url": Word(
                "Where they are: `s3://BUCKET/PREFIX`, `gs://…`, `az://…` or `file:///FOLDER`.",
                {**TEXT, **url(*OBJECT_STORES, "file", "memory")},
                required=True,
            ),
            "pattern": Word("Which keys, such as `*.csv`; `*` stands for `/` too.", {**TEXT, "default": "*"}),
            "auth": Word("A keychain entry with what the store wants.", {**_ENTRY, **KEYCHAIN_ENTRY}),
            "options": Word("More of these, such as `endpoint` or `region`.", or_template(MAPPING)),
        },
    ),
    "collection_http": Scope(
        "loop.in.http",
        "What a service lists page by page: by a cursor or a link to the next page, or by numbers.",
        {
            "url": Word("Where the first page is.", {**TEXT, **WEB}, required=True),
            "method": Word("How pages are asked for.", or_template(choice(("GET", "POST"), "GET"))),
            "params": Word("Query parameters of every request.", or_template(MAPPING)),
            "json": Word("The body of every request, for `POST`.", or_template(MAPPING)),
            "headers": Word("Headers of every request.", or_template(MAPPING)),
            "items": Word(
                "Where in the answer the elements are, such as `data.items`; otherwise the answer is the list.", TEXT
            ),
            "key": Word(
                "Where in an element its name is, such as `id`; otherwise it is called by page and place.", TEXT
            ),
            "next": Word("Where in the answer it says how to go on: a text for `next_param`, or a URL.", TEXT),
            "next_param": Word("The parameter that takes it.", {**TEXT, "default": "cursor"}),
            "page_param": Word("The parameter that takes the number of the page.", TEXT),
            "start": Word("The number of the first page.", or_template({"type": "integer", "default": 1})),
            "step": Word("How far numbers are apart: for an offset, the size of a page.", or_template(integer(1, 1))),
            "max_pages": Word("More pages than this are a failure.", or_template(integer(1, 10_000))),
            "auth": Word("A keychain entry, or a mapping, as for the `http` tool.", {**_ENTRY, **KEYCHAIN_ENTRY}),
            "verify": Word(
                "Check the server's certificate; a path names the file of certificates to trust.",
                or_template({"type": ["boolean", "string"]}),
            ),
            "max_response_bytes": Word("The largest answer accepted.", or_template(integer(1))),
        },
    ),
    "loop_spec": Scope(
        "loop.spec",
        "How the iterations run. Further keys are knobs of the step's tools.",
        {
            "mode": Word("One after another, or side by side.", choice(LOOP_MODES, "sequential")),
            "max_in_flight": Word("How many iterations at once when parallel.", integer(1, DEFAULT_MAX_IN_FLIGHT)),
            "policy": Word("Scheduling hints.", ref("loop_policy")),
            "loop_mode": Word("The same as `step.spec.loop_mode`, and goes before it.", choice(LOOP_POSITIONS)),
            "fanout": Word("The same as `step.spec.fanout`, and goes before it.", ref("fanout")),
            "reducers": Word("The same as `step.spec.reducers`.", REDUCERS),
            "shared": Word("The same as `fanout.shared`.", BOOLEAN),
        },
        Strictness.OPEN,
    ),
    "loop_policy": Scope(
        "loop.spec.policy",
        "Scheduling hints. Control actions belong to tasks.",
        {
            "exec": Word("Where iterations are meant to run: an intent.", choice(("local", "distributed"))),
            "mode": Word("The same as `loop.spec.mode`.", choice(LOOP_MODES)),
            "max_in_flight": Word("The same as `loop.spec.max_in_flight`.", integer(1)),
            "failure": Word("The same as `step.spec.policy.failure`.", ref("failure")),
            "ordering": Word("Reserved.", ANY),
            "reducers": Word("The same as `step.spec.reducers`.", REDUCERS),
            "backpressure": Word("Reserved.", ANY),
            "partitioning": Word("Reserved.", ANY),
        },
        Strictness.HINTS,
    ),
    "fanout": Scope(
        "fanout",
        "How a loop with `loop_mode: fanout` is handed out, in ranges of its elements. It stands in `spec` or in `spec.policy`, "
        "of the executor or of a step, or in `loop.spec`; `fanout.fail_fast: true` is the same as `fanout: {fail_fast: true}`.",
        {
            "fail_fast": Word(
                "The first element that fails for good stops the loop, and the step fails. True unless the loop is "
                "`best_effort`.",
                BOOLEAN,
            ),
            "allow_partial": Word(
                "Elements may fail: all run, and the loop ends in `loop.done` with `fanin.status` `partial`. True if the loop is "
                "`best_effort`.",
                BOOLEAN,
            ),
            "max_job_retries": Word(
                "How often an element that failed, or whose worker was lost, is handed out again. Without it a failed one is "
                "not, and a lost one up to 3 times.",
                integer(0),
            ),
            "max_shards": Word("A collection with more elements fails the step.", integer(1, 1_000_000_000)),
            "max_concurrent": Word(
                "How many elements may be worked on at a time, everywhere together. Otherwise `max_in_flight` of a parallel loop "
                "says so.",
                integer(1),
            ),
            "max_concurrent_shards": Word("The same as `max_concurrent`.", integer(1)),
            "queue_ttl_s": Word("Seconds after which elements fail that no worker has taken.", number(0.1)),
            "lease_s": Word("Seconds without a sign of life after which a worker counts as lost.", number(0.1)),
            "range_size": Word(
                "How many elements to a range. Otherwise as many as keep a worker busy for some seconds.", integer(1)
            ),
            "emit": Word(
                "What the log says of elements that went well: what ranges came to, or an event for each element.",
                choice(EMITS, "summary"),
            ),
            "reducers": Word(
                "Lets tasks say `set_shared`: `true`, or each key with its reducer, such as `{total: sum}`.", REDUCERS
            ),
            "shared": Word("`true` lets tasks say `set_shared`.", BOOLEAN),
        },
    ),
    "shared": Scope(
        "set_shared",
        "What one element adds to a value that all of them make together, when `set_shared` is a list. As a mapping it is "
        "`{total: {sum: 5}}`, `{total: {op: sum, value: 5}}`, or `{total: 5}` where `reducers` says `{total: sum}`.",
        {
            "key": Word("The name: `ctx.<key>` has the value when the loop is over.", TEXT, required=True),
            "op": Word("The reducer; `reducers` may say it instead.", OPERATION),
            "reduce": Word("The same as `op`.", OPERATION),
            "value": Word("What this element adds.", ANY, required=True),
        },
    ),
}


SCOPES: dict[str, Scope] = {"root": ROOT, **EXECUTOR, **STEP, **LOOP, **TASK}
