"""Codes about words that the language had once, or that belong elsewhere. Each names its replacement."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

_ROOT = "apiVersion: noetl.io/v2\nkind: Playbook\n"

REFUSED = {
    "P0201": CodeDoc(
        "`vars` is not a scope",
        "Inputs never change and are `workload`; values that change are written to `ctx` or `iter`, so the log has every write.",
        "Move inputs to `workload`, and write results with `set_ctx` or `set`.",
        _ROOT + "metadata: { name: x }\nvars: { city: Oslo }\nworkflow:\n  - step: start\n",
        _ROOT + "metadata: { name: x }\nworkload: { city: Oslo }\nworkflow:\n  - step: start\n",
    ),
    "P0202": CodeDoc(
        "a step has no `when`",
        "Whether a token may enter is asked by the step's admission policy, before the step is scheduled.",
        "Write it as a rule of `spec.policy.admit`, or guard the arcs that lead to the step.",
        '- step: start\n  when: "{{ workload.go }}"\n  tool: { kind: noop }\n',
        "- step: start\n  spec:\n    policy:\n      admit:\n        rules:\n"
        '          - { when: "{{ workload.go }}", then: { allow: true } }\n'
        "          - else: { then: { allow: false } }\n  tool: { kind: noop }\n",
    ),
    "P0203": CodeDoc(
        "a step has no `case`",
        "Choosing the way on is the router's task, judging an outcome is the task policy's.",
        "Make arcs with `when` of it, or rules of `spec.policy`.",
        "- step: start\n  tool: { kind: noop }\n  case:\n"
        '    - { when: "{{ ctx.ok }}", then: { next: [{ step: end }] } }\n- step: end\n',
        "- step: start\n  tool: { kind: noop, set: { ctx.ok: true } }\n"
        '  next:\n    arcs:\n      - { step: end, when: "{{ ctx.ok }}" }\n- step: end\n',
    ),
    "P0204": CodeDoc(
        "there is no `pipe`",
        "`tool` is always an ordered pipeline, so a word for one is not needed.",
        "Give the list to `tool` itself.",
        "- step: start\n  pipe:\n    - { name: a, kind: noop }\n",
        "- step: start\n  tool:\n    - { name: a, kind: noop }\n",
    ),
    "P0205": CodeDoc(
        "there is no `eval`",
        "What an outcome means is said by the rules of the task's policy.",
        "Write `spec.policy.rules` with `when` and `then`.",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  eval:\n"
        "    - { expr: \"{{ outcome.status == 'error' }}\", do: retry, attempts: 3 }\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  spec:\n    policy:\n      rules:\n"
        "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: retry, attempts: 3 } }\n",
    ),
    "P0206": CodeDoc(
        "`when` is the only conditional",
        "One word for conditions everywhere is easier to read and to check.",
        "Write `when`.",
        '- step: start\n  next:\n    arcs:\n      - { step: end, expr: "{{ workload.go }}" }\n- step: end\n',
        '- step: start\n  next:\n    arcs:\n      - { step: end, when: "{{ workload.go }}" }\n- step: end\n',
    ),
    "P0207": CodeDoc(
        "`next` is a list or a text",
        "`next` is a router: it says how arcs are chosen as well as which arcs there are.",
        "Put the list under `next.arcs`.",
        "- step: start\n  next: [end]\n- step: end\n",
        "- step: start\n  next:\n    arcs:\n      - step: end\n- step: end\n",
    ),
    "P0208": CodeDoc(
        "an arc's word stands in the router",
        "`step`, `when`, `args` and `set` belong to one arc, and a router may have many.",
        "Move them into an entry of `next.arcs`.",
        "- step: start\n  next: { step: end, args: { n: 1 } }\n- step: end\n",
        "- step: start\n  next:\n    arcs:\n      - { step: end, args: { n: 1 } }\n- step: end\n",
    ),
    "P0209": CodeDoc(
        "storing is not a word of its own",
        "A task that stores is a task like any other, with a policy and an outcome.",
        "Write a task that uses the store's tool, after the task whose result it stores.",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  sink: { kind: postgres, command: INSERT }\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n- name: store\n  kind: postgres\n  command: INSERT\n",
    ),
    "P0210": CodeDoc(
        "`retry` is not a word here",
        "Running a task again is a decision of its policy, so that each attempt is in the log.",
        "Write a rule with `do: retry`.",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  retry: { max_attempts: 5, delay: 2 }\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  spec:\n    policy:\n      rules:\n"
        "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: retry, attempts: 5, delay: 2 } }\n",
    ),
    "P0211": CodeDoc(
        "the tool is named by `kind`, under `tool`",
        "A step is not of a kind: its tasks are.",
        "Write `tool: {kind: …}`.",
        "- step: start\n  type: noop\n",
        "- step: start\n  tool: { kind: noop }\n",
    ),
    "P0212": CodeDoc(
        "a task has no `when`",
        "A pipeline runs its tasks in order; skipping one is a jump, which a policy or a `choose` makes.",
        "Put the task into a `choose`.",
        '- name: store\n  kind: noop\n  when: "{{ workload.go }}"\n',
        '- name: choice\n  choose:\n    - when: "{{ workload.go }}"\n      then:\n        - { name: store, kind: noop }\n',
    ),
    "P0213": CodeDoc(
        "a word that belongs under `spec`",
        "All knobs stand under `spec`, and all policies under `spec.policy`.",
        "Move it there.",
        "- step: start\n  loop: { in: [1, 2], iterator: n, mode: parallel }\n  tool: { kind: noop }\n",
        "- step: start\n  loop: { in: [1, 2], iterator: n, spec: { mode: parallel } }\n  tool: { kind: noop }\n",
    ),
    "P0214": CodeDoc(
        "a step has no `args`",
        "What a step gets comes with the token that enters it; what a tool gets is written at the task.",
        "Put `args` on the arc that leads to the step, or on the task.",
        "- step: start\n  args: { n: 1 }\n  tool: { kind: noop }\n",
        "- step: start\n  tool: { kind: python, args: { n: 1 }, code: result = n }\n",
    ),
    "P0216": CodeDoc(
        "a word that belongs to `metadata`",
        "The root has sections only; what describes the playbook stands in `metadata`.",
        "Move it to `metadata`.",
        _ROOT + "name: hello\nworkflow:\n  - step: start\n",
        _ROOT + "metadata: { name: hello }\nworkflow:\n  - step: start\n",
    ),
    "P0217": CodeDoc(
        "`tool` is not a task",
        "`tool` holds tasks: mappings with a `kind` and the parameters of that tool.",
        "Write `tool: {kind: …}`, with the parameters beside `kind`.",
        "- step: start\n  tool: noop\n",
        "- step: start\n  tool: { kind: noop }\n",
    ),
}
