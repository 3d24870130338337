"""Every expression of a document: is it well formed, does it see what it names, does it keep secrets where they belong?"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from penstock.dialects.expressions import blanks_beside, declared_secrets, is_plain_true, named_part, warn_constant
from penstock.dialects.playbook.drafts import PlaybookDraft, Site, StepDraft, TaskDraft, Where
from penstock.dialects.playbook.lower import entry_of
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.sugar import author_name
from penstock.dialects.problems import Position, closest
from penstock.dialects.reader import did_you_mean, is_template, listed, texts_in
from penstock.dialects.source.node import SourceNode
from penstock.dialects.source.positions import position_in_text
from penstock.expr.check import Use, inspect
from penstock.expr.parse import parse_condition
from penstock.expr.rules import read_expression
from penstock.kernel.kept import STATE
from penstock.kernel.net import Writes
from penstock.kernel.values import Json, JsonMap

_OUTCOME_WORDS = ("status", "result", "error", "meta", "data")
# What jobs and other engines call the namespaces.
_OTHER_WORDS = {
    "context": "ctx", "vars": "workload", "inputs": "workload", "params": "args", "global": "ctx", "globals": "ctx",
    "iteration": "iter", "secrets": "keychain", "result": "output", "env": "workload",
}  # fmt: skip
_EVENT_WORDS = ("name", "result", "error", "step")
_SQL = frozenset(("rows", "row_count", "columns"))
_OF_LOOPS = ("total", "done", "failed", "results", "stats")
_COMMAND = re.compile(r"command_\d+\Z")
_OTHER_FIELDS = {
    "response": "data", "json": "data", "text": "data", "content": "data", "elapsed": "elapsed_ms", "affected_rows": "row_count",
    "rowcount": "row_count", "rows_affected": "row_count", "output": "stdout", "code": "exit_code",
}  # fmt: skip
"""What other engines and libraries call them."""
_OF_MAPPINGS = frozenset(("get", "items", "keys", "values"))
_VIEWED = ("status", "data", "result", "error", "http", "pg", "py", "duckdb", "mysql", "sqlite", "meta")
"""The fields of `output` itself; all others are looked up in the result."""
_OF_ANSWER = {"status": "http.status", "headers": "http.headers", "url": "url"}
_ERROR_WORDS = ("kind", "message", "retryable", "data")


# Of Go's templates, which `docker` and `kubectl` take, and the length of a variable in a script.
_FOREIGN = re.compile(r"\{\{-?\s*(?:\.|range |end\b|json )|\$\{#")
_FOREIGN_HINT = "braces that are not for Penstock stand between `{% raw %}` and `{% endraw %}`"


def _begun(key: str, words: Iterable[str]) -> str | None:
    """The word that somebody has cut short: `err` for `error`."""
    return next((word for word in words if len(key) > 2 and word.startswith(key)), None)


def check_names(
    reading: Reading,
    draft: PlaybookDraft,
    pipelines: dict[str, list[TaskDraft]],
    text: str,
    uncalled: Iterable[TaskDraft] = (),
) -> None:
    """`uncalled` are tasks of the workbook in no pipeline, whose neighbours are unknown."""
    definitions = Definitions(draft, pipelines, entry_of(draft) if draft.steps else "", partial(gives_of, reading))
    labels = frozenset(task.label for tasks in pipelines.values() for task in tasks)
    for task in uncalled:
        anywhere = replace(definitions.everywhere, args=None, tasks=labels, is_open=True)
        for site in task.sites:
            _Check(reading, anywhere, site, text).run()
    for site in draft.keychain_sites:
        _Check(reading, definitions.everywhere, site, text).run()
    for step in draft.steps:
        known = definitions.of(step)
        for site in step.sites:
            _Check(reading, known, site, text).run()
        for task in pipelines[step.name]:
            within, args = definitions.within(known, task), task.params.get("args")
            for site in task.sites:
                is_args = args is not None and site.node is args.node  # They do not see each other.
                _Check(reading, known if is_args else within, site, text).run()


def gives_of(reading: Reading, task: TaskDraft) -> frozenset[str]:
    described = None if task.is_generated or not task.kind else reading.describe(task.kind, task.position)
    return frozenset() if described is None else frozenset(described.gives)


def _seen_from(namespace: str) -> list[str]:
    return [where.value for where, names in SEEN.items() if namespace in names]


class _Check:
    """The check of one site."""

    def __init__(self, reading: Reading, known: Known, site: Site, text: str) -> None:
        self.findings = reading.findings
        self.known = known
        self.site = site
        self.where = site.where
        self.text = text
        self.is_foreign = False

    def run(self) -> None:
        for node in texts_in(self.site.node):
            if self.site.is_condition or is_template(node):
                self._expression(node)

    def _expression(self, node: SourceNode) -> None:
        source = str(node.value)
        self.is_foreign = _FOREIGN.search(source) is not None
        inspection = inspect(source, condition=self.site.is_condition)
        for found in inspection.findings:
            position = position_in_text(node, found.start, found.end, self.text)
            hint = _FOREIGN_HINT if found.code == "E0101" and self.is_foreign else found.hint
            self.findings.error(found.code, found.message, position, label=found.label, hint=hint)
        uses = inspection.uses
        if self.site.is_condition and uses:
            # What a condition reads may be undefined, but a name that nothing defines is a slip there as well.
            uses = tuple(read_expression(parse_condition(source), guarded=False)[1])
        for use in uses:
            self._use(use, position_in_text(node, *named_part(source, use, NAMESPACES), self.text))
        if inspection.has_blanks:
            message, hint = blanks_beside(source)
            self.findings.warning("P0707", message, node.position, hint=hint)
        if inspection.constant is not None:
            self._constant(node, source, inspection.constant)

    def _constant(self, node: SourceNode, source: str, value: bool) -> None:
        """Arcs that never fire are judged with their router."""
        if not is_plain_true(source) and (value or self.where is not Where.ARC):
            warn_constant(self.findings, source, value, node.position, "{{ ctx.ready }}")

    def _use(self, use: Use, position: Position) -> None:
        root = str(use.path[0])
        if (kept := self._undeclared_state(use)) is not None:
            label = did_you_mean(kept, self.known.state or ())
            hint = "" if label else f"declare it, with the value of the first run: `state: {{{kept}: null}}`"
            self.findings.error("P0830", f"`state` does not declare `{kept}`", position, label=label, hint=hint)
        elif root == "keychain":
            self._secret(use, position)
        elif root in NAMESPACES:
            # The iteration around a sub-playbook is seen from everywhere in it.
            if self.known.sees(root, self.where) or use.path[:2] == ("iter", "parent"):
                self._key(use, position)
            elif not self.known.has(root, self.where):
                self._unseen(root, position)
        elif hidden := self.known.hidden_result(root, self.where):
            namespace, kind = hidden
            place = "the workload" if namespace == "workload" else namespace
            message = f"`{root}` is read from {place}, not from the {kind} of that name"
            hint = f"write `{namespace}.{root}` if that is meant; otherwise give the {kind} another name"
            self.findings.warning("P0706", message, position, hint=hint)
        elif not use.guarded and not self.known.has(root, self.where):
            self._unknown(root, position, is_dotted=len(use.path) > 1)
        elif not use.guarded and use.path[1:2] and use.path[1] in self.known.inner_tasks.get(root, ()):
            hint = f"write `{root}.results.{use.path[1]}` for the result of that task"
            message = f"the result of `{root}` is that of its last task, and `{use.path[1]}` is another"
            self.findings.warning("P0710", message, position, hint=hint)
        elif not use.guarded:
            self._field(use.path[1:2], self.known.result_fields(root, self.where), root, position)

    def _field(self, key: tuple[str, ...], fields: frozenset[str] | None, said: str, position: Position) -> None:
        """A field of a result, where it is known what the tool gives."""
        if fields is None or not key or key[0] in fields | _OF_MAPPINGS or (fields & _SQL and _COMMAND.match(key[0])):
            return
        meant = _OTHER_FIELDS.get(key[0])
        label = did_you_mean(key[0], fields) or (f"did you mean `{meant}`?" if meant in fields else "")
        what = f"the result has no `{key[0]}`" if not key[0].isdigit() else "the result is a mapping, and no list"
        hint = f"`{said}` has {listed(sorted(fields))}"
        self.findings.warning("P0710", what, position, label=label, hint=hint)

    def _undeclared_state(self, use: Use) -> str | None:
        """What is read of `state` and not declared: nothing else brings it."""
        path = use.path[1:] if use.path[0] == "ctx" else use.path
        declared = self.known.state
        if declared is None or use.guarded or len(path) < 2 or path[0] != STATE or not isinstance(path[1], str):
            return None
        return None if path[1] in declared or STATE in self.known.own_args else path[1]

    def _secret(self, use: Use, position: Position) -> None:
        if self.where is Where.KEYCHAIN:
            return  # Which entries it may read is checked with the order of all of them.
        if "keychain" not in SEEN[self.where]:
            hint = "use it in the parameters of the tool that needs it; what stands here is recorded in the log"
            self.findings.error("P0704", f"a secret stands in {self.where.value}", position, hint=hint)
            return
        names = self.known.keychain
        if len(use.path) > 1 and str(use.path[1]) not in names:
            name = str(use.path[1])
            message = f"`{name}` is not declared in `keychain`"
            self.findings.error(
                "P0705", message, position, label=did_you_mean(name, names), hint=declared_secrets(names)
            )

    def _unseen(self, root: str, position: Position) -> None:
        hint = f"it is seen in {', '.join(_seen_from(root))}"
        if root == "fanin":
            hint = "it is there in the arcs of a step that has a loop"
        elif self.where is Where.CHECK:
            hint = "this condition has no outcome of its own: use `_prev`, or the name of the task"
        elif self.where in (Where.ADMIT, Where.ARC):
            hint += "; pass what is needed through ctx or through the arc's `args`"
        is_written = not self.site.is_condition and self.where is Where.ARC
        message = f"`{root}` cannot be seen from {self.where.value}{': it is null there' if is_written else ''}"
        self.findings.warning("P0703", message, position, hint=hint)

    def _unknown(self, name: str, position: Position, *, is_dotted: bool) -> None:
        if name in self.known.tasks and self.where is Where.ARC:
            hint = "results of tasks are seen within their pipeline; use the step's name, or write to ctx"
            self.findings.warning("P0703", f"the task `{name}` cannot be seen from an arc", position, hint=hint)
            return
        label = did_you_mean(name, [*chain(*self.known.layers(self.where)), *sorted(SEEN[self.where])])
        meant = None if label else _OTHER_WORDS.get(name) or _OTHER_WORDS.get(closest(name, _OTHER_WORDS) or "")
        if meant:
            label = f"did you mean `{meant}`?"
        unseen = None if label or not is_dotted else closest(name, sorted(NAMESPACES - SEEN[self.where]))
        hint = "" if label else "give it a default in `workload`, or write `| default(…)`"
        if self.is_foreign:
            label, hint = "", _FOREIGN_HINT
        elif unseen:
            label = f"did you mean `{unseen}`?"
            hint = f"`{unseen}` cannot be seen from {self.where.value}: it is seen in {', '.join(_seen_from(unseen))}"
        message = f"nothing in this document defines `{name}`"
        # A bare name that is like no other may come with a payload; one that is looked into, or nearly another, is a slip.
        if (is_dotted or label) and not self.known.is_open:
            self.findings.error("P0701", message, position, label=label, hint=hint)
        else:
            self.findings.warning("P0701", message, position, label=label, hint=hint)

    def _answer(self, use: Use, position: Position) -> None:
        """`output.data` is the body for other engines, and the whole answer here. What the answer has as well could be either."""
        if len(use.path) == 2:
            message = (
                "`output.data` is the whole answer here, with `status` and `headers`; the body is `output.data.data`"
            )
            self.findings.warning("P0709", message, position, hint="write that, or `output` for the whole answer")
        elif use.path[2] in ("status", "headers", "url"):
            message = f"`output.data.{use.path[2]}` is the {use.path[2]} of the answer, not a field of its body"
            hint = f"write `output.data.data.{use.path[2]}` for the field, or `output.{_OF_ANSWER[use.path[2]]}`"
            self.findings.warning("P0709", message, position, hint=hint)

    def _key(self, use: Use, position: Position) -> None:
        if self.known.is_request and use.path[:2] == ("output", "data") and self.where in (Where.ARC, Where.ON_DONE):
            self._answer(use, position)
        if len(use.path) < 2 or use.guarded:
            return
        root, key = str(use.path[0]), use.path[1]
        keys = self.known.under(root)
        if root == "output" and key not in _VIEWED:
            self._field(use.path[1:2], self.known.output, root, position)
        elif (root == "output" and key in ("data", "result")) or (root == "outcome" and key == "result"):
            self._field(use.path[2:3], self.known.output, f"{root}.{key}", position)
        if root in ("outcome", "output", "event"):
            # Tools add fields of their own, so only what is nearly a known word is worth a remark.
            words = _EVENT_WORDS if root == "event" else _OUTCOME_WORDS
            if root == "output" and key in (self.known.output or _OF_LOOPS):
                return
            at, below = root, use.path[1:]
            if below[:1] == ("error",) and len(below) > 1:
                at, words, below = f"{root}.error", _ERROR_WORDS, below[1:]
            key = below[0]
            if isinstance(key, str) and key not in words and (meant := closest(key, words) or _begun(key, words)):
                message = f"`{at}.{key}` looks like a misspelt `{at}.{meant}`"
                self.findings.warning("P0702", message, position, label=f"did you mean `{meant}`?")
        elif keys is not None and isinstance(key, str) and key not in keys:
            self._unwritten(root, key, list(keys), position)

    def _unwritten(self, root: str, key: str, keys: list[str], position: Position) -> None:
        label = did_you_mean(key, keys)
        if root == "fanin":
            hint = f"it has {listed(keys)}"
            self.findings.warning("P0702", f"there is no `fanin.{key}`", position, label=label, hint=hint)
            return
        verb = {"workload": "declares", "args": "passes"}.get(root, "writes")
        hint = "" if label else f"it has {listed(sorted(keys))}" if keys else ""
        if root == "workload" and not label:
            hint = "a payload may bring it; otherwise give it a default in `workload`"
        # A keychain entry is resolved before the run; one that reads nothing names no secret.
        report = self.findings.error if self.where is Where.KEYCHAIN else self.findings.warning
        report("P0702", f"nothing in this document {verb} `{root}.{key}`", position, label=label, hint=hint)


# ---- Names that a document defines, and which of them an expression sees
#
# Bare names fall through args, ctx, iter, workload, the tasks of the pipeline and the steps; all of these are known from
# the document, except what a payload adds to `workload`.


_EVERYWHERE = ("workload", "execution", "execution_id")
_SERVER = ("ctx", "args", "event", *_EVERYWHERE)
FANIN = ("status", "total", "succeeded", "failed", "skipped", "retried", "refs", "shared", "loop_id")
_PIPELINE = ("ctx", "args", "iter", "_prev", "_task", "_attempt", "_effect", *_EVERYWHERE)
_COLLECTION = ("ctx", "args", "iter", *_EVERYWHERE)
_OUTCOME = ("outcome", "output")

SEEN: dict[Where, frozenset[str]] = {
    Where.KEYCHAIN: frozenset(("workload",)),
    Where.ADMIT: frozenset(_SERVER),
    Where.COLLECTION: frozenset(_COLLECTION),
    Where.CLAIM: frozenset((*_COLLECTION, "__frame_max_rows")),
    Where.PARAM: frozenset((*_PIPELINE, "keychain")),
    Where.POLICY: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.CHECK: frozenset(_PIPELINE),
    Where.ON_OK: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.ON_DONE: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.ARC: frozenset((*_SERVER, "fanin", "output")),
}
NAMESPACES = frozenset(name for names in SEEN.values() for name in names)
_INSIDE_PIPELINE = (Where.PARAM, Where.POLICY, Where.CHECK, Where.ON_OK, Where.ON_DONE)
_SEES_ITER = (*_INSIDE_PIPELINE, Where.COLLECTION, Where.CLAIM)


@dataclass(frozen=True, slots=True)
class Known:
    """What the document defines, for one step. `args` is None where they cannot be known."""

    workload: JsonMap
    ctx: frozenset[str]
    hiding: frozenset[str] = frozenset()
    """Those keys of ctx that are not, everywhere they are written, the result of what bears the same name."""
    iter: frozenset[str] = frozenset()
    args: frozenset[str] | None = frozenset()
    own_args: frozenset[str] = frozenset()
    """Those of the task itself, where one is looked at."""
    tasks: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    keychain: frozenset[str] = frozenset()
    state: frozenset[str] | None = None
    """What is kept between runs; None when the document declares nothing."""
    is_loop: bool = False
    output: frozenset[str] | None = None
    """What the result has of which `output` is a view; None where it is not known."""
    results: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """What the results of the steps have."""
    inner_tasks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tasks of the steps, apart from the last ones."""
    task_results: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    is_request: bool = False
    """All that the step does is to ask web servers."""
    is_open: bool = False
    """The task's args are one template, which may bring any name."""

    def layers(self, where: Where) -> list[Collection[str]]:
        """What a bare name falls through, seen from there."""
        if where is Where.KEYCHAIN:
            return [self.workload]
        found: list[Collection[str]] = [self.own_args, self.args or (), self.ctx, self.workload, self.steps]
        if where in _SEES_ITER:
            found.append(self.iter)
        if where in _INSIDE_PIPELINE:
            found.append(self.tasks)
        return found

    def sees(self, namespace: str, where: Where) -> bool:
        """Does the namespace mean something there? What came together is only known where a loop was."""
        return namespace in SEEN[where] and (namespace != "fanin" or self.is_loop)

    def has(self, name: str, where: Where) -> bool:
        return any(name in layer for layer in self.layers(where))

    def hidden_result(self, name: str, where: Where) -> tuple[str, str] | None:
        """What keeps a bare name from reading the task or the step of that name, and which it is; None when nothing is hidden."""
        nearer: list[Collection[str]] = [self.own_args, self.args or (), self.ctx - self.hiding]
        if where in _SEES_ITER and name not in self.ctx:
            nearer.append(self.iter)
        if any(name in layer for layer in nearer):
            return None
        namespace = "ctx" if name in self.hiding else "workload" if name in self.workload else None
        if namespace is None:
            return None
        if name in self.tasks and where in _INSIDE_PIPELINE:
            return namespace, "task"
        return (namespace, "step") if name in self.steps and where is not Where.KEYCHAIN else None

    def result_fields(self, name: str, where: Where) -> frozenset[str] | None:
        """What there is in the result that a bare name reads; None if it reads something else, or nobody knows."""
        nearer: list[Collection[str]] = [self.own_args, self.args or (), self.ctx, self.workload]
        if where in _SEES_ITER:
            nearer.append(self.iter)
        if self.is_open or any(name in layer for layer in nearer):
            return None
        if name in self.tasks and where in _INSIDE_PIPELINE:
            return self.task_results.get(name)
        return self.results.get(name)

    def comes_in(self, use: Use, where: Where) -> bool:
        """Does it read the workload, which is known before the run?"""
        root = use.path[0]
        if root == "workload" or root in NAMESPACES:
            return root == "workload"
        nearer: list[Collection[str]] = [self.own_args, self.args or (), self.ctx]
        if where in _SEES_ITER:
            nearer.append(self.iter)
        if self.is_open or any(root in layer for layer in nearer):
            return False
        return root in self.workload or not self.has(root, where)

    def under(self, namespace: str) -> Collection[str] | None:
        """The keys of a namespace, or None where they cannot be known."""
        match namespace:
            case "ctx":
                return self.ctx
            case "iter":
                return self.iter
            case "args":
                return None if self.args is None else self.args | self.own_args
            case "workload":
                return self.workload or None
            case "keychain":
                return self.keychain
            case "fanin":
                return FANIN
        return None


@dataclass(slots=True)
class Definitions:
    """What a document defines as a whole, from which each step's view is cut."""

    draft: PlaybookDraft
    pipelines: dict[str, list[TaskDraft]]
    entry: str
    gives: Callable[[TaskDraft], frozenset[str]]
    """The fields of a result of the task\'s tool, none where they are not known."""
    args: dict[str, set[str]] = field(default_factory=dict)
    everywhere: Known = field(init=False)
    """What is the same for all steps."""

    def __post_init__(self) -> None:
        ctx: set[str] = set()
        hiding: set[str] = set()
        kept = set(self.draft.state or ())
        for step in self.draft.steps:
            for writes in _writes(step, self.pipelines[step.name]):
                ctx |= {_head(key) for key in (*writes.ctx, *writes.append, *writes.shared)}
                hiding |= {key for key, value in writes.ctx.items() if not _takes_over(key, value)}
                kept |= {_head(key.removeprefix(f"{STATE}.")) for key in writes.ctx if key.startswith(f"{STATE}.")}
            for edge in step.edges:
                self.args.setdefault(edge.target, set()).update(edge.args)
            self.args.setdefault(step.name, set()).update(step.joins)
        if self.draft.state is not None:
            ctx.add(STATE)
        self.everywhere = Known(
            workload=self.draft.workload,
            ctx=frozenset(ctx),
            hiding=frozenset(hiding),
            steps=frozenset(step.name for step in self.draft.steps),
            inner_tasks={step.name: self._inner(step) for step in self.draft.steps if step.loop is None},
            results={step.name: self._step_fields(step) for step in self.draft.steps},
            keychain=frozenset(str(entry["name"]) for entry in self.draft.keychain),
            state=None if self.draft.state is None else frozenset(kept),
        )

    def _inner(self, step: StepDraft) -> frozenset[str]:
        names = [author_name(task.label) for task in self.pipelines[step.name]]
        return frozenset(name for name in names[:-1] if name is not None and name != names[-1])

    def of(self, step: StepDraft) -> Known:
        tasks = self.pipelines[step.name]
        names = (author_name(task.label) for task in tasks)
        return replace(
            self.everywhere,
            output=self.everywhere.results[step.name],
            task_results={author_name(task.label) or "": self._fields(task) for task in tasks},
            iter=frozenset(self._iter(step, tasks)),
            args=None if step.name == self.entry else frozenset(self.args[step.name]),
            tasks=frozenset(name for name in names if name is not None),
            is_loop=step.loop is not None,
            is_request=step.loop is None and {task.kind for task in tasks} == {"http"},
        )

    def within(self, known: Known, task: TaskDraft) -> Known:
        """The view of one task. Args that are one template may bring any name."""
        known = replace(known, output=self._fields(task))
        args = task.params.get("args")
        if args is None:
            return known
        if args.node.kind != "mapping":
            return replace(known, args=None, is_open=True)
        return replace(known, own_args=frozenset(args.node.entries))

    def _fields(self, task: TaskDraft) -> frozenset[str] | None:
        """What the result of a task has, if it is always the same."""
        writes_rows = task.params.keys() & {"copy", "upsert"} or isinstance(task.values.get("commands"), list)
        return None if writes_rows else self.gives(task) or None

    def _step_fields(self, step: StepDraft) -> frozenset[str] | None:
        """What there may be in the result of a step, whichever of its tasks is the last."""
        fields = [self._fields(task) for task in self.pipelines[step.name]]
        if step.loop is not None or not fields or None in fields:
            return None
        return frozenset().union(*(one for one in fields if one is not None))

    def _iter(self, step: StepDraft, tasks: list[TaskDraft]) -> Iterator[str]:
        yield from ("index", "parent")
        if step.loop is not None:
            yield from (step.loop.iterator, "loop_id", "shard_id", "iter_key")
        for writes in _writes(step, tasks):
            yield from (_head(key) for key in writes.iter)


def _takes_over(key: str, value: Json) -> bool:
    """Is what is written a result, or made of what the name means already?"""
    return isinstance(value, str) and re.search(rf"\b(?:output|outcome|(?<!\.){re.escape(key)})\b", value) is not None


def _head(key: str) -> str:
    return key.partition(".")[0]


def _writes(step: StepDraft, tasks: list[TaskDraft]) -> Iterator[Writes]:
    yield step.on_done
    for edge in step.edges:
        yield edge.writes
    for task in tasks:
        yield task.on_ok
        for rule in task.rules or ():
            yield rule.then.writes
