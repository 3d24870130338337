"""The words of a task: its policy, its control sugar, and the workbook."""

from __future__ import annotations

from penstock.dialects.playbook.word import (
    BACKOFFS,
    CONDITION,
    DIRECTIVES,
    NAME,
    SHARED,
    SUGAR,
    TASKS,
    WRITES,
    fallback,
)
from penstock.dialects.words import (
    MAPPING,
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
