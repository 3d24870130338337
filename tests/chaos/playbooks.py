"""The playbooks that are killed, cut, stopped and failed. `mark` leaves its traces in `file`, in the working folder."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.engines import write

CHILD = """
workload: {file: marks, n: 0}
workflow:
  - step: start
    tool:
      - {name: look, kind: mark, file: "{{ workload.file }}", value: "{{ workload.n }}"}
    next: {arcs: [{step: double, args: {n: "{{ event.result }}"}}]}
  - step: double
    tool:
      - name: twice
        kind: mark
        file: "{{ workload.file }}"
        value: "{{ args.n * 2 }}"
        spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {doubled: "{{ outcome.result }}"}}}}]}}
"""

ONE_STEP_CHILD = """
workload: {file: marks, n: 0}
workflow:
  - step: start
    tool: {name: only, kind: mark, file: "{{ workload.file }}", value: "{{ workload.n + 100 }}"}
"""

# A retry, a jump, a fork, a parallel loop that appends, sub-playbooks, a join and user code: all in a few dozen events.
SMALL = """
workload: {file: marks}
workflow:
  - step: start
    tool:
      - name: flaky
        kind: mark
        file: "{{ workload.file }}"
        value: 7
        failing: 1
        spec:
          policy:
            rules:
              - {when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3}}
              - {else: {then: {do: continue, set_ctx: {flaky: "{{ _attempt }}"}}}}
      - name: count
        kind: mark
        file: "{{ workload.file }}"
        value: "{{ ctx.rounds | default(0) }}"
        spec:
          policy:
            rules:
              - when: "{{ outcome.result < 2 }}"
                then: {do: jump, to: count, set_ctx: {rounds: "{{ outcome.result + 1 }}"}}
    next: {spec: {mode: inclusive}, arcs: [{step: fan}, {step: side, args: {n: 4}}]}
  - step: fan
    loop: {in: [10, 20, 30], iterator: x, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - name: work
        kind: mark
        file: "{{ workload.file }}"
        value: "{{ iter.x + ctx.flaky }}"
        spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {seen: "{{ outcome.result }}"}}}}]}}
    next: {arcs: [{step: both}]}
  - step: side
    tool:
      - {name: call, kind: playbook, path: child.yaml, args: {file: "{{ workload.file }}", n: "{{ args.n }}"}}
      - {name: again, kind: playbook, path: one.yaml, args: {file: "{{ workload.file }}", n: "{{ _prev }}"}}
    next: {arcs: [{step: both, args: {total: "{{ event.result }}"}}]}
  - step: both
    spec: {join: [fan, side]}
    tool:
      - name: add
        kind: python
        args: {seen: "{{ ctx.seen }}", total: "{{ args.side.total }}", file: "{{ workload.file }}"}
        code: |
          with open(file, "a") as traces:
              traces.write("both@2/add#1\\n")
          result = sum(seen) + total
"""


def small(folder: Path, durability: str = "grouped") -> Path:
    write(folder, CHILD, "child.yaml")
    write(folder, ONE_STEP_CHILD, "one.yaml")
    return write(folder, f"executor: {{spec: {{durability: {durability}}}}}\n{SMALL.lstrip()}")


# Nearly every construct there is, without services and without chance.
LARGE = """
workload: {file: marks, items: [1, 2, 3, 4]}
workflow:
  - step: start
    tool:
      - name: init
        kind: mark
        file: "{{ workload.file }}"
        value: {list: [5, 6], flag: true}
        set: {ctx.first: "{{ outcome.result.list }}", ctx.deep.flag: true}
      - name: pages
        while:
          when: "{{ (ctx.page | default(0)) < 3 }}"
          do:
            - name: fetch
              kind: mark
              file: "{{ workload.file }}"
              value: "{{ ctx.page | default(0) }}"
              spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {page: "{{ outcome.result + 1 }}"}, append_ctx: {pages: "{{ outcome.result }}"}}}}]}}
          max: 10
      - name: route
        choose:
          - when: "{{ ctx.page > 100 }}"
            then: [{name: never, kind: mark, file: "{{ workload.file }}"}]
          - else:
            then: [{name: taken, kind: mark, file: "{{ workload.file }}", value: 1}]
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: each, args: {base: 100}}
        - {step: lines}
        - {step: risky}
        - {step: clash}
        - {step: closed}
  - step: closed
    spec: {policy: {admit: {rules: [{when: "{{ ctx.page > 100 }}", then: {allow: true}}, {else: {then: {allow: false}}}]}}}
    tool: {kind: noop}
  - step: clash
    spec: {policy: {failure: {mode: best_effort}}}
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 3}}
    tool: [{kind: mark, file: "{{ workload.file }}", value: "{{ iter.n }}", set: {ctx.same: "{{ iter.index }}"}}, {kind: sleep, seconds: "{{ 3 - iter.n }}"}]
  - step: each
    loop: {in: "{{ workload['items'] }}", iterator: n, spec: {mode: parallel, max_in_flight: 3}}
    tool:
      - {name: inner, kind: playbook, path: inner.yaml, args: {file: "{{ workload.file }}", n: "{{ iter.n + args.base }}"}}
      - name: gather
        kind: noop
        value: "{{ _prev }}"
        spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {inner: "{{ outcome.result }}"}}}}]}}
    next: {arcs: [{step: all, args: {done: "{{ event.result.done }}"}}]}
  - step: lines
    spec: {policy: {failure: {mode: best_effort}}}
    loop: {in: [3, 0, 5], iterator: d}
    tool:
      - name: divide
        kind: python
        args: {d: "{{ iter.d }}"}
        code: "result = 30 // d"
        spec:
          policy:
            rules:
              - {when: "{{ outcome.status == 'error' }}", then: {do: fail, set_ctx: {bad: "{{ iter.index }}"}}}
              - {else: {then: {do: continue, set_ctx: {sum: "{{ (ctx.sum | default(0)) + outcome.result }}"}}}}
      - {name: after, kind: mark, file: "{{ workload.file }}", value: "{{ ctx.sum }}"}
    set: {ctx.lines: "{{ outcome.result.failed }}"}
    next: {arcs: [{step: all, args: {failed: "{{ event.result.failed }}"}}]}
  - step: risky
    tool:
      - name: boom
        kind: mark
        file: "{{ workload.file }}"
        failing: 5
        spec: {policy: {rules: [{when: "{{ outcome.error.retryable }}", then: {do: retry, attempts: 2, delay: 3, backoff: exponential}}]}}
    next: {arcs: [{step: mend, when: "{{ event.name == 'step.failed' }}", args: {why: "{{ event.error.kind }}"}}]}
  - step: mend
    tool: {name: mended, kind: mark, file: "{{ workload.file }}", value: "{{ args.why }}"}
    next: {arcs: [{step: all}]}
  - step: all
    spec: {join: [each, lines, mend]}
    tool:
      - {name: sum, kind: mark, file: "{{ workload.file }}", value: "{{ ctx.inner | length }}"}
      - {name: slow, kind: sleep, seconds: 10}
      - name: again
        kind: noop
        spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {rounds: "{{ (ctx.rounds | default(0)) + 1 }}"}}}}]}}
    next:
      arcs:
        - {step: last, when: "{{ ctx.rounds >= 2 }}"}
        - {step: turn}
  - step: turn
    next: {arcs: [{step: again, args: {visit: "{{ ctx.rounds }}"}}]}
  - step: again
    tool:
      - name: more
        kind: noop
        spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {rounds: "{{ ctx.rounds + 1 }}"}}}}]}}
    next: {arcs: [{step: turn, when: "{{ ctx.rounds < 4 }}"}, {step: last}]}
  - step: last
    tool: {name: end, kind: noop, value: "{{ ctx }}"}
"""

INNER = """
workload: {file: marks, n: 0}
workflow:
  - step: start
    loop: {in: "{{ [workload.n, workload.n + 1] }}", iterator: m, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      - name: leaf
        kind: mark
        file: "{{ workload.file }}"
        value: "{{ iter.m * 10 + iter.parent.index }}"
        spec: {policy: {rules: [{else: {then: {do: continue, append_ctx: {got: "{{ outcome.result }}"}}}}]}}
    next: {arcs: [{step: sum}]}
  - step: sum
    tool: {kind: mark, file: "{{ workload.file }}", value: "{{ ctx.got | sum }}"}
"""


def large(folder: Path) -> Path:
    write(folder, INNER, "inner.yaml")
    return write(folder, LARGE)
