"""Random playbooks whose result depends on nothing but the document: whatever the speed of their tasks, they come out the same.

Every step reads only its token's args, its own results and its own iteration; it may write to ctx as it likes. `wait` takes as
long as chance says, and chance is not part of the document.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import yaml

from penstock.tools.base import Call, Tool, tool
from tests.chaos.workshop import Workshop

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

HOPS = 4
LONGEST_S = 5.0


def waiting(chance: random.Random) -> type[Tool[Any]]:
    @tool("wait")
    async def wait(call: Call) -> Any:
        """Take some time."""
        await call.clock.sleep(chance.choice([0.0, 1.0, chance.uniform(0, LONGEST_S)]))

    return wait


def workshop(delays: int) -> Workshop:
    return Workshop(waiting(random.Random(delays)))


def write_random(folder: Path, seed: int) -> Path:
    """A playbook, and the sub-playbooks that it calls."""
    chance = random.Random(seed)
    for name in ("leaf", "child"):
        book = _playbook(chance, size=2, calls=["leaf"] if name == "child" else [])
        (folder / f"{name}.yaml").write_text(yaml.dump(book, sort_keys=False, Dumper=DUMPER), encoding="utf-8")
    file = folder / "playbook.yaml"
    file.write_text(
        yaml.dump(_playbook(chance, chance.randint(2, 5), ["leaf", "child"]), sort_keys=False, Dumper=DUMPER), "utf-8"
    )
    return file


def _playbook(chance: random.Random, size: int, calls: list[str]) -> dict[str, Any]:
    names = [f"s{index}" for index in range(size)]
    steps = [_start(chance, names)]
    if chance.random() < 0.5:
        steps += _diamond(chance, names, calls)
    steps += [_step(chance, name, names, calls) for name in names]
    mode = chance.choice(["best_effort", "best_effort", "best_effort", None])
    executor: dict[str, Any] = {"spec": {"policy": {"limits": {"max_task_runs": 50}}}}
    if mode:
        executor["spec"]["policy"]["failure"] = {"mode": mode}
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "random"},
        "executor": executor,
        "workload": {"n": chance.randint(0, 9)},
        "workflow": steps,
    }


def _arc(chance: random.Random, target: str, hops: str = "args.hops - 1") -> dict[str, Any]:
    return {
        "step": target,
        "args": {
            "n": f"{{{{ (args.n | default(workload.n)) + {chance.randint(1, 5)} }}}}",
            "hops": f"{{{{ {hops} }}}}",
        },
    }


def _start(chance: random.Random, names: list[str]) -> dict[str, Any]:
    targets = chance.sample(names, min(len(names), chance.randint(1, 2)))
    arcs = [_arc(chance, target, str(HOPS)) for target in targets]
    return {"step": "start", "next": {"spec": {"mode": "inclusive"}, "arcs": arcs}}


def _diamond(chance: random.Random, names: list[str], calls: list[str]) -> list[dict[str, Any]]:
    """Two branches and their join, which one more arc of the start leads to."""
    sides = [
        {
            "step": side,
            "tool": _tasks(chance, side, calls, can_fail=False),
            "next": {"arcs": [{"step": "joined", "args": {"n": "{{ args.n }}"}}]},
        }
        for side in ("left", "right")
    ]
    fork = {
        "step": "fork",
        "next": {"spec": {"mode": "inclusive"}, "arcs": [_arc(chance, "left"), _arc(chance, "right")]},
    }
    joined = {
        "step": "joined",
        "spec": {"join": ["left", "right"]},
        "tool": [{"name": "both", "kind": "noop", "value": "{{ args.left.n + args.right.n }}"}],
        "next": {"arcs": [{"step": chance.choice(names), "args": {"n": "{{ event.result }}", "hops": 2}}]},
    }
    return [fork, *sides, joined]


def _step(chance: random.Random, name: str, names: list[str], calls: list[str]) -> dict[str, Any]:
    step: dict[str, Any] = {"step": name}
    policy: dict[str, Any] = {}
    if chance.random() < 0.2:
        rule = {"when": f"{{{{ args.n % {chance.randint(2, 4)} != 0 }}}}", "then": {"allow": True}}
        policy["admit"] = {"rules": [rule]}
    if chance.random() < 0.4:
        mode = chance.choice(["sequential", "parallel"])
        step["loop"] = {
            "in": f"{{{{ range(args.n % {chance.randint(2, 6)}) | list }}}}",
            "iterator": "x",
            "spec": {"mode": mode, "max_in_flight": chance.randint(1, 3)},
        }
        policy["failure"] = {
            "mode": "best_effort" if mode == "parallel" else chance.choice(["best_effort", "fail_fast"])
        }
    if policy:
        step["spec"] = {"policy": policy}
    step["tool"] = _tasks(chance, name, calls, in_loop="loop" in step)
    if chance.random() < 0.3:
        step["set"] = {"ctx.done": name}
    arcs = []
    for target in chance.sample(names, min(len(names), chance.randint(0, 2))):
        arcs.append({**_arc(chance, target), "when": f"{{{{ args.hops > 0 and ({_guard(chance)}) }}}}"})
    if arcs:
        step["next"] = {"spec": {"mode": chance.choice(["exclusive", "inclusive"])}, "arcs": arcs}
    return step


def _guard(chance: random.Random) -> str:
    return chance.choice(
        ["true", "event.name == 'step.failed'", "event.name != 'step.failed'", "args.n % 2 == 0", "args.n % 3 != 1"]
    )


def _tasks(
    chance: random.Random, step: str, calls: list[str], *, in_loop: bool = False, can_fail: bool = True
) -> list[dict[str, Any]]:
    number = "(args.n + iter.x)" if in_loop else "args.n"
    tasks = []
    for index in range(chance.randint(1, 3)):
        task: dict[str, Any] = {"name": f"{step}_t{index}"}
        what = chance.choice(["noop", "noop", "wait", "wait", "playbook" if calls else "noop"])
        task["kind"] = what
        if what == "noop":
            task["value"] = f"{{{{ {number} * {chance.randint(1, 3)} }}}}"
        if what == "playbook":
            task |= {"path": f"{chance.choice(calls)}.yaml", "args": {"n": f"{{{{ {number} % 7 }}}}"}}
        rules = _rules(chance, step, index, number, can_fail)
        if rules:
            task["spec"] = {"policy": {"rules": rules}}
        tasks.append(task)
    return tasks


def _rules(chance: random.Random, step: str, index: int, number: str, can_fail: bool) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    if chance.random() < 0.2:
        limit = chance.randint(2, 3)
        rules.append(
            {
                "when": f"{{{{ _attempt < {limit} }}}}",
                "then": {"do": "retry", "attempts": limit, "delay": chance.choice([0, 1])},
            }
        )
    if can_fail and chance.random() < 0.25:
        rules.append(
            {
                "when": f"{{{{ {number} % {chance.randint(3, 5)} == 0 }}}}",
                "then": {"do": "fail", **_writes(chance, number)},
            }
        )
    if chance.random() < 0.15:
        rules.append({"when": f"{{{{ {number} % 4 == 1 }}}}", "then": {"do": "break"}})
    if can_fail and index and chance.random() < 0.2:
        # Once back, and then the rule below says go on: what a task gave before is known under its name.
        rules.append(
            {"when": f"{{{{ {step}_t{index} is not defined }}}}", "then": {"do": "jump", "to": f"{step}_t{index - 1}"}}
        )
    then: dict[str, Any] = {"do": "continue" if not can_fail else chance.choice(["continue", "continue", "break"])}
    if rules or chance.random() < 0.5:
        if can_fail:
            rules.insert(0, {"when": "{{ outcome.status == 'error' }}", "then": {"do": "fail"}})
        rules.append({"else": {"then": {**then, **_writes(chance, number)}}})
    return rules


def _writes(chance: random.Random, number: str) -> dict[str, Any]:
    writes: dict[str, Any] = {}
    if chance.random() < 0.3:
        writes["append_ctx"] = {"log": f"{{{{ {number} }}}}"}
    if chance.random() < 0.2:
        writes["set_ctx"] = {chance.choice(["a", "b"]): f"{{{{ {number} }}}}"}
    return writes
