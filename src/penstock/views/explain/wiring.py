"""A job's view and its net side by side: where a link of the document begins and ends in a run, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.expr.check import inspect
from penstock.kernel.net import Link, Net, On
from penstock.views.links import OF_SUBJOB, Causes
from penstock.views.model import FAILED, OK, RUNNING, SETTLED, SKIPPED, Execution, Fire, Group, Run, word
from penstock.views.names import iteration_of, node_of
from penstock.views.wording import condition, counted, error_line, shown

MOST_VALUES = 6


class Wiring:
    def __init__(self, execution: Execution, net: Net | None, *, is_live: bool) -> None:
        self.runs = execution.runs
        self.groups = execution.groups
        self.links: tuple[Link, ...] = net.links if net is not None else ()
        self.causes = Causes(execution, self.links)
        self._context = execution.workload
        self._is_live = is_live

    # ---- names

    def near(self, node: str, beside: str) -> str | None:
        """The run of `node` that a link at the run `beside` means: in the same iteration, or around it."""
        around = beside
        while True:
            end = around.rfind("].")
            if end < 0:
                return node if node in self.runs else None
            prefix, iterator = around[: end + 2], node_of(around[: around.rfind("[#", 0, end)])
            for name in (f"{prefix}{node}", f"{prefix}{node.removeprefix(f'{iterator}.')}"):
                if name in self.runs:
                    return name
            around = around[: around.rfind("[#", 0, end)]

    def run(self, node: str, beside: str) -> Run | None:
        name = self.near(node, beside)
        return self.runs[name] if name is not None else None

    def group_of(self, run: Run | None) -> Group | None:
        return self.groups.get(run.group) if run is not None else None

    def inbound(self, node: str) -> list[Link]:
        return [link for link in self.links if link.target == node and not link.hidden]

    def gates(self, node: str) -> list[Link]:
        """What it waits for although nobody wrote it: the triggers of its sub-job, or a pre-job."""
        return [link for link in self.links if link.target == node and link.hidden]

    def outbound(self, node: str) -> list[Link]:
        return [link for link in self.links if link.source == node and not link.hidden]

    def fire_of(self, link: Link, target: str) -> Fire | None:
        return next((fire for fire in self.causes.fires_into(target) if fire.link == link.index), None)

    def has_ended(self, node: str, beside: str) -> bool:
        run = self.run(node, beside)
        return run is not None and run.status in SETTLED

    # ---- what became of a link

    def verdict(self, link: Link, target: str) -> str:
        """In one line, seen from the run of its target."""
        source = self.run(link.source, target)
        if link.on is On.DATA:
            return self._data_verdict(link, source, target)
        if self.fire_of(link, target) is not None:
            guard = f": {condition(link.when)} was true" if link.when is not None else ""
            return f"fired{guard}{self._saw(link, source)}"
        if link.on is On.ITERATE:
            iteration = iteration_of(target)
            return f"iteration `{iteration}` began" if iteration is not None else "no iteration has begun"
        if link.on in OF_SUBJOB:
            return self._group_verdict(link, source)
        if source is None or source.status == RUNNING:
            return f"not yet: {self.standing(source, link.source)}"
        if link.on is On.IF and source.status == OK:
            return f"did not fire: {condition(link.when or '')} was not true{self._saw(link, source)}"
        return f"did not fire: {self.standing(source, link.source)}"

    def _data_verdict(self, link: Link, source: Run | None, target: str) -> str:
        if source is not None and source.status == OK and link.port in source.rows_out:
            return counted(source.rows_out[link.port], "row")
        given = self.runs.get(target)
        if (
            given is not None and link.to_port in given.rows_in
        ):  # From outside the scope, as an element of an iterator is.
            return counted(given.rows_in[link.to_port], "row")
        if source is None or source.status == RUNNING:
            return f"nothing yet: {self.standing(source, link.source)}"
        if source.status == OK and link.port in source.outputs:
            return counted(0, "row")
        if source.status == OK:
            return f"no rows were handed over on `{link.port}`"
        return f"dead: {self.standing(source, link.source)}"

    def _group_verdict(self, link: Link, source: Run | None) -> str:
        group = self.group_of(source)
        name = group.name if group is not None else link.source
        if group is None or group.status == RUNNING:
            return f"not yet: sub-job `{name}` {'is running' if group is not None else 'has not begun'}"
        if link.on is On.SYNCHRONISE and group.status == OK:
            return f"did not fire: sub-job `{name}` ended OK, and not all of the branches did"
        return f"did not fire: sub-job `{name}` {ended_in(group.status)}"

    def _saw(self, link: Link, source: Run | None) -> str:
        """` (name = value, …)` of what a condition read: after-variables and the context, which never change afterwards."""
        if link.when is None or source is None:
            return ""
        read = dict.fromkeys(use.path for use in inspect(link.when, condition=True).uses)
        found = [(".".join(map(str, path)), self._value(path, source)) for path in read]
        values = [f"{name} = {value}" for name, value in found if value is not None]
        return f" ({', '.join(values[:MOST_VALUES])})" if values else ""

    def _value(self, path: Sequence[str | int], source: Run) -> str | None:
        """As it is shown; None where the log does not say what it was at that time."""
        root, name = str(path[0]), str(path[1]) if len(path) > 1 else ""
        context = self._context
        if root == "context" and isinstance(context, dict):
            return shown(context[name]) if name in context else "undefined"
        if root in ("global", "globals") and len(path) > 2:
            run = self.run(name, source.name)
            return None if run is None else _after(run, str(path[2]))
        if len(path) == 1 and isinstance(context, dict) and root in context:
            return shown(context[root])
        return None if len(path) > 1 or not root.isupper() else _after(source, root)

    def standing(self, run: Run | None, name: str) -> str:
        if run is None:
            return f"`{name}` has not started"
        if run.status == RUNNING:
            return f"`{run.name}` {'is running' if self._is_live else 'was running when the job stopped'}"
        if run.status == FAILED:
            return f"`{run.name}` ended in ERROR: {error_line(run.error)}"
        return f"`{run.name}` {ended_in(run.status)}"


def label(link: Link) -> str:
    """A link by its kind, as one of several of a component."""
    if link.on is On.DATA:
        return f"`{link.port}` → `{link.to_port}`"
    return f"`if {link.order}`" if link.on is On.IF else f"`{link.on.value}`"


def ended_in(status: str) -> str:
    return {OK: "ended OK", SKIPPED: "was skipped"}.get(status, f"ended in {word(status, 'job')}")


def _after(run: Run, name: str) -> str:
    variables = msgspec.json.decode(run.after)
    return shown(variables[name]) if name in variables else "undefined"
