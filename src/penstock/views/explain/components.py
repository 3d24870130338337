"""Why a component, a sub-job or an iteration of a job did what it did."""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.net import Link, On
from penstock.ports.results import decode
from penstock.views.answers import group_word
from penstock.views.explain.chain import chain, why_skipped
from penstock.views.explain.explanation import Explanation, Inquiry
from penstock.views.explain.wiring import label
from penstock.views.links import OF_ITERATION, OF_SUBJOB
from penstock.views.model import FAILED, OK, RUNNING, SETTLED, SKIPPED, WAITING, Group, Run, word
from penstock.views.names import counted_ports, outside_bodies
from penstock.views.wording import counted, error_line, seconds, shown

MOST = 10
MOST_MEMBERS = 40
MOST_FRAMES = 12
_PLAIN_INDEX = re.compile(r"\[(\d+)\]")
_ITERATION = re.compile(r"(?P<iterator>.+)\[#(?P<index>\d+)\]")


def explain_component(node: str, ask: Inquiry) -> Explanation:
    """`node`: a component (`load`, `it[#3].load`), an iteration (`it[#3]` or `it[3]`), or a sub-job by its first component,
    `<load>`. Raises Refused when the job has none of that name."""
    text = _PLAIN_INDEX.sub(r"[#\1]", node.strip())
    execution = ask.execution
    if text in execution.runs:
        return _component(ask, execution.runs[text])
    named = (one for one in execution.groups.values() if f"<{one.name}>" == text)
    group = execution.groups.get(text) or next(named, None)
    if group is not None:
        return _group(ask, group)
    iteration = _ITERATION.fullmatch(text)
    if iteration is not None and iteration["iterator"] in execution.runs:
        return _unopened(ask, execution.runs[iteration["iterator"]], int(iteration["index"]))
    runs = [one for one in execution.runs.values() if one.node == text]
    if runs:
        return _repeated(ask, text, runs)
    if ask.net is not None and text in ask.net.nodes:
        return _waiting(ask, text, is_repeated=text not in outside_bodies(ask.net))
    raise _unknown(ask, node)


def _unknown(ask: Inquiry, asked: str) -> Refused:
    names = list(ask.net.nodes) if ask.net is not None else []
    names = list(dict.fromkeys([*names, *(one.node for one in ask.execution.runs.values())]))
    close = get_close_matches(asked, names, 1, 0.6)
    meant = f"; did you mean `{close[0]}`?" if close else ""
    some = ", ".join(f"`{name}`" for name in names[:20])
    hint = f"the components are {some}; also `iterator[#3]`, `iterator[#3].member` and sub-jobs as `<first component>`"
    return Refused(f"the job has no component, sub-job or iteration `{asked}`{meant}", hint)


def _standing(ask: Inquiry, status: str, took: str, kept: bool) -> str:
    before = " in an earlier run, and a resume kept it" if kept else ""
    words = {
        OK: f"ended OK{took}{before}",
        FAILED: f"ended in ERROR{took}{before}",
        SKIPPED: f"was SKIPPED{before}",
        RUNNING: "is RUNNING" if ask.log.is_live else "was RUNNING when the job stopped; a resume starts it anew",
    }
    return words.get(status, word(status, "job"))


# ---- one component


def _component(ask: Inquiry, run: Run) -> Explanation:
    kind = f" ({run.type})" if run.type else ""
    standing = _standing(ask, run.status, f" after {seconds(run.ms / 1000)}", run.kept)
    headline = ask.of(run, f"`{run.name}`{kind} {standing}{ask.position(run.node)}")
    answer = Explanation(run.name, word(run.status, "job"), headline)
    if run.status == SKIPPED:
        answer.add("why it was skipped", why_skipped(ask, run))
        answer.add("its ways in", _ways_in(ask, run.node, run.name))
        answer.add("what followed", _ways_out(ask, run))
        return answer
    answer.add("why it ran", chain(ask, run))
    answer.add("what it was given", _given(ask, run))
    answer.add("what it did", _deeds(ask, run))
    if run.status == FAILED:
        answer.add("why it failed", [ask.of(run, line) for line in _failure(run)])
        answer.add("what became of the failure", _consequences(ask, run))
    answer.add("what followed", _ways_out(ask, run))
    return answer


def _ways_in(ask: Inquiry, node: str, name: str) -> list[str]:
    wiring = ask.wiring
    return [
        _of_link(ask, link, name, f"{label(link)} from `{link.source}`: {wiring.verdict(link, name)}")
        for link in wiring.inbound(node)
    ]


def _of_link(ask: Inquiry, link: Link, target: str, text: str) -> str:
    """As the event says that settled the link."""
    fire, source = ask.wiring.fire_of(link, target), ask.wiring.run(link.source, target)
    group = ask.wiring.group_of(source) if link.on in OF_SUBJOB else None
    seq = fire.seq if fire is not None else group.end_seq if group is not None else source.end_seq if source else None
    return ask.say(text, seq, link.source, arc=link.index)


def _given(ask: Inquiry, run: Run) -> list[str]:
    lines = [
        _of_link(
            ask,
            link,
            run.name,
            f"`{link.to_port}` from `{link.source}.{link.port}`: {ask.wiring.verdict(link, run.name)}",
        )
        for link in ask.wiring.inbound(run.node)
        if link.on is On.DATA and not link.source.startswith(f"{run.node}.__")
    ]
    return lines or [ask.of(run, f"rows: {counted_ports(run.rows_in)}")] if run.rows_in else lines


def _deeds(ask: Inquiry, run: Run) -> list[str]:
    lines = [ask.of(run, f"rows out: {counted_ports(run.rows_out)}")] if run.rows_out else []
    return [*lines, *_iterations(ask, run), *_globals(ask, run)]


def _iterations(ask: Inquiry, run: Run) -> list[str]:
    fan = run.fan
    if fan is None:
        return []
    total = f" of {fan.total:,}" if fan.total is not None else ""
    text = f"{counted(fan.settled, 'iteration')}{total}: {fan.ok:,} OK, {fan.failed:,} in ERROR"
    lines = [ask.say(text, run.end_seq or fan.seq, run.node)]
    if fan.open:
        state = "running" if ask.log.is_live else "running when it stopped"
        lines.append(ask.say(f"{counted(len(fan.open), 'iteration')} {state}", fan.seq, run.node))
    for one in sorted(fan.failures, key=lambda one: one.index)[:MOST]:
        iteration = f"{run.name}[#{one.index}]"
        group = ask.execution.groups.get(iteration)
        error = group.error if group is not None else one.error
        text = f"`{iteration}`: {error_line(error) if error is not None else 'ERROR'}"
        lines.append(ask.say(text, one.seq or run.end_seq, run.node))
    return lines + ([f"… and {fan.failed - MOST:,} more"] if fan.failed > MOST else [])


def _globals(ask: Inquiry, run: Run) -> list[str]:
    """What it wrote, read anew: nobody else asks for it."""
    lines: list[str] = []
    for entry in ask.log.between(run.created_seq, None):  # An end and what it writes are one decision, in any order.
        if entry.type == "global.set" and entry.scope == run.id:
            data: Any = decode(entry.payload)
            local = ", in its own sub-job only: another one made it and it is not exported" if data.get("local") else ""
            new = "deleted" if data.get("deleted") else shown(data.get("new"))
            text = f"global `{data['key']}`: {shown(data.get('old'))} → {new}{local}"
            lines.append(ask.say(text, entry.seq, run.node))
    return lines if len(lines) <= MOST else [f"… {len(lines) - MOST:,} earlier writes", *lines[-MOST:]]


def _failure(run: Run) -> list[str]:
    error = run.error
    if not isinstance(error, dict):
        return [error_line(error)]
    fields = ("hint", "file", "line", "rows", "raised_at")
    details = [f"{name.replace('_', ' ')}: {shown(error[name], 300)}" for name in fields if error.get(name)]
    return [error_line(error), *details, *_traceback(error.get("traceback"))]


def _traceback(frames: Any) -> list[str]:
    """The way to the exception, its last part where it is long: what the author would look up."""
    found = frames.splitlines() if isinstance(frames, str) else frames if isinstance(frames, list) else []
    return [f"  {str(line).rstrip()}" for line in found[-MOST_FRAMES:]]


def _consequences(ask: Inquiry, run: Run) -> list[str]:
    lines: list[str] = []
    wiring = ask.wiring
    handlers = [link for link in wiring.outbound(run.node) if link.on is On.ERROR]
    for link in handlers:
        handler = wiring.run(link.target, run.name)
        text = f"its `error` link led to `{link.target}`: {wiring.standing(handler, link.target)}"
        lines.append(ask.say(text, handler.created_seq if handler else run.end_seq, link.target, arc=link.index))
    if ask.net is not None and not handlers:
        lines.append(ask.of(run, "it has no `error` link"))
    group = wiring.group_of(run)
    if group is not None and group.status in (OK, FAILED):
        what = "iteration" if group.iterator is not None else "sub-job"
        text = f"{what} `{group.name}` ended {'in ERROR' if group.status == FAILED else 'OK all the same'}"
        lines.append(ask.say(text, group.end_seq, run.node))
    if run.dies:
        code = f" with exit code {run.exit_code}" if run.exit_code is not None else ""
        lines.append(ask.of(run, f"the job died with it{code}, once its error path had run"))
    return lines


def _ways_out(ask: Inquiry, run: Run) -> list[str]:
    lines: list[str] = []
    for link in ask.wiring.outbound(run.node):
        if link.on in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR) or link.port == "item":
            continue
        target = ask.wiring.near(link.target, run.name) or _sibling(run.name, link.target)
        text = f"{label(link)} → `{link.target}`: {ask.wiring.verdict(link, target)}"
        fire = ask.wiring.fire_of(link, target)
        seq = fire.seq if fire is not None else run.end_seq
        lines.append(ask.say(text, seq, link.source, arc=link.index))
    return lines


def _sibling(name: str, node: str) -> str:
    end = name.rfind("].")
    return f"{name[: end + 2]}{node}" if end >= 0 else node


# ---- components without one run


def _repeated(ask: Inquiry, node: str, runs: list[Run]) -> Explanation:
    states = Counter(one.status for one in runs)
    order = (OK, FAILED, SKIPPED, RUNNING)
    figures = ", ".join(f"{states[status]:,} {word(status, 'job')}" for status in order if states[status])
    ran = f"`{node}` ran in {counted(len(runs), 'iteration')}: {figures}"
    latest = max(runs, key=lambda one: one.end_seq or one.created_seq)
    answer = Explanation(node, "repeated", ask.of(latest, f"{ran}{ask.position(node)}"))
    telling = [one for one in runs if one.status == FAILED] or runs[-3:]
    causes = ask.wiring.causes
    examples = [ask.of(one, f"`{one.name}`: {word(one.status, 'job')}, {causes.of(one)}") for one in telling[:MOST]]
    answer.add("for example", examples)
    answer.add("to see why", [f"ask for one of them, such as `{telling[0].name}`"])
    return answer


def _waiting(ask: Inquiry, node: str, *, is_repeated: bool) -> Explanation:
    execution, wiring = ask.execution, ask.wiring
    if is_repeated:
        standing = "never ran: no iteration came to it"
    elif ask.log.is_live:
        standing = "waits"
    else:
        standing = "has not started" if execution.status == RUNNING else "never started"
    headline = ask.say(f"`{node}` {standing}{ask.position(node)}", None, node)
    answer = Explanation(node, word(WAITING, "job"), headline)
    links = [link for link in wiring.inbound(node) if not wiring.has_ended(link.source, node)]
    waits = [
        _of_link(ask, link, node, f"{label(link)} from `{link.source}`: {wiring.verdict(link, node)}") for link in links
    ]
    answer.add("what it waits for", waits)
    answer.add("what it has", [line for line in _ways_in(ask, node, node) if line not in waits])
    if execution.status not in (RUNNING, "completed"):
        ended = execution.end_seq or execution.cancel_seq or (execution.stops[-1].seq if execution.stops else None)
        answer.add("how the run ended", [ask.say(_how_it_ended(ask), ended, None)])
    if not answer.sections and ask.net is not None:
        around = ask.net.nodes[node].part
        if around is not None and around.container:
            answer.add("what it waits for", [f"`{around.container}` has not opened it"])
    return answer


def _how_it_ended(ask: Inquiry) -> str:
    execution = ask.execution
    if execution.cancel_reason is not None:
        return f"it was cancelled: {execution.cancel_reason}"
    if execution.error is not None:
        return f"it {execution.status}: {error_line(execution.error)}"
    return f"it was {execution.status}"


# ---- sub-jobs and iterations


def _group(ask: Inquiry, group: Group) -> Explanation:
    is_iteration = group.iterator is not None
    what = "iteration" if is_iteration else "sub-job"
    headline = f"{what} `{group.name}` {_group_standing(ask, group)}"
    owner = _node_of(ask, group)
    said = ask.say(headline, group.end_seq or group.start_seq, owner)
    answer = Explanation(group.scope, group_word(group), said)
    members = _members(ask, group)
    if is_iteration:
        answer.add("why it ran", _opened(ask, group))
    elif members:
        first = min(members, key=lambda one: (one.started_at is None, one.started_at or 0.0))
        if first.started_at is not None:
            answer.add("why it began", chain(ask, first))
    lines = [_member(ask, one) for one in members]
    left = len(lines) - MOST_MEMBERS
    answer.add("its components", lines if left <= 0 else [*lines[:MOST_MEMBERS], f"… and {left:,} more"])
    if group.status == OK:
        handled = [one.name for one in members if one.status == FAILED]
        handled_lines = [
            ask.of(ask.execution.runs[name], f"`{name}` ended in ERROR, and an `error` link inside took it")
            for name in handled
        ]
        answer.add("why it failed", handled_lines)
    elif group.status == FAILED and group.error is not None:
        answer.add("why it failed", [ask.say(error_line(group.error), group.end_seq, owner)])
    answer.add("what followed", _followed(ask, group, members))
    if group.checkpoint is not None:
        text = f"a checkpoint of {counted(group.checkpoint, 'byte')}"
        answer.add("what a resume stands on", [ask.say(text, group.end_seq, owner)])
    return answer


def _node_of(ask: Inquiry, group: Group) -> str | None:
    """Of an iteration its iterator, of a sub-job its first component."""
    run = ask.execution.runs.get(group.iterator or next(iter(group.members), ""))
    return run.node if run is not None else None


def _group_standing(ask: Inquiry, group: Group) -> str:
    if group.status == WAITING:
        return "has not begun"
    took = ""
    if group.started_at is not None and group.ended_at is not None:
        took = f" after {seconds(max(0.0, group.ended_at - group.started_at))}"
    standing = _standing(ask, group.status, took, group.kept)
    return f"{standing}: all of its components were" if group.status == SKIPPED else standing


def _members(ask: Inquiry, group: Group) -> list[Run]:
    names = [*group.members]
    for inner in group.inner:
        names += ask.execution.groups[inner].members if inner in ask.execution.groups else []
    return [ask.execution.runs[name] for name in names if name in ask.execution.runs]


def _opened(ask: Inquiry, group: Group) -> list[str]:
    owner = ask.execution.runs.get(group.iterator or "")
    lines = chain(ask, owner) if owner is not None else []
    item = f" for {shown(group.item)}" if group.item is not None else ""
    opened = f"`{group.iterator}` opened `{group.scope}`{item}"
    return [*lines, ask.say(opened, group.start_seq, owner.node if owner is not None else None)]


def _member(ask: Inquiry, run: Run) -> str:
    why = f": {ask.wiring.causes.of(run)}" if run.status in (FAILED, SKIPPED) else ""
    took = f" after {seconds(run.ms / 1000)}" if run.status in (OK, FAILED) else ""
    return ask.of(run, f"`{run.name}` {word(run.status, 'job')}{took}{why}")


def _followed(ask: Inquiry, group: Group, members: list[Run]) -> list[str]:
    if group.status not in SETTLED:
        return []
    wiring = ask.wiring
    lines: list[str] = []
    for member in members:
        for link in wiring.outbound(member.node):
            if link.on in OF_SUBJOB:
                target = wiring.near(link.target, member.name) or link.target
                text = f"`{link.on.value}` → `{link.target}`: {wiring.verdict(link, target)}"
                lines.append(_of_link(ask, link, target, text))
    owner = ask.execution.runs.get(group.iterator or "")
    for link in wiring.outbound(owner.node) if owner is not None else ():
        if link.on in OF_ITERATION:
            handler = ask.execution.runs.get(f"{group.scope}.{link.target}")
            standing = wiring.standing(handler, link.target) if handler is not None else "did not fire"
            text = f"`{link.on.value}` → `{link.target}`: {standing}"
            lines.append(ask.say(text, handler.created_seq if handler else group.end_seq, link.target, arc=link.index))
    return lines


def _unopened(ask: Inquiry, owner: Run, index: int) -> Explanation:
    """An iteration that never began."""
    fan = owner.fan
    if fan is None:
        raise Refused(f"`{owner.name}` has no iterations", f"ask for `{owner.name}`")
    if fan.total is not None and index >= fan.total:
        raise Refused(f"`{owner.name}` has {counted(fan.total, 'iteration')}, numbered from 0")
    scope = f"{owner.name}[#{index}]"
    headline = ask.say(f"iteration `{scope}` was never started{ask.position(owner.node)}", None, owner.node)
    answer = Explanation(scope, "not started", headline)
    if fan.failures and owner.status == FAILED:
        first = min(fan.failures, key=lambda one: one.index)
        stopped = f"`{owner.name}[#{first.index}]` failed and `fail_strategy` is halt, so no more were started"
        error = [error_line(first.error)] if first.error is not None else []
        answer.add("why not", [ask.say(line, first.seq, owner.node) for line in (stopped, *error)])
    elif ask.log.is_live and owner.status == RUNNING:
        answer.add("why not", [f"`{owner.name}` has come to {fan.settled:,} of {fan.total or '?'}"])
    elif owner.error is not None:
        answer.add("why not", [ask.of(owner, error_line(owner.error))])
    else:
        answer.add("why not", ["the job stopped before the iterator came to it"])
    return answer
