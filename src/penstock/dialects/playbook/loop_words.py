"""The words of a loop: what it runs over, how its iterations run, and how it is fanned out."""

from __future__ import annotations

from penstock.dialects.playbook.word import (
    DEFAULT_MAX_IN_FLIGHT,
    EMITS,
    LOOP_MODES,
    LOOP_PLACES,
    NAME,
    OPERATION,
    REDUCERS,
    SQL_KINDS,
)
from penstock.dialects.words import (
    ANY,
    BOOLEAN,
    MAPPING,
    TEMPLATE,
    TEXT,
    Scope,
    Strictness,
    Word,
    choice,
    integer,
    number,
    or_template,
    ref,
)
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import KEYCHAIN_ENTRY, OBJECT_STORES, READS_FILE, WEB, url

_BOUND: JsonMap = {"type": ["integer", "string"]}
_ENTRY = or_template({"type": ["string", "object"]})


CONNECTION: dict[str, tuple[str, JsonMap]] = {
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
        },
        need_one_of=("range", "sql", "lines", "row_groups", "files", "objects", "http"),
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
            **{
                name: Word(about, {**or_template(schema), **(KEYCHAIN_ENTRY if name == "auth" else {})})
                for name, (about, schema) in CONNECTION.items()
            },
            "keep": Word(
                "Keep the rows of each page in the result store, for elements that are tried again. Otherwise they are read "
                "again, and fail if keys were added or removed among them.",
                or_template({**BOOLEAN, "default": True}),
            ),
            "timeout": Word("Seconds that reading one page may take.", or_template(number(0, 600))),
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
                {**TEXT, **url(*OBJECT_STORES)},
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
            "loop_mode": Word("The same as `step.spec.loop_mode`, and goes before it.", choice(LOOP_PLACES)),
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
