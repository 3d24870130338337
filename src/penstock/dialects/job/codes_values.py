"""Codes about conditions, parameters, columns, names and secrets; and notes."""

from __future__ import annotations

from penstock.dialects.job.codes_document import MINIMAL
from penstock.dialects.problems import CodeDoc


def _if(condition: str) -> str:
    return (
        "components:\n"
        "  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }\n"
        "  - { name: show, type: log_rows }\n"
        "  - { name: wait, type: sleep, params: { seconds: 1 } }\n"
        "connections:\n"
        "  data: orders -> show\n"
        f'  control: |\n    show (if 1: "{condition}") wait\n'
    )


def _filter(where: str, more: str = "") -> str:
    return (
        "components:\n"
        "  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }\n"
        f"  - {{ name: keep, type: filter, params: {{ where: {where} }} }}\n"
        "  - { name: show, type: log_rows }\n"
        "connections:\n  data: |\n    orders -> keep\n    keep -> show\n" + more
    )


def _say(text: str, head: str = "") -> str:
    return f'{head}components:\n  - {{ name: tell, type: warn, params: {{ message: "{text}" }} }}\n'


def _set(values: str) -> str:
    return (
        f"context: {{ name: x }}\ncomponents:\n  - {{ name: keep, type: set_global, params: {{ values: {values} }} }}\n"
    )


_SECRET = "keychain: [{ name: token, kind: env, var: API_TOKEN }]\n"
_SOURCE = "  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }\n"

CONDITIONS = {
    "J0401": CodeDoc(
        "a condition that says too much",
        "Conditions have literals, names, comparison, boolean and arithmetic operators and a few functions. Nothing else is "
        "evaluated: no methods, no imports, no names with two underscores at both ends.",
        "Compute the value in a component, set it as a global, and compare that.",
        _if("open('x')"),
        _if("NB_LINE > 0"),
    ),
}

PARAMS = {
    "J0501": CodeDoc(
        "a parameter with a wrong value",
        "The component would refuse it when it runs.",
        "Give it what the message names.",
        MINIMAL.replace("seconds: 1", "seconds: [1]"),
        MINIMAL,
    ),
    "J0502": CodeDoc(
        "a parameter that the component does not have",
        "Nobody would read it.",
        "Correct the spelling; the hint lists the parameters.",
        MINIMAL.replace("seconds: 1", "seconds: 1, minuts: 2"),
        MINIMAL,
    ),
    "J0503": CodeDoc(
        "a required parameter is missing",
        "Without it the component cannot run.",
        "Add it; the hint says what it is.",
        MINIMAL.replace("params: { seconds: 1 }", "params: {}"),
        MINIMAL,
    ),
    "J0504": CodeDoc(
        "a file that is not there",
        "The component fails without it. A script of a component that starts with the job is an error, when nothing could make "
        "the file before; anything else is a warning, as the file may be there by then.",
        "Correct the path. Relative ones begin at the folder of the document they are written in.",
    ),
    "J0505": CodeDoc(
        "a template in a key",
        "Only values are rendered. A key is taken as it is written, so the braces would stay in it.",
        'Write the key out, or give the whole mapping as one template: `values: "{{ {name: 1} }}"`.',
        _set('{ "{{ name }}": 1 }'),
        _set('"{{ {name: 1} }}"'),
    ),
    "J0506": CodeDoc(
        "a name that a global cannot have",
        "A global is read as `global.NAME`, so its name begins with a letter and goes on with letters, digits, `_` or `-`. A dot "
        "stands between a component and its own variables, and two underscores in front are kept for joblets.",
        "Choose another name.",
        _set("{ two words: 1 }"),
        _set("{ two_words: 1 }"),
    ),
    "J0507": CodeDoc(
        "a URL that cannot work",
        "Its scheme is none that the component speaks, its port is out of range, or it names no host; or it stands where only a "
        "path can be read.",
        "Correct the URL.",
    ),
    "J0508": CodeDoc(
        "Python that cannot be compiled",
        "Code is compiled before anything runs, so that a slip in the last component does not come out after the work of all "
        "others.",
        "Correct the code; the place is the one in the file.",
    ),
}

COLUMNS = {
    "J0601": CodeDoc(
        "a column that is not there",
        "What flows into the component has no such column. This is known before a row is read.",
        "Correct the name; the hint lists the columns.",
        _filter("ident > 0"),
        _filter("id > 0"),
    ),
    "J0602": CodeDoc(
        "types that do not go together",
        "The engine cannot compare or compute with these types.",
        "Convert one of them, such as `CAST(x AS DATE)`.",
        _filter("id + DATE '2024-01-01' > 1.5"),
        _filter("id > 0"),
    ),
    "J0603": CodeDoc(
        "SQL that cannot be read",
        "Expressions over rows are SQL in the dialect of DuckDB.",
        "Look at the caret: a word, a bracket or a quote is missing there.",
        _filter("id >"),
        _filter("id > 0"),
    ),
}

NAMES_AND_SECRETS = {
    "J0701": CodeDoc(
        "a name that nothing defines",
        "Bare names are variables of the context; the document has no such variable, so it is undefined unless "
        "`--set` brings it.",
        "Correct the spelling, add it to `context`, or write `| default(…)`.",
        _say("{{ citty }}", "context: { city: Oslo }\n"),
        _say("{{ city }}", "context: { city: Oslo }\n"),
    ),
    "J0702": CodeDoc(
        "a name that cannot be seen from here",
        "`iteration` exists in the body of an iterator, `params` in a joblet.",
        "Use `context` or a global.",
        _say("{{ iteration.item }}"),
        _say("{{ global.last | default('none') }}"),
    ),
    "J0703": CodeDoc(
        "a secret where it would be recorded",
        "Conditions, globals and the elements of iterators are kept in the log, and a secret must never be there.",
        "Use the secret in the parameters of the component that needs it.",
        _SECRET
        + 'components:\n  - { name: keep, type: set_global, params: { values: { t: "{{ keychain.token }}" } } }\n',
        _say("{{ keychain.token }}", _SECRET),
    ),
    "J0704": CodeDoc(
        "a secret that is not declared",
        "Secrets are resolved before the run, so each has to be declared in `keychain`.",
        "Correct the name, or add the entry.",
        _say("{{ keychain.tokn }}", _SECRET),
        _say("{{ keychain.token }}", _SECRET),
    ),
    "J0705": CodeDoc(
        "a global that nothing writes",
        "No component of this job sets it by that name. Reading it fails; in the condition of a link it makes that false. "
        "It is a warning when it is nearly another name, or an after-variable of a component that is not there.",
        "Correct the spelling, set it before, or write `| default(…)`.",
        _say("{{ global.total }}"),
        _say("{{ global.total | default(0) }}"),
    ),
    "J0706": CodeDoc(
        "a keychain entry that is not declared",
        "It is looked up by its name before the run, in the keychain store and then in the environment. Whoever reads the "
        "document does not see which secrets it needs, and a slip of the pen is found only then.",
        "Declare it in `keychain`, with its kind; or correct the name.",
    ),
    "J0720": CodeDoc(
        "blanks beside an expression",
        "A value is the expression's own, with its type, only when nothing stands beside `{{ … }}`. With blanks it is text.",
        "Leave the blanks out; after `|` or `>` write a dash, which leaves the last line break out.",
        _say("{{ name }} ", "context: { name: x }\n"),
        _say("{{ name }}", "context: { name: x }\n"),
    ),
    "J0721": CodeDoc(
        "a shell command with a value that is not quoted",
        "Text for a shell is a program, and a value that is inserted as it is becomes part of it: a file called `a; rm -rf .` "
        "would be run.",
        "Write `{{ name | quote }}`, or give the command as a list of arguments, which no shell reads.",
    ),
}

LINT = {
    "J0801": CodeDoc(
        "an output that nobody reads",
        "The rows are made and thrown away. Outputs for rejected rows may be left open.",
        "Join it to something, or leave the component out.",
        "components:\n" + _SOURCE,
        "components:\n" + _SOURCE + "  - { name: show, type: log_rows }\nconnections:\n  data: orders -> show\n",
    ),
    "J0802": CodeDoc(
        "a component that is left out because of another",
        "A deactivated component passes its rows through. Where it has none to pass, what needs them cannot run.",
        "Deactivate these too, or feed them in another way.",
        "components:\n"
        + _SOURCE.replace(" }\n", ", active: false }\n")
        + "  - { name: show, type: log_rows }\n"
        + "  - { name: wait, type: sleep, params: { seconds: 1 } }\nconnections:\n  data: orders -> show\n",
        _filter("id > 0").replace("where: id > 0 }", "where: id > 0 }, active: false"),
    ),
}
