"""Why a sub-job or an iteration of a job ended as it did."""

from __future__ import annotations

from penstock.kernel.errors import Refused
from penstock.views.explain.explanation import Explanation
from penstock.views.jobs_chain import chain
from penstock.views.jobs_seen import ERROR, OK, RUNNING, SETTLED, SKIPPED, ComponentSeen, SubjobSeen
from penstock.views.jobs_view import OF_ITERATION, OF_SUBJOB, JobView
from penstock.views.wording import counted, error_line, seconds, shown

MOST_MEMBERS = 40


def explain_subjob(view: JobView, subjob: SubjobSeen) -> Explanation:
    is_iteration = subjob.iterator is not None
    what = "iteration" if is_iteration else "sub-job"
    answer = Explanation(subjob.scope, subjob.state, f"{what} `{subjob.name}` {_said(view, subjob)}")
    members = _members(view, subjob)
    if is_iteration:
        answer.add("why it ran", _opened(view, subjob))
    elif members:
        first = min(members, key=lambda one: (one.started_at is None, one.started_at or 0.0))
        if first.started_at is not None:
            answer.add("why it began", chain(view, first))
    lines = [_member(view, one) for one in members]
    left = len(lines) - MOST_MEMBERS
    answer.add("its components", lines if left <= 0 else [*lines[:MOST_MEMBERS], f"… and {left:,} more"])
    answer.add("why it failed", _failure(view, subjob, members))
    answer.add("what followed", _followed(view, subjob, members))
    if subjob.checkpoint is not None:
        answer.add("what a resume stands on", [f"a checkpoint of {counted(subjob.checkpoint, 'byte')}"])
    return answer


def _said(view: JobView, subjob: SubjobSeen) -> str:
    took = ""
    if subjob.started_at is not None and subjob.ended_at is not None:
        took = f" after {seconds(max(0.0, subjob.ended_at - subjob.started_at))}"
    kept = " in an earlier run, and a resume kept it" if subjob.kept else ""
    said = {
        OK: f"ended OK{took}{kept}",
        ERROR: f"ended in ERROR{took}{kept}",
        SKIPPED: f"was SKIPPED{kept}: all of its components were",
        RUNNING: "is RUNNING" if view.is_live else "was RUNNING when the job stopped; a resume starts it anew",
    }
    return said.get(subjob.state, "has not begun")


def _members(view: JobView, subjob: SubjobSeen) -> list[ComponentSeen]:
    names = [*subjob.members]
    for inner in subjob.inner:
        names += view.seen.subjobs[inner].members if inner in view.seen.subjobs else []
    return [view.seen.components[name] for name in names]


def _opened(view: JobView, subjob: SubjobSeen) -> list[str]:
    assert subjob.iterator is not None
    owner = view.seen.components.get(subjob.iterator)
    lines = chain(view, owner) if owner is not None else []
    item = f" for {shown(subjob.item)}" if subjob.item is not None else ""
    return [*lines, f"`{subjob.iterator}` opened `{subjob.scope}`{item}"]


def _member(view: JobView, component: ComponentSeen) -> str:
    why = f": {view.causes.of(component)}" if component.state in (ERROR, SKIPPED) else ""
    took = f" after {seconds(component.ms / 1000)}" if component.state in (OK, ERROR) else ""
    return f"`{component.name}` {component.state}{took}{why}"


def _failure(view: JobView, subjob: SubjobSeen, members: list[ComponentSeen]) -> list[str]:
    if subjob.state != ERROR:
        handled = [one.name for one in members if one.state == ERROR]
        return [
            f"`{name}` ended in ERROR, and an `error` link inside took it" for name in handled if subjob.state == OK
        ]
    return [error_line(subjob.error)] if subjob.error is not None else []


def _followed(view: JobView, subjob: SubjobSeen, members: list[ComponentSeen]) -> list[str]:
    lines: list[str] = []
    for member in members:
        for link in view.outbound(member.node):
            if link.on in OF_SUBJOB:
                target = view.near(link.target, member.name) or link.target
                lines.append(f"`{link.on.value}` → `{link.target}`: {view.verdict(link, target)}")
    if subjob.iterator is not None:
        owner = view.seen.components.get(subjob.iterator)
        lines += [
            f"`{link.on.value}` → `{link.target}`: {_handled(view, link.target, subjob)}"
            for link in (view.outbound(owner.node) if owner is not None else ())
            if link.on in OF_ITERATION
        ]
    if subjob.state not in SETTLED:
        return []
    return lines


def _handled(view: JobView, target: str, subjob: SubjobSeen) -> str:
    handler = view.seen.components.get(f"{subjob.scope}.{target}")
    return view.standing(handler, target) if handler is not None else "did not fire"


def explain_unopened(view: JobView, owner: ComponentSeen, index: int) -> Explanation:
    """An iteration that never began."""
    iterator = owner.iterator
    if iterator is None:
        raise Refused(f"`{owner.name}` has no iterations", f"ask for `{owner.name}`")
    if iterator.total is not None and index >= iterator.total:
        raise Refused(f"`{owner.name}` has {counted(iterator.total, 'iteration')}, numbered from 0")
    scope = f"{owner.name}[#{index}]"
    answer = Explanation(scope, "not started", f"iteration `{scope}` was never started{view.place(owner.node)}")
    if iterator.failures and owner.state == ERROR:
        first = f"{owner.name}[#{min(iterator.failures)}]"
        failed = view.seen.subjobs.get(first)
        lines = [f"`{first}` failed and `fail_strategy` is halt, so no more were started"]
        answer.add("why not", lines + ([error_line(failed.error)] if failed is not None else []))
    elif view.is_live and owner.state == RUNNING:
        answer.add("why not", [f"`{owner.name}` has come to {iterator.settled:,} of {iterator.total or '?'}"])
    elif owner.error is not None:
        answer.add("why not", [error_line(owner.error)])
    else:
        answer.add("why not", ["the job stopped before the iterator came to it"])
    return answer
