"""The wording of why a component is skipped. Nothing is decided here."""

from __future__ import annotations

from penstock.kernel.net import Link, On
from penstock.kernel.places import event_name
from penstock.kernel.plan import OF_REGION
from penstock.kernel.scopes import ScopeView
from penstock.kernel.state import ERROR, OK, SKIPPED, ComponentRun, Subjob
from penstock.kernel.values import frozen

MOST_NAMED = 5
WIDEST_CONDITION = 80


@frozen
class Skip:
    """`upstream` is the source of the most informative link, `link` its kind, `cause` the fact that settled it. `stops`: the
    cause is not in its links, but that the job had been cancelled or was dying."""

    reason: str
    upstream: str | None = None
    link: str | None = None
    cause: str | None = None
    stops: bool = False


CANCELLED = "the run was cancelled"
ENDING = "the job is ending: "


def is_stop(reason: str) -> bool:
    return reason == CANCELLED or reason.startswith(ENDING)


def unfed(link: Link, source: ComponentRun | None) -> Skip:
    """A required input will not get any rows. `source` may lie in a scope around this one."""
    what = f"`{link.source}`"
    if source is None or source.status == SKIPPED:
        why = f"{what} was skipped"
    elif source.status == ERROR:
        why = f"{what} ended in ERROR"
    else:
        why = f"{what} ended OK and handed nothing over on `{link.port}`"
    return Skip(f"its input `{link.to_port}` cannot be fed: {why}", link.source, link.on.value, _settled_by(source))


def not_led_to(view: ScopeView, control: list[Link]) -> Skip:
    """None of its control links fired, or it joins branches that did not all succeed."""
    joins = [link for link in control if link.on is On.SYNCHRONISE]
    if joins:
        return _not_joined(view, joins)
    # A skipped source has a cause further upstream; a source that ended otherwise is the actual reason.
    telling = next((link for link in control if _status(view, link) != SKIPPED), control[0])
    same: dict[tuple[object, ...], list[Link]] = {}
    for link in [telling, *(link for link in control if link is not telling)]:
        same.setdefault(_alike(view, link), []).append(link)
    reason = "; ".join(_not_fired(view, links) for links in same.values())
    prefix = "none of the links to it fired: " if len(same) > 1 else ""
    return Skip(prefix + reason, telling.source, telling.on.value, _settled_by(_source(view, telling)))


def _alike(view: ScopeView, link: Link) -> tuple[object, ...]:
    """A key that is equal for links that are described by the same words."""
    status = _status(view, link)
    if status == SKIPPED:
        return (status, link.on in OF_REGION)
    return (status, link.on, link.index if link.on is On.IF else None)


def _not_fired(view: ScopeView, links: list[Link]) -> str:
    link, status = links[0], _status(view, links[0])
    what = _listed(list(dict.fromkeys(_what(view, one) for one in links)))
    is_one = len(links) == 1
    if status == SKIPPED:
        return f"{what} {'was' if is_one else 'were'} skipped"
    if link.on is On.IF and status == OK:
        return f"the condition{_condition(link.when)} of the `if` link from {what} was not true"
    whose = f"its `{link.on.value}` link" if is_one else f"their `{link.on.value}` links"
    return f"{what} {_ended(status)}, so {whose} did not fire"


def _not_joined(view: ScopeView, joins: list[Link]) -> Skip:
    failed = [link for link in joins if _status(view, link) == ERROR]
    if failed:
        branches = [
            f"sub-job `{view.plan.region(link.source).name}` ended in ERROR{_at(view, link)}" for link in failed
        ]
        reason = f"of the branches that it joins, {_listed(branches)}"
    else:
        reason = f"all of the branches that it joins were skipped: {_listed([_what(view, link) for link in joins])}"
    telling = (failed or joins)[0]
    return Skip(reason, telling.source, telling.on.value, _settled_by(_source(view, telling)))


def _at(view: ScopeView, link: Link) -> str:
    """The component that failed in a branch."""
    subjob = view.subjob(view.plan.region(link.source))
    error = subjob.error if subjob is not None else None
    component = error.get("component") if isinstance(error, dict) else None
    return f" at `{str(component).removeprefix(view.state.prefix)}`" if component is not None else ""


def _what(view: ScopeView, link: Link) -> str:
    if link.on not in OF_REGION:
        return f"`{link.source}`"
    name = view.plan.region(link.source).name
    return f"sub-job `{name}`" if name == link.source else f"sub-job `{name}` (with `{link.source}`)"


def _source(view: ScopeView, link: Link) -> ComponentRun | Subjob | None:
    return view.subjob(view.plan.region(link.source)) if link.on in OF_REGION else view.component(link.source)


def _status(view: ScopeView, link: Link) -> str:
    source = _source(view, link)
    return source.status if source is not None else SKIPPED


def _settled_by(source: ComponentRun | Subjob | None) -> str | None:
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
