"""Codes about tasks, tools, the workbook, and control inside a pipeline."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

_BOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: x }
workflow:
  - step: start
    tool: { kind: workbook, task: CALL }
workbook:
  - { name: greet, kind: noop }
"""

TASKS = {
    "P0501": CodeDoc(
        "a task named by a key",
        "A task whose name is a key cannot be described by a schema, and is easily taken for a property.",
        "Name the task with `name`.",
        "- fetch: { kind: http, url: http://localhost }\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0502": CodeDoc(
        "several tasks in one mapping",
        "A pipeline is an ordered list; the keys of a mapping have no order.",
        "Write one entry of the list per task.",
        "- step: start\n  tool:\n    a: { kind: noop }\n    b: { kind: noop }\n",
        "- step: start\n  tool:\n    - { name: a, kind: noop }\n    - { name: b, kind: noop }\n",
    ),
    "P0503": CodeDoc(
        "a task without tool",
        "Each task calls one tool.",
        "Add `kind`.",
        "- name: fetch\n  url: http://localhost\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0504": CodeDoc(
        "a tool that is not installed",
        "`kind` names one of the tools that come with the engine or with a plug-in.",
        "Correct the spelling, or install the plug-in.",
        "- name: fetch\n  kind: htp\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0505": CodeDoc(
        "a parameter that the tool does not have",
        "Every key of a task that is not a word of the language is a parameter of its tool.",
        "Correct the spelling; runtime knobs such as `timeout` go under `spec`.",
        "- name: fetch\n  kind: http\n  ulr: http://localhost\n  url: http://localhost\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0506": CodeDoc(
        "a parameter is missing",
        "The tool cannot run without it.",
        "Add it; the hint says what it is.",
        "- name: fetch\n  kind: http\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0507": CodeDoc(
        "a parameter of the wrong type",
        "The tool expects another type of value. Templates are checked when they have a value.",
        "Give the type that the message names.",
        "- name: fetch\n  kind: http\n  url: [http://localhost]\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n",
    ),
    "P0508": CodeDoc(
        "a value that the tool does not know",
        "The parameter takes a few values only.",
        "Choose one of those the hint lists.",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  method: GETT\n",
        "- name: fetch\n  kind: http\n  url: http://localhost\n  method: GET\n",
    ),
    "P0509": CodeDoc(
        "args that are no mapping",
        "`args` (or `input`) give names to values, for the task's code and for its other parameters.",
        "Write names with their values.",
        "- name: nothing\n  kind: noop\n  args: [1, 2]\n",
        '- name: nothing\n  kind: noop\n  args: { x: 1 }\n  value: "{{ args.x }}"\n',
    ),
    "P0510": CodeDoc(
        "two tasks of one name",
        "Jumps and expressions find a task by its name, which is unique in its pipeline.",
        "Rename one of them.",
        "- { name: a, kind: noop }\n- { name: a, kind: noop }\n",
        "- { name: a, kind: noop }\n- { name: b, kind: noop }\n",
    ),
    "P0511": CodeDoc(
        "a workbook task that does not exist",
        "`kind: workbook` calls a task that the document's workbook has under that name.",
        "Correct the name in `task` (or in `name`), or add the task.",
        _BOOK.replace("CALL", "great"),
        _BOOK.replace("CALL", "greet"),
    ),
    "P0512": CodeDoc(
        "a workbook task that nothing calls",
        "It never runs.",
        "Call it with `kind: workbook`, or delete it.",
        _BOOK.replace("kind: workbook, task: CALL", "kind: noop"),
        _BOOK.replace("CALL", "greet"),
    ),
    "P0514": CodeDoc(
        "a tool that cannot be loaded",
        "The tool is known, but its code or a library it needs is missing or broken.",
        "Install what the message names, or repair the plug-in.",
    ),
    "P0515": CodeDoc(
        "a choice or a loop that is not complete",
        "`choose` needs branches with tasks; `while` and `until` need tasks and a condition.",
        "Add what is missing.",
        "- name: route\n  choose: []\n",
        '- name: route\n  choose:\n    - { when: "{{ workload.go }}", then: [{ name: a, kind: noop }] }\n',
    ),
    "P0516": CodeDoc(
        "a task with two names",
        "A key and a `name` both name the task.",
        "Keep `name`, and write the task without the key.",
        "- fetch: { name: get, kind: noop }\n",
        "- { name: fetch, kind: noop }\n",
    ),
    "P0517": CodeDoc(
        "a workbook task that is more than one call",
        "A workbook task is one call of a tool, so that each call of it is one task of a pipeline.",
        "Write the choice or the loop in the step, and call workbook tasks from it.",
        _BOOK.replace("CALL", "greet").replace("kind: noop", "kind: workbook, task: other"),
        _BOOK.replace("CALL", "greet"),
    ),
    "P0518": CodeDoc(
        "`assert` is not checked",
        "What a workbook task expects and returns is read by people only.",
        "Nothing has to be done.",
        _BOOK.replace("CALL", "greet").replace("kind: noop", "kind: noop, assert: { returns: [x] }"),
        _BOOK.replace("CALL", "greet"),
    ),
    "P0618": CodeDoc(
        "Python that cannot be compiled",
        "The code of a `python` task is compiled before anything runs, so that a slip in the last step does not come out after "
        "the work of all others.",
        "Correct the code; the place is the one in this file.",
        "- name: a\n  kind: python\n  code: |\n    x = = 1\n",
        "- name: a\n  kind: python\n  code: |\n    x = 1\n",
    ),
    "P0619": CodeDoc(
        "a shell command with a value that is not quoted",
        "Text for a shell is a program. A value that is inserted as it is becomes part of that program: a file called "
        "`a; rm -rf .` would be run.",
        "Write `{{ name | quote }}`, or give the command as a list of arguments, which no shell reads.",
    ),
    "P0620": CodeDoc(
        "a URL that cannot work",
        "Its scheme is none that the tool speaks, its port is out of range, or it names no host; or it stands where only a path "
        "can be read.",
        "Correct the URL.",
    ),
    "P0621": CodeDoc(
        "a file that is not there",
        "The task fails without it. A script that every run comes to is an error; anything else is a warning, as the file may be "
        "there by then.",
        "Correct the path; relative ones begin at the folder of the document.",
    ),
}
