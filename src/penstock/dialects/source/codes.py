"""What can be wrong with a file before anybody asks what it means: the codes of the loader."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

PROJECTS = {
    "Y0401": CodeDoc(
        "a relative path that is no file of what is put into the catalog",
        "A worker has no folder of the document's. What a relative path leads to is a file of the project, or lies in the base "
        "folder that workers were started with.",
        "Put the whole folder (`penstock catalog put DIR`), start workers with `--base DIR`, or write an absolute path.",
    ),
    "Y0402": CodeDoc(
        "a path that leads out of the project",
        "Only what lies in the folder is put into the catalog with it.",
        "Move the file into the project, or write an absolute path.",
    ),
    "Y0403": CodeDoc(
        "a path that leads to what was left out of the project",
        "The file is there, and is left out: `.gitignore` or `.penstockignore` names it, or it looks like a secret.",
        "Take it out of the ignore file; read secrets through the keychain.",
    ),
    "Y0404": CodeDoc(
        "a file of the project is written",
        "All runs of a version read the same files, so that these are read-only.",
        "Write to another path: it leads to the base folder of the worker.",
    ),
}

FILES = {
    "Y0001": CodeDoc(
        "the file does not exist",
        "The path leads to nothing.",
        "Check the spelling, and the folder the command was started in.",
    ),
    "Y0002": CodeDoc(
        "the path is not a file",
        "A folder or a device was given where a document is read.",
        "Give the path of one YAML file.",
    ),
    "Y0003": CodeDoc(
        "the file cannot be read",
        "The operating system refused to open or read it.",
        "Check its permissions and that the disk is there.",
    ),
    "Y0004": CodeDoc(
        "the file is too large",
        "A document is written by people and read whole; data belongs elsewhere.",
        "Move the data into a file or a table, and let a task read it.",
    ),
    "Y0005": CodeDoc(
        "the file is not text",
        "It holds NUL bytes, as programs, archives and UTF-16 texts do.",
        "Give the YAML file itself, saved as UTF-8.",
    ),
    "Y0006": CodeDoc(
        "the file is not UTF-8",
        "Some bytes are no UTF-8, as in a text saved as Latin-1 or Windows-1252.",
        "Save the file as UTF-8.",
    ),
    "Y0007": CodeDoc(
        "the document is empty",
        "There is nothing in it, or nothing but comments.",
        "Write a document, or start from `penstock new`.",
        "# to be written\n",
        "kind: Playbook\n",
    ),
    "Y0008": CodeDoc(
        "a character that may not stand in YAML",
        "Control characters are invisible, and most got into the file by accident.",
        "Delete it, or write it as an escape between double quotes.",
        "title: ring\x07\n",
        'title: "ring\\a"\n',
    ),
}

SYNTAX = {
    "Y0101": CodeDoc(
        "the text is not YAML",
        "The parser found something it cannot place.",
        "Look at the line shown and the one above it.",
        "a: ]\n",
        "a: []\n",
    ),
    "Y0102": CodeDoc(
        "a template is not quoted",
        "To YAML, `{` at the start of a value opens a mapping, so `{{ x }}` is a mapping inside a mapping.",
        "Put quotes around the whole value.",
        "url: {{ workload.url }}\n",
        'url: "{{ workload.url }}"\n',
    ),
    "Y0103": CodeDoc(
        "a tab is used to indent",
        "YAML indents with spaces only, because a tab has no fixed width.",
        "Replace the tab by spaces.",
        "step:\n\ttool: noop\n",
        "step:\n  tool: noop\n",
    ),
    "Y0104": CodeDoc(
        "no space after a colon",
        "Without a space, `kind:http` is one word, not a key and a value.",
        "Write a space after the colon.",
        "tool:\n  name: get\n  kind:http\n  url: x\n",
        "tool:\n  name: get\n  kind: http\n  url: x\n",
    ),
    "Y0105": CodeDoc(
        "a quote is not closed",
        "The quoted text runs to the end of the file.",
        "Close it with the quote that opened it.",
        'title: "orders\nkind: Playbook\n',
        'title: "orders"\nkind: Playbook\n',
    ),
    "Y0106": CodeDoc(
        "a value must be quoted",
        "Some characters mean something to YAML: `: ` inside a value, `*`, `&`, `!`, `@`, `%` and the back-tick at its start.",
        "Put quotes around the whole value.",
        "message: error: no rows\n",
        'message: "error: no rows"\n',
    ),
    "Y0107": CodeDoc(
        "the indentation does not fit",
        "Lines of one mapping or list start in the same column; lines inside start further right.",
        "Bring the line under the one it belongs with.",
        "step: a\n  tool: noop\n",
        "step: a\ntool: noop\n",
    ),
    "Y0108": CodeDoc(
        "a bracket is not closed",
        "A `[` or `{` has no partner, or a comma is missing inside it.",
        "Close the bracket, or put a comma between the values.",
        "in: [1, 2\nstep: a\n",
        "in: [1, 2]\nstep: a\n",
    ),
    "Y0109": CodeDoc(
        "an unknown escape",
        "Between double quotes a backslash starts an escape, and only a few letters may follow.",
        "Use single quotes, in which a backslash is just a backslash, or write it twice.",
        'folder: "C:\\data"\n',
        "folder: 'C:\\data'\n",
    ),
    "Y0110": CodeDoc(
        "a merge conflict was left in the file",
        "Lines of `<<<<<<<`, `=======` or `>>>>>>>` are the marks of a version control system.",
        "Choose one of the versions and delete the marks.",
        "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> theirs\n",
        "a: 1\nb: 2\n",
    ),
}

MEANING = {
    "Y0201": CodeDoc(
        "more than one document in the file",
        "A file is one document; `---` starts another.",
        "Keep each document in a file of its own.",
        "a: 1\n---\nb: 2\n",
        "a: 1\n",
    ),
    "Y0202": CodeDoc(
        "a key is given twice",
        "YAML readers silently keep one of the two, and not all of them the same one.",
        "Delete one, or rename it.",
        "a: 1\na: 2\n",
        "a: 1\nb: 2\n",
    ),
    "Y0203": CodeDoc(
        "a key is not text",
        "Keys are names. A list, a mapping, nothing, a truth value or a fraction cannot be one.",
        "Quote the key.",
        "true: 1\n",
        '"true": 1\n',
    ),
    "Y0204": CodeDoc(
        "a tag is not allowed",
        "Tags make some readers build objects or read files; documents here are plain data.",
        "Delete the tag. Secrets come from the keychain.",
        "password: !secret db\n",
        "password: '{{ keychain.db.password }}'\n",
    ),
    "Y0205": CodeDoc(
        "a number that JSON cannot say",
        "Values travel as JSON, which has no infinity, no not-a-number, and nothing beyond the range of a double.",
        "Quote it if text is meant, or write a number in range.",
        "limit: .inf\n",
        "limit: 1000000\n",
    ),
    "Y0206": CodeDoc(
        "an alias without an anchor",
        "`*name` repeats what `&name` marked earlier in the same file.",
        "Mark the value with `&name` above it, or quote the text if a star is meant.",
        "files: *csv\n",
        'files: "*csv"\n',
    ),
    "Y0207": CodeDoc(
        "an anchor contains itself",
        "The value would be endless.",
        "Write the repeated part out.",
        "a: &a [1, *a]\n",
        "a: &a [1]\nb: [1, *a]\n",
    ),
    "Y0208": CodeDoc(
        "`<<` does not merge a mapping",
        "`<<` takes over the keys of one anchored mapping, `<<: *name`, or of several, `<<: [*one, *two]`.",
        "Anchor the mapping, or quote the key if `<<` is a name.",
        "a:\n  <<: 5\n",
        "base: &base {x: 1}\na:\n  <<: *base\n  y: 2\n",
    ),
}

SECRETS = {
    "Y0210": CodeDoc(
        "a secret in the document itself",
        "Whoever reads the file reads the secret. It is blanked in the copy that is kept with a run and in all that is shown, "
        "and a resume reads it again from the file.",
        "Declare it in `keychain` (`kind: env`, `file` …) and write `{{ keychain.name }}`, or name the entry in `auth`.",
    ),
}

LIMITS = {
    "Y0301": CodeDoc(
        "the document is nested too deeply",
        "No document that people write is so deep; a bomb is.",
        "Flatten it, or move the data into a file that a task reads.",
    ),
    "Y0302": CodeDoc(
        "the document has too many values",
        "Values that aliases repeat count each time: a few lines can stand for billions.",
        "Move the data into a file that a task reads; use fewer aliases.",
    ),
    "Y0303": CodeDoc(
        "the document has too many aliases",
        "Aliases are for a few repeated parts.",
        "Move what is repeated into a sub-playbook or into `workload`.",
    ),
    "Y0304": CodeDoc(
        "aliases repeat too much text",
        "Text that aliases repeat counts each time.",
        "Write the text once, in `workload`, and refer to it with a template.",
    ),
}

CALLS = {
    "Y0501": CodeDoc(
        "a document that is called and not there",
        "`path` is relative to the calling file; a name that is no file must be known to the catalog of the server that runs it.",
        "Correct the path.",
    ),
    "Y0502": CodeDoc(
        "an input that the called document does not have",
        "It neither declares nor reads an input of that name, so the call would be refused.",
        "Correct the name; `inputs: open` in the called document takes any.",
    ),
    "Y0503": CodeDoc(
        "an input that the called document needs",
        "It reads the input, has no default for it, and the call does not give it.",
        "Give it in the call, or give it a default in the called document.",
    ),
    "Y0504": CodeDoc(
        "a part that the called document does not have",
        "The call names a step to return, or a context group.",
        "Correct the name.",
    ),
    "Y0505": CodeDoc(
        "a secret that is not there",
        "All secrets of a document, and of those that it calls by paths that are written out, are looked for before a run. "
        "A run on this machine would be refused. What only a service can say, such as Vault, is not asked before.",
        "Set the variable, put the file there, or store the secret with `penstock keychain set NAME`.",
    ),
}

LOADER_CODES = {**FILES, **SYNTAX, **MEANING, **SECRETS, **LIMITS, **PROJECTS, **CALLS}
