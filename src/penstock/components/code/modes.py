"""How the code meets the rows: once, row by row, batch by batch, or as a frame.

The code is compiled once. Only while it runs can its thread be stopped; reading and writing rows is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from penstock.components.base import Call, ComponentFailure
from penstock.components.code.block import STOPPED_BY_CODE, Block, Names
from penstock.components.code.frames import frame, is_frame, kind, records, rows
from penstock.components.code.outlets import Outlet, Outlets
from penstock.components.code.python import Python, PythonParams
from penstock.components.code.thread import CodeThread
from penstock.components.code.views import read_only
from penstock.components.runner import ERRORS
from penstock.ports.rows import Relation, Schema

_PART_TAKES = 0.2
"""Seconds between two reports of how far the code has come, about."""
_LARGEST_PART = 100_000
ALL = 'SELECT * FROM "input"'


def perform(params: PythonParams, call: Call, thread: CodeThread) -> Any:
    """The whole run, in its thread; the result of the component."""
    block = Block(params.code, "code", call.source)
    setup = Block(params.setup, "setup", call.source) if params.setup is not None else None
    outlets = Outlets(call, Python.outputs, _outlets(params, call), thread.out_of_code)
    names = Names(_given(params, call, outlets, thread))
    try:
        if setup is not None:
            with thread.in_code():
                names.run(setup, setup.whole)
        run = _Run(params, call, thread, block, names, outlets)
        {"once": run.once, "row": run.by_row, "batch": run.by_batch, "frame": run.with_frame}[params.mode]()
        return names.result()
    finally:
        names.close()
        outlets.close()


def _outlets(params: PythonParams, call: Call) -> dict[str, Outlet]:
    came: Schema = next((arrived[0].schema for arrived in call.inputs.values() if arrived), ())
    own = tuple(column for column in came if column.name.lower() not in ("error_code", "error_message"))
    made = {}
    for port in sorted(call.connected):
        schema, guess = call.declared.get(port), came
        if port == "main" and params.output_schema:
            from penstock.components.code.checking import columns

            schema = columns(params.output_schema)
        elif port == "reject":
            guess = (*own, *ERRORS)
        made[port] = Outlet(call, schema, guess)
    return made


def _given(params: PythonParams, call: Call, outlets: Outlets, thread: CodeThread) -> dict[str, Any]:
    """The names that the code finds."""
    form = params.frame if params.mode == "frame" else "rows"
    others = [port for port in sorted(call.inputs) if params.mode == "once" or port != "input"]
    return {
        "inputs": {port: frame(call, port, form) for port in others},
        "context": read_only(call.context, "context"),
        "globals": call.globals,
        "iteration": call.iteration,
        "log": thread.say,
        "emit": outlets.emit,
    }


class _Run:
    def __init__(
        self, params: PythonParams, call: Call, thread: CodeThread, block: Block, names: Names, outlets: Outlets
    ) -> None:
        self._params = params
        self._call = call
        self._thread = thread
        self._block = block
        self._names = names
        self._outlets = outlets
        self._made = 0
        self._part_size = 64

    def once(self) -> None:
        self._outlets.put(self._output(partial(exec, self._block.whole, self._names.values)))
        self._outlets.finish()

    def with_frame(self) -> None:
        self._names.values["frame"] = frame(self._call, "input", self._params.frame)
        self.once()

    def by_batch(self) -> None:
        step = self._prepared()

        def batches() -> Iterator[list[Any]]:
            for columns, batch, _ in self._batches():
                self._names.values["rows"] = [dict(zip(columns, values, strict=True)) for values in batch]
                self._names.values["output"] = None
                given = self._output(step)
                self._outlets.put({port: records(value) if is_frame(value) else value for port, value in given.items()})
                yield self._drained()

        self._draw(batches())

    def by_row(self) -> None:
        step = self._prepared()
        each = RowLoop(self._params, self._block, self._names, self._outlets)

        def batches() -> Iterator[list[Any]]:
            for columns, batch, before in self._batches():
                for at, part in self._parts(batch):
                    with self._thread.in_code():
                        refused = each.run(step, columns, part, before + at)
                    self._refuse(refused)
                    yield self._drained()

        self._draw(batches())

    def _parts(self, batch: list[tuple[Any, ...]]) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """The batch in parts that take about as long as the live view waits between two looks; the first ones are small."""
        at, clock = 0, self._call.clock
        while at < len(batch):
            size, began = self._part_size, clock.now()
            yield at, batch[at : at + size] if at or size < len(batch) else batch
            at += size
            took = clock.now() - began
            if took < _PART_TAKES / 2:
                self._part_size = min(size * 4, _LARGEST_PART)
            elif took > _PART_TAKES * 2:
                self._part_size = max(1, size // 4)

    def _refuse(self, refused: list[Any]) -> None:
        reject = self._outlets.get("reject")
        if reject is None:
            self._outlets.count_unread("reject", len(refused))
            return
        reject.extend(refused)
        if reject.is_full:
            reject.lay_aside()

    def _prepared(self) -> Callable[[], object]:
        """What is to be done for each row or batch; what is to be done once is done."""
        with self._thread.in_code():
            self._names.run(self._block, self._block.start())
        return self._block.step(self._names)

    def _output(self, code: Callable[[], object]) -> dict[str, Any]:
        """Run the code and take what it left in `output`, which may be a generator: its code is the author's as well."""
        with self._thread.in_code():
            try:
                code()
                return self._outlets.routed(self._names.values.get("output"))
            except STOPPED_BY_CODE as error:
                raise self._block.failure(error, self._names.module) from None

    def _batches(self) -> Iterator[tuple[tuple[str, ...], list[tuple[Any, ...]], int]]:
        """Columns, rows, and how many rows came before them."""
        before = 0
        for relation in self._call.inputs.get("input", []):
            columns = _columns(relation)
            for batch in self._call.engine.rows(ALL, {"input": relation}, self._params.batch_size):
                yield columns, batch, before
                before += len(batch)

    def _drained(self) -> list[Any]:
        main = self._outlets.get("main")
        made = [] if main is None else main.drain()
        self._made += len(made)
        self._call.progress("main", self._made)
        return made

    def _draw(self, batches: Iterator[list[Any]]) -> None:
        """The rows of `main` are loaded as they are made; nobody may want them, and the code runs all the same."""
        main = self._outlets.get("main")
        if main is None:
            for _ in batches:
                pass
            self._outlets.finish()
            return
        self._call.put("main", main.load(batches))
        self._outlets.finish(but=frozenset({"main"}))


class RowLoop:
    """The innermost loop: everything in it costs its time once per row."""

    def __init__(self, params: PythonParams, block: Block, names: Names, outlets: Outlets) -> None:
        self._block = block
        self._names = names
        self._main = outlets.get("main")
        self._rejects = params.on_error == "reject"
        self._passes = not block.names("output")
        self._makers: dict[tuple[str, ...], Any] = {}

    def run(
        self, step: Callable[[], object], columns: tuple[str, ...], batch: list[tuple[Any, ...]], before: int
    ) -> list[Any]:
        """The rows that were refused; those of `main` are in its outlet."""
        refused: list[Any] = []
        values, passes = self._names.values, self._passes
        made: list[Any] = []
        for number, row in enumerate(self._maker(columns)(batch)):
            values["row"] = row
            values["output"] = row if passes else None
            values["reject"] = None
            try:
                step()
                output, reason = values["output"], values["reject"]
                if output is not None and output.__class__ is not dict:
                    output = _several(output)
            except STOPPED_BY_CODE as error:
                at = None if self._rejects else before + number + 1
                failure = self._block.failure(error, self._names.module, at, columns)
                if not self._rejects:
                    raise failure from None
                refused.append(_refused(columns, batch[number], type(error).__name__, failure.message))
                continue
            if reason is not None:
                refused.append(_refused(columns, batch[number], "REJECTED", str(reason)))
            elif output is row:
                made.append(row)
            elif output.__class__ is dict:
                made.append(output.copy())  # the code may go on using its mapping for the next row
            elif output is not None:
                made.extend(output)
        if self._main is not None:
            self._main.extend(made)
        return refused

    def _maker(self, columns: tuple[str, ...]) -> Any:
        """A function from tuples to mappings. A display with its keys written out takes half the time of `dict(zip(…))`."""
        maker = self._makers.get(columns)
        if maker is None:
            places = [f"_{place}" for place in range(len(columns))]
            pairs = ", ".join(f"{name!r}: {place}" for name, place in zip(columns, places, strict=True))
            maker = eval(f"lambda batch: [{{{pairs}}} for ({', '.join(places)},) in batch]", {})
            self._makers[columns] = maker
        return maker


def _columns(relation: Relation) -> tuple[str, ...]:
    return tuple(column.name for column in relation.schema)


def _several(output: Any) -> list[Any]:
    if isinstance(output, Mapping):
        return [dict(output)]
    try:
        return [dict(each) for each in rows(output, "output")]
    except ComponentFailure:
        said = f"a mapping, a list of mappings, or None to drop the row, and is {kind(output)}"
        raise ComponentFailure("output", f"`output` must be {said}") from None


def _refused(columns: tuple[str, ...], values: tuple[Any, ...], code: str, message: str) -> dict[str, Any]:
    row = dict(zip(columns, values, strict=True))
    return {**row, "error_code": code, "error_message": message}
