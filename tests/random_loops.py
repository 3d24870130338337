"""Random playbooks around one loop, whose end does not depend on where its iterations run, nor in which order.

The loop's pipeline reads its element, its iteration and ctx as it was before; what it shares goes through reducers, lists in ctx,
or one value for all. Some elements fail, some for good, some are told to go on; `wait` takes as long as chance says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

MODES = ("local", "fanout")
OPERATIONS = {
    "sum": "{{ iter.e.n }}",
    "count": "{{ iter.e.n % 2 == 0 }}",
    "min": "{{ iter.e.n }}",
    "max": "{{ iter.e.n * 2 }}",
}
LISTS = {"append": "{{ iter.e.n }}", "merge": {"last": "{{ iter.index }}", "of": "{{ iter.e.n }}"}}


@dataclass(frozen=True, slots=True)
class RandomLoop:
    seed: int
    failure: str
    elements: list[dict[str, int]]
    book: dict[str, Any]

    def write(self, folder: Path, mode: str) -> Path:
        """The same playbook; only the place of its loop differs."""
        self.book["workflow"][1]["spec"]["loop_mode"] = mode
        file = folder / f"{mode}.yaml"
        file.write_text(yaml.dump(self.book, sort_keys=False, Dumper=DUMPER), encoding="utf-8")
        return file


def random_loop(seed: int) -> RandomLoop:
    chance = random.Random(seed)
    failure = chance.choice(["best_effort", "fail_fast"])
    elements = [{"n": chance.randint(0, 9)} for _ in range(chance.choice([0, 1, 2, 5, 12, 30]))]
    # Conflicts of writes come out when all is in; what reducers took in by then stays.
    shares = chance.random() < 0.6
    loop_spec: dict[str, Any] = {}
    if chance.random() < 0.5:
        loop_spec = {"mode": "parallel", "max_in_flight": chance.randint(1, 6)}
    spec: dict[str, Any] = {
        "policy": {"failure": {"mode": failure}},
        "fanout": {"range_size": chance.randint(1, 7), "emit": chance.choice(["summary", "per_item"])},
    }
    if chance.random() < 0.3:
        spec["fanout"]["max_concurrent"] = chance.randint(1, 5)
    if shares:
        spec["reducers"] = True
    tool = [_task(chance, index, shares, is_parallel=bool(loop_spec)) for index in range(chance.randint(1, 3))]
    loop = {"step": "loop", "spec": spec, "loop": {"in": _collection(chance, elements), "iterator": "e"}, "tool": tool}
    if loop_spec:
        loop["loop"]["spec"] = loop_spec
    if chance.random() < 0.3:
        loop["set"] = {"ctx.total": "{{ outcome.result.total }}"}
    loop["next"] = {"spec": {"mode": chance.choice(["exclusive", "inclusive"])}, "arcs": _arcs(chance)}
    book = {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "random"},
        "workload": {"elements": elements, "k": chance.randint(1, 4)},
        "workflow": [
            {
                "step": "start",
                "tool": {"kind": "noop", "set": {"ctx.before": chance.randint(0, 5)}},
                "next": {"arcs": [{"step": "loop"}]},
            },
            loop,
            {"step": "well", "tool": {"kind": "noop", "value": "{{ [args.fanin, ctx.before] }}"}},
            {"step": "badly", "tool": {"kind": "noop", "value": "{{ [args.fanin.status, args.fanin.total] }}"}},
        ],
    }
    return RandomLoop(seed, failure, elements, book)


def _collection(chance: random.Random, elements: list[dict[str, int]]) -> Any:
    return chance.choice([elements, "{{ workload.elements }}", "{{ workload.elements | list }}"])


def _arcs(chance: random.Random) -> list[dict[str, Any]]:
    args = {"fanin": "{{ fanin }}"}
    guard = chance.choice(
        [
            "event.name == 'loop.done'",
            "fanin.status in ['complete', 'partial']",
            "fanin.succeeded >= 0 and fanin.status != 'failed'",
        ]
    )
    arcs: list[dict[str, Any]] = [{"step": "well", "when": f"{{{{ {guard} }}}}", "args": args}]
    if chance.random() < 0.6:
        arcs.append({"step": "badly", "when": "{{ fanin.status == 'failed' }}", "args": args})
    return arcs


def _task(chance: random.Random, index: int, shares: bool, *, is_parallel: bool) -> dict[str, Any]:
    task: dict[str, Any] = {"name": f"t{index}", "kind": chance.choice(["noop", "noop", "wait"])}
    if task["kind"] == "noop":
        task["value"] = chance.choice(
            [
                "{{ iter.e.n + workload.k }}",
                "{{ iter.index * 2 }}",
                "{{ [_prev | default(0), ctx.before] }}",
                "{{ 12 // (iter.e.n % 4) }}",
            ]
        )
    rules = _rules(chance, index, shares, is_parallel)
    if rules:
        task["spec"] = {"policy": {"rules": rules}}
    if shares and chance.random() < 0.5:
        task["set_shared"] = _shared(chance)
    elif chance.random() < 0.2:
        task["set"] = {"iter.seen": "{{ iter.e.n }}"}
    return task


def _shared(chance: random.Random) -> dict[str, Any]:
    names = chance.sample([*OPERATIONS, *LISTS], chance.randint(1, 3))
    return {f"{name}s": {name: {**OPERATIONS, **LISTS}[name]} for name in names}


def _rules(chance: random.Random, index: int, shares: bool, is_parallel: bool) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    if chance.random() < 0.3:
        then: dict[str, Any] = {"do": chance.choice(["continue", "break", "fail"])}
        rules.append(
            {"when": f"{{{{ outcome.status == 'error' and iter.e.n % {chance.randint(2, 4)} == 0 }}}}", "then": then}
        )
    if chance.random() < 0.2:
        rules.append(
            {"when": "{{ _attempt < 2 }}", "then": {"do": "retry", "attempts": 2, "delay": chance.choice([0, 1])}}
        )
    if chance.random() < 0.2:
        rules.append(
            {
                "when": f"{{{{ iter.e.n == {chance.randint(0, 9)} }}}}",
                "then": {"do": "fail", **_writes(chance, shares, is_parallel)},
            }
        )
    if index and chance.random() < 0.2:
        back = {"do": "jump", "to": f"t{index - 1}", "set_iter": {"back": True}}
        rules.append({"when": "{{ iter.back is not defined }}", "then": back})
    if chance.random() < 0.15:
        rules.append({"when": f"{{{{ iter.index == {chance.randint(0, 9)} }}}}", "then": {"do": "break"}})
    if rules or chance.random() < 0.5:
        rules.insert(0, {"when": "{{ outcome.status == 'error' and _attempt > 2 }}", "then": {"do": "fail"}})
        rules.append({"else": {"then": {"do": "continue", **_writes(chance, shares, is_parallel)}}})
    return rules


def _writes(chance: random.Random, shares: bool, is_parallel: bool) -> dict[str, Any]:
    writes: dict[str, Any] = {}
    if chance.random() < 0.4:
        writes["append_ctx"] = {"log": "{{ iter.index }}"}
    if chance.random() < 0.3:
        writes["set_ctx"] = {"same": 7}
        if is_parallel and not shares and chance.random() < 0.5:
            writes["set_ctx"]["differs"] = f"{{{{ iter.index % {chance.randint(2, 3)} }}}}"
    if shares and chance.random() < 0.3:
        writes["set_shared"] = {"seen": {"count": True}}
    return writes
