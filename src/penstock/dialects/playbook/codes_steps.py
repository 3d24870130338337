"""Codes about steps and their names, policies, and loops."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

STEPS = {
    "P0301": CodeDoc(
        "a name that cannot be used",
        "Names stand in ids and in expressions, so they have no blanks, dots or signs but `_` and `-`.",
        "Begin with a letter, and go on with letters, digits, `_` or `-`.",
        "- step: first step\n",
        "- step: first_step\n",
    ),
    "P0302": CodeDoc(
        "two steps of one name",
        "Arcs and expressions find a step by its name.",
        "Rename one of them.",
        "- step: start\n- step: start\n",
        "- step: start\n  next: { arcs: [{ step: end }] }\n- step: end\n",
    ),
    "P0303": CodeDoc(
        "a name that expressions already use",
        "`ctx`, `workload`, `args`, `iter` and the like always mean themselves, so the result could not be read by this name.",
        "Choose another name.",
        "- step: workload\n",
        "- step: load_work\n",
    ),
    "P0304": CodeDoc(
        "an arc leads to a step that does not exist",
        "The token would have nowhere to go.",
        "Correct the name, or add the step.",
        "- step: start\n  next: { arcs: [{ step: ends }] }\n- step: end\n",
        "- step: start\n  next: { arcs: [{ step: end }] }\n- step: end\n",
    ),
    "P0305": CodeDoc(
        "a step is named that does not exist",
        "A join waits for steps, and a run begins at one: both must be there.",
        "Correct the name, or add the step.",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start, other] }\n",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start] }\n",
    ),
}

_RULES = "- name: a\n  kind: noop\n  spec:\n    policy:\n      rules:\n"

POLICIES = {
    "P0401": CodeDoc(
        "a task's policy without rules",
        "`spec.policy` of a task is a mapping with a list under `rules`, and has no other shape.",
        "Put the list under `rules`, or leave the policy out: then ok continues and an error fails.",
        "- name: a\n  kind: noop\n  spec:\n    policy:\n      - else: { do: continue }\n",
        _RULES + "        - else: { do: continue }\n",
    ),
    "P0402": CodeDoc(
        "a control action outside a task's policy",
        "Only a task's policy controls a pipeline. Policies of the executor, of steps, loops and routers set limits and hints.",
        "Move the rules to `spec.policy.rules` of the task they are about.",
        "- step: start\n  spec: { policy: { rules: [{ else: { do: retry } }] } }\n  tool: { kind: noop }\n",
        "- step: start\n  tool: { kind: noop, spec: { policy: { rules: [{ else: { do: continue } }] } } }\n",
    ),
    "P0403": CodeDoc(
        "a rule that is neither `when` nor `else`",
        "A rule has a condition, or it is the fallback.",
        "Give it `when`, or make it the last one with `else`.",
        _RULES + "        - then: { do: fail }\n",
        _RULES + "        - else: { then: { do: fail } }\n",
    ),
    "P0404": CodeDoc(
        "rules below `else`",
        "Rules are asked from top to bottom and the first match decides, so nothing below `else` is ever asked.",
        "Move `else` to the end.",
        _RULES
        + '        - else: { do: continue }\n        - { when: "{{ ctx.x | default(false) }}", then: { do: fail } }\n',
        _RULES
        + '        - { when: "{{ ctx.x | default(false) }}", then: { do: fail } }\n        - else: { do: continue }\n',
    ),
    "P0405": CodeDoc(
        "an admission rule without verdict",
        "Admission is a gate: each rule says whether the token may enter.",
        "End the rule in `then: {allow: true}` or `then: {allow: false}`.",
        "- step: start\n  spec: { policy: { admit: { rules: [{ else: { then: {} } }] } } }\n",
        "- step: start\n  spec: { policy: { admit: { rules: [{ else: { then: { allow: true } } }] } } }\n",
    ),
    "P0406": CodeDoc(
        "a rule that does nothing",
        "A rule says what to do when it matches.",
        "Add `then: {do: …}`.",
        _RULES + '        - when: "{{ workload.go }}"\n',
        _RULES + '        - when: "{{ workload.go }}"\n          then: { do: break }\n',
    ),
    "P0407": CodeDoc(
        "a directive that stands beside `when`",
        "Directives and their options stand under `then`, so that conditions and actions never mix.",
        "Move them under `then`.",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", do: fail }\n",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }\n",
    ),
    "P0408": CodeDoc(
        "a write to something that cannot be written",
        "`workload`, `args`, `event` and `keychain` never change during a run.",
        "Write to `ctx.…`, or to `iter.…` within a pipeline.",
        "- name: a\n  kind: noop\n  set: { workload.city: Oslo }\n",
        "- name: a\n  kind: noop\n  set: { ctx.city: Oslo }\n",
    ),
    "P0412": CodeDoc(
        "a directive that does not exist",
        "After a task a pipeline can continue, retry, jump, break or fail, and nothing else.",
        "Choose one of these five.",
        _RULES + "        - else: { then: { do: rety, attempts: 5 } }\n",
        _RULES + "        - else: { then: { do: retry, attempts: 5 } }\n",
    ),
    "P0413": CodeDoc(
        "a jump without target",
        "A jump goes to a task of the same pipeline.",
        "Name it with `to`.",
        _RULES + '        - { when: "{{ workload.again }}", then: { do: jump } }\n',
        _RULES + '        - { when: "{{ workload.again }}", then: { do: jump, to: a } }\n',
    ),
    "P0414": CodeDoc(
        "a jump to a task that does not exist",
        "A jump stays within its pipeline; other steps are reached by arcs.",
        "Correct the label, or use `next.arcs` to go to another step.",
        _RULES + '        - { when: "{{ workload.again }}", then: { do: jump, to: b } }\n',
        _RULES + '        - { when: "{{ workload.again }}", then: { do: jump, to: a } }\n',
    ),
    "P0415": CodeDoc(
        "an option without its directive",
        "`to` belongs to jump; `attempts`, `backoff`, `delay`, `max_delay` and `jitter` belong to retry.",
        "Add the directive, or leave the option out.",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", then: { attempts: 5 } }\n",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: retry, attempts: 5 } }\n",
    ),
    "P0416": CodeDoc(
        "a retry without `attempts`",
        "Every retry is bounded; without `attempts` the task runs three times in all.",
        "Write how many runs there may be.",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: retry } }\n",
        _RULES + "        - { when: \"{{ outcome.status == 'error' }}\", then: { do: retry, attempts: 5 } }\n",
    ),
    "P0417": CodeDoc(
        "a reserved word of the policy is used",
        "`mode`, `on_unmatched`, `before`, `after` and `finally` are kept for later and do nothing yet.",
        "Leave it out; write what it should do as rules or tasks.",
        "- name: a\n  kind: noop\n  spec:\n    policy:\n      on_unmatched: fail\n      rules: []\n",
        _RULES + "        - else: { do: fail }\n",
    ),
}

_LOOP = "- step: start\n  tool: { kind: noop }\n"

LOOPS = {
    "P0602": CodeDoc(
        "an iterator whose name is taken",
        "`iter.index` is the number of the iteration, and `iter.parent` the iteration around it.",
        "Choose another name.",
        _LOOP + "  loop: { in: [1, 2], iterator: index }\n",
        _LOOP + "  loop: { in: [1, 2], iterator: item }\n",
    ),
    "P0603": CodeDoc(
        "the loop has no collection",
        "A loop runs once per element, so `in` must give elements.",
        "Write a template that gives a list, a list, or `{range: 10}`.",
        _LOOP + "  loop: { in: 10, iterator: item }\n",
        _LOOP + "  loop: { in: { range: 10 }, iterator: item }\n",
    ),
    "P0604": CodeDoc(
        "a range that cannot be counted",
        "A range has a `stop`, perhaps a `start` and a `step` that is not 0.",
        "Write `{range: 10}` or `{range: {start: 0, stop: 10, step: 2}}`.",
        _LOOP + "  loop: { in: { range: { start: 1 } }, iterator: item }\n",
        _LOOP + "  loop: { in: { range: { start: 1, stop: 5 } }, iterator: item }\n",
    ),
    "P0605": CodeDoc(
        "`max_in_flight` of a sequential loop",
        "A sequential loop has one iteration at a time, so the number has no effect.",
        "Add `mode: parallel`, or leave the number out.",
        _LOOP + "  loop: { in: [1, 2], iterator: item, spec: { max_in_flight: 5 } }\n",
        _LOOP + "  loop: { in: [1, 2], iterator: item, spec: { mode: parallel, max_in_flight: 5 } }\n",
    ),
    "P0606": CodeDoc(
        "a loop that asks for fan-out",
        "This version runs every loop in one worker, with bounded concurrency. The result is the same.",
        "Nothing has to be done.",
        _LOOP + "  spec: { loop_mode: fanout }\n  loop: { in: [1, 2], iterator: item }\n",
        _LOOP + "  spec: { loop_mode: local }\n  loop: { in: [1, 2], iterator: item }\n",
    ),
    "P0607": CodeDoc(
        "a join names a step twice",
        "A join waits for one token from each of its steps.",
        "Name each step once.",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start, start] }\n",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start] }\n",
    ),
}
