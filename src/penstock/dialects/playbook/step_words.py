"""The words of a step: admission, router and arcs."""

from __future__ import annotations

from penstock.dialects.playbook.word import (
    CONCURRENCY,
    CONDITION,
    LOOP_PLACES,
    NAME,
    POOL,
    REDUCERS,
    ROUTERS,
    WRITES,
    fallback,
)
from penstock.dialects.words import ANY, BOOLEAN, MAPPING, TEXT, Scope, Strictness, Word, choice, list_of, number, ref

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
                choice(LOOP_PLACES, "local"),
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
