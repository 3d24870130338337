"""What one task run says when it is over. A failure is data here, never an exception."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.kernel.values import Json, JsonMap, frozen


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed: `kind` is for rules to test, `message` is for people to read."""

    kind: str
    message: str
    retryable: bool = False
    detail: JsonMap = field(default_factory=dict)

    def as_json(self) -> JsonMap:
        return {"kind": self.kind, "message": self.message, "retryable": self.retryable, **self.detail}

    @staticmethod
    def from_json(data: JsonMap) -> Failure:
        known = {"kind", "message", "retryable"}
        return Failure(
            kind=str(data.get("kind", "error")),
            message=str(data.get("message", "")),
            retryable=bool(data.get("retryable", False)),
            detail={key: value for key, value in data.items() if key not in known},
        )


@frozen
class Outcome:
    """Exactly one per task run. `helpers` are the tool family's own fields: `http`, `pg`, `py` …"""

    status: Literal["ok", "error"]
    result: Json = None
    error: Failure | None = None
    meta: JsonMap = field(default_factory=dict)
    helpers: dict[str, JsonMap] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    def as_json(self) -> JsonMap:
        data: JsonMap = {"status": self.status}
        if self.status == "ok":
            data["result"] = self.result
        if self.error is not None:
            data["error"] = self.error.as_json()
        data["meta"] = self.meta
        data.update(self.helpers)
        return data

    @staticmethod
    def from_json(data: JsonMap) -> Outcome:
        known = {"status", "result", "error", "meta"}
        error, meta = data.get("error"), data.get("meta")
        return Outcome(
            "ok" if data.get("status") == "ok" else "error",
            data.get("result"),
            Failure.from_json(error) if isinstance(error, dict) else None,
            meta if isinstance(meta, dict) else {},
            {key: value for key, value in data.items() if key not in known and isinstance(value, dict)},
        )
