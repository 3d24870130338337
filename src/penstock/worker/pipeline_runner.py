"""Runs one pipeline on a lease: task, outcome, policy, next task. Each step is reported before the next one is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from penstock.expr.template import ExpressionError, UndefinedWrites, render, rendered, truth
from penstock.expr.values import shown
from penstock.kernel.errors import PenstockError, Unavailable
from penstock.kernel.facts import TaskEnded, TaskStarted
from penstock.kernel.net import Do, Durability, Rule, Task
from penstock.kernel.pipeline import DEFAULT_ATTEMPTS, END, Verdict, advance
from penstock.kernel.reducers import ReducerError, lift
from penstock.kernel.state import Pipeline, next_fact
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import chance
from penstock.ports.blobs import BlobStore
from penstock.ports.leases import Caller, Lease, TaskReports
from penstock.ports.outcome import Failure, Outcome
from penstock.ports.results import materialised
from penstock.tools.base import Call, Success, Tool, ToolFailure
from penstock.tools.output import captured_lines
from penstock.worker.outcomes import Normaliser, child_failure
from penstock.worker.preparation import Preparation, Prepared
from penstock.worker.scopes import LeaseNames, TaskScope
from penstock.worker.services import VeiledBlobs, WorkerServices
from penstock.worker.threads import Escaped

# How many inline tasks may run before the event loop gets a turn, and how far the log's writer may lag behind.
TURN = 64
SHARE = 4
MAX_BACKLOG = 20_000


class PipelineRunner:
    def __init__(self, lease: Lease, services: WorkerServices, reports: TaskReports) -> None:
        context = lease.context
        self.lease = lease
        self.services = services
        self.reports = reports
        self.names = LeaseNames(lease)
        self.tasks = lease.node.tasks
        self.positions = {task.label: index for index, task in enumerate(self.tasks)}
        """Label -> its position, the target of a jump."""
        self.normaliser = Normaliser(
            services.blobs, context.keychain, context.net.limits.max_payload_bytes, services.load
        )
        self.preparation = Preparation(lease, services)
        # Not a method of this object: that would be a cycle, and everything a step made would wait for the garbage collector.
        warn = partial(services.say, lease.run.place.id, None)
        self.undefined = UndefinedWrites(warn, strict=context.net.strict)
        self._is_strict = context.net.durability is Durability.STRICT
        self._may_need_keys = bool(context.net.keychain)
        self._tool_blobs: BlobStore = VeiledBlobs.of(services.blobs, context.keychain)
        self._max_task_runs = context.net.limits.max_task_runs
        self._trace_id = context.scope.trace_id
        self._now = services.clock.now
        self._turn = TURN
        self._turns = 0

    async def run(self, pipeline: Pipeline, element: dict[str, Any] | None = None) -> None:
        """Drive the pipeline from its cursor until it has ended."""
        scope = TaskScope(self.names, pipeline, element)
        while pipeline.ended is None and self.tasks:
            if self.lease.stop_reason is not None:
                raise asyncio.CancelledError
            if pipeline.due is not None:
                await self._wait(pipeline.due)
            await self._task(pipeline, scope)

    def share_turns(self, lanes: int) -> None:
        """All lanes run before the event loop looks elsewhere, so each takes only its share of a turn, or a cancel would
        wait for seconds. The share is at least a few tasks: switching lanes costs a tenth of one."""
        self._turn = max(SHARE, TURN // lanes)

    async def _wait(self, due: float) -> None:
        self.reports.flush()
        delay = due - self.reports.now()
        if delay > 0:
            await self.services.clock.sleep(delay)

    async def _task(self, pipeline: Pipeline, scope: TaskScope) -> None:
        task = self.tasks[pipeline.cursor]
        scope.label, scope.outcome, scope.tool_side = task.label, None, True
        if pipeline.under_way is None:
            self._start(pipeline, task)
        outcome = await self._outcome(pipeline, task, scope) if pipeline.task_runs <= self._max_task_runs else None
        self._record(pipeline, self.conclusion(pipeline, scope, outcome), pipeline.under_way)
        if self._is_strict:
            await self.reports.durable()

    def _start(self, pipeline: Pipeline, task: Task) -> None:
        self._record(pipeline, started(task, pipeline), pipeline.next_task_run(task.label))

    def _record(self, pipeline: Pipeline, body: TaskStarted | TaskEnded, task_run_id: str | None) -> None:
        self.reports.record(next_fact(pipeline, body, task=task_run_id))

    # ---- calling the tool

    async def _outcome(self, pipeline: Pipeline, task: Task, scope: TaskScope) -> Outcome:
        started = self._now(), asyncio.get_running_loop().time()
        helpers: dict[str, JsonMap] = {}
        try:
            prepared = self.preparation.task(pipeline.cursor)
            helpers = prepared.helpers
            params = prepared.constant
            if params is None or self._may_need_keys:
                params = await self.preparation.params(prepared, scope)
            value = await self._call(prepared, params, pipeline, scope)
            if isinstance(value, Success):
                return self.normaliser.ok(value.result, self._meta(pipeline, started, scope), value.helpers)
            return self.normaliser.ok(value, self._meta(pipeline, started, scope), {})
        except ToolFailure as error:
            failure = Failure(error.kind, error.message, error.retryable, error.detail)
            helpers = {**helpers, **error.helpers}
        except PenstockError as error:
            failure = Failure(_whose_fault(error), error.message, isinstance(error, Unavailable), {"hint": error.hint})
        except ExpressionError as error:
            failure = Failure("expression", str(error), False, {"expression": error.text, "variable": error.name})
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # A tool may raise anything; the task fails and the engine goes on.
            cause = error.__cause__ if isinstance(error, Escaped) and error.__cause__ else error
            name = type(cause).__name__
            failure = Failure("exception", f"{name}: {cause}".rstrip(": "), False, {"type": name})
        return self.normaliser.failed(failure, self._meta(pipeline, started, scope), helpers)

    def _meta(self, pipeline: Pipeline, started: tuple[float, float], scope: TaskScope) -> JsonMap:
        """`started`: by the wall clock, which may be set in the meantime, and by a monotonic one."""
        took = asyncio.get_running_loop().time() - started[1]
        meta: JsonMap = {
            "attempt": pipeline.attempt,
            "started_at": started[0],
            "ended_at": started[0] + took,
            "duration_ms": round(took * 1000, 3),
            "trace_id": self._trace_id,
        }
        around = scope.element
        if around is not None:
            meta["loop_id"], meta["shard_id"] = around["loop_id"], around["shard_id"]
            meta["iter_index"], meta["iter_key"] = around["index"], around["iter_key"]
        return meta

    async def _call(self, prepared: Prepared, params: Any, pipeline: Pipeline, scope: TaskScope) -> object:
        tool = prepared.tool
        call = self._context(prepared, pipeline, scope)
        if tool.inline:
            self._turns += 1
            if self._turns % self._turn == 0:
                await self._give_way()
            return tool.run_inline(params, call)
        self.reports.flush()
        limit = call.timeout()
        run = tool.run if prepared.is_ours else partial(_captured, tool)
        timer = None
        try:
            if limit is None:
                return await run(params, call)
            async with asyncio.timeout(limit) as timer:
                return await run(params, call)
        except TimeoutError as error:
            if timer is None or not timer.expired():
                raise ToolFailure("timeout", str(error) or "timed out", retryable=True) from error
            message = f"task `{prepared.task.label}` took longer than its time-out of {limit:g} s"
            raise ToolFailure("timeout", message, retryable=True) from None
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            raise ToolFailure("cancelled", "the tool was cancelled from within", retryable=True) from error

    async def _give_way(self) -> None:
        """Inline tasks never wait, so from time to time they let others run and the log's writer catch up."""
        if self.reports.gathered_enough():
            self.reports.flush()
            if self.reports.backlog > MAX_BACKLOG:
                await self.reports.durable()
        await asyncio.sleep(0)

    def _context(self, prepared: Prepared, pipeline: Pipeline, scope: TaskScope) -> Call:
        context, services, task = self.lease.context, self.services, prepared.task
        task_run_id = pipeline.under_way or ""
        place = pipeline.place.id

        async def play(
            path: str,
            workload: Mapping[str, Any],
            return_step: str | None = None,
            outputs: tuple[str, ...] = (),
            context: str | None = None,
        ) -> Any:
            played = await self._play(pipeline, scope, path, dict(workload), return_step, outputs, context)
            return _played(path, played)

        return Call(
            task.label,
            task_run_id,
            pipeline.attempt,
            execution_id=context.execution_id,
            idempotency_key=f"{context.execution_id}/{pipeline.effect}",
            folder=context.folder,
            spec=task.spec,
            clock=services.clock,
            blobs=self._tool_blobs,
            resources=services.resources,
            threads=services.threads,
            settings=services.settings,
            source=prepared.source,
            credential=context.keychain.credential,
            say=lambda line: services.say(place, task_run_id, line),
            play=play,
            load=services.load,
            element=scope.element,
            holds_secret=lambda text: context.keychain.hide(text) != text,
            caller=services.caller,
            names=scope.visible,
        )

    async def _play(
        self,
        pipeline: Pipeline,
        scope: TaskScope,
        path: str,
        workload: JsonMap,
        return_step: str | None,
        outputs: tuple[str, ...] = (),
        context: str | None = None,
    ) -> Any:
        around = scope.iter() if scope.element is not None else self.lease.context.iter_parent
        lease = self.lease
        caller = Caller(
            lease.context,
            pipeline.under_way or "",
            (*pipeline.place.clock, pipeline.counter - 1),
            pipeline.children,
            lambda: lease.stop_reason,
            around,
            context_group=context,
        )
        return await self.reports.play(caller, path, workload, return_step, outputs)

    # ---- what becomes of the outcome

    def conclusion(self, pipeline: Pipeline, scope: TaskScope, outcome: Outcome | None) -> TaskEnded:
        """What the task's policy makes of its outcome, and what it writes."""
        task = self.tasks[pipeline.cursor]
        if outcome is None or pipeline.task_runs > self._max_task_runs:
            return too_many_runs(task, pipeline, self._max_task_runs)
        data = outcome.as_json()
        scope.label, scope.outcome, scope.tool_side = task.label, data, False
        error = outcome.error.as_json() if outcome.error is not None else None
        writes: JsonMap = {}
        try:
            if outcome.is_ok and task.on_ok:
                writes = self.normaliser.writes(
                    rendered(task.on_ok, scope, self.undefined, f"`set` of task `{task.label}`")
                )
                scope = scope.after(writes)
            verdict, more = judge(task, self.positions, scope, self.undefined)
            if more:
                writes = _joined(writes, self.normaliser.writes(more))
            if "shared" in writes:
                writes["shared"] = self._lifted(writes["shared"], scope)
            draw = chance(pipeline.under_way or "").random() if verdict is not None and verdict.jitter else 0.5
            directive = advance(pipeline.cursor, len(self.tasks), pipeline.attempt, error, verdict, draw)
            rule = verdict.rule if verdict is not None else None
            return TaskEnded(
                task.label,
                pipeline.attempt,
                data,
                directive.do.value,
                directive.next,
                rule=rule,
                delay=directive.delay,
                writes=writes,
                error=directive.error,
            )
        except PolicyError as wrong:
            failure = wrong.as_json()
        except ExpressionError as wrong:
            failure = PolicyError(f"`set` of task `{task.label}`", wrong).as_json()
        except (TypeError, ReducerError) as wrong:
            failure = {
                "kind": "reducer" if isinstance(wrong, ReducerError) else "not_serialisable",
                "message": f"a write of task `{task.label}`: {wrong}",
                "retryable": False,
            }
        return TaskEnded(task.label, pipeline.attempt, data, Do.FAIL.value, END, error=failure)

    def _lifted(self, shared: Json, scope: TaskScope) -> JsonMap:
        """Shared values as parts that reducers can combine in any order."""
        fan, around = self.lease.node.fan, scope.element
        if fan is None or around is None:
            raise TypeError("`set_shared` has a meaning only inside a loop")
        assert isinstance(shared, dict)
        lifted: JsonMap = {}
        for key, values in shared.items():
            assert isinstance(values, list)
            lifted[key] = [lift(fan.reducers[key], materialised(value), around["index"]) for value in values]
        return lifted


def _is_being_cancelled() -> bool:
    """Whether our own task was cancelled, rather than something it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _whose_fault(error: PenstockError) -> str:
    return "unavailable" if isinstance(error, Unavailable) else "refused"


def _joined(first: JsonMap, second: JsonMap) -> JsonMap:
    joined = dict(first)
    for kind, values in second.items():
        below = joined.get(kind)
        if kind == "shared" and isinstance(below, dict) and isinstance(values, dict):
            joined[kind] = {key: [*_list(below.get(key)), *_list(values.get(key))] for key in {**below, **values}}
        elif isinstance(below, dict) and isinstance(values, dict):
            joined[kind] = {**below, **values}
        else:
            joined[kind] = values
    return joined


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _played(path: str, played: Any) -> Any:
    if played.status == "completed":
        return played.result
    raise child_failure(path, played)


def started(task: Task, pipeline: Pipeline) -> TaskStarted:
    return TaskStarted(task.label, task.kind, pipeline.attempt)


def too_many_runs(task: Task, pipeline: Pipeline, limit: int) -> TaskEnded:
    """No policy is consulted: one that continues after every error would never stop."""
    message = f"the pipeline ran {limit} tasks, the most that `limits.max_task_runs` allows"
    failure = Failure("task_run_limit", message).as_json()
    outcome: JsonMap = {"status": "error", "error": failure, "meta": {"attempt": pipeline.attempt}}
    return TaskEnded(task.label, pipeline.attempt, outcome, Do.FAIL.value, END, error=failure)


async def _captured(tool: Tool[Any], params: Any, call: Call) -> object:
    """A third-party tool may print: that belongs in the run's log, without secrets, and not in our output."""
    with captured_lines(call.say, call.settings.max_output_bytes):
        return await tool.run(params, call)


# ---- a task's policy: the first rule that matches its outcome, rendered into a verdict and the writes it makes


class PolicyError(Exception):
    """A rule could not be evaluated. The pipeline fails with this, whatever the outcome was."""

    def __init__(self, where: str, error: ExpressionError | str) -> None:
        super().__init__(f"{where}: {error}")
        self.expression = error.text if isinstance(error, ExpressionError) else None

    def as_json(self) -> JsonMap:
        return {"kind": "expression", "message": str(self), "retryable": False, "expression": self.expression}


def judge(
    task: Task, positions: dict[str, int], scope: TaskScope, undefined: UndefinedWrites
) -> tuple[Verdict | None, JsonMap]:
    """`scope` contains the outcome. The verdict is None if the task has no policy."""
    if task.rules is None:
        return None, {}
    for index, rule in enumerate(task.rules):
        where = f"policy rule {index + 1} of task `{task.label}`"
        try:
            if rule.when is None or truth(rule.when, scope):
                verdict = _verdict(index, rule, positions, scope, where)
                return verdict, rendered(rule.then.writes, scope, undefined, where)
        except ExpressionError as error:
            raise PolicyError(where, error) from error
    return Verdict(), {}


def _verdict(index: int, rule: Rule, positions: dict[str, int], scope: TaskScope, where: str) -> Verdict:
    then = rule.then
    if then.do is Do.CONTINUE or then.do is Do.BREAK or then.do is Do.FAIL:
        return Verdict(index, then.do, message=then.message)
    if then.do is Do.JUMP:
        return Verdict(index, Do.JUMP, to=positions[then.to or ""])
    attempts = DEFAULT_ATTEMPTS if then.attempts is None else int(_number(then.attempts, scope, where, "attempts"))
    delay = _number(then.delay, scope, where, "delay")
    return Verdict(index, then.do, attempts, then.backoff, delay, then.max_delay, then.jitter)


def _number(template: Any, scope: TaskScope, where: str, name: str) -> float:
    value = render(template, scope) if isinstance(template, str) else template
    try:
        number = float(str(value))
    except ValueError:
        raise PolicyError(where, f"`{name}` is {'null' if value is None else shown(value)}, not a number") from None
    if not 0 <= number < float("inf"):
        raise PolicyError(where, f"`{name}` is {number}; it must not be negative")
    return number
