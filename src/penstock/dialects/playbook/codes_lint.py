"""Codes about names in expressions, secrets, and where tokens can go."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

_SECRET = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: x }
keychain: [{ name: token, kind: env, var: API_TOKEN }]
workflow:
  - step: start
    tool:
      kind: http
      url: http://localhost
      headers: { Authorization: "Bearer {{ keychain.token }}" }
"""
_RETRIED = """\
- name: fetch
  kind: http
  url: http://localhost
  spec:
    policy:
      rules:
        - {{ when: "{{{{ outcome.http.status == 503 }}}}", then: {{ do: retry, attempts: 3 }} }}
{last}"""
_LIMITED = '{ when: "{{ workload.again }}", then: { do: jump, to: a } }'

NAMES = {
    "P0701": CodeDoc(
        "a name that nothing defines",
        "A bare name is looked up in args, ctx, iter, workload, and among tasks and steps. In none of them this document has it, "
        "so it is undefined unless the payload brings it. It is an error when it is looked into (`contxt.x`) or "
        "nearly another name.",
        "Correct the spelling, add a default to `workload`, or write `| default(…)`.",
        '- name: tell\n  kind: log\n  message: "{{ mesage_text }}"\n',
        "- name: tell\n  kind: log\n  message: \"{{ message_text | default('') }}\"\n",
    ),
    "P0702": CodeDoc(
        "a key that nothing writes",
        "`ctx`, `iter` and `args` hold what the document writes to them, `workload` what it declares.",
        "Correct the spelling, write the key somewhere, or write `| default(…)`.",
        '- name: tell\n  kind: log\n  message: "{{ ctx.total }}"\n',
        '- name: count\n  kind: noop\n  set: { ctx.total: 3 }\n- name: tell\n  kind: log\n  message: "{{ ctx.total }}"\n',
    ),
    "P0703": CodeDoc(
        "a name that cannot be seen from here",
        "Admission and arcs are asked by the server and see no pipeline; an outcome exists only in the policy of its task.",
        "Write what is needed to ctx, or pass it in the arc's `args`.",
        "- step: start\n  spec:\n    policy:\n      admit:\n        rules:\n"
        "          - { when: \"{{ outcome.status == 'ok' }}\", then: { allow: true } }\n",
        "- step: start\n  spec:\n    policy:\n      admit:\n        rules:\n"
        '          - { when: "{{ workload.go }}", then: { allow: true } }\n',
    ),
    "P0704": CodeDoc(
        "a secret outside a tool's parameters",
        "Conditions, writes and arcs are recorded in the log, and a secret must never be there.",
        "Use the secret in the parameters of the tool that needs it.",
        _SECRET.replace("kind: http\n", "kind: http\n      set: { ctx.t: '{{ keychain.token }}' }\n"),
        _SECRET,
    ),
    "P0705": CodeDoc(
        "a secret that is not declared",
        "Secrets are resolved before the run, so each has to be declared in `keychain`.",
        "Correct the name, or add the entry.",
        _SECRET.replace("keychain.token", "keychain.tokn"),
        _SECRET,
    ),
    "P0706": CodeDoc(
        "a result hidden by the workload",
        "A bare name is looked up in `workload` before results, so a task or step of the same name cannot be read by it.",
        "Write `workload.…` if that is meant; otherwise give the task or step a name of its own.",
        '- { name: city, kind: noop, value: Bergen }\n- { name: b, kind: noop, value: "{{ city }}" }\n',
        '- { name: town, kind: noop, value: Bergen }\n- { name: b, kind: noop, value: "{{ town }}" }\n',
    ),
    "P0708": CodeDoc(
        "a credential that is not declared",
        "`auth` names an entry of the keychain. One that the document does not declare is looked up, before the run, in the "
        "keychain store and then in the environment.",
        "Declare it in `keychain`, so that the document says what it needs.",
        _SECRET.replace('headers: { Authorization: "Bearer {{ keychain.token }}" }', "auth: tokn"),
        _SECRET.replace('headers: { Authorization: "Bearer {{ keychain.token }}" }', "auth: token"),
    ),
    "P0707": CodeDoc(
        "blanks beside an expression",
        "A value is the expression's own, with its type, only when nothing stands beside `{{ … }}`. With blanks it is text. "
        "A block that begins with `|` or `>` ends with a line break.",
        "Leave the blanks out; after `|` or `>` write a dash, which leaves the last line break out.",
        "- name: a\n  kind: noop\n  value: |\n    {{ [1, 2] | length }}\n",
        "- name: a\n  kind: noop\n  value: |-\n    {{ [1, 2] | length }}\n",
    ),
}

LINT = {
    "P0801": CodeDoc(
        "a step that is never reached",
        "No arc that can fire leads to it from the first step.",
        "Add an arc to it, or delete it.",
        "- step: start\n- step: end\n",
        "- step: start\n  next: { arcs: [{ step: end }] }\n- step: end\n",
    ),
    "P0802": CodeDoc(
        "an arc that never fires",
        "Its guard can never hold, or an arc above it in an exclusive router always fires first.",
        "Reorder the arcs, correct the guard, or delete the arc.",
        "- step: start\n  next: { arcs: [{ step: a }, { step: b }] }\n- step: a\n- step: b\n",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }\n- step: a\n- step: b\n",
    ),
    "P0803": CodeDoc(
        "a circle of jumps that nothing leaves",
        "Every way through these tasks jumps back, so the pipeline would never end.",
        "Add a rule that ends in `break`, `fail` or `continue` past the circle.",
        "- { name: a, kind: noop }\n- name: b\n  kind: noop\n  spec: { policy: { rules: [{ else: { do: jump, to: a } }] } }\n",
        f"- {{ name: a, kind: noop }}\n- name: b\n  kind: noop\n  spec:\n    policy:\n      rules:\n        - {_LIMITED}\n",
    ),
    "P0804": CodeDoc(
        "a circle of steps that a token never leaves",
        "Every arc that always fires leads back into the circle, so the run could only end by the limit on visits.",
        "Guard an arc, so that the token can leave.",
        "- step: start\n  next: { arcs: [{ step: again }] }\n- step: again\n  next: { arcs: [{ step: start }] }\n",
        "- step: start\n  next: { arcs: [{ step: again }] }\n- step: again\n"
        '  next: { arcs: [{ step: start, when: "{{ workload.more }}" }] }\n',
    ),
    "P0805": CodeDoc(
        "a join that can never be complete",
        "It waits for a token from a step that never sends one.",
        "Give that step an arc to the join, or leave it out of `join`.",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: both }] }\n- step: a\n"
        "- step: both\n  spec: { join: [start, a] }\n",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: both }] }\n- step: a\n"
        "  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start, a] }\n",
    ),
    "P0806": CodeDoc(
        "a join of steps that exclude each other",
        "The steps lie behind different arcs of one exclusive router, which takes one of them only.",
        "Make the router inclusive, or join fewer steps.",
        '- step: start\n  next: { arcs: [{ step: a, when: "{{ workload.x }}" }, { step: b }] }\n'
        "- step: a\n  next: { arcs: [{ step: both }] }\n- step: b\n  next: { arcs: [{ step: both }] }\n"
        "- step: both\n  spec: { join: [a, b] }\n",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }\n"
        "- step: a\n  next: { arcs: [{ step: both }] }\n- step: b\n  next: { arcs: [{ step: both }] }\n"
        "- step: both\n  spec: { join: [a, b] }\n",
    ),
    "P0807": CodeDoc(
        "a task that never runs",
        "The tasks before it always jump past it or end the pipeline, and nothing jumps to it.",
        "Delete it, or jump to it.",
        "- name: a\n  kind: noop\n  spec: { policy: { rules: [{ else: { do: break } }] } }\n- { name: b, kind: noop }\n",
        "- { name: a, kind: noop }\n- { name: b, kind: noop }\n",
    ),
    "P0808": CodeDoc(
        "a token that is never consumed",
        "The arc leads to a join that does not wait for this step, so the token would be left over.",
        "Add the step to the join's `spec.join`, or let the arc lead elsewhere.",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: both }] }\n"
        "- step: a\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [a] }\n",
        "- step: start\n  next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: both }] }\n"
        "- step: a\n  next: { arcs: [{ step: both }] }\n- step: both\n  spec: { join: [start, a] }\n",
    ),
    "P0809": CodeDoc(
        "an arc waits for an end that never comes",
        "A step ends in `step.done` or `step.failed`; a step with a loop ends in `loop.done` or `step.failed`.",
        "Compare `event.name` with an end that this step has.",
        "- step: start\n  next: { arcs: [{ step: end, when: \"{{ event.name == 'loop.done' }}\" }] }\n- step: end\n",
        "- step: start\n  next: { arcs: [{ step: end, when: \"{{ event.name == 'step.done' }}\" }] }\n- step: end\n",
    ),
    "P0810": CodeDoc(
        "an arc for a failure that does not read `event`",
        "An arc whose guard does not read `event` is considered when the step is done, never when it failed: going on after a "
        "failure has to be written down. So a guard that looks for an error in `output` is not asked when there is one.",
        "Compare `event.name` with `step.failed`.",
        "- step: start\n  next: { arcs: [{ step: end, when: \"{{ output.status == 'error' }}\" }] }\n- step: end\n",
        "- step: start\n  next: { arcs: [{ step: end, when: \"{{ event.name == 'step.failed' }}\" }] }\n- step: end\n",
    ),
    "P0811": CodeDoc(
        "an error that no rule of a policy matches",
        "Without a policy an error fails the pipeline. With one, an outcome that no rule matches goes on, also when it is an "
        "error: the step is done, and the run completes as if all was well.",
        "Let the last rule say what becomes of all other errors.",
        _RETRIED.format(last=""),
        _RETRIED.format(last="        - { when: \"{{ outcome.status == 'error' }}\", then: { do: fail } }\n"),
    ),
}
