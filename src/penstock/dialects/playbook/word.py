"""The small vocabulary of a playbook's values."""

from __future__ import annotations

from penstock.dialects.words import BOOLEAN, MAPPING, choice, integer, list_of, ref
from penstock.kernel.reducers import OPERATIONS
from penstock.kernel.values import JsonMap

API_VERSIONS = ("noetl.io/v2", "penstock/v1")

DIRECTIVES = ("continue", "retry", "jump", "break", "fail")
BACKOFFS = ("none", "linear", "exponential")
ROUTERS = ("exclusive", "inclusive")
LOOP_MODES = ("sequential", "parallel")
FAILURE_MODES = ("fail_fast", "best_effort")
LOOP_PLACES = ("local", "fanout")
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
