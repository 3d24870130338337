"""The walk through a document that finds the words of other engines, and the document in today's words.

document ── Door ──▶ the document in today's words, which is then read
               ├───▶ problems: hints, words without effect, words that are refused
               └───▶ rewrites, in the order in which they were made: what `convert` does to the text of the file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.dialects.playbook.public.steps import DIRECTIVE, DOCUMENT, LOOP, STEP, task_paths
from penstock.dialects.playbook.public.table import Alias, Here, Reading, Treatment
from penstock.dialects.playbook.public.tasks import CALLS, CODE, DATABASES, HTTP, KEYCHAIN, KINDS, of_scope
from penstock.dialects.playbook.public.texts import (
    EXPRESSIONS,
    body_read,
    ends_renamed,
    index_renamed,
    input_renamed,
    names_replaced,
    results_read,
    statuses_renamed,
    texts_below,
    uses_in,
)
from penstock.dialects.playbook.refused import yaml_text
from penstock.dialects.playbook.words import SQL_KINDS
from penstock.dialects.problems import Findings, Position
from penstock.dialects.source.edits import Drop, Edit, Move, Path, Put, at, edited
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import JsonMap
from penstock.ports.plugins import ToolDescription

WORDS: tuple[Alias, ...] = (
    *DOCUMENT,
    *STEP,
    *LOOP,
    *DIRECTIVE,
    *CODE,
    *HTTP,
    *DATABASES,
    *CALLS,
    *KEYCHAIN,
    *KINDS,
    *EXPRESSIONS,
)
"""Every word of another engine that is known here, in the order of the reference."""

_BY_SCOPE = of_scope(alias for alias in WORDS if alias.rule is not None)
_KEYS = {scope: {alias.key for alias in aliases} for scope, aliases in _BY_SCOPE.items()}

Describe = Callable[[str, Position], ToolDescription | None]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One word, and the edits that bring the document to today's."""

    alias: Alias
    treatment: Treatment
    position: Position
    edits: tuple[Edit, ...]
    message: str = ""
    hint: str = ""
    shown: str = ""
    """The rewrite as YAML, as it stands in the mapping in which the word stood."""


@dataclass(slots=True)
class Door:
    root: SourceNode
    describe: Describe
    text: str
    """The document as it is written: what is not in it need not be looked for."""
    rewrites: list[Rewrite] = field(default_factory=list)

    def walk(self) -> Door:
        self._words((), ("root",))
        for step in self._steps():
            self._step(step)
        for path in self._of_workbook():
            self._task(path)
        self._texts()
        return self

    # ---- places

    def _steps(self) -> list[Path]:
        workflow = self.root.get("workflow")
        return [("workflow", index) for index in range(len(workflow.items) if workflow is not None else 0)]

    def _step(self, path: Path) -> None:
        """Tasks come first: what a step gives to them is laid under what they say in today's words."""
        if "input." in self.text:
            self._input(path)
        for task in list(task_paths(at(self.root, (*path, "tool")), (*path, "tool"))):
            self._task(task)
        self._words((*path, "loop"), ("loop",))
        self._words(path, ("step",))

    def _of_workbook(self) -> list[Path]:
        book = self.root.get("workbook")
        if book is None:
            return []
        inner: Path = ("workbook", "tasks") if "tasks" in book.entries else ("workbook",)
        tasks = at(self.root, inner)
        places: list[Path] = [(*inner, index) for index in range(len(tasks.items) if tasks is not None else 0)]
        places += [(*inner, key) for key in (tasks.entries if tasks is not None else ())]
        return [(*place, "tool") if at(self.root, (*place, "tool")) is not None else place for place in places]

    def _task(self, path: Path) -> None:
        task = at(self.root, path)
        kind = None if task is None else task.get("kind")
        name = None if kind is None else kind.text()
        if task is None or kind is None or name is None:
            return
        scopes = (name, *(("sql",) if name in SQL_KINDS else ()), "task")
        described = (
            self.describe(name, kind.position)
            if any(task.entries.keys() & _KEYS.get(each, set()) for each in scopes)
            else None
        )
        self._words(path, scopes, described)
        rules = at(self.root, (*path, "spec", "policy", "rules"))
        for index, rule in enumerate(rules.items if rules is not None else ()):
            for word in ("then", "else"):
                inner = rule.get(word)
                if inner is not None:
                    below = (*path, "spec", "policy", "rules", index, word)
                    self._words((*below, "then") if "then" in inner.entries else below, ("then",))

    # ---- words

    def _words(self, path: Path, scopes: tuple[str, ...], described: ToolDescription | None = None) -> None:
        for scope in scopes:
            for alias in _BY_SCOPE.get(scope, ()):
                node = at(self.root, path)
                if node is None or alias.key not in node.entries:
                    continue
                # A word of the tool is always the tool's, unless the table knows what other engines say with it.
                if scope == "task" and described is not None and alias.key in described.params:
                    continue
                takes = (lambda word: word in described.params) if described is not None else (lambda word: False)
                assert alias.rule is not None
                reading = alias.rule(Here(self.root, path, node, takes))
                if reading is not None:
                    self._make(alias, reading, node.keys[alias.key], (*path, alias.key))

    def _make(self, alias: Alias, reading: Reading, position: Position, path: Path) -> None:
        treatment = reading.treatment or alias.treatment
        for edit in reading.edits or (self._without(alias, path) if treatment is Treatment.REFUSED else ()):
            self.root = edited(self.root, edit)
        shown = "" if treatment is Treatment.ALIAS else self._shown(reading.edits, path[:-1])
        self.rewrites.append(Rewrite(alias, treatment, position, reading.edits, reading.message, reading.hint, shown))

    def _without(self, alias: Alias, path: Path) -> tuple[Edit, ...]:
        """A refused word is reported once: without it the rest is read, and what it stood for is not missed."""
        stands_for = (Put((*path[:-1], alias.replaces), []),) if alias.replaces else ()
        return (Drop(path), *stands_for)

    def _shown(self, edits: tuple[Edit, ...], around: Path) -> str:
        """What the edits came to, as YAML: each key of the mapping that they wrote to."""
        targets = [edit.target if isinstance(edit, Move) else edit.path for edit in edits if not isinstance(edit, Drop)]
        written: JsonMap = {}
        for target in targets:
            if target[: len(around)] == around and len(target) > len(around):
                key = target[len(around)]
                node = at(self.root, (*around, key))
                if isinstance(key, str) and node is not None:
                    written[key] = to_json(node)
        return yaml_text(written) if written else ""

    # ---- expressions

    def _texts(self) -> None:
        if "call." in self.text:
            for path, node in self._guards():
                self._reword(_named("event"), path, node, ends_renamed(node.text() or ""))
        if "success" in self.text:
            workflow = self.root.get("workflow")
            for path, node in list(texts_below(workflow, ("workflow",)) if workflow is not None else ()):
                if path[-1] == "when":
                    self._reword(_named("output.status"), path, node, statuses_renamed(node.text() or ""))
        if "_index" in self.text:
            for step in self._steps():
                if at(self.root, (*step, "loop")) is not None:
                    self._loop_index((*step, "tool"))
            for task in self._of_workbook():
                self._loop_index(task)
        if "output.data" in self.text:
            self._bodies()
        if ".results." in self.text:
            self._results()

    def _input(self, step: Path) -> None:
        tool, given = at(self.root, (*step, "tool")), at(self.root, (*step, "input"))
        if tool is None or given is None:
            return
        for path, node in list(texts_below(tool, (*step, "tool"))):
            text = _in_text(node, input_renamed(given.entries), is_condition=path[-1] == "when")
            self._reword(_named("input.x"), path, node, text)

    def _guards(self) -> Iterator[tuple[Path, SourceNode]]:
        for step in self._steps():
            arcs = at(self.root, (*step, "next", "arcs"))
            for index, arc in enumerate(arcs.items if arcs is not None else ()):
                guard = arc.get("when")
                if guard is not None and guard.text() is not None:
                    yield (*step, "next", "arcs", index, "when"), guard

    def _loop_index(self, place: Path) -> None:
        tool = at(self.root, place)
        inputs = self.root.get("workload")
        own = () if inputs is None else tuple(key for key in inputs.entries if "_index" in key)
        if tool is None or own:
            return
        for path, text in texts_below(tool, place):
            self._reword(
                _named("loop_index"), path, text, _in_text(text, index_renamed, is_condition=path[-1] == "when")
            )

    def _bodies(self) -> None:
        """What a step of requests writes and where it leads: `output.data` is what was answered, there."""
        for step in self._steps():
            node = at(self.root, step)
            tasks = [at(self.root, path) for path in task_paths(at(self.root, (*step, "tool")), (*step, "tool"))]
            kinds = {None if task is None else task.entries["kind"].text() for task in tasks}
            if node is None or "loop" in node.entries or kinds != {"http"}:
                continue
            for place in ((*step, "set"), (*step, "next")):
                written = at(self.root, place)
                for path, text in () if written is None else texts_below(written, place):
                    reworded = _in_text(text, body_read, is_condition=path[-1] == "when")
                    self._reword(_named("output.data.field"), path, text, reworded)

    def _results(self) -> None:
        """The tasks of a pipeline by `step.results.task`: kept in ctx, where today's documents keep what other steps read."""
        tasks = dict(self._labelled_tasks())
        read: set[tuple[str, str]] = set()
        workflow = self.root.get("workflow")
        for path, node in list(texts_below(workflow, ("workflow",)) if workflow is not None else ()):
            is_condition = path[-1] == "when"
            found = {
                use.path[0:3:2]
                for use in uses_in(node.text() or "", condition=is_condition)
                if use.path[1:2] == ("results",)
            }
            read |= {(pair[0], pair[1]) for pair in found if len(pair) == 2 and pair in tasks}
            self._reword(_named("results"), path, node, _in_text(node, results_read(tasks), is_condition=is_condition))
        for step, label in sorted(read):
            place = (*tasks[step, label], "set", f"ctx.{step}_results.{label}")
            edit = Put(place, "{{ output }}")
            self._make(_named("results"), Reading((edit,)), _position(self.root, tasks[step, label]), place)

    def _labelled_tasks(self) -> Iterator[tuple[tuple[str, str], Path]]:
        for step in self._steps():
            node = at(self.root, step)
            name = None if node is None else node.get("step")
            if node is None or name is None or name.text() is None or "loop" in node.entries:
                continue
            for path in task_paths(node.get("tool"), (*step, "tool")):
                task = at(self.root, path)
                given = None if task is None else task.get("name")
                label = given.text() if given is not None else path[-1] if isinstance(path[-1], str) else None
                if label is not None and label != "tool":
                    yield (str(name.text()), label), path

    def _reword(self, alias: Alias, path: Path, node: SourceNode, text: str) -> None:
        if text != node.value:
            self._make(alias, Reading((Put(path, text),)), node.position, path)


def _named(key: str) -> Alias:
    return next(alias for alias in EXPRESSIONS if key in alias.word)


def _position(root: SourceNode, path: Path) -> Position:
    found = at(root, path)
    return root.position if found is None else found.position


def _in_text(node: SourceNode, new_name: Callable[..., tuple[str, str] | None], *, is_condition: bool) -> str:
    return names_replaced(node.text() or "", new_name, condition=is_condition)


def opened(root: SourceNode, describe: Describe, text: str, findings: Findings) -> SourceNode:
    """The document in today's words. What was said in others is reported as the table says."""
    if "workflow" not in root.entries:
        return root
    door = Door(root, describe, text).walk()
    for rewrite in door.rewrites:
        _report(findings, rewrite)
    return door.root


def _report(findings: Findings, one: Rewrite) -> None:
    match one.treatment:
        case Treatment.REFUSED:
            findings.error("P0218", one.message, one.position, hint=one.hint, rewrite=one.shown)
        case Treatment.HINT:
            message = one.message or f"`{one.alias.key}` is a word of another engine: today's is {one.alias.instead}"
            findings.warning("P0219", message, one.position, hint=one.hint, rewrite=one.shown)
        case Treatment.IGNORED:
            findings.warning(
                "P0220",
                one.message
                or f"`{one.alias.key}` has no effect: {one.alias.meaning[:1].lower()}{one.alias.meaning[1:].removesuffix('.')}",
                one.position,
                hint=one.hint or one.alias.instead.replace("nothing", "leave it out", 1),
            )
