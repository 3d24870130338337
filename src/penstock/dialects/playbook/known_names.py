"""Which names a document defines, and which of them an expression sees from where it stands.

Bare names fall through args, ctx, iter, workload, the tasks of the pipeline and the steps; all of these are known from the
document, except what a payload adds to `workload`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from penstock.dialects.playbook.drafts import PlaybookDraft, StepDraft, TaskDraft, Where
from penstock.dialects.playbook.sugar import author_name
from penstock.kernel.kept import STATE
from penstock.kernel.net import Writes
from penstock.kernel.values import JsonMap

_EVERYWHERE = ("workload", "execution", "execution_id")
_SERVER = ("ctx", "args", "event", *_EVERYWHERE)
FANIN = ("status", "total", "succeeded", "failed", "skipped", "retried", "refs", "shared", "loop_id")
_PIPELINE = ("ctx", "args", "iter", "_prev", "_task", "_attempt", "_effect", *_EVERYWHERE)
_OUTCOME = ("outcome", "output")

SEEN: dict[Where, frozenset[str]] = {
    Where.KEYCHAIN: frozenset(("workload",)),
    Where.ADMIT: frozenset(_SERVER),
    Where.COLLECTION: frozenset(("ctx", "args", "iter", *_EVERYWHERE)),
    Where.PARAM: frozenset((*_PIPELINE, "keychain")),
    Where.POLICY: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.CHECK: frozenset(_PIPELINE),
    Where.ON_OK: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.ON_DONE: frozenset((*_PIPELINE, *_OUTCOME)),
    Where.ARC: frozenset((*_SERVER, "fanin", "output")),
}
NAMESPACES = frozenset(name for names in SEEN.values() for name in names)
_INSIDE_PIPELINE = (Where.PARAM, Where.POLICY, Where.CHECK, Where.ON_OK, Where.ON_DONE)
_SEES_ITER = (*_INSIDE_PIPELINE, Where.COLLECTION)


@dataclass(frozen=True, slots=True)
class Known:
    """What the document defines, for one step. `args` is None where they cannot be known."""

    workload: JsonMap
    ctx: frozenset[str]
    iter: frozenset[str] = frozenset()
    args: frozenset[str] | None = frozenset()
    own_args: frozenset[str] = frozenset()
    """Those of the task itself, where one is looked at."""
    tasks: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    keychain: frozenset[str] = frozenset()
    state: frozenset[str] | None = None
    """What is kept from run to run; None in a document that keeps nothing, where the name is free."""
    is_loop: bool = False
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

    def hidden_result(self, name: str, where: Where) -> str | None:
        """What the workload keeps a bare name from reading: a task or a step of that name. None when nothing is hidden."""
        nearer: list[Collection[str]] = [self.own_args, self.args or (), self.ctx]
        if where in _SEES_ITER:
            nearer.append(self.iter)
        if name not in self.workload or any(name in layer for layer in nearer):
            return None
        if name in self.tasks and where in _INSIDE_PIPELINE:
            return "task"
        return "step" if name in self.steps and where is not Where.KEYCHAIN else None

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
    args: dict[str, set[str]] = field(default_factory=dict)
    everywhere: Known = field(init=False)
    """What is the same for all steps."""

    def __post_init__(self) -> None:
        ctx: set[str] = set()
        for step in self.draft.steps:
            for writes in _writes(step, self.pipelines[step.name]):
                ctx |= {_head(key) for key in (*writes.ctx, *writes.append, *writes.shared)}
            for edge in step.edges:
                self.args.setdefault(edge.target, set()).update(edge.args)
            self.args.setdefault(step.name, set()).update(step.joins)
        if self.draft.state is not None:
            ctx.add(STATE)
        self.everywhere = Known(
            workload=self.draft.workload,
            ctx=frozenset(ctx),
            steps=frozenset(step.name for step in self.draft.steps),
            keychain=frozenset(str(entry["name"]) for entry in self.draft.keychain),
            state=None if self.draft.state is None else frozenset(self.draft.state),
        )

    def of(self, step: StepDraft) -> Known:
        tasks = self.pipelines[step.name]
        names = (author_name(task.label) for task in tasks)
        return replace(
            self.everywhere,
            iter=frozenset(self._iter(step, tasks)),
            args=None if step.name == self.entry else frozenset(self.args[step.name]),
            tasks=frozenset(name for name in names if name is not None),
            is_loop=step.loop is not None,
        )

    def within(self, known: Known, task: TaskDraft) -> Known:
        """The view of one task. Args that are one template may bring any name."""
        args = task.params.get("args")
        if args is None:
            return known
        if args.node.kind != "mapping":
            return replace(known, args=None, is_open=True)
        return replace(known, own_args=frozenset(args.node.entries))

    def _iter(self, step: StepDraft, tasks: list[TaskDraft]) -> Iterator[str]:
        yield from ("index", "parent")
        if step.loop is not None:
            yield from (step.loop.iterator, "loop_id", "shard_id", "iter_key")
        for writes in _writes(step, tasks):
            yield from (_head(key) for key in writes.iter)


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
