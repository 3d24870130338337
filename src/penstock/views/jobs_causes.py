"""Why a component is in the state it is in, in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from penstock.kernel.net import Link, On
from penstock.kernel.values import Json
from penstock.views.jobs_names import caller_of, iteration_of, node_of
from penstock.views.jobs_seen import ERROR, SETTLED, SKIPPED, ComponentSeen, Fire, JobSeen
from penstock.views.wording import listed


class Causes:
    def __init__(self, seen: JobSeen, links: Sequence[Link] | None) -> None:
        self._seen = seen
        self._into: defaultdict[str, list[Fire]] = defaultdict(list)
        for fire in seen.fired():
            self._into[fire.target].append(fire)
        self._data: defaultdict[str, list[Link]] = defaultdict(list)
        self._control: defaultdict[str, list[Link]] = defaultdict(list)
        for link in links or ():
            (self._data if link.on is On.DATA else self._control)[link.target].append(link)

    def fires_into(self, name: str) -> list[Fire]:
        """The control links that fired for it, in the order in which they did."""
        return sorted(self._into.get(name, ()), key=lambda fire: (fire.at, fire.link))

    def of(self, component: ComponentSeen) -> str:
        """The reason of a skip, the message of an error, else what started it."""
        if component.state == SKIPPED:
            return component.reason
        if component.state == ERROR:
            return message_of(component.error)
        return self.started(component)

    def started(self, component: ComponentSeen) -> str:
        fires = self.fires_into(component.name)
        if fires:
            return " and ".join(_fired(on, [fire.source for fire in fires if fire.on == on]) for on in _kinds(fires))
        return self._without_control(component)

    def _without_control(self, component: ComponentSeen) -> str:
        fed = [link.source for link in self._data.get(component.node, ()) if link.to_port in component.rows_in]
        iteration = iteration_of(component.name)
        call = caller_of(component.name)
        if iteration is not None and not [one for one in fed if one != node_of(iteration.rpartition("[#")[0])]:
            return f"iteration `{iteration}` began"
        if call is not None and not [one for one in fed if one != caller_of(component.node)]:
            return f"`{call}` was called"
        if fed:
            return f"its data came from {listed(list(dict.fromkeys(fed)))}"
        return "its data had come" if component.rows_in else "the job started"

    def waits(self, node: str) -> str:
        """What a component that has not started is waiting for, as far as the document says."""
        sources = [link.source for link in (*self._control.get(node, ()), *self._data.get(node, ()))]
        open_ones = [one for one in dict.fromkeys(sources) if not self._has_settled(one)]
        if open_ones:
            return f"it waits for {listed(open_ones)}"
        call = caller_of(node)
        if call is not None:
            return f"`{call}` has not been called"
        return "it has not started"

    def _has_settled(self, name: str) -> bool:
        component = self._seen.components.get(name)
        return component is not None and component.state in SETTLED


def _kinds(fires: list[Fire]) -> list[str]:
    return list(dict.fromkeys(fire.on for fire in fires))


def _fired(on: str, sources: list[str]) -> str:
    link = "link" if len(sources) == 1 else "links"
    return f"the `{on}` {link} from {listed(list(dict.fromkeys(sources)))} fired"


def message_of(error: Json) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)
