"""The documents that are measured, as text."""

from __future__ import annotations

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: benchmark\n"
STRICT = "executor:\n  spec:\n    durability: strict\n"


def chain(tasks: int, *, strict: bool = False) -> str:
    """One step whose pipeline has so many noop tasks."""
    lines = "".join(f"      - name: t{index}\n        kind: noop\n" for index in range(tasks))
    return f"{HEADER}{STRICT if strict else ''}workflow:\n  - step: start\n    tool:\n{lines}"


def hops(steps: int, *task: str) -> str:
    """So many steps in a row, each with one task: these lines, or a noop."""
    lines = "".join(f"        {line}\n" for line in task or ("kind: noop",))
    made = [HEADER, "workflow:\n"]
    for index in range(steps):
        made.append(f"  - step: s{index}\n    tool:\n      - name: t\n{lines}")
        if index + 1 < steps:
            made.append(f"    next:\n      arcs:\n        - step: s{index + 1}\n")
    return "".join(made)


def fan(iterations: int, in_flight: int = 16) -> str:
    """One parallel loop with a noop task. The collection is a range, so that what is measured is the loop and not a list."""
    return (
        f"{HEADER}workflow:\n"
        "  - step: start\n"
        "    loop:\n"
        f"      in: {{ range: {iterations} }}\n"
        "      iterator: item\n"
        f"      spec: {{ mode: parallel, max_in_flight: {in_flight} }}\n"
        "    tool:\n"
        "      - name: t\n"
        "        kind: noop\n"
    )


def requests(url: str, count: int, in_flight: int, *, computes: bool = False) -> str:
    """One parallel loop that asks a server; if it `computes`, a Python task looks at each answer."""
    return (
        f"{HEADER}workflow:\n"
        "  - step: start\n"
        f"    loop: {{ in: {{ range: {count} }}, iterator: item, spec: {{ mode: parallel, max_in_flight: {in_flight} }} }}\n"
        "    tool:\n"
        f'      - {{ name: ask, kind: http, url: "{url}/orders/{{{{ iter.item }}}}" }}\n'
    ) + (
        '      - { name: look, kind: python, args: { order: "{{ _prev.data }}" }, code: "result = order[\'amount\'] * 2" }\n'
        if computes
        else ""
    )


def shards(elements: int, emit: str, *task: str) -> str:
    """One fanned-out loop with one task, which does nothing unless told otherwise. `emit`: `summary`, or `per_item` for an
    event of each element."""
    return (
        f"{HEADER}workflow:\n"
        "  - step: start\n"
        f"    spec: {{ loop_mode: fanout, fanout: {{ emit: {emit} }} }}\n"
        f"    loop: {{ in: {{ range: {elements} }}, iterator: item }}\n"
        "    tool:\n"
        "      - name: t\n"
    ) + "".join(f"        {line}\n" for line in task or ("kind: noop",))


def lanes(steps: int, in_parallel: int, rounds: int, *task: str) -> str:
    """So many steps in all: one that starts lanes of steps side by side, each of which is walked through so many times. What runs
    at a time is spread over all of the graph."""
    lines = "".join(f"        {line}\n" for line in task or ("kind: noop",))
    made = [HEADER, "workflow:\n  - step: start\n    tool: [{ name: t, kind: noop }]\n"]
    made.append("    next:\n      spec: { mode: inclusive }\n      arcs:\n")
    made += [f"        - step: s{lane}\n" for lane in range(in_parallel)]
    for index in range(steps - 1):
        made.append(f"  - step: s{index}\n    tool:\n      - name: t\n{lines}    next:\n      arcs:\n")
        if index + in_parallel < steps - 1:
            made.append(f"        - step: s{index + in_parallel}\n")
        else:
            made.append(f'        - step: s{index % in_parallel}\n          when: "{{{{ event.visit < {rounds} }}}}"\n')
    return "".join(made)
