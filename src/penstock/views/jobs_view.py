"""A job's log and its net side by side: where a link of the document begins and ends in a run, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.expr.check import inspect
from penstock.kernel.net import Link, Net, On
from penstock.views.jobs_causes import Causes
from penstock.views.jobs_names import iteration_of, node_of
from penstock.views.jobs_seen import ERROR, OK, RUNNING, SKIPPED, ComponentSeen, Fire, JobSeen, SubjobSeen
from penstock.views.wording import condition, counted, error_line, shown

OF_SUBJOB = frozenset({On.SUBJOB_OK, On.SUBJOB_ERROR, On.SUBJOB_DONE, On.SYNCHRONISE})
MOST_VALUES = 6
OF_ITERATION = frozenset({On.ITERATION_OK, On.ITERATION_ERROR})


@dataclass(slots=True)
class JobView:
    """`where(component)` gives `file:line` in the document, or nothing."""

    seen: JobSeen
    net: Net | None
    where: Callable[[str], str]
    is_live: bool
    causes: Causes = field(init=False)

    def __post_init__(self) -> None:
        self.causes = Causes(self.seen, self.net.links if self.net is not None else None)

    # ---- names

    def place(self, node: str) -> str:
        found = self.where(node)
        return f"  ({found})" if found else ""

    def near(self, node: str, beside: str) -> str | None:
        """The scope of the run of `node` that a link at the scope `beside` means: in the same iteration, or around it."""
        around = beside
        while True:
            end = around.rfind("].")
            if end < 0:
                return node if node in self.seen.components else None
            prefix, iterator = around[: end + 2], node_of(around[: around.rfind("[#", 0, end)])
            for name in (f"{prefix}{node}", f"{prefix}{node.removeprefix(f'{iterator}.')}"):
                if name in self.seen.components:
                    return name
            around = around[: around.rfind("[#", 0, end)]

    def component(self, node: str, beside: str) -> ComponentSeen | None:
        scope = self.near(node, beside)
        return self.seen.components[scope] if scope is not None else None

    def subjob_of(self, component: ComponentSeen | None) -> SubjobSeen | None:
        return self.seen.subjobs.get(component.subjob) if component is not None else None

    def inbound(self, node: str) -> list[Link]:
        return [link for link in self._links() if link.target == node and not link.hidden]

    def gates(self, node: str) -> list[Link]:
        """What it waits for although nobody wrote it: the triggers of its sub-job, or a pre-job."""
        return [link for link in self._links() if link.target == node and link.hidden]

    def outbound(self, node: str) -> list[Link]:
        return [link for link in self._links() if link.source == node and not link.hidden]

    def _links(self) -> tuple[Link, ...]:
        return self.net.links if self.net is not None else ()

    def fire_of(self, link: Link, target: str) -> Fire | None:
        return next((fire for fire in self.causes.fires_into(target) if fire.link == link.index), None)

    # ---- what became of a link

    def verdict(self, link: Link, target: str) -> str:
        """In one line, seen from the run of its target."""
        source = self.component(link.source, target)
        if link.on is On.DATA:
            return self._data_verdict(link, source, target)
        if self.fire_of(link, target) is not None:
            guard = f": {condition(link.when)} was true" if link.when is not None else ""
            return f"fired{guard}{self._saw(link, source)}"
        if link.on is On.ITERATE:
            iteration = iteration_of(target)
            return f"iteration `{iteration}` began" if iteration is not None else "no iteration has begun"
        if link.on in OF_SUBJOB:
            return self._subjob_verdict(link, source)
        return self._control_verdict(link, source)

    def _data_verdict(self, link: Link, source: ComponentSeen | None, target: str) -> str:
        given = self.seen.components.get(target)
        if given is not None and link.to_port in given.rows_in:
            return counted(given.rows_in[link.to_port], "row")
        if source is None or source.state == RUNNING:
            return f"nothing yet: {self.standing(source, link.source)}"
        if source.state == OK and link.port in source.outputs:
            return counted(source.rows_out.get(link.port, 0), "row")
        if source.state == OK:
            return f"no rows were handed over on `{link.port}`"
        return f"dead: {self.standing(source, link.source)}"

    def _control_verdict(self, link: Link, source: ComponentSeen | None) -> str:
        if source is None or source.state == RUNNING:
            return f"not yet: {self.standing(source, link.source)}"
        if link.on is On.IF and source.state == OK:
            return f"did not fire: {condition(link.when or '')} was not true{self._saw(link, source)}"
        return f"did not fire: {self.standing(source, link.source)}"

    def _saw(self, link: Link, source: ComponentSeen | None) -> str:
        """` (name = value, …)` of what a condition read: after-variables and the context, which never change afterwards."""
        if link.when is None or source is None:
            return ""
        read = dict.fromkeys(use.path for use in inspect(link.when, condition=True).uses)
        found = [(".".join(map(str, path)), self._value(path, source)) for path in read]
        told = [f"{name} = {value}" for name, value in found if value is not None]
        return f" ({', '.join(told[:MOST_VALUES])})" if told else ""

    def _value(self, path: Sequence[str | int], source: ComponentSeen) -> str | None:
        """As it is shown; None where the log does not say what it was at that time."""
        root, name = str(path[0]), str(path[1]) if len(path) > 1 else ""
        context = self.seen.starts[-1].context if self.seen.starts else None
        if root == "context" and isinstance(context, dict):
            return shown(context[name]) if name in context else "undefined"
        if root in ("global", "globals") and len(path) > 2:
            component = self.component(name, source.name)
            return None if component is None else _after(component, str(path[2]))
        if len(path) == 1 and isinstance(context, dict) and root in context:
            return shown(context[root])
        return None if len(path) > 1 or not root.isupper() else _after(source, root)

    def _subjob_verdict(self, link: Link, source: ComponentSeen | None) -> str:
        subjob = self.subjob_of(source)
        name = subjob.name if subjob is not None else link.source
        if subjob is None or subjob.state == RUNNING:
            return f"not yet: sub-job `{name}` {'is running' if subjob is not None else 'has not begun'}"
        if link.on is On.SYNCHRONISE and subjob.state == OK:
            return f"did not fire: sub-job `{name}` ended OK, and not all of the branches did"
        return f"did not fire: sub-job `{name}` {ended_in(subjob.state)}"

    def standing(self, component: ComponentSeen | None, name: str) -> str:
        if component is None:
            return f"`{name}` has not started"
        match component.state:
            case "RUNNING":
                stopped = "was running when the job stopped"
                return f"`{component.name}` {'is running' if self.is_live else stopped}"
            case "SKIPPED":
                return f"`{component.name}` was skipped"
            case "ERROR":
                return f"`{component.name}` ended in ERROR: {error_line(component.error)}"
        return f"`{component.name}` {ended_in(component.state)}"

    def has_ended(self, node: str, beside: str) -> bool:
        component = self.component(node, beside)
        return component is not None and component.state in (OK, ERROR, SKIPPED)


def label(link: Link) -> str:
    """A link by its kind, as one of several of a component."""
    if link.on is On.DATA:
        return f"`{link.port}` → `{link.to_port}`"
    return f"`if {link.order}`" if link.on is On.IF else f"`{link.on.value}`"


def ended_in(state: str) -> str:
    return {OK: "ended OK", SKIPPED: "was skipped"}.get(state, f"ended in {state}")


def _after(component: ComponentSeen, name: str) -> str:
    variables = msgspec.json.decode(component.after)
    return shown(variables[name]) if name in variables else "undefined"
