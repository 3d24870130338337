"""Prepared tasks: the tool, and the parameters it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.expr.template import render, roots
from penstock.kernel.net import Task
from penstock.kernel.values import JsonMap
from penstock.ports.leases import Lease
from penstock.ports.results import materialised
from penstock.tools.base import Source, Tool
from penstock.worker.scopes import TaskScope
from penstock.worker.services import WorkerServices

OUR_TOOLS = "penstock.tools."


class Prepared:
    """A task with its tool. Parameters without templates or secrets are converted once for the whole lease."""

    __slots__ = ("constant", "helpers", "is_ours", "params", "source", "task", "tool")

    def __init__(self, task: Task, tool: Tool[Any], source: Source) -> None:
        self.task = task
        self.tool = tool
        self.is_ours = type(tool).__module__.startswith(OUR_TOOLS)
        self.source = source
        takes_args = "args" in tool.Params.__struct_fields__
        self.params = {name: one for name, one in task.params.items() if name != "args" or takes_args}
        self.constant: Any = None
        self.helpers: dict[str, JsonMap] = {tool.family: {"code": None}} if tool.family else {}
        """What a failure says of the tool's family if it says nothing."""


class Preparation:
    """The tasks of one lease, each prepared when it is first reached."""

    def __init__(self, lease: Lease, services: WorkerServices) -> None:
        self._lease = lease
        self.tools = services.tools_at(lease.context.folder)
        self._prepared: list[Prepared | None] = [None] * len(lease.node.tasks)

    def task(self, cursor: int) -> Prepared:
        prepared = self._prepared[cursor]
        if prepared is None:
            task = self._lease.node.tasks[cursor]
            context, tools = self._lease.context, self.tools
            lines = context.lines.get((self._lease.run.step, task.label), {})
            prepared = Prepared(task, tools.get(task.kind), Source(context.file, dict(lines)))
            if not roots(task.params):
                values = {name: render(template, _NOTHING) for name, template in prepared.params.items()}
                prepared.constant = tools.convert(task.kind, materialised(values))
            self._prepared[cursor] = prepared
        return prepared

    async def params(self, prepared: Prepared, scope: TaskScope) -> Any:
        keys = self._lease.context.keychain
        if keys.is_stale():
            await keys.fresh()
        return self.tools.convert(prepared.task.kind, keys.reveal(parameters(prepared, scope)))


def parameters(prepared: Prepared, scope: TaskScope) -> Any:
    """The rendered parameters, with secrets still hidden. The task's own args come first: the others see them, laid over the
    token's."""
    given = prepared.task.params.get("args")
    if given is None:
        return materialised(render(prepared.params, scope))
    args = render(given, scope)
    inner = scope.with_args(args) if isinstance(args, Mapping) else scope
    rest = {name: args if name == "args" else render(one, inner) for name, one in prepared.params.items()}
    return materialised(rest)


class _Nothing:
    def lookup(self, name: str) -> object:
        raise KeyError(name)


_NOTHING = _Nothing()
