"""`shared_commit`: the end of a shared transaction. The planner puts it last into each sub-job that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.flow.tool_calls import tool_failures
from penstock.kernel.values import JsonMap
from penstock.ports.components import SHARED_COMMIT

if TYPE_CHECKING:
    from penstock.components.io.sql.transaction import SharedTransaction


class SharedCommitParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class SharedCommit(Action[SharedCommitParams]):
    """Commit what the components of a sub-job wrote with `transaction: shared`, or roll it back if one of them failed.

    The result is `{committed}`. It is OK when it rolled back because of a failure that has been told already.
    """

    type: ClassVar[str] = SHARED_COMMIT
    family: ClassVar[str] = "write"
    Params = SharedCommitParams

    async def run(self, params: SharedCommitParams, call: Call) -> JsonMap:
        from penstock.components.io.sql.transaction import transactions_of

        open_ones = (await transactions_of(call.resources, call.execution_id)).take(call.subjob.name)
        reason = _reason(open_ones, call)
        if reason is not None:
            for shared in open_ones:
                await call.threads.run(shared.roll_back, reason)
            call.say(f"rolled back what {_names(open_ones)} wrote: {reason}")
            return {"committed": False}
        for index, shared in enumerate(open_ones):
            try:
                with tool_failures():
                    await call.threads.run(shared.commit)
            except ComponentFailure as failure:
                for other in open_ones[index + 1 :]:
                    await call.threads.run(other.roll_back, "another transaction of the sub-job could not be committed")
                if index:  # Two databases have no transaction in common.
                    failure.message += f" (what {_names(open_ones[:index])} wrote to another database is committed)"
                raise
        if any(shared.was_committed for shared in open_ones):
            call.say("an earlier start of this sub-job had been committed: nothing was written again")
        return {"committed": True}


def _reason(open_ones: list[SharedTransaction], call: Call) -> str | None:
    failed = call.subjob.failed()
    members = {name for shared in open_ones for name in shared.members}
    for shared in open_ones:
        if shared.ended is not None:
            return shared.ended
    guilty = next((name for name, is_handled in failed.items() if not is_handled or name in members), None)
    return None if guilty is None else f"`{guilty}` failed"


def _names(shared: list[SharedTransaction]) -> str:
    return ", ".join(dict.fromkeys(f"`{name}`" for one in shared for name in one.members)) or "nobody"
