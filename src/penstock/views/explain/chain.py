"""The chain of causes: from the start of the run to one step run or component, through whatever runs inside of what."""

from __future__ import annotations

from penstock.kernel.net import Arc, On
from penstock.views.explain.conditions import fired
from penstock.views.explain.explanation import Inquiry
from penstock.views.explain.wiring import ended_in
from penstock.views.links import OF_SUBJOB
from penstock.views.model import FAILED, OK, SKIPPED, Fire, Run
from penstock.views.names import caller_of, iteration_of
from penstock.views.wording import condition, counted, error_line, listed, seconds, shown

FIRST, LAST = 3, 10


def chain(ask: Inquiry, run: Run) -> list[str]:
    """What led to it, the start first; of a long way the beginning and the end."""
    line = [*ancestors(ask, run), run]
    left = len(line) - FIRST - LAST
    if left <= 1:
        return [text for one in line for text in _before(ask, one)[0]]
    early = [text for one in line[:FIRST] for text in _before(ask, one)[0]]
    late = [text for one in line[-LAST:] for text in _before(ask, one)[0]]
    more = f"{left:,} more step runs" if ask.execution.kind == "playbook" else f"{left:,} more"
    skipped = line[FIRST]
    return [*early, ask.say(f"… {more}, each led to by the one before …", skipped.created_seq, skipped.node), *late]


def ancestors(ask: Inquiry, run: Run) -> list[Run]:
    """The runs that led to `run`, nearest last."""
    found: list[Run] = []
    known = {run.id}
    current = _before(ask, run)[1]
    while current is not None and current.id not in known:
        known.add(current.id)
        found.append(current)
        current = _before(ask, current)[1]
    return found[::-1]


def _before(ask: Inquiry, run: Run) -> tuple[list[str], Run | None]:
    """The last cause of a run, and the run that it came from."""
    execution = ask.view.executions[run.execution]
    ask = ask.about(execution)
    if execution.kind == "playbook":
        return _token(ask, run)
    text, before = _led_to(ask, run)
    return [text], before


# ---- tokens


def _token(ask: Inquiry, run: Run) -> tuple[list[str], Run | None]:
    """How the token of a step run came to be."""
    view = ask.view
    if run.continues is not None or (run.parent is not None and run.arc is None):
        failed = run.continues or run.parent
        before = view.run(run.parent) if run.parent is not None else _caller(ask)
        text = f"`{failed}` had failed, and a resume gave it another run, `{run.id}`"
        return [ask.say(text, run.scheduled_seq or run.created_seq, run.node)], before
    if run.parent is None:
        return [ask.say(_entered(ask, run), run.created_seq, run.node)], _caller(ask)
    if run.tokens:
        return _joined(ask, run), view.run(run.parent)
    parent = view.run(run.parent)
    return [_went_on(ask, run, parent)], parent


def _caller(ask: Inquiry) -> Run | None:
    """The step run or the component that runs this execution."""
    outer = ask.execution.parent
    if outer is None:
        return None
    scope = outer.rpartition("/")[0]
    return ask.view.run(outer) or ask.view.run(scope) or ask.view.run(scope.rpartition("[")[0])


def _entered(ask: Inquiry, run: Run) -> str:
    played, position = _played(ask), ask.position(run.node)
    if played is None:
        return f"the run of `{ask.execution.name}` began with its entry step, as `{run.id}`{position}"
    return f"{played}, which began with `{run.node}`, as `{run.id}`{position}"


def _played(ask: Inquiry) -> str | None:
    """What runs this execution; None of the run itself."""
    execution = ask.execution
    if execution.parent is None:
        return None
    what = "component" if ask.view.run(execution.parent) is not None else "task"
    return f"{what} `{execution.parent}` runs the {execution.kind} `{execution.name}`"


def _joined(ask: Inquiry, run: Run) -> list[str]:
    tokens = [token for one in run.tokens if (token := ask.view.run(one)) is not None]
    lines = [_went_on(ask, token, ask.view.run(token.parent)) for token in tokens]
    origins = [token.origin or "?" for token in tokens]
    text = f"a token had now come from {listed(origins)}, so the join ran as `{run.id}`"
    return [*lines, ask.say(text, run.scheduled_seq or run.created_seq, run.node)]


def _went_on(ask: Inquiry, run: Run, parent: Run | None) -> str:
    if parent is None:
        return ask.say(f"a token was made for `{run.id}`", run.created_seq, run.node)
    ended = {OK: "was done", FAILED: "failed"}.get(parent.status, "ended")
    took = f" after {seconds(parent.took)}" if parent.ended_at and parent.started_at else ""
    arc = fired(_edge(ask, parent.node, run.arc), parent, ask.saw)
    text = f"`{parent.id}` {ended}{took}; {arc} → `{run.id}`{ask.position(parent.node, arc=run.arc)}"
    return ask.say(
        text, parent.selected.seq if parent.selected is not None else run.created_seq, parent.node, arc=run.arc
    )


def _edge(ask: Inquiry, step: str, index: int | None) -> Arc | None:
    node = ask.net.nodes.get(step) if ask.net is not None else None
    if node is None or index is None:
        return None
    return next((edge for edge in node.edges if edge.index == index), None)


# ---- links


def _led_to(ask: Inquiry, run: Run) -> tuple[str, Run | None]:
    wiring, name = ask.wiring, run.name
    fires = wiring.causes.fires_into(name)
    if fires:
        return _fired(ask, run, fires)
    fed = [
        (source, link.to_port)
        for link in wiring.inbound(run.node)
        if link.on is On.DATA and link.to_port in run.rows_in and (source := wiring.run(link.source, name)) is not None
    ]
    iteration, call = iteration_of(name), caller_of(name)
    beside = [(one, port) for one, port in fed if iteration_of(one.name) == iteration and one.name != call]
    if beside:
        last = max((one for one, _ in beside), key=lambda one: one.ended_at or 0.0)
        rows = counted(sum(run.rows_in[port] for port in {port for one, port in beside if one is last}), "row")
        text = f"{_ended(last)} and gave it {rows}; `{name}` needs no control link"
        return ask.say(text, last.end_seq or run.created_seq, last.node), last
    if call is not None and call in wiring.runs:
        text = f"`{call}` was called, and `{name}` is where its inside begins"
        return ask.say(text, wiring.runs[call].created_seq, wiring.runs[call].node), wiring.runs[call]
    if iteration is not None:
        return _iterated(ask, run, iteration)
    return _gate(ask, run) or _began(ask, run)


def _began(ask: Inquiry, run: Run) -> tuple[str, Run | None]:
    start = ask.execution.starts[-1] if ask.execution.starts else None
    is_resumed = start is not None and start.resumed and not run.kept
    played = _played(ask) if not is_resumed else None
    began = (
        f"{played}, in which" if played is not None else f"the job {'was resumed' if is_resumed else 'started'}, and"
    )
    text = f"{began} `{run.name}` waits for nothing{ask.position(run.node)}"
    seq = run.created_seq if start is None or run.kept else start.seq
    return ask.say(text, seq or run.created_seq, run.node), _caller(ask)


def _gate(ask: Inquiry, run: Run) -> tuple[str, Run] | None:
    """The trigger of its sub-job, or the pre-job, that it waited for."""
    for link in ask.wiring.gates(run.node):
        source = ask.wiring.run(link.source, run.name)
        group = ask.wiring.group_of(source)
        if source is None or group is None:
            continue
        ended = f"sub-job `{group.name}` {ended_in(group.status)}" if link.on in OF_SUBJOB else _ended(source)
        with_that = f"and with that (`{link.on.value}`) the sub-job of `{run.name}` could start"
        text = f"{ended}, {with_that}{ask.position(run.node)}"
        seq = group.end_seq if link.on in OF_SUBJOB else source.end_seq
        return ask.say(text, seq or run.created_seq, source.node), source
    return None


def _iterated(ask: Inquiry, run: Run, iteration: str) -> tuple[str, Run | None]:
    owner = iteration[: iteration.rindex("[#")]
    opened = ask.wiring.groups.get(iteration)
    item = f" for {shown(opened.item)}" if opened is not None and opened.item is not None else ""
    line = f"`{owner}` opened iteration `{iteration}`{item}, which begins with `{run.name}`"
    source = ask.wiring.runs.get(owner)
    seq = opened.start_seq if opened is not None and opened.start_seq else run.created_seq
    return ask.say(line, seq, source.node if source is not None else run.node), source


def _fired(ask: Inquiry, run: Run, fires: list[Fire]) -> tuple[str, Run | None]:
    text, source = _how_it_fired(ask, run, fires)
    node = source.node if source is not None else run.node
    return ask.say(text, fires[-1].seq or run.created_seq, node, arc=fires[-1].link), source


def _how_it_fired(ask: Inquiry, run: Run, fires: list[Fire]) -> tuple[str, Run | None]:
    last = fires[-1]
    source = ask.wiring.runs.get(last.source)
    arrow = f"→ `{run.name}`{ask.position(run.node)}"
    if last.on == On.SYNCHRONISE.value:
        branches = listed([fire.source for fire in fires])
        return (
            f"the branches of {branches} had all ended, so they joined in `{run.name}`{ask.position(run.node)}",
            source,
        )
    if last.on in {on.value for on in OF_SUBJOB}:
        group = ask.wiring.group_of(source)
        ended = f"`{group.name}` {ended_in(group.status)}" if group is not None else f"`{last.source}` was over"
        return f"sub-job {ended}; its `{last.on}` link fired {arrow}", source
    if last.on in (On.ITERATION_OK.value, On.ITERATION_ERROR.value):
        return f"iteration `{iteration_of(run.name)}` was over; its `{last.on}` link fired {arrow}", source
    link = next((one for one in ask.wiring.links if one.index == last.link), None)
    guard = f", as {condition(link.when)} was true" if link is not None and link.when is not None else ""
    others = f" (so did those from {listed([fire.source for fire in fires[:-1]])})" if len(fires) > 1 else ""
    ended = _ended(source) if source is not None else f"`{last.source}` ended"
    return f"{ended}; its `{last.on}` link fired{guard}{others} {arrow}", source


def _ended(run: Run) -> str:
    kept = " in an earlier run and was kept" if run.kept else f" after {seconds(run.ms / 1000)}"
    return f"`{run.name}` {ended_in(run.status)}{kept}"


# ---- skips


def why_skipped(ask: Inquiry, run: Run) -> list[str]:
    """From the skip back to what was not one."""
    lines: list[str] = []
    known: set[str] = set()
    current: Run | None = run
    while current is not None and current.status == SKIPPED and current.name not in known:
        known.add(current.name)
        lines.append(ask.of(current, f"`{current.name}` was skipped: {current.reason}"))
        if current.upstream is None:
            lines += _ending(ask)
            current = None
        else:
            current = _upstream(ask, current, current.upstream)
    if current is not None and current.status == FAILED:
        text = f"`{current.name}` ended in ERROR: {error_line(current.error)}{ask.position(current.node)}"
        lines.append(ask.of(current, text))
    return lines if len(lines) <= FIRST + LAST else [*lines[:FIRST], "…", *lines[-LAST:]]


def _upstream(ask: Inquiry, run: Run, upstream: str) -> Run | None:
    """What decided it. Of a sub-job that did, the member to go on with; of a join's branches, one that failed."""
    wiring = ask.wiring
    sources = [wiring.run(upstream, run.name)]
    if run.link not in {on.value for on in OF_SUBJOB}:
        return sources[0]
    if run.link == On.SYNCHRONISE.value:
        joins = [link for link in wiring.inbound(run.node) if link.on is On.SYNCHRONISE]
        sources = [wiring.run(link.source, run.name) for link in joins]
    for one in sources:
        group = wiring.group_of(one)
        if group is not None and group.status in (FAILED, SKIPPED):
            members = [wiring.runs[name] for name in group.members if name in wiring.runs]
            return next((member for member in members if member.status == group.status), None)
    return None


def _ending(ask: Inquiry) -> list[str]:
    """Nothing starts any more: what ended the job."""
    execution = ask.execution
    if execution.cancel_reason is not None:
        return [ask.say(f"the run was cancelled: {execution.cancel_reason}", execution.cancel_seq, None)]
    dead = next((one for one in execution.runs.values() if one.dies), None)
    if dead is not None:
        return [ask.of(dead, f"`{dead.name}` ended in ERROR and the job died with it: {error_line(dead.error)}")]
    failed = next((one for one in execution.groups.values() if one.status == FAILED and not one.container), None)
    if failed is None:
        return []
    return [ask.say(f"sub-job `{failed.name}` ended in ERROR: {error_line(failed.error)}", failed.end_seq, None)]
