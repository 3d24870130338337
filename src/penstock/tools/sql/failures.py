"""How a database's complaint becomes an error outcome: what went wrong, in which command, and never with a password in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.kernel.values import JsonMap
from penstock.tools.base import ToolFailure


@dataclass(frozen=True, slots=True)
class Place:
    """Which command of a task is running."""

    index: int
    total: int
    excerpt: str = ""

    def at(self, excerpt: str) -> Place:
        return replace(self, excerpt=excerpt)

    def said(self) -> str:
        which = f"command {self.index} of {self.total}, counted from 0" if self.total > 1 else "the command"
        return f"in {which}: `{self.excerpt}`" if self.excerpt else f"in {which}"


def scrubbed(text: str, secrets: Iterable[str | None]) -> str:
    """Drivers quote connection texts in their errors; what is secret in them is taken out again."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def prefixed(failed: ToolFailure, words: str, hint: str = "") -> ToolFailure:
    """The same failure, said with what was being done."""
    message = f"{words}: {failed.message}{hint}"
    return ToolFailure(failed.kind, message, retryable=failed.retryable, helpers=failed.helpers, **failed.detail)


def failure(
    kind: str, message: str, place: Place | None, helpers: dict[str, JsonMap], *, retryable: bool = False
) -> ToolFailure:
    """An error outcome that says where it happened."""
    message = message.strip() or "the database gave no reason"
    if place is None:
        return ToolFailure(kind, message, retryable=retryable, helpers=helpers)
    return ToolFailure(
        kind,
        f"{message} ({place.said()})",
        retryable=retryable,
        helpers=helpers,
        command=place.index,
        statement=place.excerpt,
    )


def code_of(failure: ToolFailure) -> str:
    """The database's own code of an error."""
    helper: JsonMap = next(iter(failure.helpers.values()), {})
    return str(helper.get("code") or failure.kind)
