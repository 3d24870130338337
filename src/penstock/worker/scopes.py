"""What the templates of a pipeline see while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from penstock.expr.scope import OutcomeView, bare_args, data_of
from penstock.kernel.evolve.pipelines import with_writes
from penstock.kernel.state import Pipeline
from penstock.kernel.values import JsonMap
from penstock.ports.leases import Lease

EMPTY: Mapping[str, Any] = {}


class LeaseNames:
    """The names that stay the same for all tasks of one lease."""

    __slots__ = ("args", "fixed", "iter_parent", "keychain", "results", "workload")

    def __init__(self, lease: Lease) -> None:
        context = lease.context
        run = lease.run
        self.args = bare_args(run.args, lease.node.joins)
        self.workload = context.workload
        self.results = context.scope.results
        self.keychain = context.keychain.view()
        self.iter_parent = context.iter_parent
        self.fixed: dict[str, Any] = {
            "args": run.args,
            "workload": self.workload,
            "execution_id": context.execution_id,
            "execution": {
                "id": context.execution_id,
                "name": context.net.name,
                "step": run.step,
                "step_run_id": run.place.id,
                "visit": run.visit,
                "started_at": context.scope.started_at,
                "trace_id": context.scope.trace_id,
            },
        }

    def with_name(self, name: str, value: Any) -> LeaseNames:
        """The same names and one more."""
        names = copy(self)
        names.fixed = {**self.fixed, name: value}
        return names

    def with_args(self, args: Mapping[str, Any]) -> LeaseNames:
        """The same names for one task that has args of its own."""
        names = copy(self)
        names.args = {**self.args, **args}
        names.fixed = {**self.fixed, "args": {**self.fixed["args"], **args}}
        return names


def element(iterator: str, loop_id: str, index: int, item: Any, key: str | None = None) -> dict[str, Any]:
    """What a loop's pipeline sees under `iter`: the element, and its permanent names."""
    return {
        "loop_id": loop_id,
        "shard_id": f"{loop_id}[{index}]",
        "iter_key": str(index) if key is None else key,
        "index": index,
        iterator: item,
    }


class TaskScope:
    """The scope of one pipeline. Secrets are visible to tool parameters only; `outcome` to policies only."""

    __slots__ = ("_iter", "_seen_iter", "element", "label", "names", "outcome", "pipeline", "tool_side")

    def __init__(self, names: LeaseNames, pipeline: Pipeline, element: dict[str, Any] | None) -> None:
        self.names = names
        self.pipeline = pipeline
        self.element = element
        """In a loop: the iterator's name -> its element, and `index`."""
        self.label = ""
        self.outcome: dict[str, Any] | None = None
        self.tool_side = True
        self._iter: dict[str, Any] = {}
        self._seen_iter: object = None

    def iter(self) -> dict[str, Any]:
        written = self.pipeline.iter
        if self._seen_iter is not written:
            self._seen_iter = written
            parent = self.names.iter_parent
            around = {"parent": parent} if parent is not None else EMPTY
            self._iter = {**around, **(self.element or EMPTY), **written}
        return self._iter

    def with_args(self, args: Mapping[str, Any]) -> TaskScope:
        scope = copy(self)
        scope.names = self.names.with_args(args)
        return scope

    def after(self, writes: JsonMap) -> TaskScope:
        """The same scope, with writes applied that have not been recorded yet."""
        scope = TaskScope(self.names, with_writes(self.pipeline, writes), self.element)
        scope.label, scope.outcome, scope.tool_side = self.label, self.outcome, self.tool_side
        return scope

    def visible(self) -> dict[str, Any]:
        """Every name that `lookup` finds a value of the run under. Secrets and outcomes are not among them: this is for code."""
        pipeline, names = self.pipeline, self.names
        bare = (names.args, pipeline.ctx, self.iter(), names.workload, pipeline.results, names.results)
        found: dict[str, Any] = {}
        for values in reversed(bare):
            found.update(values)
        return {**found, "ctx": dict(pipeline.ctx), "iter": dict(self.iter()), **names.fixed}

    def lookup(self, name: str) -> object:
        pipeline, names = self.pipeline, self.names
        if name in names.fixed:
            return names.fixed[name]
        match name:
            case "ctx":
                return pipeline.ctx
            case "iter":
                return self.iter()
            case "_prev":
                return pipeline.prev
            case "_task":
                return self.label
            case "_attempt":
                return pipeline.attempt
            case "_effect":
                return f"{names.fixed['execution_id']}/{pipeline.effect}"
            case "outcome" if self.outcome is not None:
                return self.outcome
            case "output" if self.outcome is not None:
                return OutcomeView(self.outcome)
            case "keychain" if self.tool_side:
                return names.keychain
        bare, results = (names.args, pipeline.ctx, self.iter(), names.workload), (pipeline.results, names.results)
        for values in bare:
            if name in values:
                return values[name]
        for values in results:
            if name in values:
                return values[name]
        return data_of(name, (names.fixed, *bare), results)
