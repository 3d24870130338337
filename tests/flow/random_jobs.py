"""Random component nets: acyclic by construction, with every kind of link that the kernel knows but joblets."""

from __future__ import annotations

import random
from typing import Any

from penstock.kernel.judge import Ended
from penstock.kernel.net import Net
from tests.flow.nets import error, job, sets

PLAIN = ("ok", "ok", "ok", "error", "if", "data", "data")


def random_job(seed: int) -> tuple[Net, dict[str, Any]]:
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(chance.randint(1, 9))]
    links: list[str] = []
    for at, name in enumerate(names):
        for before in names[:at]:
            if chance.random() < 0.28:
                links.append(_link(chance, before, name))
    iterators = _bodies(chance, names, links)
    links += _forks(chance, names)
    if len(names) > 2 and chance.random() < 0.4:
        links += [f"{names[0]} (subjob_ok) late", f"{names[0]} (subjob_error) sorry"]
    halts = {name: {"halts": chance.random() < 0.5} for name in iterators}
    net = job(*links, alone=" ".join(names), iterations=halts)
    return net, _outcomes(chance, net, iterators)


def _link(chance: random.Random, a: str, b: str) -> str:
    kind = chance.choice(PLAIN)
    if kind == "data":
        return f"{a}.main -> {b}.in_{a}"
    return f'{a} (if {chance.randint(1, 3)}: "t") {b}' if kind == "if" else f"{a} ({kind}) {b}"


def _bodies(chance: random.Random, names: list[str], links: list[str]) -> list[str]:
    """Some nodes iterate over a body of their own."""
    found = []
    for name in names:
        if chance.random() < 0.2:
            found.append(name)
            links.append(f"{name} (iterate) {name}_x")
            if chance.random() < 0.7:
                links.append(f"{name}_x (ok) {name}_y")
            if chance.random() < 0.3:
                links.append(f"{name}_x (error) {name}_h")
            links += _handlers(chance, name)
            if chance.random() < 0.3:
                found.append(f"{name}_in")
                links.append(f"{name}_x (ok) {name}_in")
                links.append(f"{name}_in (iterate) {name}_in_x")
                links += _handlers(chance, f"{name}_in")
            if chance.random() < 0.3:
                links.append(f"{name} (iterator_complete) {name}_end")
    return found


def _handlers(chance: random.Random, name: str) -> list[str]:
    """What the ends of its iterations lead to: nothing, one component or two after each other, or two beside each other."""
    links = []
    for on, target in (("iteration_ok", "good"), ("iteration_ok", "also"), ("iteration_error", "bad")):
        if chance.random() < 0.35:
            links.append(f"{name} ({on}) {name}_{target}")
            if chance.random() < 0.4:
                links.append(f"{name}_{target} (ok) {name}_{target}_more")
    return links


def _forks(chance: random.Random, names: list[str]) -> list[str]:
    if chance.random() < 0.5:
        return []
    fork = chance.choice(names)
    count = chance.randint(2, 4)
    branches = [f"b{number}" for number in range(count)]
    links = [f"{fork} (parallelise) {', '.join(branches)}"]
    for branch in branches:
        if chance.random() < 0.4:
            links.append(f"{branch} (ok) {branch}_more")
        if chance.random() < 0.3:
            links.append(f"{branch} (error) {branch}_help")
    if chance.random() < 0.8:
        links.append(f"{', '.join(branches)} (synchronise) joined")
        if chance.random() < 0.5:
            links.append("joined (ok) after")
    return links


def _outcomes(chance: random.Random, net: Net, iterators: list[str]) -> dict[str, Any]:
    outcomes: dict[str, Any] = {}
    for name in net.nodes:
        draw = chance.random()
        if draw < 0.15:
            outcomes[name] = error()
        elif draw < 0.5:
            key = chance.choice("pqr")
            outcomes[name] = lambda component, key=key: sets(
                **{key: [component.place.id], f"{key}_last": component.place.id}
            )
        elif draw < 0.55:
            outcomes[name] = Ended(status="ERROR", error={"kind": "bad", "message": "bad"}, writes={"p": [name]})
    for name in iterators:
        count = chance.choice([0, 1, 2, 3, 5])
        outcomes[f"items of {name}"] = [f"i{number}" for number in range(count)]
        outcomes[f"how of {name}"] = (chance.choice([1, 1, 2, 4]), chance.choice(["accumulate", "reset", "override"]))
        for number in range(count):
            if chance.random() < 0.15:
                outcomes[f"{name}[#{number}].{name}_x"] = error()
    return outcomes
