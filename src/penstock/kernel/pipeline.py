"""What happens after a task: the directive that a policy's verdict comes to. Pure; the worker asks, and records the answer.

no policy            ok -> continue          error -> fail
policy, no match     continue
continue             the next task; after the last one the pipeline is done
retry                the same task again while attempts are left, else fail with the last error (D7)
jump                 the task named by `to`
break                done          fail    failed
"""

from __future__ import annotations

from penstock.kernel.net import Backoff, Do
from penstock.kernel.values import Json, JsonMap, frozen

DEFAULT_ATTEMPTS = 3
END = -1


@frozen
class Verdict:
    """The rule that matched, with its fields rendered. `rule` is None when rules exist and none matched."""

    rule: int | None = None
    do: Do = Do.CONTINUE
    attempts: int = DEFAULT_ATTEMPTS
    backoff: Backoff = Backoff.NONE
    delay: float = 0.0
    max_delay: float = 300.0
    jitter: float = 0.0
    to: int = END
    message: str = ""


@frozen
class Directive:
    do: Do
    next: int = END
    delay: float = 0.0
    error: Json = None


# What becomes of a task without a policy.
_GO_ON, _GIVE_UP = Verdict(do=Do.CONTINUE), Verdict(do=Do.FAIL)


def advance(
    cursor: int, length: int, attempt: int, error: JsonMap | None, verdict: Verdict | None, draw: float = 0.5
) -> Directive:
    """`error` is the outcome's error or None; `verdict` is None when the task has no policy; `draw` in 0..1 is for jitter."""
    if verdict is None:
        verdict = _GO_ON if error is None else _GIVE_UP
    following = cursor + 1 if cursor + 1 < length else END
    match verdict.do:
        case Do.CONTINUE:
            return Directive(Do.CONTINUE, following)
        case Do.JUMP:
            return Directive(Do.JUMP, verdict.to)
        case Do.BREAK:
            return Directive(Do.BREAK, END)
        case Do.FAIL:
            return Directive(Do.FAIL, END, error=error or _failed_by_rule(verdict))
        case Do.RETRY if attempt < verdict.attempts:
            return Directive(Do.RETRY, cursor, retry_delay(verdict, attempt, draw))
        case Do.RETRY:
            return Directive(Do.FAIL, END, error=error or _exhausted(attempt))


def retry_delay(verdict: Verdict, attempt: int, draw: float) -> float:
    """Seconds before attempt + 1. Exponential doubles from `delay`, linear grows by it. Jitter makes that longer or shorter by up
    to its share. Whatever comes of it, `max_delay` is the most."""
    match verdict.backoff:
        case Backoff.NONE:
            delay = verdict.delay
        case Backoff.LINEAR:
            delay = verdict.delay * attempt
        case Backoff.EXPONENTIAL:
            delay = verdict.delay * 2.0 ** min(attempt - 1, 64)
    delay = min(delay, verdict.max_delay)
    spread = verdict.jitter * delay * (2 * draw - 1)
    return max(0.0, min(delay + spread, verdict.max_delay))


def _failed_by_rule(verdict: Verdict) -> JsonMap:
    number = "else" if verdict.rule is None else f"rule {verdict.rule + 1}"
    message = verdict.message or f"the task ended ok and its policy ({number}) says fail"
    return {"kind": "policy", "message": message, "retryable": False}


def _exhausted(attempt: int) -> JsonMap:
    return {
        "kind": "retries_exhausted",
        "message": f"the task ended ok, its policy asked for another run, and all {attempt} attempts are used up",
        "retryable": False,
    }
