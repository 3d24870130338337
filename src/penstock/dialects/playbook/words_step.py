"""The words of a step: admission, loop, router and arcs."""

from __future__ import annotations

from penstock.dialects.playbook.word import (
    ANY,
    BOOLEAN,
    CONDITION,
    DEFAULT_MAX_IN_FLIGHT,
    LOOP_MODES,
    LOOP_PLACES,
    MAPPING,
    NAME,
    ROUTERS,
    TEMPLATE,
    TEXT,
    WRITES,
    Scope,
    Strictness,
    Word,
    choice,
    fallback,
    integer,
    list_of,
    number,
    ref,
)

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
            "loop_mode": Word("Where this step's loop runs.", choice(LOOP_PLACES, "local")),
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
                "What a failed iteration means for the others; loops are `fail_fast` unless told otherwise.",
                ref("failure"),
            ),
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
        },
    ),
    "loop": Scope(
        "loop",
        "Run the step's pipeline once per element, each with an `iter` of its own.",
        {
            "in": Word(
                "The collection: a template, a list, or `{range: 10}` / `{range: {start, stop, step}}`.",
                {"anyOf": [TEMPLATE, {"type": "array"}, ref("range")]},
                required=True,
            ),
            "iterator": Word("The element is read as `iter.<iterator>`.", NAME, required=True),
            "spec": Word("Sequential or parallel, and how many at once.", ref("loop_spec")),
        },
    ),
    "range": Scope(
        "range",
        "Whole numbers that are never written out as a list.",
        {
            "range": Word(
                "A count, or `{start, stop, step}`.",
                {
                    "anyOf": [
                        {"type": ["integer", "string"]},
                        {
                            "type": "object",
                            "properties": {
                                "start": {"type": ["integer", "string"]},
                                "stop": {"type": ["integer", "string"]},
                                "step": {"type": ["integer", "string"]},
                            },
                            "required": ["stop"],
                            "additionalProperties": False,
                        },
                    ]
                },
                required=True,
            )
        },
    ),
    "loop_spec": Scope(
        "loop.spec",
        "How the iterations run. Further keys are knobs of the step's tools.",
        {
            "mode": Word("One after another, or side by side.", choice(LOOP_MODES, "sequential")),
            "max_in_flight": Word("How many iterations at once when parallel.", integer(1, DEFAULT_MAX_IN_FLIGHT)),
            "policy": Word("Scheduling hints.", ref("loop_policy")),
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
            "reducers": Word("Reserved.", ANY),
            "backpressure": Word("Reserved.", ANY),
            "partitioning": Word("Reserved.", ANY),
        },
        Strictness.HINTS,
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
        "One way on. Without `when` it fires on every end but a failure.",
        {
            "step": Word("The step the token goes to.", TEXT, required=True),
            "when": Word("Sees event, ctx, workload, args and steps by name.", CONDITION),
            "args": Word("What the token carries; the next step reads it as `args`.", MAPPING),
            "set": Word("`ctx.x: value` writes ctx; other keys are args.", WRITES),
            "desc": Word("What the arc is for.", TEXT),
            "spec": Word("Reserved.", MAPPING),
        },
    ),
}
