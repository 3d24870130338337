"""Codes about the document as a whole, the shapes of its values, and the keychain."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

_MINIMAL = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello }
workflow:
  - step: start
    tool: { kind: noop }
"""

_KEEPING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: hello }
state: { cursor: 0 }
workflow:
  - step: start
    tool: { kind: noop, set: { state.cursor: 5 } }
"""

DOCUMENT = {
    "P0001": CodeDoc(
        "the document is not a mapping",
        "A playbook is a mapping of sections; a list or a text has none.",
        "Begin with `apiVersion`, `kind`, `metadata` and `workflow`.",
        "- step: start\n- step: end\n# a whole file\n",
        _MINIMAL,
    ),
    "P0002": CodeDoc(
        "a section that a playbook does not have",
        "The root has `apiVersion`, `kind`, `metadata`, `keychain`, `executor`, `workload`, `state`, `workflow` and `workbook`.",
        "Correct the spelling, or move what it holds to where it belongs.",
        _MINIMAL + "workflows: []\n",
        _MINIMAL,
    ),
    "P0830": CodeDoc(
        "what is kept between runs is not declared",
        "`state` at the root names what the playbook keeps from run to run, with the values of the first run; a name that it "
        "does not have is a slip.",
        "Correct the spelling, or add the name to `state`.",
        _KEEPING.replace("{ cursor: 0 }", "{ cursr: 0 }"),
        _KEEPING,
    ),
    "P0831": CodeDoc(
        "`state` is written, and nothing is kept",
        "Without `state` at the root, `state.x` is a key like any other, and is gone when the run has ended.",
        "Declare what is kept in `state`; or write `ctx.state.x` if it is for this run only.",
        _KEEPING.replace("state: { cursor: 0 }\n", ""),
        _KEEPING,
    ),
    "P0003": CodeDoc(
        "the version of the language is missing",
        "Without it a later version cannot know how the document is meant.",
        "Add `apiVersion: noetl.io/v2`.",
        "kind: Playbook\nmetadata: { name: hello }\nworkflow:\n  - step: start\n",
        _MINIMAL,
    ),
    "P0004": CodeDoc(
        "the version of the language is not known",
        "This version reads `noetl.io/v2` and `penstock/v1`; others mean different things by the same words.",
        "Write `apiVersion: noetl.io/v2`, and let `penstock validate` name what has to change.",
        _MINIMAL.replace("noetl.io/v2", "noetl.io/v1"),
        _MINIMAL,
    ),
    "P0005": CodeDoc(
        "the kind of document is missing or not known",
        "`kind` says what the document is, for people and for tools.",
        "Write `kind: Playbook`.",
        _MINIMAL.replace("Playbook", "Playbok"),
        _MINIMAL,
    ),
    "P0006": CodeDoc(
        "the document is a job",
        "Jobs are graphs of data components; this version runs playbooks only.",
        "Write it as a playbook, or wait for a version that runs jobs.",
        "kind: Job\nmetadata: { name: load }\ncomponents: []\n",
        _MINIMAL,
    ),
    "P0007": CodeDoc(
        "the playbook has no steps",
        "A run begins at a step, so there must be one.",
        "Give `workflow` at least one step.",
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: hello }\nworkflow: []\n",
        _MINIMAL,
    ),
    "P0008": CodeDoc(
        "the playbook has no name",
        "Runs are listed by the playbook's name; without one the name of the file is taken.",
        "Add `metadata: {name: …}`.",
        "apiVersion: noetl.io/v2\nkind: Playbook\nworkflow:\n  - step: start\n",
        _MINIMAL,
    ),
}

SHAPES = {
    "P0101": CodeDoc(
        "a value of the wrong shape",
        "A mapping stands where a list is expected, a number where text is, and so on.",
        "Give it the shape the message names.",
        "- step: start\n  loop: items\n  tool: { kind: noop }\n",
        '- step: start\n  loop: { in: "{{ workload.items }}", iterator: item }\n  tool: { kind: noop }\n',
    ),
    "P0102": CodeDoc(
        "a word that is not known here",
        "An unknown key would be read by nobody, so it is a mistake.",
        "Correct the spelling; the hint lists the words that may stand here.",
        "- step: start\n  tol: { kind: noop }\n",
        "- step: start\n  tool: { kind: noop }\n",
    ),
    "P0103": CodeDoc(
        "a word that looks misspelt",
        "Further keys are allowed here, but this one is very close to a word that means something.",
        "Correct the spelling, or choose a name that is less alike.",
        "- step: start\n  spec: { polcy: {} }\n",
        "- step: start\n  spec: { policy: {} }\n",
    ),
    "P0104": CodeDoc(
        "a word that means nothing here",
        "A policy is read by the scope it stands in, and nobody reads this key.",
        "Leave it out, or move it to the scope that reads it.",
        "- step: start\n  spec: { policy: { priority: 3 } }\n",
        "- step: start\n  spec: { policy: { lifecycle: { timeout_s: 60 } } }\n",
    ),
    "P0105": CodeDoc(
        "a required word is missing",
        "Without it the part has no meaning.",
        "Add it; the hint says what it is.",
        '- step: start\n  loop: { in: "{{ workload.items }}" }\n',
        '- step: start\n  loop: { in: "{{ workload.items }}", iterator: item }\n',
    ),
    "P0106": CodeDoc(
        "a value that is not one of the choices",
        "Only a few words are allowed as this value.",
        "Choose one of those the hint lists.",
        "- step: start\n  next:\n    spec: { mode: exclusiv }\n    arcs: []\n",
        "- step: start\n  next:\n    spec: { mode: exclusive }\n    arcs: []\n",
    ),
    "P0107": CodeDoc(
        "a number out of its bounds",
        "Beyond that bound the number has no meaning.",
        "Give one within it.",
        "- step: start\n  spec: { policy: { lifecycle: { timeout_s: -1 } } }\n",
        "- step: start\n  spec: { policy: { lifecycle: { timeout_s: 60 } } }\n",
    ),
    "P0108": CodeDoc(
        "the same thing is said twice",
        "With both it is not clear which one holds. `input` is another name for `args`, `reduce` for `op`, and what is said of a "
        "fan-out may stand in several places.",
        "Keep one of the two.",
        "- name: calc\n  kind: python\n  args: { x: 1 }\n  input: { x: 2 }\n  code: result = x\n",
        "- name: calc\n  kind: python\n  args: { x: 1 }\n  code: result = x\n",
    ),
    "P0109": CodeDoc(
        "a template where none is rendered",
        "`workload` and `spec` are taken as they are written, so the braces would stay in the text.",
        "Put the expression where the value is used, such as a tool's parameter or `set_ctx`.",
        _MINIMAL + 'workload: { url: "{{ ctx.host }}/api" }\n',
        _MINIMAL + 'workload: { path: "/api" }\n',
    ),
    "P0110": CodeDoc(
        "a template in a key",
        "Only values are rendered. A key is taken as it is written, so the braces would stay in it.",
        'Write the key out, or give the whole mapping as one template: `value: "{{ {name: 1} }}"`.',
        '- name: a\n  kind: noop\n  value: { "{{ workload.city }}": 1 }\n',
        '- name: a\n  kind: noop\n  value: "{{ {workload.city: 1} }}"\n',
    ),
}

KEYCHAIN = {
    "P0901": CodeDoc(
        "a keychain entry without name or kind",
        "The name is what expressions read, the kind says how the secret is found.",
        "Give it both.",
        _MINIMAL + "keychain: [{ name: token }]\n",
        _MINIMAL + "keychain: [{ name: token, kind: env, var: API_TOKEN }]\n",
    ),
    "P0902": CodeDoc(
        "a kind of secret that is not known",
        "Each kind is found in its own way.",
        "Choose one of those the hint lists.",
        _MINIMAL + "keychain: [{ name: token, kind: enviroment, var: API_TOKEN }]\n",
        _MINIMAL + "keychain: [{ name: token, kind: env, var: API_TOKEN }]\n",
    ),
    "P0903": CodeDoc(
        "a secret written in the playbook",
        "Whoever can read the file can read the secret; `static` is for tests.",
        "Use `env`, `file` or `secret_manager`.",
        _MINIMAL + "keychain: [{ name: token, kind: static, value: abc }]\n",
        _MINIMAL + "keychain: [{ name: token, kind: env, var: API_TOKEN }]\n",
    ),
    "P0904": CodeDoc(
        "two keychain entries of one name",
        "Expressions read an entry by its name.",
        "Rename one of them.",
        _MINIMAL + "keychain: [{ name: token, kind: env, var: A }, { name: token, kind: env, var: B }]\n",
        _MINIMAL + "keychain: [{ name: a, kind: env, var: A }, { name: b, kind: env, var: B }]\n",
    ),
    "P0905": CodeDoc(
        "a keychain entry lacks a field",
        "Entries of this kind cannot be resolved without it.",
        "Add the field; the hint says what it is.",
        _MINIMAL + "keychain: [{ name: token, kind: env }]\n",
        _MINIMAL + "keychain: [{ name: token, kind: env, var: API_TOKEN }]\n",
    ),
}
