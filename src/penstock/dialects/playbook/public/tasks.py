"""Words of tools."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.dialects.playbook.public.table import (
    Alias,
    Here,
    Reading,
    Rule,
    Treatment,
    dropped,
    move,
    refusal,
    refused,
    renamed,
)
from penstock.dialects.reader import is_template
from penstock.dialects.source.edits import Drop, Edit, Move, Put
from penstock.dialects.source.node import SourceNode

ALIAS, HINT, IGNORED, REFUSED = Treatment.ALIAS, Treatment.HINT, Treatment.IGNORED, Treatment.REFUSED


def _in_seconds(word: str) -> Rule:
    """A time limit of the task: beside the tool's parameters there, in `spec` here."""

    def read(here: Here) -> Reading | None:
        spec = here.node.get("spec")
        if is_template(here.node.entries[word]):
            return refusal(f"`{word}` is a template, and a time limit is a number", "write the seconds")
        if spec is not None and "timeout" in spec.entries:
            return refusal(f"`{word}` and `spec.timeout` are the same, and both are given", "keep one of the two")
        text = here.text(word)
        if text is None:
            return Reading((move(here, word, "spec", "timeout"),))
        try:
            seconds = float(text)
        except ValueError:
            return refusal(f"`{word}` is no number", "a time limit is known before the run: write the seconds")
        return Reading((Drop(here.under(word)), Put(here.under("spec", "timeout"), seconds, like=here.under(word))))

    return read


# ---- shell and python


def _cmds(here: Here) -> Reading | None:
    """One engine takes a text of several lines for as many scripts, another for one."""
    text = here.text("cmds")
    if text is None or len(text.strip().splitlines()) < 2:
        return None
    return Reading(
        treatment=HINT,
        message="`cmds` is one text, so it is one script: a `cd` or a variable in it holds for the lines below",
        hint="write a list for scripts of their own",
    )


def _libs(here: Here) -> Reading | None:
    if here.node.entries["libs"].kind != "sequence":
        return None
    return Reading(
        (Drop(here.under("libs")),),
        treatment=IGNORED,
        message="a list under `libs` has no effect: nothing is installed for a task",
        hint="install the packages beside the engine, and `import` them in the code; a mapping binds names",
    )


def _python_auth(here: Here) -> Reading | None:
    given = here.node.entries["auth"]
    if given.is_null or (given.kind == "mapping" and not given.entries):
        return Reading((Drop(here.under("auth")),), treatment=IGNORED, message="an empty `auth` has no effect")
    return refusal(
        "`python` has no `auth`: credentials are not put into the environment of the engine",
        'pass what the code needs: `args: {token: "{{ keychain.name }}"}`',
    )


def _assert(here: Here) -> Reading | None:
    """A task of the workbook has it as a word of its own."""
    is_word = here.path[0] == "workbook" and here.path[-1] != "tool"
    return None if is_word else Reading((Drop(here.under("assert")),))


CODE = (
    Alias(
        "shell",
        "cmds",
        "Scripts that run in order, each in a process of its own, with bash; the first that fails stops the "
        "rest. A text is one script.",
        ALIAS,
        "`cmds`",
        _cmds,
    ),
    Alias(
        "shell",
        "timeout_seconds",
        "Seconds for each script; here for all of them together.",
        HINT,
        "`timeout`",
        renamed("timeout_seconds", "timeout"),
    ),
    Alias("shell", "{{ step.returncode }}", "The exit code.", ALIAS, "`{{ step.exit_code }}`"),
    Alias(
        "shell",
        "exports",
        "Read by no engine.",
        REFUSED,
        "`output: json`, and a script that prints JSON",
        refused(
            "`exports` has no effect: variables of a script are not seen outside of it",
            "print JSON and say `output: json`: its fields are `{{ step.data.name }}`",
        ),
    ),
    Alias(
        "python",
        "libs",
        "Modules by the names that the code has for them. A list has no effect.",
        ALIAS,
        "`libs` as a mapping, or `import`",
        _libs,
    ),
    Alias(
        "python",
        "auth",
        "Cloud credentials in environment variables.",
        REFUSED,
        "`args`, with a value from the keychain",
        _python_auth,
    ),
    Alias(
        "python",
        "iterator",
        "Read by no engine: the code runs once.",
        REFUSED,
        "`loop` of the step",
        refused(
            "`iterator` has no effect here: the code would run once",
            "repeating is the step's `loop: {in: …, iterator: …}`",
        ),
    ),
    Alias("python", "script: {uri, source}", "Code from a file, from the document or from the web.", ALIAS, "`script`"),
    Alias(
        "python",
        "input_data, args, context, execution_id",
        "Names that the code may read without being given them.",
        ALIAS,
        "the same names",
    ),
    Alias(
        "python", "return", "A `return` outside of any function gives the result.", ALIAS, "`return`, or `result = …`"
    ),
    Alias(
        "task",
        "assert",
        "What a task expects and returns; checked by no engine.",
        IGNORED,
        "nothing",
        _assert,
    ),
)


# ---- http

_WITH_BODY = ("POST", "PUT", "PATCH")


def _method(here: Here) -> str | None:
    """None when it is a template."""
    given = here.node.get("method")
    if given is None:
        return "GET"
    text = given.text()
    return None if text is None or is_template(given) else text.strip().upper()


def _content_type(here: Here) -> str:
    headers = here.node.get("headers")
    for name, value in headers.entries.items() if headers is not None else ():
        if name.lower() == "content-type":
            return (value.text() or "").lower()
    return ""


def _body_word(here: Here, given: SourceNode) -> str:
    """What a body is sent as: text as it is, the rest as a form if a header says so, else as JSON."""
    if given.text() is not None:
        return "body"  # Of a template it is known when it has a value, and `body` sends what is no text as JSON.
    return "form" if "form" in _content_type(here) else "json"


def _multipart(here: Here, word: str) -> Reading | None:
    if "multipart" not in _content_type(here):
        return None
    return refusal(
        f"`{word}` is sent as a form or as JSON, and the header `Content-Type` says `multipart`",
        "leave the header out: `form` is sent as a form, and with `files` beside it as a multipart form",
    )


def _payload(here: Here) -> Reading | None:
    method = _method(here)
    if method is not None and method not in _WITH_BODY:
        message = f"`payload` has no effect: a {method} request is sent without it"
        return Reading((Drop(here.under("payload")),), IGNORED, message, "`params` are sent in the URL")
    return _multipart(here, "payload") or renamed("payload", _body_word(here, here.node.entries["payload"]))(here)


def _data(here: Here) -> Reading | None:
    given, method = here.node.entries["data"], _method(here)
    if given.kind == "mapping" and given.entries and given.entries.keys() <= {"query", "body"}:
        edits: list[Edit] = []
        if "query" in given.entries:
            edits.append(Move(here.under("data", "query"), here.under("params")))
        if "body" in given.entries:
            edits.append(Move(here.under("data", "body"), here.under(_body_word(here, given.entries["body"]))))
        return Reading(
            (*edits, Drop(here.under("data"))),
            REFUSED,
            "`data` is split into `query` and `body`, which have names of their own",
            "the query is `params`, the body `json`",
        )
    if method is None:
        return refusal("`data` is the query or the body, and `method` is a template", "write `params`, or `json`")
    if method not in _WITH_BODY:
        return renamed("data", "params")(here)
    return _multipart(here, "data") or renamed("data", _body_word(here, given))(here)


_REQUEST = ("method", "url", "endpoint", "params", "headers", "json", "payload", "body", "data")


def _request_in_spec(here: Here) -> Reading | None:
    """Reported once, whichever of its words come."""
    spec = here.node.entries["spec"]
    found = [word for word in _REQUEST if word in spec.entries]
    if not found:
        return None
    edits = [Move(here.under("spec", word), here.under("url" if word == "endpoint" else word)) for word in found]
    rest = () if len(found) < len(spec.entries) else (Drop(here.under("spec")),)
    return Reading(
        (*edits, *rest),
        message=f"`{found[0]}` stands in `spec`, where no engine reads it",
        hint="parameters of the request stand beside `kind`",
    )


def _credentials(here: Here) -> Reading | None:
    """`auth` as a map of aliases: one entry stands for itself."""
    given = here.node.entries["auth"]
    entries = given.entries
    source = given.get("source")
    if source is not None and source.text() is not None:
        return refusal(
            "`auth` has a `source`, which is asked for a token there",
            "put the token into the keychain (`bearer`), and name the entry: `auth: name`",
        )
    if given.kind != "mapping" or not entries or not all(_is_credential(value) for value in entries.values()):
        return None
    (name, only), *more = entries.items()
    word = next((word for word in _STORED if word in only.entries), None)
    message = f"`auth` is a map of aliases: a task of `{here.text('kind')}` has one entry of the keychain"
    if here.text("kind") == "duckdb":
        return refusal(message, "what is reached through DuckDB is attached in a command before: `ATTACH '…' AS name`")
    if more or word is None:
        return refusal(message, "name it: `auth: name`; a second database is a task of its own")
    edit = Put(here.under("auth"), only.entries[word].text() or name, like=here.under("auth", name, word))
    return Reading((edit,), REFUSED, message, "name the entry itself")


_STORED = ("key", "credential")


def _is_credential(value: SourceNode) -> bool:
    return value.kind == "mapping" and bool(value.entries.keys() & {"source", "tool", "service", "credential"})


HTTP = (
    Alias(
        "http",
        "spec: {method, url, …}",
        "Parameters of the request in `spec`, where no engine reads them.",
        REFUSED,
        "the same beside `kind`",
        _request_in_spec,
    ),
    Alias("http", "endpoint", "The URL.", HINT, "`url`", renamed("endpoint", "url"), replaces="url"),
    Alias(
        "http", "payload", "The body of a POST, PUT or PATCH.", HINT, "`json`, or `form` if a header says so", _payload
    ),
    Alias(
        "http",
        "data",
        "The query of a GET or DELETE, the body of the others.",
        HINT,
        "`params`, `json` or `form`",
        _data,
    ),
    Alias("http", "body", "Text as it is; anything else as JSON.", ALIAS, "`body`"),
    Alias("http", "auth: {source: adc}", "A token of the cloud's own tools.", REFUSED, "`auth: name`"),
    Alias(
        "http",
        "verify_ssl",
        "Whether the server's certificate is checked.",
        ALIAS,
        "`verify`",
        renamed("verify_ssl", "verify"),
    ),
    Alias("http", "timeout", "Seconds for the request.", ALIAS, "`spec.timeout`", _in_seconds("timeout")),
    Alias(
        "http", "timeout_seconds", "Seconds for the request.", ALIAS, "`spec.timeout`", _in_seconds("timeout_seconds")
    ),
    Alias(
        "http", "auth: {alias: {source, key}}", "Several credentials by alias.", REFUSED, "`auth: name`", _credentials
    ),
    Alias(
        "http",
        "output_select",
        "Which fields of a large result stay readable.",
        IGNORED,
        "nothing",
        dropped("output_select"),
    ),
    Alias("http", "{{ step.status_code }}", "The status of the answer.", ALIAS, "`{{ step.status }}`"),
    Alias("http", "{{ step.body }}", "What the answer says.", ALIAS, "`{{ step.data }}`"),
    Alias("http", "{{ output.data.x }}", "A field of what the answer says.", ALIAS, "`{{ output.data.data.x }}`"),
)


# ---- Databases


_WITH = {"db_name": "database", "db_host": "host", "db_port": "port", "db_user": "user", "db_password": "password"}


def _with(here: Here) -> Reading | None:
    given = here.node.entries["with"]
    if given.kind != "mapping" or not given.entries.keys() <= _WITH.keys():
        return None
    edits = [Move(here.under("with", key), here.under(_WITH[key])) for key in given.entries]
    return Reading(
        (*edits, Drop(here.under("with"))),
        message="`with` is laid over a credential there, and is not read here",
        hint="what it says goes before `auth`, under the parameters of the tool",
    )


def _database(here: Here) -> Reading | None:
    if here.text("database") == ":memory:":
        return Reading((Drop(here.under("database")),))
    return renamed("database", "path")(here)


def _table_mode(here: Here) -> Reading | None:
    """The one for which the words mean something else on purpose."""
    mode = here.text("mode")
    meant = "truncate" if mode == "replace" else mode
    if meant is None or here.node.get("target") is None:
        return refusal("`transfer` has no `mode`", "how rows are written is `target.mode`")
    more = (
        " `replace` empties the table there, and makes it anew here: `truncate` is the word."
        if mode == "replace"
        else ""
    )
    return Reading(
        (Drop(here.under("mode")), Put(here.under("target", "mode"), meant, like=here.under("mode"))),
        message="`mode` stands beside `target`",
        hint=f"how rows are written is `target.mode`.{more}",
    )


def _end_kind(end: str) -> Rule:
    def read(here: Here) -> Reading | None:
        node = here.node.entries[end]
        word = next((each for each in ("type", "tool") if each in node.entries), None)
        if word is None or "kind" in node.entries:
            return None
        edit = Move(here.under(end, word), here.under(end, "kind"))
        return Reading((edit,), message=f"`{word}` of `{end}` is `kind` today", hint="write `kind`")

    return read


DATABASES = (
    Alias("sql", "credential", "The entry of the keychain.", HINT, "`auth`", renamed("credential", "auth")),
    Alias(
        "sql", "auth: {alias: {source, key}}", "Several credentials by alias.", REFUSED, "`auth: name`", _credentials
    ),
    Alias(
        "sql",
        "with",
        "Fields that are laid over the credential.",
        REFUSED,
        "`database`, `host`, `port`, `user`, `password`",
        _with,
    ),
    Alias("sql", "query", "Any statement.", ALIAS, "`query` or `command`"),
    Alias("sql", "commands", "A list, or a text of several statements.", ALIAS, "`commands`"),
    Alias("sql", "pool", "A pool of connections: `max_size`, `timeout`.", ALIAS, "`pool`"),
    Alias("sql", "script: {uri, source}", "SQL from a file, from the document or from the web.", ALIAS, "`script`"),
    Alias(
        "sql", "{{ step.command_0 }}", "The result of the first command, also when there is one.", ALIAS, "`{{ step }}`"
    ),
    Alias("duckdb", "database", "The file; `:memory:` is none.", ALIAS, "`path`", _database),
    Alias("duckdb", "db_path", "The file.", ALIAS, "`path`", renamed("db_path", "path")),
    Alias("duckdb", "db", "The file.", ALIAS, "`path`", renamed("db", "path")),
    Alias(
        "duckdb",
        "gcs_credential",
        "A key pair for `gs://`.",
        REFUSED,
        "`CREATE SECRET`",
        refused(
            "there is no `gcs_credential`",
            "put the key pair into the keychain, and `CREATE SECRET` from it in a command before",
        ),
    ),
    Alias("transfer", "chunk_size", "Rows to a chunk.", ALIAS, "`chunk_rows`", renamed("chunk_size", "chunk_rows")),
    Alias(
        "transfer", "mode", "How rows are written. `replace` empties the table.", REFUSED, "`target.mode`", _table_mode
    ),
    Alias("transfer", "source: {type}", "The kind of the source.", REFUSED, "`source: {kind}`", _end_kind("source")),
    Alias("transfer", "target: {type}", "The kind of the target.", REFUSED, "`target: {kind}`", _end_kind("target")),
)


# ---- playbook, noop, and what any tool may be told


def _return_result(here: Here) -> Reading | None:
    """A sub-playbook is always waited for, and always gives its result."""
    return Reading((Drop(here.under("return_result")),))


def _output(here: Here) -> Reading | None:
    return None if here.takes("output") else Reading((Drop(here.under("output")),))


CALLS = (
    Alias("playbook", "path", "The document, by its file or by its `metadata.path`.", ALIAS, "`path`"),
    Alias("playbook", "payload", "Inputs of the document.", HINT, "`args`", renamed("payload", "args")),
    Alias(
        "playbook",
        "timeout",
        "Seconds to wait. Over them the task fails, and the called run is cancelled.",
        ALIAS,
        "`spec.timeout`",
        _in_seconds("timeout"),
    ),
    Alias(
        "playbook", "timeout_seconds", "The same as `timeout`.", ALIAS, "`spec.timeout`", _in_seconds("timeout_seconds")
    ),
    Alias(
        "playbook",
        "return_result",
        "Whether to wait for the result: it is always waited for.",
        ALIAS,
        "nothing",
        _return_result,
    ),
    Alias(
        "playbook",
        "result_step",
        "The step whose result it is.",
        ALIAS,
        "`return_step`",
        renamed("result_step", "return_step"),
    ),
    Alias("playbook", "task", "A label; no engine reads it.", IGNORED, "nothing", dropped("task")),
    Alias("noop", "result", "The result.", ALIAS, "`value`", renamed("result", "value")),
    Alias(
        "task",
        "output",
        "Where a large result is kept, and which fields of it stay readable.",
        IGNORED,
        "nothing: a result is read whole, by name, whatever its size",
        _output,
    ),
)


# Read by the reader of the keychain, which jobs have as well.
KEYCHAIN = (
    Alias("keychain", "kind: secrets", "Secrets of a provider.", ALIAS, "`kind: secret_manager`"),
    Alias("keychain", "map", "Several secrets by name, of `secrets`, `secret_manager` and `static`.", ALIAS, "`map`"),
    Alias(
        "keychain",
        "kind: credential",
        "A stored entry under another name, by `credential_ref`, `ref` or `credential`.",
        ALIAS,
        "`kind: secret_manager` with `key`",
    ),
    Alias("keychain", "kind: oauth2 with endpoint, data", "A request for a token, written out.", ALIAS, "the same"),
    Alias("keychain", "type", "The kind of the entry.", HINT, "`kind`"),
    Alias("keychain", "scope, auto_renew, ttl_seconds", "How long a server keeps it.", IGNORED, "nothing"),
    Alias(
        "keychain",
        "kind: google_id_token",
        "A token that is got from Google, as other kinds that begin with `google_`.",
        REFUSED,
        "a token in the keychain, `kind: bearer`",
    ),
    Alias("keychain", "provider: gcp", "Clouds' own stores of secrets.", REFUSED, "`vault`, `local` or `environment`"),
    Alias(
        "task",
        "auth: name",
        "An entry that the document does not declare.",
        ALIAS,
        "`auth: name`: it is looked up in the keychain store, then in the environment",
    ),
)

KINDS = (
    Alias(
        "kind",
        "script",
        "A script in a Kubernetes job.",
        REFUSED,
        "`container`, with the script in its `command`; or `shell`",
    ),
    Alias(
        "kind",
        "snowflake",
        "Statements on Snowflake.",
        REFUSED,
        "`sql`-like tools of `connections`: `driver: adbc_driver_snowflake`",
    ),
    Alias(
        "kind",
        "ducklake",
        "DuckDB with a lake that is kept in a database.",
        REFUSED,
        "`duckdb`, with `INSTALL ducklake` and `ATTACH 'ducklake:…'` in its commands",
    ),
    Alias(
        "kind",
        "subscription",
        "One bounded read of a queue.",
        REFUSED,
        "`nats` with `operation: pull`; packages can add tools for others",
    ),
    Alias("kind", "rhai", "A small script language.", REFUSED, "`python`"),
    Alias(
        "kind",
        "agent",
        "Code of an agent framework, or another playbook.",
        REFUSED,
        "`playbook`, or `python` for a framework",
    ),
    Alias("kind", "provider", "Administration of a cloud by REST.", REFUSED, "`http`, with a token from the keychain"),
    Alias(
        "kind",
        "secrets",
        "The value of an environment variable.",
        REFUSED,
        "an entry in `keychain`: `{name: x, kind: env, var: X}`",
    ),
)


def of_scope(aliases: Iterable[Alias]) -> dict[str, tuple[Alias, ...]]:
    found: dict[str, tuple[Alias, ...]] = {}
    for alias in aliases:
        found[alias.scope] = (*found.get(alias.scope, ()), alias)
    return found
