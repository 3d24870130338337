"""What the log's events are for, in words.

The types and fields themselves are in penstock.kernel.facts. The page of events is not made when one of them has no words
here, or when words are left over.
"""

from __future__ import annotations

from penstock.docs.job_event_words import JOB_EVENTS, JOB_FIELDS, PAYLOAD_NAMES
from penstock.kernel import facts

EVENTS: dict[str, str] = {
    "playbook.started": "The run, or a sub-playbook, begins.",
    "playbook.interrupted": "The run was stopped so that it can be resumed.",
    "playbook.resumed": "The run goes on after a crash, an interruption or a failure.",
    "playbook.cancelling": "Somebody asked for the run to be cancelled.",
    "playbook.completed": "No token is left and no failure went unhandled.",
    "playbook.failed": "No token is left, and at least one failure found no arc.",
    "playbook.cancelled": "The run has ended because it was cancelled.",
    "token.created": "A token sets out for a step: at the start, or because an arc fired.",
    "token.refused": "The step's admission did not let the token in. The token is consumed.",
    "token.stranded": "A token waited at a join, and nothing was left that could have brought the others.",
    "step.scheduled": "A step run was decided on. Its id and its visit number are fixed here.",
    "step.started": "The step run is handed to a worker.",
    "step.done": "The pipeline of a step without a loop ended well.",
    "step.failed": "The step run failed.",
    "loop.started": "A step's loop begins: its collection is known.",
    "loop.iteration.started": "One iteration begins.",
    "loop.iteration.done": "One iteration ended well.",
    "loop.iteration.failed": "One iteration failed.",
    "loop.done": "All iterations are over. A loop step ends in this or in `step.failed`, never in `step.done`.",
    "next.selected": "The arcs of a step that has ended were asked, and this came of it.",
    "next.enqueued": "One arc that fired puts a token on its way.",
    "task.started": "A tool is about to be called.",
    "task.done": "A tool call is over, well or not; its outcome and what the policy made of it.",
    **JOB_EVENTS,
}

FIELDS: dict[type[object], dict[str, str]] = {
    facts.ExecutionStarted: {
        "name": "The name of the playbook or job.",
        "digest": "A hash of the compiled document.",
        "workload": "The inputs: the defaults with the payload merged over them. Of a job, its context.",
        "entry": "The first step; empty for a job.",
        "trace_id": "Given by the caller, or made up for the run.",
        "parent": "The task run that asked for it, when it is a sub-playbook.",
        "document": "A sub-playbook's text, pinned so that a resume uses the same one.",
        "continues": "After a resume: the scope of the failed sub-playbook that this one goes on from.",
        "kind": "`playbook` or `job`.",
        "resumed": "A job goes on after a stop.",
        "kept": "The sub-jobs of a resumed job that stay as they are and are not run again.",
    },
    facts.ExecutionInterrupted: {"reason": "Why, such as the name of the signal.", "kind": "`playbook` or `job`."},
    facts.ExecutionResumed: {
        "restarted": "Task runs that were under way when the run stopped. They run again.",
        "reopened": "Step runs that had failed. Each gets another run, from the failed task on.",
    },
    facts.CancelAsked: {"reason": "Why.", "kind": "`playbook` or `job`."},
    facts.ExecutionEnded: {
        "status": "`completed`, `failed` or `cancelled`.",
        "error": "The first failure, by place.",
        "kind": "`playbook` or `job`.",
        "exit_code": "The exit code that a job asks for itself, with `die`.",
    },
    facts.TokenCreated: {
        "step": "Where it goes.",
        "path": "Its place among the runs of the execution.",
        "args": "What it carries.",
        "parent_step_run_id": "The step run that sent it.",
        "origin": "The step that sent it.",
        "arc": "Which arc of that step, counted from 0.",
    },
    facts.TokenRefused: {
        "step": "The step that did not let it in.",
        "path": "The token's place.",
        "rule": "Which admission rule said so, counted from 0; null when none matched.",
        "error": "Why, when a rule could not be evaluated or a limit was reached.",
    },
    facts.TokenStranded: {
        "step": "The join.",
        "path": "The token's place.",
        "missing": "Steps no token came from.",
        "present": "Steps a token came from.",
    },
    facts.RunScheduled: {
        "step": "The step.",
        "path": "The run's place.",
        "visit": "How many runs of this step there are so far, this one included.",
        "args": "What its tokens brought.",
        "rule": "Which admission rule let it in, counted from 0.",
        "tokens": "The tokens a join consumed.",
        "continues": "The failed step run it goes on from, after a resume.",
    },
    facts.RunStarted: {"step": "The step."},
    facts.ArcsSelected: {
        "on": "What the arcs were asked about: `step.done`, `step.failed` or `loop.done`.",
        "arcs": "The arcs that fired, counted from 0.",
        "steps": "The steps they lead to.",
        "writes": "What they wrote to ctx.",
        "unhandled": "The run failed and no arc took the failure.",
        "abort": "The other runs are stopped because of that.",
        "error": "Why no arc could be chosen, when a guard could not be evaluated.",
    },
    facts.ArcEnqueued: {"step": "The step the token goes to.", "token": "The token's place.", "arc": "The arc."},
    facts.TaskStarted: {"task": "The task's label.", "kind": "The tool.", "attempt": "Counted from 1."},
    facts.TaskEnded: {
        "task": "The task's label.",
        "attempt": "Counted from 1.",
        "outcome": "What the tool said: status, result or error, meta, and the tool's own fields.",
        "do": "The directive: `continue`, `retry`, `jump`, `break` or `fail`.",
        "next": "Where the pipeline goes on, counted from 0; -1 when it has ended.",
        "rule": "Which policy rule matched, counted from 0.",
        "delay": "Seconds before the next attempt.",
        "writes": "What is written to `iter`, to `ctx`, and appended to ctx.",
        "error": "Why the pipeline failed, when it did.",
        "given_up": "The tool gave no outcome: a time limit, a cancel or another failure ended it.",
    },
    facts.LoopStarted: {
        "total": "How many elements.",
        "mode": "`sequential` or `parallel`.",
        "max_in_flight": "How many at once.",
    },
    facts.IterationStarted: {"index": "Counted from 0.", "item": "The element, when it is a short scalar."},
    facts.IterationEnded: {
        "index": "Counted from 0.",
        "status": "`done` or `failed`.",
        "error": "Why it failed.",
        "writes": "What it wrote to ctx.",
    },
    facts.RunEnded: {
        "step": "The step.",
        "status": "`done` or `failed`.",
        "result": "The last task's result; of a loop `{total, done, failed, results}`.",
        "error": "Why it failed.",
        "writes": "What becomes visible in ctx for everyone, now.",
        "looped": "The step has a loop.",
        "given_up": "It did not end by itself: a time limit, a cancel or another step's failure ended it.",
    },
    **JOB_FIELDS,
}

ENVELOPE: dict[str, str] = {
    "event_id": "Unique, and the same again after a replay: the execution, the scope, and a number within the scope.",
    "event_type": "One of the types below.",
    "ts": "Wall-clock time, in UTC.",
    "execution_id": "The run.",
    "seq": "The number of the event in the log of its run, from 1 and without gaps.",
    "source": "`server` or `worker`: who decided it.",
    "worker_id": "The worker, for events that come from one.",
    "step": "The step's name; of a job, the component's name in this run, such as `load[#3].write`.",
    "step_run_id": "The step run, such as `fetch@2`; of a job, the scope.",
    "task_run_id": "The task run, such as `fetch@2/save#1`.",
    "scope": "The scope the event belongs to: the execution, a step run, an iteration such as `fetch@2[5]`; a sub-job or "
    "component of a job.",
    "trace_id": "The same for all events of a run.",
    "parent_id": "The scope that encloses the event's subject.",
    "cause": "The event this one follows from.",
    "clock": "The logical clock: by it, equal runs have equal timelines.",
    "payload": "The fields of the event's type. Results over the payload limit are references: `{$ref: …}`.",
}

__all__ = ["ENVELOPE", "EVENTS", "FIELDS", "PAYLOAD_NAMES"]
