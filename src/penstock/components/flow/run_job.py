"""`run_job` and `playbook`: another document as a component, in a scope of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.flow.tool_calls import failure_from
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.kernel.values import JsonMap
from penstock.ports.components import Port
from penstock.tools.base import ToolFailure
from penstock.tools.parameters import about

_GOOD = ("completed", "ok")


class RunJobParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The other job's file, relative to this one.")]
    context: Annotated[
        dict[str, Any], about("Laid over the other job's `context`; the other job sees nothing else of this one.")
    ] = {}
    context_group: Annotated[
        str | None, about("A group of the other job's `context`, as `--context` names it; `context` goes over it.")
    ] = None
    check: Annotated[
        bool, about("The component fails when the job does. If false, the result says how the job ended.")
    ] = True


class RunJob(Action[RunJobParams]):
    """Run another job and wait for its end.

    The result is `{status, globals, components, outputs}`: how it ended, the globals it had at its end, and how many rows
    left each port of its components. The globals of the two jobs are separate: take over what you need from
    `global.NAME.RESULT.globals`, where NAME is this component.
    After-variables, whether the job fails or not: `CHILD_STATUS`, `CHILD_EXIT_CODE`.
    """

    type: ClassVar[str] = "run_job"
    family: ClassVar[str] = "orchestrate"

    async def run(self, params: RunJobParams, call: Call) -> JsonMap:
        try:
            ended = await call.play_job(params.path, params.context, params.context_group)
        except ToolFailure as failed:
            _remember(call, failed.detail)
            if params.check or "status" not in failed.detail:
                raise failure_from(failed) from failed
            ended = {**failed.detail, "error": failed.message}
        result: JsonMap = dict(ended) if isinstance(ended, Mapping) else {"status": "completed", "outputs": ended}
        _remember(call, result)
        if params.check and result.get("status") not in _GOOD:
            raise _failed(params.path, result)
        return result


def _remember(call: Call, ended: Mapping[str, Any]) -> None:
    """How the child ended, for the links that begin here: also when it could not even be started."""
    status, code = ended.get("status") or "failed", ended.get("exit_code")
    call.after["CHILD_STATUS"] = status
    call.after["CHILD_EXIT_CODE"] = code if isinstance(code, int) else (0 if status in _GOOD else 1)


def _failed(path: str, result: JsonMap) -> ComponentFailure:
    error = result.get("error")
    reason = error.get("message") if isinstance(error, dict) else error
    message = f"job `{path}` {result.get('status') or 'failed'}: {reason or 'no reason given'}"
    code = result.get("exit_code")
    failure = ComponentFailure("job", message, exit_code=code if isinstance(code, int) else None)
    failure.detail.update({"status": result.get("status"), "cause": error})
    return failure


class PlaybookParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The playbook's file, relative to this job, or a name in the catalog.")]
    workload: Annotated[dict[str, Any], about("Laid over the playbook's `workload`.")] = {}
    args: Annotated[dict[str, Any], about("The same as `workload`, as playbooks call it; goes over it.")] = {}
    return_step: Annotated[
        str | None, about("The step whose result is taken; otherwise that of the last step to finish.")
    ] = None


class Playbook(Action[PlaybookParams]):
    """Run a playbook and take its result.

    If `main` is read, the result must be rows: a list of mappings, or a mapping with such a list under `rows` or `data`. The
    component fails when the playbook does. After-variables, whether it fails or not: `CHILD_STATUS`, `CHILD_EXIT_CODE`.
    """

    type: ClassVar[str] = "playbook"
    family: ClassVar[str] = "orchestrate"
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", reject=True, description="the rows of the playbook's result, when it has any"),
    )

    async def run(self, params: PlaybookParams, call: Call) -> Any:
        try:
            result = await call.play(params.path, {**params.workload, **params.args}, params.return_step)
        except ToolFailure as failed:
            _remember(call, failed.detail)
            raise failure_from(failed) from failed
        _remember(call, {"status": "completed"})
        if "main" in call.connected:
            rows = rows_of(result, params.path)
            call.put("main", await call.threads.run(_loaded, rows, call))
        return result


def rows_of(result: Any, path: str) -> list[Mapping[str, Any]]:
    """The rows in a playbook's result, wherever its tools keep them."""
    found = result
    if isinstance(result, Mapping):
        found = next((result[name] for name in ("rows", "data") if isinstance(result.get(name), list)), None)
    if not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        has = (
            f"a mapping with `{'`, `'.join(map(str, result))}`"
            if isinstance(result, Mapping)
            else type(result).__name__
        )
        raise ComponentFailure(
            "rows",
            f"port `main` is read, and the result of `{path}` has no rows: it is {has}. "
            "A list of mappings is needed, or a mapping with one under `rows` or `data`",
        )
    return found


def _loaded(rows: list[Mapping[str, Any]], call: Call) -> Any:
    declared = call.declared.get("main")
    if not rows:
        return call.engine.empty(declared or UNKNOWN_COLUMNS)
    return call.engine.load_mappings([rows], declared)
