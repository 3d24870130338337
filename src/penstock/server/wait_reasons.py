"""Why work waits for a worker: what it needs, and what the available workers have.

Law: this is inferred from what the store shows, and claims no more than that: a worker that could take the work may take it
at any moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from penstock.kernel.values import Json, JsonMap
from penstock.ports.dispatch import LeaseSeen, WorkerSeen
from penstock.views.wording import counted

MOST_NAMED = 5


def waits(leases: Iterable[LeaseSeen], workers: Sequence[WorkerSeen]) -> list[Json]:
    """Each scope once: the ranges of a loop wait together."""
    by_scope: dict[str, list[LeaseSeen]] = {}
    for lease in leases:
        if lease.worker is None:
            place = lease.key.removeprefix(f"{lease.execution_id}/")
            by_scope.setdefault(place.rpartition("#")[0] or place, []).append(lease)
    return [_shown(scope, offers, workers) for scope, offers in by_scope.items()]


def _shown(scope: str, offers: list[LeaseSeen], workers: Sequence[WorkerSeen]) -> JsonMap:
    one = offers[0]
    is_range = one.key.rpartition("#")[0].endswith(scope)
    is_stuck, why = reason(one, workers)
    return {
        "scope": scope,
        "pool": one.pool,
        "needs": [*sorted(one.needs)],
        "is_range": is_range,
        "offers": len(offers),
        "age_s": round(max(offer.age_s for offer in offers), 3),
        "is_stuck": is_stuck,
        "why": [*why],
    }


def reason(lease: LeaseSeen, workers: Sequence[WorkerSeen]) -> tuple[bool, list[str]]:
    """Whether no worker can take it, and why it waits."""
    alive = [seen for seen in workers if seen.is_alive]
    there = [seen for seen in alive if seen.card.pool == lease.pool]
    if not alive:
        return True, ["no worker is there: `penstock worker` starts one"]
    if not there:
        pools = Counter(seen.card.pool for seen in alive)
        others = ", ".join(f"{counted(number, 'worker')} in `{pool}`" for pool, number in sorted(pools.items()))
        start = f"`penstock worker --pool {lease.pool}` starts one"
        return True, [f"no worker is in pool `{lease.pool}`, only {others}; {start}"]
    able = [seen for seen in there if not seen.is_draining and seen.card.can.issuperset(lease.needs)]
    if not able:
        lacking = [_unable(seen, lease.needs) for seen in there[:MOST_NAMED]]
        more = [f"and {counted(len(there) - MOST_NAMED, 'more worker')}"] if len(there) > MOST_NAMED else []
        return True, [f"no worker of pool `{lease.pool}` can take it", *lacking, *more]
    places, held = sum(seen.card.slots for seen in able), sum(seen.held for seen in able)
    if held >= places:
        taken = "its only place is taken" if places == 1 else f"all {places:,} places of them are taken"
        return False, [f"{counted(len(able), 'worker')} of pool `{lease.pool}` can take it, and {taken}"]
    limits = [f"no more than {most:,} of `{name}` run at a time" for name, most in lease.limits]
    return False, limits or [f"{counted(len(able), 'worker')} of pool `{lease.pool}` can take it, and will soon"]


def _unable(seen: WorkerSeen, needs: frozenset[str]) -> str:
    lacks = ", ".join(f"`{need}`" for need in sorted(needs - seen.card.can))
    return f"`{seen.card.id}` lacks {lacks}" if lacks else f"`{seen.card.id}` is draining"
