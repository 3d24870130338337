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
_SHARING = (
    "- step: start\n  loop: { in: [1, 2], iterator: n }\n  tool: { kind: noop, set_shared: { total: { sum: 1 } } }\n"
)

LOOPS = {
    "P0602": CodeDoc(
        "an iterator whose name is taken",
        "`iter.index` is the number of the iteration, `iter.parent` the iteration around it; `iter.loop_id`, `iter.shard_id` and "
        "`iter.iter_key` name the element.",
        "Choose another name.",
        _LOOP + "  loop: { in: [1, 2], iterator: index }\n",
        _LOOP + "  loop: { in: [1, 2], iterator: item }\n",
    ),
    "P0603": CodeDoc(
        "the loop has no collection",
        "A loop runs once per element, so `in` must give elements.",
        "Write a template that gives a list, a list, or a description such as `{range: 10}` or `{lines: orders.csv}`.",
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
        "a loop that cannot be fanned out",
        "A task of it runs a playbook or a job, and only the server starts those. The loop runs on one worker, and comes to the "
        "same.",
        "Nothing has to be done; `loop_mode: local` says that it is meant.",
        "- step: start\n  spec: { loop_mode: fanout }\n  loop: { in: [1, 2], iterator: item }\n"
        "  tool: { kind: playbook, path: other }\n",
        "- step: start\n  spec: { loop_mode: local }\n  loop: { in: [1, 2], iterator: item }\n"
        "  tool: { kind: playbook, path: other }\n",
    ),
    "P0607": CodeDoc(
        "a join names a step twice",
        "A join waits for one token from each of its steps.",
        "Name each step once.",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start, start] }\n",
        "- step: start\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start] }\n",
    ),
    "P0608": CodeDoc(
        "settings of a fan-out that contradict each other",
        "`fail_fast` stops at the first failure; `allow_partial` lets the others run on and the playbook go on.",
        "Keep one of the two.",
        _LOOP + "  spec: { loop_mode: fanout, fanout: { fail_fast: true, allow_partial: true } }\n"
        "  loop: { in: [1, 2], iterator: item }\n",
        _LOOP
        + "  spec: { loop_mode: fanout, fanout: { allow_partial: true } }\n  loop: { in: [1, 2], iterator: item }\n",
    ),
    "P0609": CodeDoc(
        "a fan-out without a loop",
        "It is the iterations of a loop that are fanned out.",
        "Give the step a `loop`, or leave the setting out.",
        _LOOP + "  spec: { loop_mode: fanout }\n",
        _LOOP + "  spec: { loop_mode: fanout }\n  loop: { in: [1, 2], iterator: item }\n",
    ),
    "P0610": CodeDoc(
        "a reducer that does not exist",
        "What iterations share has to come to the same in any order. That is true of sum, count, min, max, append and merge.",
        "Choose one of them.",
        _SHARING + "  spec: { reducers: { total: average } }\n",
        _SHARING + "  spec: { reducers: { total: sum } }\n",
    ),
    "P0611": CodeDoc(
        "`set_shared` that is not enabled",
        "Iterations do not see each other. That they make a value together has to be said where the loop is.",
        "Add `reducers: true`, or each key with its reducer, to the step's `spec`.",
        _SHARING,
        _SHARING + "  spec: { reducers: true }\n",
    ),
    "P0612": CodeDoc(
        "one key with two reducers",
        "A key is summed, or counted, or appended to; the values of two reducers cannot be put together.",
        "Use the same reducer everywhere, or another key.",
        _SHARING + "  spec: { reducers: { total: max } }\n",
        _SHARING + "  spec: { reducers: { total: sum } }\n",
    ),
    "P0613": CodeDoc(
        "`set_shared` outside a loop",
        "It is the tasks of a loop that share. A step, an arc, and a task of a step without a loop have nobody to share with.",
        "Write to ctx, or move it to a task of the loop.",
        "- step: start\n  tool: { kind: noop, set_shared: { total: { sum: 1 } } }\n",
        _SHARING + "  spec: { reducers: true }\n",
    ),
    "P0614": CodeDoc(
        "a fanned-out loop that writes to ctx",
        "Its elements run in any order, on many workers, and none sees what another wrote. Different values for one key are a "
        "conflict that fails an element.",
        "Use `set_shared` with a reducer, or `append_ctx`.",
        "- step: start\n  spec: { loop_mode: fanout }\n  loop: { in: [1, 2], iterator: n }\n"
        "  tool: { kind: noop, set: { ctx.last: '{{ iter.n }}' } }\n",
        "- step: start\n  spec: { loop_mode: fanout, reducers: { last: max } }\n  loop: { in: [1, 2], iterator: n }\n"
        "  tool: { kind: noop, set: { shared.last: '{{ iter.n }}' } }\n",
    ),
    "P0615": CodeDoc(
        "`set_shared` without a reducer",
        "Nothing says how the values of this key come together.",
        "Name the reducer where the value is shared, or in `reducers`.",
        _SHARING.replace("{ sum: 1 }", "1") + "  spec: { reducers: true }\n",
        _SHARING.replace("{ sum: 1 }", "1") + "  spec: { reducers: { total: sum } }\n",
    ),
}
