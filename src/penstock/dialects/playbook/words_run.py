"""The words around the workflow: root, metadata and executor."""

from __future__ import annotations

from penstock.dialects.playbook.word import API_VERSIONS, FAILURE_MODES, LOOP_PLACES, POOL, REDUCERS
from penstock.dialects.words import (
    BOOLEAN,
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

ROOT = Scope(
    "playbook",
    "A playbook: steps that run tool pipelines, and arcs that carry tokens from step to step.",
    {
        "apiVersion": Word("The version of the language.", choice(API_VERSIONS), required=True),
        "kind": Word("What this document is.", {"const": "Playbook"}, required=True),
        "metadata": Word("What the playbook is called, and anything else worth saying about it.", ref("metadata")),
        "keychain": Word("The secrets this playbook needs, by name.", list_of(ref("keychain"))),
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
                "Where loops run: each on one worker, or fanned out over all of them.", choice(LOOP_PLACES, "local")
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
