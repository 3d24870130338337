"""`http_call`: one request, for its effect or its answer. Rows from an API are the business of `http_rows`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from penstock.components.base import Action, Call
from penstock.components.flow.tool_calls import failure_from, tool_call
from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import ToolFailure
from penstock.tools.http.tool import HttpParams, HttpTool
from penstock.tools.parameters import Positive, about


class HttpCallParams(HttpParams, kw_only=True, forbid_unknown_fields=True):
    timeout: Annotated[Positive | None, about("Seconds for all of it, redirects and retries included.")] = None
    attempts: Annotated[
        int, about("How often to try when the server is busy or away (408, 425, 429, 500, 502, 503, 504).", ge=1)
    ] = 1


class HttpCall(Action[HttpCallParams]):
    """Send one HTTP request: call a webhook, start something elsewhere, ask for a value.

    The result is `{data, status, headers, url, elapsed_ms}`. A status from 400 on is a failure unless `ok_status` allows it.
    After-variable: `STATUS`, there after a failure too when the server answered. `idempotency_key: true` sends a key that stays
    the same when the run is repeated.
    """

    type: ClassVar[str] = "http_call"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: HttpCallParams, call: Call) -> Json:
        limits: JsonMap = {"connect": 10, "read": 60, "write": 60, "total": params.timeout}
        spec: JsonMap = {"timeout": limits, "retry": {"attempts": params.attempts}}
        try:
            answer = await HttpTool().run(params, tool_call(call, spec))
        except ToolFailure as failed:
            _remember(call, failed.helpers.get("http", {}))
            raise failure_from(failed) from failed
        result: Json = answer.result  # type: ignore[assignment]
        if isinstance(result, dict):
            _remember(call, result)
        return result


def _remember(call: Call, facts: JsonMap) -> None:
    if facts.get("status") is not None:
        call.after["STATUS"] = facts["status"]
