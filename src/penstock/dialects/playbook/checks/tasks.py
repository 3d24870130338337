"""Tasks before the run: their literals (URLs, files, code, names of secrets, paths of other documents), and their kinds and
parameters against the installed tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from penstock.dialects import literals
from penstock.dialects.calls import PLAYBOOK_CALLS, DocumentCall, call_in
from penstock.dialects.expressions import QUOTE_HINT, UNQUOTED, unquoted
from penstock.dialects.playbook.checks.flow import Flow
from penstock.dialects.playbook.checks.names import Definitions, Known
from penstock.dialects.playbook.drafts import ParamDraft, PlaybookDraft, StepDraft, TaskDraft, Where
from penstock.dialects.playbook.guards import constant
from penstock.dialects.playbook.public import WORDS
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.tasks import WORKBOOK
from penstock.dialects.playbook.words import SCOPES, SQL_KINDS
from penstock.dialects.problems import Problem, closest
from penstock.dialects.reader import did_you_mean, is_template, listed, texts_in
from penstock.dialects.schema import NOUNS, types_of
from penstock.dialects.source.node import SourceNode
from penstock.dialects.source.positions import position_in_text
from penstock.expr.check import inspect
from penstock.kernel.values import JsonMap
from penstock.ports.meanings import SCRIPT
from penstock.ports.plugins import ParamInfo, ToolDescription
from penstock.tools.python.code import require_compiles

# The kind of an entry, where the tool declares it; elsewhere it is whatever is stored under its name.
_KINDS = {"postgres": "postgres_credential", "mysql": "mysql_credential"}
_TARGETS = ("path", "to")
SCRIPT_SOURCES = ("file", "inline", "http")


class Folders(NamedTuple):
    """Where files that a document names are looked for: its own folder, and for scripts then that of whoever runs it."""

    own: Path
    caller: Path | None = None


@dataclass(slots=True)
class Literals:
    """The check of one document. `text` is the document's; `folders` is None where its files cannot be looked at."""

    reading: Reading
    draft: PlaybookDraft
    pipelines: dict[str, list[TaskDraft]]
    flow: Flow
    folders: Folders | None
    text: str
    calls: list[DocumentCall] = field(default_factory=list)
    _found: Definitions | None = None
    _certain: set[str] = field(default_factory=set)
    _after_makers: set[str] = field(default_factory=set)
    """Steps that a way leads to from one whose tasks could make files."""

    @property
    def _definitions(self) -> Definitions:
        """Made when a template first asks for them."""
        if self._found is None:
            self._found = Definitions(self.draft, self.pipelines, self.flow.entry)
        return self._found

    def check(self) -> Literals:
        self._certain = set(_certain_steps(self.flow))
        makers = [name for name, tasks in self.pipelines.items() if any(map(self._makes, tasks))]
        self._after_makers = _reached(
            makers, {name: [edge.target for edge in edges] for name, edges in self.flow.live.items()}
        )
        for step in self.draft.steps:
            for literal in collection_literals(step):
                report_flaw(self.reading, literal, self.text)
                self._file(step, 0, literal)
                self._entry(literal)
            for literal in collection_literals(step, literals.named_by_templates):
                self._entry_to_come(literal, self._definitions.of(step), Where.COLLECTION)
            for index, task in enumerate(self.pipelines[step.name]):
                self._task(step, index, task)
        return self

    def _task(self, step: StepDraft, index: int, task: TaskDraft) -> None:
        check_code(self.reading, task, self.text)
        self._libs(task)
        for literal in task_literals(self.reading, task):
            self._file(step, index, literal)
            self._entry(literal)
        for literal in task_literals(self.reading, task, literals.named_by_templates):
            known = self._definitions.within(self._definitions.of(step), task)
            self._entry_to_come(literal, known, Where.PARAM)
        if task.kind in PLAYBOOK_CALLS:
            params = {name: param.node for name, param in task.params.items()}
            made = step.name in self._after_makers or any(map(self._makes, self.pipelines[step.name][:index]))
            may_be_absent = made or _is_foreseen(step, task)
            call = call_in(step.name, params, PLAYBOOK_CALLS[task.kind], may_be_absent=may_be_absent)
            self.calls += [call] if call is not None else []

    # ---- secrets

    def _entry(self, literal: literals.Literal) -> None:
        """A name that `keychain` does not declare is declared by its use, so that it is looked up before anything runs."""
        name = literal.entry
        known = {str(entry.get("name")) for entry in self.draft.keychain}
        if name is None or name in known:
            return
        flaw = literals.undeclared_flaw(literal, known)
        position = literal.node.position
        self.reading.findings.warning("P0708", flaw.message, position, label=flaw.label, hint=flaw.hint)
        self._declare(name, literal)

    def _entry_to_come(self, literal: literals.Literal, known: Known, where: Where) -> None:
        """A name that follows from the inputs is looked up before the run, too; another one when its task starts."""
        inspection = inspect(literal.text)
        names = [entry.get("name") for entry in self.draft.keychain]
        if literal.text in names or inspection.findings or not inspection.uses:
            return
        if all(known.comes_in(use, where) for use in inspection.uses):
            self._declare(literal.text, literal)

    def _declare(self, name: str, literal: literals.Literal) -> None:
        self.draft.keychain.append({"name": name, "kind": _KINDS.get(literal.owner, "secret_manager")})
        self.draft.keychain_positions[name] = literal.node.position

    # ---- files

    def _file(self, step: StepDraft, index: int, literal: literals.Literal) -> None:
        if self.folders is None:
            return
        looked_for = literals.missing_file(literal, self.folders.own)
        if looked_for is None:
            self._script(literal, self.folders.own)
            return
        caller = self.folders.caller if literal.meaning == SCRIPT else None
        if caller is not None and literals.missing_file(literal, caller) is None:
            self._script(literal, caller)
            return
        so_far = self.pipelines[step.name][: index + 1]
        is_straight = all(one.rules is None and not one.is_generated for one in so_far)
        # What is read later may be delivered by then, by whomever; a script is part of the program.
        is_at_once = step.name in self._certain if literal.meaning == SCRIPT else step.name == self.flow.entry
        is_foreseen = any(_is_foreseen(step, one) for one in so_far[-1:]) or _handles(step)
        is_certain = is_at_once and step.loop is None and is_straight and not is_foreseen
        is_certain = is_certain and not self._may_be_made(step, index, literal)
        flaw = literals.missing_flaw(literal, looked_for, literal.owner, is_certain=is_certain)
        severity = literals.missing_severity(literal, is_certain=is_certain, is_foreseen=is_foreseen)
        self.reading.findings.add(Problem("P0621", severity, flaw.message, literal.node.position, hint=flaw.hint))

    def _script(self, literal: literals.Literal, folder: Path) -> None:
        """A script that is there must be Python, as code in the document must be."""
        if literal.meaning != SCRIPT or literal.owner != "python":
            return
        try:
            text = (folder / Path(literal.text).expanduser()).read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError):
            return  # Problems of the file are reported when it runs.
        flaw = literals.python_flaw(text, require_compiles)
        if flaw is not None:
            line = 1 if flaw.offset is None else text.count("\n", 0, flaw.offset) + 1
            message = f"`{literal.text}`, line {line}: {flaw.message}"
            self.reading.findings.error("P0618", message, literal.node.position, hint=flaw.hint)

    def _libs(self, task: TaskDraft) -> None:
        """A warning, not an error: another machine may run it, such as the worker of a fleet, and have what this one lacks."""
        libs = task.params.get("libs")
        if self.folders is None or task.kind != "python" or libs is None or libs.node.kind != "mapping":
            return
        for alias, node in libs.node.entries.items():
            module = node.get("from") if node.kind == "mapping" else node
            if module is None or module.kind != "scalar" or is_template(module) or not module.text():
                continue
            missing = literals.missing_module(str(module.value), self.folders.own)
            if missing is not None:
                message = f"there is no module `{missing}` here, which `libs` imports as `{alias}`"
                hint = "install its package where the playbook runs; without it the task fails before its code begins"
                self.reading.findings.warning("P0622", message, module.position, hint=hint)

    def _may_be_made(self, step: StepDraft, index: int, wanted: literals.Literal) -> bool:
        """Could something that runs before make the file?"""
        before = _reached([step.name], self.flow.before)
        own = self.pipelines[step.name]
        tasks = [*(own if step.name in before or step.loop is not None else own[:index])]
        tasks += [task for name in before for task in self.pipelines.get(name, ())]
        return any(self._makes(task, wanted) for task in tasks if not own or task is not own[index])

    def _makes(self, task: TaskDraft, wanted: literals.Literal | None = None) -> bool:
        if task.is_generated or task.kind_position is None:
            return False
        description = self.reading.describe(task.kind, task.kind_position)
        if description is not None and not description.makes_files:
            return False
        if task.kind == "files" and wanted is not None:  # It makes what it names, and nothing else.
            targets = [task.params[name].node for name in _TARGETS if name in task.params]
            return any(is_template(node) or node.text() == wanted.text for node in targets)
        return True


def _is_foreseen(step: StepDraft, task: TaskDraft) -> bool:
    """Somebody answers a failure of the task."""
    return task.rules is not None or _handles(step)


def task_literals(
    reading: Reading, task: TaskDraft, of: Callable[..., Iterator[literals.Literal]] = literals.literals
) -> Iterator[literals.Literal]:
    if task.is_generated or not task.kind or task.kind_position is None:
        return
    description = reading.describe(task.kind, task.kind_position)
    if description is not None:
        params = {name: param.node for name, param in task.params.items()}
        yield from of(params, description.schema, task.kind)


def collection_literals(
    step: StepDraft, of: Callable[..., Iterator[literals.Literal]] = literals.literals
) -> Iterator[literals.Literal]:
    """Of a loop that runs over what is described: `{lines: orders.csv}` or `{lines: {path: orders.csv}}`."""
    nodes = [site.node for site in step.sites if site.where in (Where.COLLECTION, Where.CLAIM)]
    for kind, node in [entry for one in nodes for entry in one.entries.items()]:
        scope = SCOPES.get(f"collection_{kind}")
        if scope is None:
            continue
        required = next(name for name, word in scope.words.items() if word.required)
        params = node.entries if node.kind == "mapping" else {required: node}
        schema = {"properties": {name: word.schema for name, word in scope.words.items()}}
        yield from of(params, schema, str(getattr(node.get("kind"), "value", kind)))


def check_code(reading: Reading, task: TaskDraft, source: str) -> None:
    """What cannot work for any caller: invalid Python, URLs, shell commands with unquoted templates."""
    for literal in task_literals(reading, task):
        report_flaw(reading, literal, source)
    if task.kind == "shell":
        for node, hint in _shell_scripts(task):
            _check_shell(reading, node, hint, source)
    if task.kind in SQL_KINDS:
        for name in _SQL_TEXTS:
            if (param := task.params.get(name)) is not None:
                _check_sql(reading, param.node, source)


_SQL_TEXTS = ("command", "query", "commands")
_RUN_ID = re.compile(r"(?P<before>.?)\{\{-?\s*(?:execution_id|execution\.id)\s*-?\}\}(?P<after>.?)", re.DOTALL)


def _check_sql(reading: Reading, node: SourceNode, source: str) -> None:
    """The id of a run is text: without quotes it is read as a number or as a name."""
    for text_node in texts_in(node):
        for found in _RUN_ID.finditer(text_node.text() or ""):
            if "'" not in (found["before"], found["after"]):
                start = found.end("before")
                position = position_in_text(text_node, start, found.start("after"), source)
                reading.findings.warning(
                    "P0623", "the id of a run is text, and stands in the SQL without quotes", position,
                    hint="bind it, `:run` with `params: {run: \"{{ execution_id }}\"}`, or quote it; its column holds text",
                )  # fmt: skip


def report_flaw(reading: Reading, literal: literals.Literal, source: str) -> None:
    flaw = literals.code_flaw(literal)
    code = "P0618" if flaw is not None else "P0620"
    flaw = flaw or literals.url_flaw(literal)
    if flaw is not None:
        node = literal.node
        position = (
            node.position if flaw.offset is None else position_in_text(node, flaw.offset, flaw.offset + 1, source)
        )
        reading.findings.error(code, flaw.message, position, label=flaw.label, hint=flaw.hint)


def _shell_scripts(task: TaskDraft) -> Iterator[tuple[SourceNode, str]]:
    """The scripts, each with the way out. A list in `command` is a program with its arguments, which no shell reads."""
    command, cmds = task.params.get("command"), task.params.get("cmds")
    if command is not None:
        yield command.node, QUOTE_HINT
    if cmds is not None:
        for node in cmds.node.items if cmds.node.kind == "sequence" else [cmds.node]:
            yield node, "write `{{ name | quote }}`, or hand the value over in `env`"


def _check_shell(reading: Reading, node: SourceNode, hint: str, source: str) -> None:
    text = node.text()
    if text is None or not is_template(node):
        return
    for start, end in unquoted(text):
        reading.findings.warning("P0619", UNQUOTED, position_in_text(node, start, end, source), hint=hint)


# ---- what certainly runs, and before what


def _certain_steps(flow: Flow) -> Iterator[str]:
    """Steps that every run comes to, unless it fails before: from the entry along arcs without a condition."""
    here: str | None = flow.entry
    seen: set[str] = set()
    while here is not None and here in flow.steps and here not in seen:
        seen.add(here)
        step = flow.steps[here]
        if step.loop is not None or step.joins or step.admit is not None:
            return
        yield here
        edge = step.edges[0] if len(step.edges) == 1 else None
        here = edge.target if edge is not None and (edge.guard is None or constant(edge.guard)) else None


def _handles(step: StepDraft) -> bool:
    return any(edge.reads_event for edge in step.edges)


def _reached(start: Iterable[str], ways: Mapping[str, Iterable[str]]) -> set[str]:
    """The steps that a way leads to from these; one of these itself, if a way leads back."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in ways.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def check_uncalled(reading: Reading, tasks: Iterable[TaskDraft], source: str) -> None:
    """Reports what cannot work in tasks of the workbook that are never called."""
    for task in tasks:
        check_code(reading, task, source)


# ---- Kinds and parameters against the installed tools


_KIND_HINTS = {
    "iterator": "repeating is not a tool: give the step a `loop`",
    "loop": "repeating is not a tool: give the step a `loop`",
    "sink": "storing is not a kind of its own: use the tool of the store",
    "save": "storing is not a kind of its own: use the tool of the store",
    "workflow": "a playbook within a playbook is `kind: playbook`",
    "next": "ways on are `next.arcs`",
    "bash": "a script is run by `shell`",
    "sql": "use the tool of the database, such as `postgres` or `duckdb`",
    "api": "requests are made by `http`",
    "request": "requests are made by `http`",
    **{alias.word: f"instead: {alias.instead}" for alias in WORDS if alias.scope == "kind"},
}


def check_tool(reading: Reading, task: TaskDraft) -> None:
    if task.is_generated or not task.kind or task.kind == WORKBOOK or task.kind_position is None:
        return
    description = reading.describe(task.kind, task.kind_position)
    if description is None:
        if task.kind not in reading.broken:
            _unknown_kind(reading, task)
        return
    for name, param in task.params.items():
        info = description.params.get(name)
        if info is None:
            _unknown_param(reading, task, name, param, description)
        else:
            _check_value(reading, task.kind, info, param.node)
            _check_fields(reading, f"`{name}` of `{task.kind}`", _Part(description.schema).field(name), param.node)
    _check_choice(reading, task, description)
    if "script" in description.params and (script := task.params.get("script")) is not None:
        _check_source(reading, script.node)
    missing = [name for name, info in description.params.items() if info.required and name not in task.params]
    if missing:
        _missing_params(reading, task, missing, description)


def _check_choice(reading: Reading, task: TaskDraft, description: ToolDescription) -> None:
    given = [name for name in description.one_of if name in task.params and not task.params[name].node.is_null]
    names = " or ".join(f"`{name}`" for name in description.one_of)
    if description.one_of and not given:
        position = task.kind_position or task.position
        reading.findings.error("P0506", f"the tool `{task.kind}` needs {names}", position)
    if len(given) > 1:
        message = f"the tool `{task.kind}` takes {names}, and not both"
        reading.findings.error(
            "P0505", message, task.params[given[-1]].key, hint=f"leave out `{given[-1]}` or `{given[0]}`"
        )


_STORES = ("gcs", "s3")


def _check_source(reading: Reading, script: SourceNode) -> None:
    """Where a script comes from, as far as it is written out."""
    source = script.get("source") if script.kind == "mapping" else None
    type_ = source.get("type") if source is not None and source.kind == "mapping" else None
    if type_ is None or type_.kind != "scalar" or is_template(type_) or type_.value in SCRIPT_SOURCES:
        return
    hint = f"it is one of {listed(SCRIPT_SOURCES)}"
    if type_.value in _STORES:
        hint = "fetch it with `files` first, and give its path in `uri`"
    message = f"a script cannot come from `{type_.value}`"
    label = did_you_mean(str(type_.value), SCRIPT_SOURCES)
    reading.findings.error("P0508", message, type_.position, label=label, hint=hint)


def _unknown_kind(reading: Reading, task: TaskDraft) -> None:
    kinds = [*reading.catalog.kinds(), WORKBOOK]
    hint = _KIND_HINTS.get(task.kind, f"installed are {listed(sorted(set(kinds)), most=40)}")
    assert task.kind_position is not None
    reading.findings.error(
        "P0504", f"there is no tool `{task.kind}`", task.kind_position, label=did_you_mean(task.kind, kinds), hint=hint
    )


def _unknown_param(
    reading: Reading, task: TaskDraft, name: str, param: ParamDraft, description: ToolDescription
) -> None:
    if name == "args":  # Any task may have them: its other parameters see them.
        if param.node.kind != "mapping" and not is_template(param.node):
            message = f"`args` is a mapping of names to values, not {param.node.noun}"
            reading.findings.error("P0509", message, param.node.position)
        return
    takes = (
        f"`{task.kind}` takes {listed(description.params, most=40)}" if description.params else "it takes no parameters"
    )
    hint = takes if closest(name, description.params) else f"{takes}; runtime knobs go under `spec`"
    label = did_you_mean(name, description.params)
    reading.findings.error(
        "P0505", f"the tool `{task.kind}` has no parameter `{name}`", param.key, label=label, hint=hint
    )


def _missing_params(reading: Reading, task: TaskDraft, missing: list[str], description: ToolDescription) -> None:
    position = task.kind_position or task.position
    for name in missing:
        about = description.params[name].description
        reading.findings.error(
            "P0506", f"the tool `{task.kind}` needs `{name}`", position, hint=f"`{name}`: {about}" if about else ""
        )


def _check_value(reading: Reading, kind: str, info: ParamInfo, node: SourceNode) -> None:
    """Only what is written out can be checked now; a template is checked when it has a value."""
    if is_template(node) or (node.is_null and not info.required):
        return
    if info.enum is not None and node.kind == "scalar" and node.value not in info.enum:
        values = [str(value) for value in info.enum if value is not None]
        label = did_you_mean(str(node.value), values)
        message = f"`{info.name}` of `{kind}` cannot be `{node.value}`"
        reading.findings.error("P0508", message, node.position, label=label, hint=f"it is one of {listed(values)}")
        return
    if types_of(node).isdisjoint(info.types) and "any" not in info.types:
        expected = " or ".join(NOUNS.get(name, name) for name in info.types if name != "null")
        hint = "put it in quotes" if "string" in info.types and node.kind == "scalar" else ""
        reading.findings.error(
            "P0507", f"`{info.name}` of `{kind}` must be {expected}, not {node.noun}", node.position, hint=hint
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a tool's JSON Schema, which may refer to others of it."""

    whole: JsonMap
    here: JsonMap | None = None

    def field(self, name: str) -> _Part:
        properties = (self.whole if self.here is None else self.here).get("properties")
        found = properties.get(name) if isinstance(properties, dict) else None
        return _Part(self.whole, found if isinstance(found, dict) else {})

    def ways(self) -> list[_Part]:
        """What the value may be."""
        here = self.here or {}
        reference = here.get("$ref")
        if isinstance(reference, str):
            definitions = self.whole.get("$defs")
            target = definitions.get(reference.rpartition("/")[2]) if isinstance(definitions, dict) else None
            return _Part(self.whole, target if isinstance(target, dict) else {}).ways()
        several = here.get("anyOf")
        if isinstance(several, list):
            return [way for one in several if isinstance(one, dict) for way in _Part(self.whole, one).ways()]
        return [self]

    def of_type(self, name: str) -> _Part | None:
        """The only way in which it may be of a type; None when there is none, or several."""
        found = [way for way in self.ways() if (way.here or {}).get("type", name) == name]
        return found[0] if len(found) == 1 else None


def _check_fields(reading: Reading, what: str, part: _Part, node: SourceNode) -> None:
    """The keys of a mapping in a parameter, where the tool says which there are."""
    if node.kind == "sequence":
        way = part.of_type("array")
        items = None if way is None else (way.here or {}).get("items")
        if way is not None and isinstance(items, dict):
            for item in node.items:
                _check_fields(reading, what, _Part(way.whole, items), item)
        return
    way = part.of_type("object") if node.kind == "mapping" else None
    schema = {} if way is None else way.here or {}
    properties, required = schema.get("properties"), schema.get("required")
    if way is None or not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
        return
    for key, value in node.entries.items():
        if key in properties:
            _check_fields(reading, f"`{key}` in {what}", way.field(key), value)
        else:
            hint, label = f"it has {listed(properties, most=40)}", did_you_mean(key, properties)
            reading.findings.error("P0505", f"{what} has no `{key}`", node.keys[key], label=label, hint=hint)
    for name in required if isinstance(required, list) else ():
        if name not in node.entries:
            about = way.field(str(name)).here or {}
            hint = f"`{name}`: {about['description']}" if "description" in about else ""
            reading.findings.error("P0506", f"{what} needs `{name}`", node.position, hint=hint)
