"""Random jobs as documents: chains of components, and links between them of every kind, so that sub-jobs start in one another's way."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import yaml


@dataclass
class Draft:
    chance: random.Random
    components: dict[str, Any] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    control: list[str] = field(default_factory=list)
    chains: list[list[str]] = field(default_factory=list)
    """Names of components that hang together, in their order."""

    def add(self, kind: str, **params: Any) -> str:
        name = f"c{len(self.components)}"
        self.components[name] = {"type": kind, "params": params}
        return name

    def node(self) -> str:
        """Something that can be led to and leads on."""
        chance, number = self.chance, len(self.components)
        kinds = ["wait", "wait", "global", "python", "fails", "rows", "iterator"]
        match chance.choice(kinds):
            case "wait":
                return self.add("sleep", seconds=chance.choice([0, 1, 1, 2, 5]))
            case "global":
                return self.add("set_global", values={f"g{number}": number, f"all{number % 3}": [number]})
            case "python":
                return self.add("python", code=f"result = {number}")
            case "fails":
                return self.add("python", code="raise ValueError('no')")
            case "rows":
                return self.rows()
            case _:
                return self.iterator()

    def rows(self) -> str:
        source = self.add("fixed_rows", columns=["n"], rows=[[n] for n in range(self.chance.randint(0, 3))])
        target = self.add("aggregate", by=[], measures={"s": "sum(n)"})
        last = self.add("python", code="output = list(inputs['input']); result = len(output)")
        self.data += [f"{source}.main -> {target}.input", f"{target}.main -> {last}.input"]
        self.chains[-1] += [source, target]
        return last

    def iterator(self) -> str:
        chance, number = self.chance, len(self.components)
        items = list(range(chance.randint(0, 7)))
        each = self.add("iterate_list", items=items, parallel=chance.choice([1, 2, 3]))
        wait = self.add("sleep", seconds=f"{{{{ 1 + iteration.item % {chance.randint(1, 3)} }}}}")
        fails = f"assert {{{{ iteration.item }}}} != {chance.choice([3, 99])}"
        code = self.add("python", code=fails)
        mark = self.add("set_global", values={f"seen{number}": ["{{ iteration.item }}"]})
        self.control += [f"{each} (iterate) {wait}", f"{wait} (ok) {code}", f"{code} (ok) {mark}"]
        if chance.random() < 0.5:
            told = self.add("set_global", values={f"good{number}": ["{{ iteration.index }}"]})
            self.control.append(f"{each} (iteration_ok) {told}")
        if chance.random() < 0.5:
            told = self.add("set_global", values={f"bad{number}": ["{{ iteration.index }}"]})
            self.control.append(f"{each} (iteration_error) {told}")
        return each

    def chain(self) -> None:
        self.chains.append([])
        before: str | None = None
        for _ in range(self.chance.randint(1, 4)):
            node = self.node()
            if before is not None:
                on = self.chance.choice(["ok", "ok", "ok", "error"])
                self.control.append(f"{before} ({on}) {node}")
            self.chains[-1].append(node)
            before = node

    def links(self) -> None:
        """Between chains, always from an earlier to a later one: into its beginning, or into the middle of it."""
        chance = self.chance
        for at, chain in enumerate(self.chains[1:], start=1):
            for _ in range(chance.randint(0, 2)):
                source = chance.choice(chance.choice(self.chains[:at]))
                target = chance.choice(chain)
                on = chance.choice(["subjob_ok", "subjob_ok", "subjob_error", "subjob_ok", "ok", "error"])
                self.control.append(f"{source} ({on}) {target}")

    def fork(self) -> None:
        begin = self.add("sleep", seconds=1)
        branches = [self.add("sleep", seconds=self.chance.randint(0, 3)) for _ in range(self.chance.randint(2, 3))]
        join = self.add("set_global", values={"joined": True})
        self.control += [
            f"{begin} (parallelise) {', '.join(branches)}",
            f"{', '.join(branches)} (synchronise) {join}",
        ]
        self.chains += [[begin], [join]]


def random_document(seed: int) -> str:
    draft = Draft(random.Random(seed))
    for _ in range(draft.chance.randint(2, 5)):
        draft.chain()
        if draft.chance.random() < 0.2:
            draft.fork()
    draft.links()
    connections = {"data": draft.data, "control": list(dict.fromkeys(draft.control))}
    return yaml.safe_dump(
        {
            "apiVersion": "penstock/v1",
            "kind": "Job",
            "metadata": {"name": f"random-{seed}"},
            "job_config": {"fail_strategy": "continue"},
            "components": draft.components,
            "connections": connections,
        },
        sort_keys=False,
    )
