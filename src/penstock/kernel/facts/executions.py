"""Facts about an execution as a whole, be it a playbook's or a job's: its start, its stops, its end."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from penstock.kernel.frozen import frozen
from penstock.kernel.values import Json

RULES = 2
"""Of runs that begin now. Logs of release 0.1.0 do not say theirs, and are resumed and replayed by revision 1, in which a guard
over data alone took a failure as well (D57), the globals of what handles a failed iteration were lost (D60), and a joblet's
subjob_error mended the joblet (D64)."""


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
    """A job goes on after a stop: a new start, which keeps the sub-jobs in `kept` as they are (D30)."""
    kept: list[str] = field(default_factory=list)
    """Also of a job that `continues` another, in which they ended: by the names they have here."""
    lost: str | None = None
    """Only this sub-job starts over: whoever held it was lost. Nobody stopped the job."""
    kept_components: list[str] = field(default_factory=list)
    """Of sub-jobs that start over only because iterations in them failed: the components that stay as they are (D60)."""
    reopened: list[str] = field(default_factory=list)
    """Iterations that had ended OK and go on, because iterations inside of them had failed (D60)."""
    rules: int = 1
    """The revision of the language's rules that the run is decided by, from its first event to its last; see `RULES`."""
    state: Json = None
    """What the document had kept from earlier runs; None when it keeps nothing."""


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
    """What the process is to exit with, where the document asks for a code of its own (D38)."""
    failed_iterations: int = 0
    """Of a job: iterations that failed and whose iterator went on (D60)."""
    state: Json = None
    """What is kept for later runs once the whole run has completed: kind -> key -> [before, after]."""
