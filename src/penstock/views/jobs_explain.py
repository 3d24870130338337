"""Why a component, a sub-job or an iteration of a job did what it did."""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.net import On
from penstock.kernel.values import Json
from penstock.ports.results import decode
from penstock.views.explain.explanation import Explanation, Log
from penstock.views.jobs_chain import chain, why_skipped
from penstock.views.jobs_names import counted_ports, outside_bodies
from penstock.views.jobs_seen import ERROR, OK, RUNNING, SKIPPED, WAIT, ComponentSeen
from penstock.views.jobs_subjobs import explain_subjob, explain_unopened
from penstock.views.jobs_view import JobView, label
from penstock.views.wording import counted, error_line, seconds, shown

MOST = 10
MOST_FRAMES = 12
_PLAIN_INDEX = re.compile(r"\[(\d+)\]")
_ITERATION = re.compile(r"(?P<iterator>.+)\[#(?P<index>\d+)\]")


def explain_job(node: str, view: JobView, log: Log) -> Explanation:
    """`node`: a component (`load`, `it[#3].load`), an iteration (`it[#3]` or `it[3]`), or a sub-job by its first component,
    `<load>`. Raises Refused when the job has none of that name."""
    text = _PLAIN_INDEX.sub(r"[#\1]", node.strip())
    seen = view.seen
    if text in seen.components:
        return _component(view, seen.components[text], log)
    if text in seen.subjobs:
        return explain_subjob(view, seen.subjobs[text])
    named = next((one for one in seen.subjobs.values() if f"<{one.name}>" == text), None)
    if named is not None:
        return explain_subjob(view, named)
    iteration = _ITERATION.fullmatch(text)
    if iteration is not None and iteration["iterator"] in seen.components:
        return explain_unopened(view, seen.components[iteration["iterator"]], int(iteration["index"]))
    return _unseen(view, text, node)


def _unseen(view: JobView, text: str, asked: str) -> Explanation:
    runs = [one for one in view.seen.components.values() if one.node == text]
    if runs:
        return _repeated(view, text, runs)
    net = view.net
    if net is not None and text in net.nodes:
        return _waiting(view, text, is_repeated=text not in outside_bodies(net))
    raise _unknown(view, asked)


def _unknown(view: JobView, asked: str) -> Refused:
    names = list(view.net.nodes) if view.net is not None else []
    names = list(dict.fromkeys([*names, *(one.node for one in view.seen.components.values())]))
    close = get_close_matches(asked, names, 1, 0.6)
    meant = f"; did you mean `{close[0]}`?" if close else ""
    some = ", ".join(f"`{name}`" for name in names[:20])
    hint = f"the components are {some}; also `iterator[#3]`, `iterator[#3].member` and sub-jobs as `<first component>`"
    return Refused(f"the job has no component, sub-job or iteration `{asked}`{meant}", hint)


# ---- one component


def _component(view: JobView, component: ComponentSeen, log: Log) -> Explanation:
    answer = Explanation(component.name, component.state, _headline(view, component))
    if component.state == SKIPPED:
        answer.add("why it was skipped", why_skipped(view, component))
        answer.add("its ways in", _ways_in(view, component.node, component.name))
        answer.add("what followed", _ways_out(view, component))
        return answer
    answer.add("why it ran", chain(view, component))
    answer.add("what it was given", _given(view, component))
    answer.add("what it did", _deeds(view, component, log))
    if component.state == ERROR:
        answer.add("why it failed", _failure(component))
        answer.add("what became of the failure", _consequences(view, component))
    answer.add("what followed", _ways_out(view, component))
    return answer


def _headline(view: JobView, component: ComponentSeen) -> str:
    kept = " in an earlier run, and a resume kept it" if component.kept else ""
    took = f" after {seconds(component.ms / 1000)}"
    said = {
        OK: f"ended OK{took}{kept}",
        ERROR: f"ended in ERROR{took}{kept}",
        SKIPPED: f"was SKIPPED{kept}",
        RUNNING: "is RUNNING" if view.is_live else "was RUNNING when the job stopped; a resume starts it anew",
    }
    kind = f" ({component.type})" if component.type else ""
    return f"`{component.name}`{kind} {said.get(component.state, component.state)}{view.place(component.node)}"


def _ways_in(view: JobView, node: str, scope: str) -> list[str]:
    return [f"{label(link)} from `{link.source}`: {view.verdict(link, scope)}" for link in view.inbound(node)]


def _given(view: JobView, component: ComponentSeen) -> list[str]:
    lines = [
        f"`{link.to_port}` from `{link.source}.{link.port}`: {view.verdict(link, component.name)}"
        for link in view.inbound(component.node)
        if link.on is On.DATA and not link.source.startswith(f"{component.node}.__")
    ]
    return lines or [f"rows: {counted_ports(component.rows_in)}"] if component.rows_in else lines


def _deeds(view: JobView, component: ComponentSeen, log: Log) -> list[str]:
    lines: list[str] = []
    if component.rows_out:
        lines.append(f"rows out: {counted_ports(component.rows_out)}")
    if component.iterator is not None:
        lines += _iterations(view, component)
    return lines + _globals(component, view.seen.execution, log)


def _iterations(view: JobView, component: ComponentSeen) -> list[str]:
    one = component.iterator
    assert one is not None
    total = f" of {one.total:,}" if one.total is not None else ""
    lines = [f"{counted(one.settled, 'iteration')}{total}: {one.ok:,} OK, {one.failed:,} in ERROR"]
    if one.running:
        lines.append(f"{counted(one.running, 'iteration')} {'running' if view.is_live else 'running when it stopped'}")
    for index in sorted(one.failures)[:MOST]:
        failed = view.seen.subjobs.get(f"{component.name}[#{index}]")
        lines.append(f"`{component.name}[#{index}]`: {error_line(failed.error) if failed is not None else 'ERROR'}")
    return lines + ([f"… and {one.failed - MOST:,} more"] if one.failed > MOST else [])


def _globals(component: ComponentSeen, execution: str, log: Log) -> list[str]:
    """What it wrote, read anew: nobody else asks for it."""
    lines: list[str] = []
    for entry in log.entries():
        if entry.type == "global.set" and entry.scope == f"{execution}{component.name}":
            data: Any = decode(entry.payload)
            local = ", in its own sub-job only: another one made it and it is not exported" if data.get("local") else ""
            new = "deleted" if data.get("deleted") else shown(data.get("new"))
            lines.append(f"global `{data['key']}`: {shown(data.get('old'))} → {new}{local}")
    return lines if len(lines) <= MOST else [f"… {len(lines) - MOST:,} earlier writes", *lines[-MOST:]]


def _failure(component: ComponentSeen) -> list[str]:
    error = component.error
    lines = [error_line(error)]
    if isinstance(error, dict):
        told = ("hint", "file", "line", "rows", "raised_at")
        lines += [f"{name.replace('_', ' ')}: {shown(error[name], 300)}" for name in told if error.get(name)]
        lines += _traceback(error.get("traceback"))
    return lines


def _traceback(frames: Json) -> list[str]:
    """The way to the exception, its last part where it is long: what the author would look up."""
    found = (
        frames.splitlines()
        if isinstance(frames, str)
        else [str(one) for one in frames]
        if isinstance(frames, list)
        else []
    )
    return [f"  {line.rstrip()}" for line in found[-MOST_FRAMES:]]


def _consequences(view: JobView, component: ComponentSeen) -> list[str]:
    lines: list[str] = []
    handlers = [link for link in view.outbound(component.node) if link.on is On.ERROR]
    for link in handlers:
        handler = view.component(link.target, component.name)
        lines.append(f"its `error` link led to `{link.target}`: {view.standing(handler, link.target)}")
    if view.net is not None and not handlers:
        lines.append("it has no `error` link")
    subjob = view.subjob_of(component)
    if subjob is not None and subjob.state in (OK, ERROR):
        what = "iteration" if subjob.iterator is not None else "sub-job"
        lines.append(f"{what} `{subjob.name}` ended {'in ERROR' if subjob.state == ERROR else 'OK all the same'}")
    if component.dies:
        code = f" with exit code {component.exit_code}" if component.exit_code is not None else ""
        lines.append(f"the job died with it{code}, once its error path had run")
    return lines


def _ways_out(view: JobView, component: ComponentSeen) -> list[str]:
    lines: list[str] = []
    for link in view.outbound(component.node):
        if link.on in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR) or link.port == "item":
            continue
        target = view.near(link.target, component.name) or _sibling(component.name, link.target)
        lines.append(f"{label(link)} → `{link.target}`: {view.verdict(link, target)}")
    return lines


def _sibling(scope: str, node: str) -> str:
    end = scope.rfind("].")
    return f"{scope[: end + 2]}{node}" if end >= 0 else node


# ---- components without one run


def _repeated(view: JobView, node: str, runs: list[ComponentSeen]) -> Explanation:
    states = Counter(one.state for one in runs)
    figures = ", ".join(f"{states[state]:,} {state}" for state in (OK, ERROR, SKIPPED, RUNNING) if states[state])
    answer = Explanation(
        node, "repeated", f"`{node}` ran in {counted(len(runs), 'iteration')}: {figures}{view.place(node)}"
    )
    telling = [one for one in runs if one.state == ERROR] or runs[-3:]
    answer.add("for example", [f"`{one.name}`: {one.state}, {view.causes.of(one)}" for one in telling[:MOST]])
    answer.add("to see why", [f"ask for one of them, such as `{telling[0].name}`"])
    return answer


def _waiting(view: JobView, node: str, *, is_repeated: bool) -> Explanation:
    if is_repeated:
        said = "never ran: no iteration came to it"
    elif view.is_live:
        said = "waits"
    else:
        said = "has not started" if view.seen.status == "running" else "never started"
    answer = Explanation(node, WAIT, f"`{node}` {said}{view.place(node)}")
    links = [link for link in view.inbound(node) if not view.has_ended(link.source, node)]
    waits = [f"{label(link)} from `{link.source}`: {view.verdict(link, node)}" for link in links]
    answer.add("what it waits for", waits)
    answer.add("what it has", [line for line in _ways_in(view, node, node) if line not in waits])
    if view.seen.status not in ("running", "completed"):
        answer.add("how the run ended", [_ended(view)])
    if not answer.sections and view.net is not None:
        around = view.net.nodes[node].part
        if around is not None and around.container:
            answer.add("what it waits for", [f"`{around.container}` has not opened it"])
    return answer


def _ended(view: JobView) -> str:
    seen = view.seen
    if seen.cancel_reason is not None:
        return f"it was cancelled: {seen.cancel_reason}"
    return f"it {seen.status}: {error_line(seen.error)}" if seen.error is not None else f"it was {seen.status}"
