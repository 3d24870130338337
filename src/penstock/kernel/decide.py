"""The decider of one execution scope: tokens, admission, joins, routing, the end.

It reacts in rounds until quiet: first every run that has ended settles its arcs, then every token that can move does, each in
the order of its place. Deciding in rounds is what makes joins and ends one local rule, whatever the order of reports was.

The decider asks a judge for every verdict that needs an expression, and records facts; recording evolves the state at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from penstock.kernel import facts
from penstock.kernel.errors import Bug, Refused
from penstock.kernel.evolve import Execution
from penstock.kernel.facts import RULES, Body, Fact, RunEnded
from penstock.kernel.kept import STATE, closed
from penstock.kernel.net import FailureMode, Gate, Net, Node
from penstock.kernel.places import ENTRY_PATH, Path, Place, after_all, event_name, next_paths, run_place
from penstock.kernel.state import ExecutionState, RunState, Token, Unhandled
from penstock.kernel.values import Json, JsonMap


@dataclass(frozen=True, slots=True)
class Admission:
    allow: bool
    rule: int | None = None
    error: Json = None


@dataclass(frozen=True, slots=True)
class FiredArc:
    index: int
    target: str
    args: JsonMap


@dataclass(frozen=True, slots=True)
class Selection:
    fired: list[FiredArc] = field(default_factory=list)
    writes: JsonMap = field(default_factory=dict)
    error: Json = None


class Judge(Protocol):
    """Evaluates what the kernel carries as text."""

    def admit(self, node: Node, token: Token) -> Admission: ...

    def select(self, node: Node, run: RunState, end: RunEnded) -> Selection: ...


def opening(
    net: Net,
    place: Place,
    workload: Json,
    *,
    trace_id: str | None = None,
    parent: str | None = None,
    document: Json = None,
    continues: str | None = None,
    kept: list[str] | None = None,
    state: Json = None,
) -> Fact:
    """The first fact of an execution scope. `continues` names a failed child of an earlier task run, whose place this takes;
    where that is a job, `kept` names the sub-jobs that stay as they ended there."""
    body = facts.ExecutionStarted(
        net.name,
        net.digest,
        workload,
        net.entry,
        trace_id,
        parent,
        document,
        continues,
        net.kind,
        kept=kept or [],
        rules=RULES,
        state=state,
    )
    return Fact(place.id, (*place.clock, (), 0), body)


@dataclass(slots=True)
class Decider:
    tree: Execution
    state: ExecutionState
    net: Net
    judge: Judge
    record: Callable[[Fact], None]

    # ---- stimuli

    def begin(self) -> None:
        """Send the entry token; or, in a scope that continues a failed one, give what failed there another run."""
        if self.state.unhandled:
            self.reopen()
            return
        self._create_token(self.net.entry, ENTRY_PATH, {}, event_name(self.state.place.id, 0))
        self.react()

    def end_run(self, scope: str, end: RunEnded, counter: int) -> None:
        """A worker says that the run at `scope` is over. Late and foreign reports are refused, and nothing happens."""
        run = self.state.runs.get(scope)
        if run is None:
            raise Refused(f"`{scope}` is not running")
        self.record(Fact(scope, (*run.place.clock, counter), end, event_name(scope, counter - 1)))
        self.react()

    def cancel(self, reason: str) -> None:
        self._require_running()
        if not self.state.cancelling:
            self._mark(facts.CancelAsked(reason))
        self.react()

    def interrupt(self, reason: str) -> None:
        self._require_running()
        self._mark(facts.ExecutionInterrupted(reason))

    def resume(self, restarted: list[str]) -> None:
        """Go on after a crash, an interruption or a failure. What has settled stays settled.

        Only a run that came to its end as failed has its failed steps reopened: one that was merely stopped on the way goes
        on as if it had not been, and so to the end it would have had.
        """
        if self.state.status in ("completed", "cancelled"):
            raise Refused(f"the run is {self.state.status}; there is nothing to resume")
        has_failed = self.state.status == "failed"
        reopened = [one.run.place.id for one in self.state.unhandled if one.run is not None and has_failed]
        if has_failed and not reopened:
            raise Refused(
                "the run failed for a reason that would come again: " + _message(self.state.error),
                hint="correct the document and start a new run",
            )
        self._mark(facts.ExecutionResumed(restarted, reopened))
        if reopened:
            self.reopen()
        else:
            self.react()

    def reopen(self) -> None:
        """Give every unhandled failed run another one that continues it."""
        for one in sorted((one for one in self.state.unhandled if one.run is not None), key=_path_of):
            failed = one.run
            assert failed is not None
            path = next_paths(failed.path, 1)[0]
            cause = event_name(self.state.place.id, self.state.counter - 1)
            self._create_token(failed.step, path, failed.args, cause, parent=failed.place.id)
            self._schedule(failed.step, path, failed.args, None, [], continues=failed.place.id)
        self.react()

    # ---- reaction

    def react(self) -> None:
        while self.state.status == "running" and (self._settle_arcs() | self._move_tokens()):
            pass
        if self.state.status == "running" and not self.state.runs and not self.state.ending:
            self._end()

    def _settle_arcs(self) -> bool:
        ended = sorted(self.state.ending.values(), key=lambda run: run.path)
        for run in ended:
            self._route(run)
        return bool(ended)

    def _route(self, run: RunState) -> None:
        end = run.ended
        if end is None:
            raise Bug(f"`{run.place.id}` has no end to route")
        node = self.net.nodes[run.step]
        # What another step's failure stopped is not the arcs' business; what came to its own end is, or a resume would lose it.
        stopped = self.state.cancelling or (self.state.aborting and end.given_up)
        selection = Selection() if stopped else self.judge.select(node, run, end)
        failed = end.status == "failed"
        unhandled = failed and not selection.fired
        cause = event_name(run.place.id, run.counter - 1)
        abort = (unhandled or selection.error is not None) and self.net.failure is FailureMode.FAIL_FAST
        body = facts.ArcsSelected(
            facts.boundary(end),
            [arc.index for arc in selection.fired],
            [arc.target for arc in selection.fired],
            selection.writes,
            unhandled,
            abort,
            selection.error,
        )
        self._in_run(run, body, cause)
        chosen = event_name(run.place.id, run.counter - 1)
        paths = next_paths(run.path, len(selection.fired))
        for arc, path in zip(selection.fired, paths, strict=True):
            self._in_run(run, facts.ArcEnqueued(arc.target, list(path), arc.index), chosen)
        for arc, path in zip(selection.fired, paths, strict=True):
            self._create_token(arc.target, path, arc.args, chosen, parent=run.place.id, origin=run.step, arc=arc.index)

    def _move_tokens(self) -> bool:
        if self.state.cancelling or self.state.aborting:
            return False
        moved = False
        for path in sorted(self.state.tokens):
            token = self.state.tokens.get(path)
            if token is not None:
                moved |= self._move(token)
        return moved

    def _move(self, token: Token) -> bool:
        node = self.net.nodes[token.step]
        if node.gate is Gate.JOIN:
            return self._join(node)
        self._admit(node, token, token.args, [])
        return True

    def _join(self, node: Node) -> bool:
        """Rule D55: one token from each step named; of several from one step the earliest place is taken."""
        waiting = self._waiting(node)
        if any(not waiting[name] for name in node.joins):
            return False
        chosen = {name: waiting[name][0] for name in node.joins}
        last = max(chosen.values(), key=lambda token: token.path)
        args: JsonMap = {name: token.args for name, token in chosen.items()}
        self._admit(node, last, args, [list(token.path) for token in chosen.values()])
        return True

    def _waiting(self, node: Node) -> dict[str, list[Token]]:
        waiting: dict[str, list[Token]] = {name: [] for name in node.joins}
        for path in sorted(self.state.tokens):
            token = self.state.tokens[path]
            if token.step == node.name and token.origin in waiting:
                waiting[token.origin].append(token)
        return waiting

    def _admit(self, node: Node, token: Token, args: JsonMap, consumed: list[list[int]]) -> None:
        visits = self.state.visits.get(node.name, 0)
        if visits >= self.net.limits.max_step_visits:
            admission = Admission(False, None, _too_many_visits(node.name, visits))
        elif node.admit is None:
            admission = Admission(True)
        else:
            admission = self.judge.admit(node, Token(token.step, token.path, args, token.origin, token.parent))
        if admission.allow:
            self._schedule(node.name, token.path, args, admission.rule, consumed)
            return
        for path in consumed or [list(token.path)]:
            place = run_place(self.state.place, node.name, tuple(path))
            body = facts.TokenRefused(node.name, path, admission.rule, admission.error)
            self.record(Fact(place.id, (*place.clock, 1), body, event_name(place.id, 0)))

    def _create_token(
        self,
        step: str,
        path: Path,
        args: JsonMap,
        cause: str,
        *,
        parent: str | None = None,
        origin: str | None = None,
        arc: int | None = None,
    ) -> None:
        place = run_place(self.state.place, step, path)
        body = facts.TokenCreated(step, list(path), args, parent, origin, arc)
        self.record(Fact(place.id, (*place.clock, 0), body, cause))

    def _schedule(
        self,
        step: str,
        path: Path,
        args: JsonMap,
        rule: int | None,
        consumed: list[list[int]],
        *,
        continues: str | None = None,
    ) -> None:
        place = run_place(self.state.place, step, path)
        visit = self.state.visits.get(step, 0) + 1
        body = facts.RunScheduled(step, list(path), visit, args, rule, consumed, continues)
        counter = self.state.tokens[path].counter
        self.record(Fact(place.id, (*place.clock, counter), body, event_name(place.id, counter - 1)))
        run = self.state.runs[place.id]
        self._in_run(run, facts.RunStarted(step), event_name(place.id, counter))

    # ---- the end

    def _end(self) -> None:
        # Tokens that only wait because the run is being stopped are not stranded.
        stranded = [] if self.state.cancelling or self.state.aborting else self._strand()
        error: Json = None
        status = "completed"
        if self.state.cancelling:
            status = "cancelled"
        elif self.state.unhandled or stranded:
            status = "failed"
            error = _first_error(self.state.unhandled, stranded)
        kept: Json = None
        if status == "completed":
            kept = closed(self.state.kept, self.state.ctx.values.get(STATE), {})
        body = facts.ExecutionEnded(status, error, state=kept)  # type: ignore[arg-type]
        self._mark(body, at=after_all(self.state.top), cause=self._culprit())

    def _culprit(self) -> str | None:
        """The decision that left a failure unhandled: what a failed end is caused by."""
        failed = [one.run for one in sorted(self.state.unhandled, key=_path_of) if one.run is not None]
        return event_name(failed[0].place.id, failed[0].counter - 1) if failed else None

    def _strand(self) -> list[JsonMap]:
        stranded: list[JsonMap] = []
        for path in sorted(self.state.tokens):
            token = self.state.tokens[path]
            node = self.net.nodes[token.step]
            waiting = self._waiting(node)
            present = [name for name in node.joins if waiting[name]]
            missing = [name for name in node.joins if not waiting[name]]
            place = run_place(self.state.place, token.step, path)
            body = facts.TokenStranded(token.step, list(path), missing, present)
            self.record(Fact(place.id, (*place.clock, token.counter), body, event_name(place.id, 0)))
            stranded.append(_stranded(token.step, missing, present))
        return stranded

    # ---- recording

    def _mark(self, body: Body, *, cause: str | None = None, at: Path = ()) -> None:
        """Record a fact of the execution scope itself."""
        place = self.state.place
        self.record(Fact(place.id, (*place.clock, at, self.state.counter), body, cause))

    def _in_run(self, run: RunState, body: Body, cause: str) -> None:
        self.record(Fact(run.place.id, (*run.place.clock, run.counter), body, cause))

    def _require_running(self) -> None:
        if self.state.status != "running":
            raise Refused(f"the run is {self.state.status}, not running")


def _path_of(one: Unhandled) -> Path:
    return one.run.path if one.run is not None else ()


def _message(error: Json) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _first_error(unhandled: list[Unhandled], stranded: list[JsonMap]) -> Json:
    """The earliest failure by place; how many more there were is said beside it."""
    ordered = sorted(unhandled, key=_path_of)
    if not ordered:
        return stranded[0]
    first = ordered[0]
    error: JsonMap = dict(first.error) if isinstance(first.error, dict) else {"message": str(first.error)}
    error.setdefault("step", first.step)
    others = len(ordered) + len(stranded) - 1
    if others:
        error["others"] = others
    return error


def stopped(step: str, why: str) -> JsonMap:
    """The failure of a run that did not end by itself: the execution was cancelled, or another step failed."""
    reason = "the run was cancelled" if why == "cancel" else "another step failed and the run is fail_fast"
    return {"kind": "cancelled", "message": f"step `{step}` was stopped: {reason}", "retryable": True}


def _too_many_visits(step: str, visits: int) -> JsonMap:
    return {
        "kind": "visit_limit",
        "message": f"step `{step}` was visited {visits} times, the most that `limits.max_step_visits` allows",
        "retryable": False,
        "step": step,
    }


def _stranded(step: str, missing: list[str], present: list[str]) -> JsonMap:
    lacking = ", ".join(f"`{name}`" for name in missing)
    have = ", ".join(f"`{name}`" for name in present)
    return {
        "kind": "stranded",
        "message": f"step `{step}` joins tokens and none came from {lacking} (it has those from {have})",
        "retryable": False,
        "step": step,
        "missing": list(missing),
    }
