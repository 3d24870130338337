"""The chain of causes in a job: from its start to one component, and from a skip back to what decided it."""

from __future__ import annotations

from penstock.kernel.net import On
from penstock.views.jobs_names import caller_of, iteration_of
from penstock.views.jobs_seen import ERROR, SKIPPED, ComponentSeen, Fire
from penstock.views.jobs_view import OF_SUBJOB, JobView, ended_in
from penstock.views.wording import condition, counted, error_line, listed, seconds, shown

FIRST, LAST = 3, 10


def chain(view: JobView, component: ComponentSeen) -> list[str]:
    """What led to it, the start of the job first."""
    lines: list[str] = []
    known: set[str] = set()
    current: ComponentSeen | None = component
    while current is not None and current.name not in known:
        known.add(current.name)
        line, current = _before(view, current)
        lines.append(line)
    lines.reverse()
    left = len(lines) - FIRST - LAST
    if left <= 1:
        return lines
    return [*lines[:FIRST], f"… {left:,} more, each led to by the one before …", *lines[-LAST:]]


def _before(view: JobView, component: ComponentSeen) -> tuple[str, ComponentSeen | None]:
    """The last cause, and the component that it came from."""
    fires = view.causes.fires_into(component.name)
    if fires:
        return _fired(view, component, fires)
    fed = [
        (source, link.to_port)
        for link in view.inbound(component.node)
        if link.on is On.DATA
        and link.to_port in component.rows_in
        and (source := view.component(link.source, component.name)) is not None
    ]
    iteration, call = iteration_of(component.name), caller_of(component.name)
    beside = [(one, port) for one, port in fed if iteration_of(one.name) == iteration and one.name != call]
    if beside:
        last = max((one for one, _ in beside), key=lambda one: one.ended_at or 0.0)
        rows = counted(sum(component.rows_in[port] for port in {port for one, port in beside if one is last}), "row")
        return f"{_ended(last)} and gave it {rows}; `{component.name}` needs no control link", last
    if call is not None and call in view.seen.components:
        return f"`{call}` was called, and `{component.name}` is where its inside begins", view.seen.components[call]
    if iteration is not None:
        return _iterated(view, component, iteration)
    gate = _gate(view, component)
    if gate is not None:
        return gate
    start = view.seen.starts[-1] if view.seen.starts else None
    began = "was resumed" if start is not None and start.resumed and not component.kept else "started"
    return f"the job {began}, and `{component.name}` waits for nothing{view.place(component.node)}", None


def _gate(view: JobView, component: ComponentSeen) -> tuple[str, ComponentSeen] | None:
    """The trigger of its sub-job, or the pre-job, that it waited for."""
    for link in view.gates(component.node):
        source = view.component(link.source, component.name)
        subjob = view.subjob_of(source)
        if source is None or subjob is None:
            continue
        ended = f"sub-job `{subjob.name}` {ended_in(subjob.state)}" if link.on in OF_SUBJOB else _ended(source)
        place = view.place(component.node)
        return (
            f"{ended}, and with that (`{link.on.value}`) the sub-job of `{component.name}` could start{place}",
            source,
        )
    return None


def _iterated(view: JobView, component: ComponentSeen, iteration: str) -> tuple[str, ComponentSeen | None]:
    owner = iteration[: iteration.rindex("[#")]
    opened = view.seen.subjobs.get(iteration)
    item = f" for {shown(opened.item)}" if opened is not None and opened.item is not None else ""
    line = f"`{owner}` opened iteration `{iteration}`{item}, which begins with `{component.name}`"
    return line, view.seen.components.get(owner)


def _fired(view: JobView, component: ComponentSeen, fires: list[Fire]) -> tuple[str, ComponentSeen | None]:
    last = fires[-1]
    source = view.seen.components.get(last.source)
    place = view.place(component.node)
    if last.on == On.SYNCHRONISE.value:
        branches = listed([fire.source for fire in fires])
        return f"the branches of {branches} had all ended, so they joined in `{component.name}`{place}", source
    if last.on in {on.value for on in OF_SUBJOB}:
        subjob = view.subjob_of(source)
        name, state = (subjob.name, subjob.state) if subjob is not None else (last.source, "over")
        return f"sub-job `{name}` {ended_in(state)}; its `{last.on}` link fired → `{component.name}`{place}", source
    if last.on in (On.ITERATION_OK.value, On.ITERATION_ERROR.value):
        iteration = iteration_of(component.name)
        return f"iteration `{iteration}` was over; its `{last.on}` link fired → `{component.name}`{place}", source
    guard = _guard(view, last)
    others = f" (so did those from {listed([fire.source for fire in fires[:-1]])})" if len(fires) > 1 else ""
    ended = _ended(source) if source is not None else f"`{last.source}` ended"
    return f"{ended}; its `{last.on}` link fired{guard}{others} → `{component.name}`{place}", source


def _guard(view: JobView, fire: Fire) -> str:
    link = next((one for one in view.net.links if one.index == fire.link), None) if view.net is not None else None
    return f", as {condition(link.when)} was true" if link is not None and link.when is not None else ""


def _ended(component: ComponentSeen) -> str:
    kept = " in an earlier run and was kept" if component.kept else f" after {seconds(component.ms / 1000)}"
    return f"`{component.name}` {ended_in(component.state)}{kept}"


def why_skipped(view: JobView, component: ComponentSeen) -> list[str]:
    """From the skip back to what was not one."""
    lines: list[str] = []
    known: set[str] = set()
    current: ComponentSeen | None = component
    while current is not None and current.state == SKIPPED and current.name not in known:
        known.add(current.name)
        lines.append(f"`{current.name}` was skipped: {current.reason}")
        current = _upstream(view, current, lines)
    if current is not None and current.state == ERROR:
        lines.append(f"`{current.name}` ended in ERROR: {error_line(current.error)}{view.place(current.node)}")
    return lines if len(lines) <= FIRST + LAST else [*lines[:FIRST], "…", *lines[-LAST:]]


def _upstream(view: JobView, component: ComponentSeen, lines: list[str]) -> ComponentSeen | None:
    if component.upstream is None:
        lines += _ending(view)
        return None
    source = view.component(component.upstream, component.name)
    return _telling_member(view, component, source) if component.link in {on.value for on in OF_SUBJOB} else source


def _telling_member(view: JobView, component: ComponentSeen, source: ComponentSeen | None) -> ComponentSeen | None:
    """Of the sub-job that decided it, the member to go on with: of a join's branches, one that failed."""
    sources = [source]
    if component.link == On.SYNCHRONISE.value:
        sources = [
            view.component(link.source, component.name)
            for link in view.inbound(component.node)
            if link.on is On.SYNCHRONISE
        ]
    for one in sources:
        subjob = view.subjob_of(one)
        if subjob is None or subjob.state not in (ERROR, SKIPPED):
            continue
        members = [view.seen.components[name] for name in subjob.members]
        return next((member for member in members if member.state == subjob.state), None)
    return None


def _ending(view: JobView) -> list[str]:
    """Nothing starts any more: what ended the job."""
    if view.seen.cancel_reason is not None:
        return [f"the run was cancelled: {view.seen.cancel_reason}"]
    dead = next((one for one in view.seen.components.values() if one.dies), None)
    if dead is not None:
        return [f"`{dead.name}` ended in ERROR and the job died with it: {error_line(dead.error)}"]
    failed = next((one for one in view.seen.subjobs.values() if one.state == ERROR and not one.container), None)
    return [f"sub-job `{failed.name}` ended in ERROR: {error_line(failed.error)}"] if failed is not None else []
