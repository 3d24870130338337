"""A topological order: whatever comes before something stands before it, and ties keep the order of the document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush


def ordered(after: Mapping[str, Iterable[str]], rank: Callable[[str], int]) -> list[str]:
    """The keys of `after` in such an order. What lies on a circle, or behind one, is not among them."""
    waits = dict.fromkeys(after, 0)
    for following in after.values():
        for name in following:
            waits[name] += 1
    ready = [(rank(name), name) for name, count in waits.items() if not count]
    heapify(ready)
    found: list[str] = []
    while ready:
        _, name = heappop(ready)
        found.append(name)
        for other in after[name]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, (rank(other), other))
    return found


def reached(name: str, after: Mapping[str, Iterable[str]]) -> set[str]:
    """All that comes after a name, however far; itself only if it lies on a cycle."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for target in after.get(todo.pop(), ()):
            if target not in found:
                found.add(target)
                todo.append(target)
    return found
