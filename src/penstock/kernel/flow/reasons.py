"""Why a component is skipped, in words that name what decided it. Nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernel.flow.plan import OF_REGION
from penstock.kernel.flow.scope import Scope
from penstock.kernel.flow.state import ERROR, OK, SKIPPED, ComponentState, RegionState
from penstock.kernel.net import Link, On
from penstock.kernel.places import event_name

MOST_NAMED = 5
WIDEST_CONDITION = 80


@dataclass(frozen=True, slots=True)
class Skip:
    """`upstream` is the source of the link that tells most, `link` its kind, `cause` the fact that settled it. `stops`: not the
    links decided it, but that the job had been cancelled or was dying by then."""

    reason: str
    upstream: str | None = None
    link: str | None = None
    cause: str | None = None
    stops: bool = False


CANCELLED = "the run was cancelled"
ENDING = "the job is ending: "


def is_stop(reason: str) -> bool:
    return reason == CANCELLED or reason.startswith(ENDING)


def unfed(scope: Scope, link: Link, source: ComponentState | None) -> Skip:
    """A required input gets no rows any more. `source` may lie in a scope around this one."""
    what = f"`{link.source}`"
    if source is None or source.status == SKIPPED:
        why = f"{what} was skipped"
    elif source.status == ERROR:
        why = f"{what} ended in ERROR"
    else:
        why = f"{what} ended OK and handed nothing over on `{link.port}`"
    return Skip(f"its input `{link.to_port}` cannot be fed: {why}", link.source, link.on.value, _settled_by(source))


def not_led_to(scope: Scope, control: list[Link]) -> Skip:
    """None of its control links fired, or it joins branches that did not all come through."""
    joins = [link for link in control if link.on is On.SYNCHRONISE]
    if joins:
        return _not_joined(scope, joins)
    # What was skipped has a cause of its own further up; what ended otherwise is where the way in was lost.
    telling = next((link for link in control if _status(scope, link) != SKIPPED), control[0])
    same: dict[tuple[object, ...], list[Link]] = {}
    for link in [telling, *(link for link in control if link is not telling)]:
        same.setdefault(_alike(scope, link), []).append(link)
    reason = "; ".join(_not_fired(scope, links) for links in same.values())
    prefix = "none of the links to it fired: " if len(same) > 1 else ""
    return Skip(prefix + reason, telling.source, telling.on.value, _settled_by(_source(scope, telling)))


def _alike(scope: Scope, link: Link) -> tuple[object, ...]:
    """Links of which the same is to be said."""
    status = _status(scope, link)
    if status == SKIPPED:
        return (status, link.on in OF_REGION)
    return (status, link.on, link.index if link.on is On.IF else None)


def _not_fired(scope: Scope, links: list[Link]) -> str:
    link, status = links[0], _status(scope, links[0])
    what = _listed(list(dict.fromkeys(_what(scope, one) for one in links)))
    is_one = len(links) == 1
    if status == SKIPPED:
        return f"{what} {'was' if is_one else 'were'} skipped"
    if link.on is On.IF and status == OK:
        return f"the condition{_condition(link.when)} of the `if` link from {what} was not true"
    whose = f"its `{link.on.value}` link" if is_one else f"their `{link.on.value}` links"
    return f"{what} {_ended(status)}, so {whose} did not fire"


def _not_joined(scope: Scope, joins: list[Link]) -> Skip:
    failed = [link for link in joins if _status(scope, link) == ERROR]
    if failed:
        branches = [
            f"sub-job `{scope.plan.region(link.source).name}` ended in ERROR{_at(scope, link)}" for link in failed
        ]
        reason = f"of the branches that it joins, {_listed(branches)}"
    else:
        reason = f"all of the branches that it joins were skipped: {_listed([_what(scope, link) for link in joins])}"
    telling = (failed or joins)[0]
    return Skip(reason, telling.source, telling.on.value, _settled_by(_source(scope, telling)))


def _at(scope: Scope, link: Link) -> str:
    """The component that failed in a branch."""
    region = scope.region(scope.plan.region(link.source))
    error = region.error if region is not None else None
    component = error.get("component") if isinstance(error, dict) else None
    return f" at `{str(component).removeprefix(scope.state.prefix)}`" if component is not None else ""


def _what(scope: Scope, link: Link) -> str:
    if link.on not in OF_REGION:
        return f"`{link.source}`"
    name = scope.plan.region(link.source).name
    return f"sub-job `{name}`" if name == link.source else f"sub-job `{name}` (with `{link.source}`)"


def _source(scope: Scope, link: Link) -> ComponentState | RegionState | None:
    return scope.region(scope.plan.region(link.source)) if link.on in OF_REGION else scope.component(link.source)


def _status(scope: Scope, link: Link) -> str:
    source = _source(scope, link)
    return source.status if source is not None else SKIPPED


def _settled_by(source: ComponentState | RegionState | None) -> str | None:
    return event_name(source.place.id, source.counter - 1) if source is not None else None


def _ended(status: str) -> str:
    return "ended OK" if status == OK else f"ended in {status}"


def _condition(when: str | None) -> str:
    line = " ".join((when or "").split())
    return f" `{line if len(line) <= WIDEST_CONDITION else line[: WIDEST_CONDITION - 1] + '…'}`" if line else ""


def _listed(names: list[str]) -> str:
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) + 1 - MOST_NAMED:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
