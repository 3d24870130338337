"""Transitions for sub-jobs. A playbook's steps form one, which starts and ends with its execution."""

from __future__ import annotations

from penstock.kernel import facts
from penstock.kernel.evolve.executions import find_or_open_subjob
from penstock.kernel.evolve.fans import close_part
from penstock.kernel.facts import Fact
from penstock.kernel.kept import mark
from penstock.kernel.state import ABORTED, ERROR, OK, RUNNING, STATUSES, Death, State, number_after, root_of


def started(state: State, fact: Fact, body: facts.SubjobStarted, ts: float) -> None:
    subjob = find_or_open_subjob(state, fact.scope, body.subjob, body.index, body.container)
    subjob.status, subjob.counter = RUNNING, number_after(fact)


def ended(state: State, fact: Fact, body: facts.SubjobEnded, ts: float) -> None:
    subjob = find_or_open_subjob(state, fact.scope, body.subjob, body.index, body.container)
    subjob.status, subjob.error, subjob.aborts = STATUSES[body.status], body.error, body.aborts
    subjob.counter = number_after(fact)
    scope = subjob.scope
    if not subjob.handles:
        scope.closed += 1
    if body.aborts:
        root_of(scope).deaths.append(Death(fact.scope, ABORTED.format(subjob.name)))
    if subjob.status == OK:
        mark(scope.marks, subjob.marks)
    if scope.handlers:
        scope.handlers -= 1
        if subjob.status == ERROR and scope.status == OK:
            scope.status, scope.error = ERROR, body.error  # A failed handler fails the iteration.
        if not scope.handlers:
            assert scope.opener is not None
            assert scope.index is not None
            close_part(state, scope.opener, scope.index, scope)


def counted(state: State, fact: Fact, body: facts.CheckpointSaved | facts.IteratorCompleted, ts: float) -> None:
    """Only the number of the scope's next fact changes."""
    holder = state.subjobs.get(fact.scope) or state.runs.get(fact.scope)
    if holder is not None:
        holder.counter = number_after(fact)
    elif fact.scope in state.counters:  # The last handler of an iteration: its end has closed the scope.
        state.counters[fact.scope] = number_after(fact)
