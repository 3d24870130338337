"""`noop`, `pre_job` and `post_job`: components that do nothing themselves; links are attached to them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from penstock.components.base import Action, Call
from penstock.ports.components import Role
from penstock.tools.parameters import about


class NoopParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    value: Annotated[Any, about("Becomes the result.")] = None


class Noop(Action[NoopParams]):
    """Do nothing, successfully.

    A place for links to meet or to part: several branches that end in one `noop`, or one that fans out with `if` links.
    The result is `value`.
    """

    type: ClassVar[str] = "noop"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False

    async def run(self, params: NoopParams, call: Call) -> Any:
        return params.value


class MarkerParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A marker has no parameters."""


class PreJob(Action[MarkerParams]):
    """The beginning of a job: its sub-job ends before any other begins.

    Give it the work that everything else relies on with `ok` links: loading settings, making folders, opening a window. When
    that sub-job fails, nothing else of the job starts.
    """

    type: ClassVar[str] = "pre_job"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    role: ClassVar[Role] = "pre_job"

    async def run(self, params: MarkerParams, call: Call) -> None:
        return None


class PostJob(Action[MarkerParams]):
    """The end of a job: its sub-job begins when every other one has ended, however it ended.

    What it leads to runs after a failure too, and after `die`: the place for cleaning up, for telling people, and for
    `log_catcher`, `stats` and `flow_meter`, which then see the whole job.
    """

    type: ClassVar[str] = "post_job"
    family: ClassVar[str] = "orchestrate"
    makes_files: ClassVar[bool] = False
    role: ClassVar[Role] = "post_job"

    async def run(self, params: MarkerParams, call: Call) -> None:
        return None
