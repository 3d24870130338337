"""Facts about an execution as a whole, of a playbook or a job: its start, its stops, its end."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.values import Json, frozen

RULES = 2
"""The revision of the language rules for new runs. Logs of release 0.1.0 do not name theirs, and are resumed and replayed by
revision 1: a guard that reads only data also handles a failure (D57), the globals written by handlers of a failed iteration are
lost (D60), and a joblet's subjob_error keeps the call from failing (D64)."""


@frozen
class ExecutionStarted:
    name: str
    digest: str
    workload: Json
    entry: str
    trace_id: str | None = None
    parent: str | None = None
    document: Json = None
    continues: str | None = None
    kind: str = "playbook"
    resumed: bool = False
    """A job continues after a stop: a new start, which keeps the sub-jobs in `kept` as they are (D30)."""
    kept: list[str] = field(default_factory=list)
    """The sub-jobs that are kept, by their names here; also set for a job that `continues` another, in which they ended."""
    lost: str | None = None
    """Only this sub-job starts over, because its holder was lost. The job itself was not stopped."""
    kept_components: list[str] = field(default_factory=list)
    """The components that stay as they are in sub-jobs that start over only because iterations in them failed (D60)."""
    reopened: list[str] = field(default_factory=list)
    """Iterations that had ended OK and are reopened because nested iterations had failed (D60)."""
    rules: int = 1
    """The revision of the language rules that applies to the run from its first event to its last; see `RULES`."""
    state: Json = None
    """What the document had kept from earlier runs; None if it keeps nothing."""


@frozen
class ExecutionInterrupted:
    reason: str
    kind: str = "playbook"


@frozen
class ExecutionResumed:
    """`restarted` task runs were under way when the run stopped; `reopened` step runs had failed and get another run."""

    restarted: list[str] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)


@frozen
class CancelAsked:
    reason: str
    kind: str = "playbook"


@frozen
class ExecutionEnded:
    status: Literal["completed", "failed", "cancelled"]
    error: Json = None
    kind: str = "playbook"
    exit_code: int | None = None
    """The exit code of the process, if the document asks for a particular one (D38)."""
    failed_iterations: int = 0
    """For a job: how many iterations failed without failing their iterator (D60)."""
    state: Json = None
    """What is kept for later runs once the whole run has completed: kind -> key -> [before, after]."""
