"""What the events of jobs are for, in words: the other half of penstock.docs.event_words."""

from __future__ import annotations

from penstock.kernel import facts

JOB_EVENTS: dict[str, str] = {
    "job.started": "The run of a job begins, or goes on after a stop: then it says what it keeps.",
    "job.interrupted": "The run was stopped so that it can be resumed.",
    "job.cancelling": "Somebody asked for the run to be cancelled.",
    "job.completed": "Every sub-job has ended, and no error went unhandled.",
    "job.failed": "Every sub-job has ended, and one of them in an error that nothing handled; or the job died.",
    "job.cancelled": "The run has ended because it was cancelled.",
    "subjob.started": "The first component of a sub-job is about to start.",
    "subjob.ok": "The last component of a sub-job has settled, and no error in it went unhandled.",
    "subjob.error": "The last component of a sub-job has settled, and an error in it went unhandled.",
    "subjob.skipped": "No component of the sub-job will run.",
    "checkpoint.saved": "A sub-job has ended and what a resume needs of it is on disk.",
    "component.started": "A component has its rows and its green light, and runs.",
    "component.ok": "A component ended well; its rows, variables and globals can be seen from now on.",
    "component.error": "A component failed.",
    "component.skipped": "A component will not run in this scope, and why.",
    "edge.fired": "A control link fired.",
    "global.set": "A global was written. Committed together with the end of the component that wrote it.",
    "iterator.started": "An iterator knows its elements.",
    "iteration.started": "One iteration begins.",
    "iteration.ok": "The body of one iteration ended well.",
    "iteration.error": "The body of one iteration failed.",
    "iterator.completed": "No iteration is left.",
}

JOB_FIELDS: dict[type[object], dict[str, str]] = {
    facts.SubjobStarted: {
        "subjob": "Its name: that of its first component.",
        "index": "Its number, by the place of its first component in the expanded document.",
        "container": "The joblet call or iteration that it lies in; empty for one of the job's own.",
    },
    facts.SubjobEnded: {
        "subjob": "Its name.",
        "status": "`ok`, `error` or `skipped`.",
        "index": "Its number.",
        "container": "The joblet call or iteration that it lies in.",
        "error": "The error that went unhandled.",
        "aborts": "The policy `on_subjob_error: abort` lets nothing else start.",
    },
    facts.CheckpointSaved: {
        "subjob": "The sub-job it was taken after.",
        "bytes": "Its size.",
        "status": "How the sub-job ended.",
        "globals": "The globals that the sub-job leaves behind.",
        "outputs": "For each component and output port the hash of its rows.",
        "context": "The context of the run.",
    },
    facts.ComponentStarted: {
        "component": "Its name in the expanded job.",
        "type": "Its type.",
        "subjob": "The sub-job it belongs to.",
        "sees": "The scopes whose globals it finds.",
        "rows_in": "How many rows wait on each input port.",
        "opens": "Of a joblet call: the scope of its inside.",
    },
    facts.ComponentEnded: {
        "component": "Its name in the expanded job.",
        "status": "`ok` or `error`.",
        "rows_in": "Rows read, by input port.",
        "rows_out": "Rows given, by output port.",
        "outputs": "Where the rows lie that someone in another sub-job reads.",
        "after": "Its after-variables.",
        "result": "What it returned, when that is small.",
        "error": "Why it failed: kind, message and details.",
        "ms": "How long it ran.",
        "dies": "The job ends once its error path has run.",
        "exit_code": "The exit code it asks for.",
    },
    facts.ComponentSkipped: {
        "component": "Its name in the expanded job.",
        "subjob": "The sub-job it belongs to.",
        "cause": "Why, for people.",
        "upstream": "The component or sub-job whose end decided it.",
        "link": "The link that decided it: what it would have fired on.",
        "subjob_name": "The name of the sub-job, when this is the first that is heard of it.",
        "index": "The number of that sub-job.",
        "container": "The joblet call or iteration that it lies in.",
    },
    facts.LinkFired: {
        "source": "Where it begins.",
        "target": "Where it leads.",
        "on": "What made it fire: `ok`, `error`, `if` …",
        "order": "Of an `if` link: its order.",
        "link": "Its number in the plan.",
    },
    facts.GlobalSet: {
        "key": "Its full name; inside a joblet `caller.__inner__NAME`.",
        "old": "What the writer found.",
        "new": "What it wrote.",
        "writer": "The component.",
        "scope": "The sub-job or iteration in which it was written.",
        "local": "Another sub-job made the key and the writer does not export it: only its own sub-job sees the new value.",
        "creator": "The sub-job that made the key.",
        "is_set": "The value stands for a set: where iterations accumulate, it is united with the others.",
    },
    facts.IteratorStarted: {
        "iterator": "The iterator.",
        "total": "How many elements; null when that is not known before the end.",
        "items": "The elements, or where they lie. A resume goes on over these.",
        "parallel": "How many iterations run at once.",
        "mode": "How globals come together: `accumulate`, `reset` or `override`.",
        "spread": "Its iterations are run by several workers of a fleet.",
    },
    facts.ElementStarted: {
        "iterator": "The iterator.",
        "index": "Counted from 0.",
        "item": "The element, when it is small.",
        "subjobs": "How many sub-jobs the body has.",
    },
    facts.ElementEnded: {
        "iterator": "The iterator.",
        "index": "Counted from 0.",
        "status": "`ok` or `error`.",
        "error": "Why it failed.",
        "handlers": "How many sub-jobs of this iteration are still to come, led to by `iteration_ok` or `iteration_error`.",
    },
    facts.IteratorCompleted: {
        "iterator": "The iterator.",
        "status": "`error` when an iteration failed.",
        "total": "How many iterations there were.",
        "ok": "How many ended well.",
        "failed": "How many did not.",
        "failures": "The first of the failed ones, by number.",
    },
}

PAYLOAD_NAMES: dict[type[object], dict[str, str]] = {facts.LinkFired: {"source": "from", "target": "to"}}
"""Fields that are called something else in the payload, where the name is a word of Python's."""
