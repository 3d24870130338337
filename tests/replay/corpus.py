"""Runs of every sort, to be decided again: name -> how to make one. All under virtual time, in memory."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

from penstock.app.embedded import Embedded
from penstock.server.runs import LocalRun
from tests.chaos.engines import Deed, MemoryHome, Told, resumed, started, virtually, write
from tests.chaos.playbooks import large, small
from tests.depth import some

Make = Callable[[Path], MemoryHome]
CORPUS: dict[str, Make] = {}


def after(seconds: float, what: str) -> Deed:
    """Something that happens to a run so many seconds after it began."""

    async def deed(run: LocalRun) -> None:
        await asyncio.sleep(seconds)
        if what == "cancel":
            await run.cancel("enough")
        elif what == "interrupt":
            run.interrupt("SIGTERM", 0.0)
        else:
            run.interrupt("SIGTERM", float(what))

    return deed


def play(folder: Path, text: str, *deeds: Deed, status: str = "completed", **files: str) -> MemoryHome:
    home = MemoryHome.at(folder)
    for name, other in files.items():
        write(folder, other, f"{name}.yaml")
    file = write(folder, text)

    async def body(engine: Embedded) -> Told:
        return await started(engine, file, None, *deeds)

    told: Told = virtually(home.open, body)
    assert told.status == status, told.summary.error
    return home


def go_on(home: MemoryHome, *deeds: Deed, status: str = "completed") -> MemoryHome:
    async def body(engine: Embedded) -> Told:
        return await resumed(engine, *deeds)

    told: Told = virtually(home.open, body)
    assert told.status == status, told.summary.error
    return home


def run(name: str, text: str, *deeds: Deed, status: str = "completed", **files: str) -> None:
    def make(folder: Path) -> MemoryHome:
        return play(folder, text, *deeds, status=status, **files)

    CORPUS[name] = make


def made(name: str) -> Callable[[Make], Make]:
    def keep(make: Make) -> Make:
        CORPUS[name] = make
        return make

    return keep


FAILING_UNTIL = 'kind: mark, file: marks, until: "{{ workload.until }}"'
SLEEP = "kind: sleep, seconds: "

run(
    "linear",
    """
    - step: start
      tool: [{name: a, kind: noop, value: 1, set: {ctx.a: "{{ outcome.result }}"}}, {name: b, kind: noop, value: "{{ a + 1 }}"}]
      next: {arcs: [{step: second, args: {n: "{{ event.result }}"}, set: {ctx.arc: 5}}]}
    - step: second
      tool: {kind: noop, value: "{{ args.n + ctx.a + ctx.arc }}"}
    """,
)
run(
    "what templates see of the execution",
    """
    - step: start
      tool: {kind: noop, set: {ctx.at: "{{ execution.started_at }}", ctx.id: "{{ execution.id }}", ctx.t: "{{ execution.trace_id }}"}}
      next: {arcs: [{step: child, args: {at: "{{ execution.started_at }}"}}]}
    - step: child
      tool: [{kind: sleep, seconds: 3}, {kind: playbook, path: child.yaml}]
    """,
    child="""
    - step: start
      tool: {kind: noop, set: {ctx.at: "{{ execution.started_at }}"}}
      next: {arcs: [{step: late, when: "{{ execution.started_at > 1700000001 }}"}]}
    - step: late
    """,
)
run(
    "forks and a join, in an order that chance decided",
    """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: slow, args: {n: 1}}, {step: fast, args: {n: 2}}, {step: other}]}
    - step: slow
      tool: {kind: sleep, seconds: 5, set: {ctx.who: slow}}
      next: {arcs: [{step: both, args: {n: 1}}]}
    - step: fast
      tool: {kind: sleep, seconds: 1, set: {ctx.who: fast}}
      next: {arcs: [{step: both, args: {who: "{{ ctx.who }}"}}]}
    - step: other
      tool: {kind: sleep, seconds: 3}
      next: {arcs: [{step: seen, args: {who: "{{ ctx.who }}"}}]}
    - step: seen
      tool: {kind: noop, set: {ctx.seen: "{{ args.who }}"}}
    - step: both
      spec: {join: [slow, fast]}
      tool: {kind: noop, value: "{{ args }}"}
    """,
)
run(
    "a token that is stranded",
    """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
    - step: a
      next: {arcs: [{step: both}]}
    - step: b
      next: {arcs: [{step: both, when: "{{ ctx.never }}"}]}
    - {step: both, spec: {join: [a, b]}}
    """,
    status="failed",
)
run(
    "tokens that are refused",
    """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: shut}, {step: broken}]}
    - {step: shut, spec: {policy: {admit: {rules: [{else: {then: {allow: false}}}]}}}}
    - step: broken
      spec: {policy: {admit: {rules: [{when: "{{ workload.missing.x + 1 > 2 or args + 1 }}", then: {allow: true}}]}}}
    """,
    status="failed",
)
run(
    "an arc that cannot be evaluated",
    """
    - step: start
      next: {arcs: [{step: b, when: "{{ workload.missing.x + 1 > 2 or args + 1 }}"}]}
    - step: b
    """,
    status="failed",
)
for mode in ("sequential", "parallel"):
    for failure in ("fail_fast", "best_effort"):
        run(
            f"a {mode} loop that is {failure}",
            f"""
            - step: start
              spec: {{policy: {{failure: {{mode: {failure}}}}}}}
              loop: {{in: [3, 1, 0, 2, 5, 4], iterator: n, spec: {{mode: {mode}, max_in_flight: 3}}}}
              tool:
                - {{kind: sleep, seconds: "{{{{ iter.n }}}}"}}
                - name: check
                  kind: noop
                  value: "{{{{ iter.n }}}}"
                  spec:
                    policy:
                      rules:
                        - {{when: "{{{{ iter.n == 2 }}}}", then: {{do: fail, append_ctx: {{bad: "{{{{ iter.index }}}}"}}}}}}
                        - {{else: {{then: {{do: continue, append_ctx: {{good: "{{{{ iter.index }}}}"}}}}}}}}
            """,
            status="failed" if failure == "fail_fast" else "completed",
        )
run(
    "iterations that write the same key",
    """
    - step: start
      spec: {policy: {failure: {mode: best_effort}}}
      loop: {in: [3, 2, 1], iterator: n, spec: {mode: parallel, max_in_flight: 3}}
      tool: {kind: sleep, seconds: "{{ iter.n }}", set: {ctx.key: "{{ iter.index }}"}}
    """,
)
run(
    "a loop over nothing and one over a range",
    """
    - step: start
      loop: {in: [], iterator: n}
      tool: {kind: noop}
      next: {arcs: [{step: b}]}
    - step: b
      loop: {in: {range: 5}, iterator: n, spec: {mode: parallel, max_in_flight: 2}}
      tool: {kind: noop, value: "{{ iter.n }}"}
    """,
)
run(
    "a retry that helps, one that does not, and a jump",
    """
    - step: start
      tool:
        - name: flaky
          kind: mark
          file: marks
          failing: 2
          spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 4, delay: 2, backoff: exponential, jitter: 0.5}}]}}
        - name: count
          kind: noop
          value: "{{ ctx.n | default(0) }}"
          spec: {policy: {rules: [{when: "{{ outcome.result < 3 }}", then: {do: jump, to: count, set_ctx: {n: "{{ outcome.result + 1 }}"}}}, {else: {then: {do: break}}}]}}
        - {name: never, kind: noop}
      next: {arcs: [{step: hopeless}]}
    - step: hopeless
      tool: {kind: mark, file: marks, failing: 9, spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 3, delay: 1}}]}}}
      next: {arcs: [{step: mend, when: "{{ event.name == 'step.failed' }}"}]}
    - step: mend
    """,
)
run(
    "a task that takes too long",
    """
    - step: start
      tool: {name: slow, kind: sleep, seconds: 60, spec: {timeout: 2, policy: {rules: [{when: "{{ outcome.error.kind == 'timeout' }}", then: {do: continue, set_ctx: {late: true}}}]}}}
    """,
)
for limit in ("timeout", "deadline"):
    run(
        f"a step that outlives its {limit}",
        f"""
        - step: start
          spec: {{policy: {{lifecycle: {{{limit}_s: 5}}}}}}
          tool: [{{name: a, kind: sleep, seconds: 3, set: {{ctx.a: 1}}}}, {{name: b, kind: sleep, seconds: 3}}]
          next: {{arcs: [{{step: mend, when: "{{{{ event.error.kind == '{limit}' }}}}"}}]}}
        - {{step: mend}}
        """,
    )
run(
    "a step that runs out of time while it waits for a retry",
    """
    - step: start
      spec: {policy: {lifecycle: {timeout_s: 5}}}
      tool: {kind: mark, file: marks, failing: 9, spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 9, delay: 60}}]}}}
    """,
    status="failed",
)
for mode in ("sequential", "parallel"):
    run(
        f"a {mode} loop that runs out of time",
        f"""
        - step: start
          spec: {{policy: {{lifecycle: {{timeout_s: 5}}}}}}
          loop: {{in: [1, 3, 9, 2, 8, 7], iterator: n, spec: {{mode: {mode}, max_in_flight: 3}}}}
          tool:
            - {{kind: sleep, seconds: "{{{{ iter.n }}}}"}}
            - name: again
              kind: mark
              file: marks
              failing: "{{{{ iter.n - 1 }}}}"
              spec: {{policy: {{rules: [{{when: "{{{{ outcome.error }}}}", then: {{do: retry, attempts: 5, delay: 30}}}}, {{else: {{then: {{do: continue, append_ctx: {{got: "{{{{ iter.index }}}}"}}}}}}}}]}}}}
        """,
        status="failed",
    )

TREE = """
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: loop}, {step: call}, {step: wait}, {step: quick}]}
    - step: loop
      loop: {in: [1, 4, 9, 16], iterator: n, spec: {mode: parallel, max_in_flight: 3}}
      tool: [{kind: sleep, seconds: "{{ iter.n }}", set: {ctx.last: same}}, {kind: playbook, path: child.yaml}]
    - step: call
      spec: {policy: {lifecycle: {timeout_s: 100}}}
      tool: {kind: playbook, path: child.yaml}
    - step: wait
      tool: {kind: mark, file: marks, failing: 1, spec: {policy: {rules: [{when: "{{ outcome.error }}", then: {do: retry, attempts: 3, delay: 11}}]}}}
    - step: quick
      tool: {kind: noop, set: {ctx.quick: true}}
      next: {arcs: [{step: more}]}
    - step: more
      tool: {kind: sleep, seconds: 2}
"""
TREE_CHILD = """
    - step: start
      tool: {kind: sleep, seconds: 2}
      next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
    - step: a
      tool: {kind: playbook, path: leaf.yaml}
    - step: b
      loop: {in: [1, 2], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
      tool: {kind: sleep, seconds: "{{ iter.n }}"}
"""
LEAF = "- {step: start, tool: [{kind: sleep, seconds: 1}, {kind: sleep, seconds: 3}]}"

for moment in some((0.5, 1.0, 2.5, 3.5, 5.0, 7.25, 10.5), 4):
    run(f"cancelled after {moment} s", TREE, after(moment, "cancel"), status="cancelled", child=TREE_CHILD, leaf=LEAF)


for moment in (0.5, 2.5, 3.5, 7.25):
    run(
        f"interrupted after {moment} s and left",
        TREE,
        after(moment, "0.7"),
        status="interrupted",
        child=TREE_CHILD,
        leaf=LEAF,
    )


def _stopped(moment: float, grace: str) -> Make:
    def make(folder: Path) -> MemoryHome:
        home = play(folder, TREE, after(moment, grace), status="interrupted", child=TREE_CHILD, leaf=LEAF)
        return go_on(home)

    return make


for moment, grace in some(itertools.product((0.5, 2.5, 3.5, 7.25), ("0", "0.7")), 5):
    CORPUS[f"interrupted after {moment} s with {grace} s of grace, and resumed"] = _stopped(moment, grace)


@made("interrupted twice, resumed and cancelled")
def _interrupted_and_cancelled(folder: Path) -> MemoryHome:
    home = play(folder, TREE, after(1.5, "interrupt"), status="interrupted", child=TREE_CHILD, leaf=LEAF)
    go_on(home, after(2.25, "interrupt"), status="interrupted")
    return go_on(home, after(1.1, "cancel"), status="cancelled")


@made("interrupted, and cancelled while nobody worked on it")
def _cancelled_idle(folder: Path) -> MemoryHome:
    home = play(folder, TREE, after(3.5, "interrupt"), status="interrupted", child=TREE_CHILD, leaf=LEAF)

    async def body(engine: Embedded) -> None:
        await engine.run("run-1").cancel_idle("not wanted any more")

    virtually(home.open, body)
    assert home.store.executions["run-1"].header.status == "cancelled"
    return home


ABORT = """
executor: {spec: {policy: {failure: {mode: fail_fast}}}}
workload: {until: there}
workflow:
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: slow}, {step: same}, {step: loop}, {step: call}]}
    - step: bad
      tool: [{kind: sleep, seconds: 3}, {kind: mark, file: marks, until: "{{ workload.until }}"}]
      next: {arcs: [{step: after}]}
    - step: slow
      tool: [{kind: sleep, seconds: 2, set: {ctx.slow: 1}}, {kind: sleep, seconds: 5}]
      next: {arcs: [{step: after}]}
    - step: same
      tool: {kind: sleep, seconds: 3}
      next: {arcs: [{step: after}]}
    - step: loop
      loop: {in: [1, 2, 4, 6], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
      tool: {kind: sleep, seconds: "{{ iter.n }}", spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {got: "{{ iter.n }}"}}}}]}}}
    - step: call
      tool: {kind: playbook, path: child.yaml}
    - step: after
      tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {after: 1}}}}]}}}
"""


@made("one failure stops the others")
def _aborted(folder: Path) -> MemoryHome:
    return play(folder, ABORT, status="failed", child=TREE_CHILD, leaf=LEAF)


@made("one failure stops the others, and a resume takes all up again")
def _aborted_and_resumed(folder: Path) -> MemoryHome:
    home = _aborted(folder)
    (folder / "there").touch()
    return go_on(home)


FAILING = """
workload: {until: there}
workflow:
    - step: start
      next: {spec: {mode: inclusive}, arcs: [{step: line}, {step: loop}, {step: call}, {step: fine}]}
    - step: fine
      tool: {kind: sleep, seconds: 1}
    - step: line
      tool:
        - {name: a, kind: mark, file: marks, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: a}}}}]}}}
        - {name: b, kind: mark, file: marks, until: "{{ workload.until }}", value: 1}
        - {name: c, kind: mark, file: marks, value: "{{ b + 1 }}", spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: c}}}}]}}}
    - step: loop
      spec: {policy: {failure: {mode: fail_fast}}}
      loop: {in: [10, 20, 30, 40, 50], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
      tool:
        - {name: first, kind: mark, file: marks, value: "{{ iter.n }}", spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {n: "{{ iter.n }}"}}}}]}}}
        - {name: second, kind: mark, file: marks, value: "{{ iter.n + 1 }}", until: "{{ workload.until if iter.n == 20 else 'playbook.yaml' }}"}
      next: {arcs: [{step: sum, args: {all: "{{ event.result.results }}"}}]}
    - step: sum
      tool: {kind: noop, value: "{{ args.all }}", set: {ctx.results: "{{ outcome.result }}"}}
    - step: call
      tool: {kind: playbook, path: sub.yaml, args: {until: "{{ workload.until }}"}}
"""
SUB = """
workload: {until: there}
workflow:
    - step: start
      tool: {name: once, kind: mark, file: marks, value: 7, set: {ctx.once: "{{ outcome.result }}"}}
      next: {arcs: [{step: deeper}]}
    - step: deeper
      tool: {kind: playbook, path: subsub.yaml, args: {until: "{{ workload.until }}"}}
      next: {arcs: [{step: end}]}
    - step: end
      tool: {name: last, kind: mark, file: marks, value: "{{ ctx.once + 1 }}"}
"""
SUBSUB = """
workload: {until: there}
workflow:
    - step: start
      tool: {name: ok, kind: mark, file: marks}
      next: {arcs: [{step: bad}]}
    - step: bad
      tool: {name: not_yet, kind: mark, file: marks, until: "{{ workload.until }}"}
"""


@made("failed")
def failed(folder: Path) -> MemoryHome:
    return play(folder, FAILING, status="failed", sub=SUB, subsub=SUBSUB)


@made("failed, resumed in vain, and resumed")
def failed_and_resumed(folder: Path) -> MemoryHome:
    home = go_on(failed(folder), status="failed")
    (folder / "there").touch()
    return go_on(home)


@made("sub-playbooks whose files are gone by the time of the replay")
def _gone(folder: Path) -> MemoryHome:
    home = play(folder, TREE, child=TREE_CHILD, leaf=LEAF)
    (folder / "child.yaml").unlink()
    (folder / "leaf.yaml").write_text("workflow: nonsense", encoding="utf-8")
    return home


@made("a run that was never finished")
def _cut(folder: Path) -> MemoryHome:
    return play(folder, TREE, child=TREE_CHILD, leaf=LEAF).cut(40)


@made("everything at once")
def _large(folder: Path) -> MemoryHome:
    home = MemoryHome.at(folder)
    file = large(folder)
    virtually(home.open, lambda engine: started(engine, file))
    return home


@made("the small one")
def _small(folder: Path) -> MemoryHome:
    home = MemoryHome.at(folder)
    file = small(folder)
    virtually(home.open, lambda engine: started(engine, file))
    return home


run(
    "results and writes by reference",
    """
    executor: {spec: {policy: {limits: {max_payload_bytes: 2000}}}}
    workflow:
      - step: start
        loop: {in: {range: 40}, iterator: n, spec: {mode: parallel, max_in_flight: 5}}
        tool:
          - {name: big, kind: noop, value: {text: "{{ 'x' * 3000 }}"}}
          - name: size
            kind: noop
            value: {n: "{{ iter.n }}", text: "{{ 'y' * 50 }}"}
            spec: {policy: {rules: [{when: "{{ big.text | length == 3000 }}", then: {do: continue, append_ctx: {sizes: "{{ big.text | length }}"}}}, {else: {then: {do: fail}}}]}}
        set: {ctx.all: "{{ outcome.result.results }}"}
        next: {arcs: [{step: sum, when: "{{ event.result.results | length == 40 }}", args: {first: "{{ event.result.results[3].n }}"}}]}
      - step: sum
        tool: {kind: noop, value: "{{ args.first }}"}
    """,
)
run(
    "a step that is visited until its limit",
    """
    executor: {spec: {policy: {limits: {max_step_visits: 5}}}}
    workflow:
      - step: start
        next: {arcs: [{step: again}]}
      - step: again
        tool: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {v: "{{ execution.visit }}"}}}}]}}}
        next: {arcs: [{step: again, when: "{{ workload.stop is undefined }}"}]}
    """,
    status="failed",
)
