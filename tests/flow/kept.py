"""What a resume must not run again of iterations, as the log says it."""

from __future__ import annotations

from penstock.kernel.facts import (
    ComponentStarted,
    ElementEnded,
    ElementStarted,
    Fact,
    SubjobEnded,
    SubjobStarted,
    event_type,
)


def ended_with_their_iterations(facts: list[Fact]) -> set[str]:
    """Components of bodies that have ended OK, or in ERROR and what handles that has not; and of handlers that ended OK.

    What lies in a nested iteration counts with the outermost.
    """
    opened = {fact.scope: at for at, fact in enumerate(facts) if isinstance(fact.body, ElementStarted)}
    found: set[str] = set()
    for at, end in enumerate(facts):
        if not isinstance(end.body, ElementEnded) or end.scope.count("[#") > 1 or at < opened[end.scope]:
            continue
        later = (fact for fact in facts[at:] if isinstance(fact.body, SubjobStarted | SubjobEnded))
        handlers = {fact.scope: event_type(fact.body) for fact in later if fact.body.container == f"{end.scope}."}  # type: ignore[union-attr]
        is_handled = sum(kind != "subjob.started" for kind in handlers.values()) == end.body.handlers
        if end.body.status == "error" and is_handled:
            continue
        found |= {
            fact.scope
            for number, fact in enumerate(facts)
            if isinstance(fact.body, ComponentStarted)
            and fact.scope.startswith(f"{end.scope}.")
            and (opened[end.scope] < number < at or handlers.get(fact.body.subjob) == "subjob.ok")
        }
    return found
