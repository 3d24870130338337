"""Transitions for tokens, arcs and links."""

from __future__ import annotations

from typing import Any

from penstock.kernel import facts
from penstock.kernel.evolve.executions import execution_of
from penstock.kernel.facts import Fact
from penstock.kernel.state import (
    FAILED_FAST,
    SETTLED,
    Death,
    State,
    Subjob,
    Token,
    Unhandled,
    number_after,
)

ITERATION_ENDS = ("iteration_ok", "iteration_error")
"""The kinds of links that the end of an iteration fires."""


# ---- tokens


def token_created(state: State, fact: Fact, body: facts.TokenCreated, ts: float) -> None:
    execution, path = execution_of(state, fact.scope), tuple(body.path)
    execution.tokens[path] = Token(body.step, path, body.args, body.origin)
    execution.top = max(execution.top, path[0])


def token_refused(state: State, fact: Fact, body: facts.TokenRefused, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    execution.tokens.pop(tuple(body.path), None)
    if body.error is not None:
        execution.unhandled.append(Unhandled(body.step, None, body.error))


def token_stranded(state: State, fact: Fact, body: facts.TokenStranded, ts: float) -> None:
    execution_of(state, fact.scope).tokens[tuple(body.path)].counter += 1


# ---- arcs and links


def arcs_selected(state: State, fact: Fact, body: facts.ArcsSelected, ts: float) -> None:
    execution = execution_of(state, fact.scope)
    run = execution.ending[fact.scope]
    run.counter = number_after(fact)
    execution.ctx.merge(body.writes, run.path)
    run.selected = len(body.arcs)
    if not run.selected:
        del execution.ending[fact.scope]
    if not body.unhandled:
        execution.unhandled = [one for one in execution.unhandled if one.run is not run]
    if body.error is not None:
        execution.unhandled.append(Unhandled(run.step, None, body.error))
    if body.abort:
        execution.deaths.append(Death(fact.scope, FAILED_FAST.format(run.step)))


def fired(state: State, fact: Fact, body: facts.ArcEnqueued | facts.LinkFired, ts: float) -> None:
    """An arc of a step run has fired, or a link of a component, a sub-job or an iteration.

    A link of a sub-job only counts as one of its facts: whether it fired follows from the sub-job's status.
    """
    scope, number = fact.scope, number_after(fact)
    if isinstance(body, facts.ArcEnqueued):
        execution, index = execution_of(state, scope), body.arc
        source: Any = execution.ending[scope]
        if len(source.fired) + 1 == source.selected:
            del execution.ending[scope]
    else:
        source, index = state.subjobs.get(scope) or state.runs.get(scope), body.link
        if body.on in ITERATION_ENDS:
            if source is not None:
                source.counter = number
            source = state.scopes[f"{scope}."]
        elif source is None or (body.on == "synchronise" and source.status in SETTLED):
            # The links of a join are facts of its target, which does not exist before they have fired.
            state.counters[scope] = number
            if body.on == "synchronise":
                state.joined.setdefault(scope, fact.clock[:-1])
            return
    source.counter = number
    if not isinstance(source, Subjob):
        source.fired.add(index)
