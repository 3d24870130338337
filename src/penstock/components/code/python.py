"""The `python` component: the author's code over rows, in a thread. What the code puts on a port becomes rows there,
however many there are, with one type per column.

Types are settled over all rows of a port, so its rows are loaded in one go: those of the port that is drawn from while the code
runs as they come, those of the others from a file that takes what does not fit into memory."""

from __future__ import annotations

import asyncio
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from typing import IO, Any, ClassVar

from penstock.components import forms
from penstock.components.base import Action, Call, ComponentFailure, Known, Mistake, PlanCall, Port, Ports, Schemas
from penstock.components.code import elsewhere
from penstock.components.code.block import STOPPED_BY_CODE, Block, CodeThread, Names, read_only
from penstock.components.code.params import PythonParams
from penstock.components.forms import frame, is_frame, kind, records, rows
from penstock.components.runner import ERRORS
from penstock.components.types import sql_type, wrong_type
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.ports.rows import Column, Relation, Schema
from penstock.tools.parameters import similar
from penstock.tools.python.isolation import prefer


def mistakes(output_schema: Mapping[str, str] | None) -> list[Mistake]:
    found: list[Mistake] = []
    for name, type in (output_schema or {}).items():
        found += wrong_type(("output_schema", name), type)
    return found


def columns(output_schema: Mapping[str, str]) -> Schema:
    return tuple(Column(name, sql_type(type)) for name, type in output_schema.items())


class Python(Action[PythonParams]):
    """Run Python code over rows.

    It is plain Python: it may import what is installed, open files and call services. What it sees and what it sets depends
    on `mode`:

    - `once`: `inputs` is a mapping of input port to a list of rows, each a mapping. `output`, if it is set, holds the rows of
      `main`: a list of mappings or a data frame; or a mapping of output port to rows. No input is needed.
    - `row`: `row` is a mapping; `output` is set to a mapping, a list of them, or None to drop the row. Code that never names
      `output` passes every row on, with the changes it made to it. `reject = "reason"` sends the row as it came to `reject`.
    - `batch`: `rows` is a list of at most `batch_size` mappings; `output` is set as in `once`.
    - `frame`: `frame` holds all rows in the form that the parameter `frame` names; `output` is set to a frame or to rows.

    In every mode there are `context` (read-only), `globals` (read and write: what is written is there for later components
    when this one ends), `iteration` (in the body of an iterator), `log(text)` for a line in the run's log, `emit(port, row)`
    for one row on any output, and `inputs` with the rows of the ports `input_*`, for look-ups. `result` may be set to a value
    that JSON can say: the component's result. In the modes `row` and `batch` variables keep their values from row to row;
    imports, functions and classes at the start of the code are made once.

    What the code prints goes to the run's log. Modules beside the job can be imported; files that the code opens are relative
    to the working folder of the process. Rows on `reject` have the columns of the input, `error_code` and `error_message`.

    When there are no rows, the columns of `main` are those of the input unless `output_schema` or a schema of the component
    names them. Writing to `context` is an error, as is whatever the code raises: it names the line of the code, the line of
    the file, and in mode `row` the number of the row, counted from 1.

    On Spark the modes `row` and `batch` run on the workers, with one input and `main`, whose columns `output_schema` names.
    Each part of the rows begins anew, so nothing goes on from row to row, and there are no `globals`, `emit`, `log`, `inputs` and
    `result`.
    """

    type = "python"
    family = "code"
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("input", required=False, many=True, description="the rows the code runs over"),
        Port("input_*", required=False, many=True, description="more rows, in `inputs`"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main"),
        Port("reject", reject=True, description="rows that the code refused"),
        Port("output_*"),
    )

    @classmethod
    def ports(cls, params: Mapping[str, Any]) -> Ports:
        if params.get("mode", "once") == "once":
            return Ports(cls.inputs, cls.outputs)
        first = Port("input", many=True, description=cls.inputs[0].description)
        return Ports((first, *cls.inputs[1:]), cls.outputs)

    def check(self, params: PythonParams, inputs: Known, call: PlanCall) -> list[Mistake]:

        return mistakes(params.output_schema)

    def schemas(self, params: PythonParams, inputs: Known, call: PlanCall) -> Schemas:
        known: Schemas = {}
        if params.output_schema:
            known["main"] = columns(params.output_schema)
        given = inputs.get("input")
        if params.mode == "row" and given is not None:
            known["reject"] = (*given, *ERRORS)
        return known

    def bound_here(self, params: PythonParams, inputs: Known, call: PlanCall) -> str | None:
        return elsewhere.reason(params, inputs, call) if inputs else None

    async def run(self, params: PythonParams, call: Call) -> Any:
        if call.inputs and call.engine.runs_python:
            return await _elsewhere(params, call)
        prefer(call.folder)
        thread = CodeThread(call)
        return await thread.run(lambda: perform(params, call, thread), params.timeout)


async def _elsewhere(params: PythonParams, call: Call) -> None:
    schema = columns(params.output_schema) if params.output_schema else call.declared.get("main", ())
    limit = asyncio.timeout(params.timeout)
    try:
        async with limit:
            await call.threads.run(elsewhere.run, params, schema, call)
    except TimeoutError:
        if not limit.expired():
            raise
        message = f"the code was still running after {params.timeout:g} s"
        raise ComponentFailure("timeout", message, retryable=True) from None


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
        """The rows of `main` are loaded as they are made; the code runs even if the port is not connected."""
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
        expected = f"a mapping, a list of mappings, or None to drop the row, and is {kind(output)}"
        raise ComponentFailure("output", f"`output` must be {expected}") from None


def _refused(columns: tuple[str, ...], values: tuple[Any, ...], code: str, message: str) -> dict[str, Any]:
    row = dict(zip(columns, values, strict=True))
    return {**row, "error_code": code, "error_message": message}


PIECE = 50_000
"""Rows of a port that are kept in memory before they are laid aside."""

Row = Mapping[str, Any]


class Outlet:
    """The rows of one port, in the making."""

    def __init__(self, call: Call, schema: Schema | None, guess: Schema) -> None:
        self._call = call
        self._schema = schema
        self._guess = guess
        self._waiting: list[Row] = []
        self._aside: IO[bytes] | None = None
        self._frame: Any = None

    def add(self, row: Row) -> None:
        self._waiting.append(row)

    def extend(self, rows: list[Row]) -> None:
        self._waiting.extend(rows)

    def put_frame(self, frame: Any) -> None:
        self._frame = frame

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= PIECE

    def lay_aside(self) -> None:
        """Make room. Rows that cannot be written down could not be loaded either."""
        if self._aside is None:
            self._aside = tempfile.TemporaryFile(dir=self._call.work)  # noqa: SIM115  it closes with the outlet
        try:
            pickle.dump(self.drain(), self._aside, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise ComponentFailure("output", f"a row holds a value that no column can: {error}") from None

    def drain(self) -> list[Row]:
        rows, self._waiting = self._waiting, []
        return rows

    def relation(self) -> Relation:
        engine = self._call.engine
        if self._frame is not None:
            if self._aside is None and not self._waiting:
                return forms.load(self._frame, engine, self._schema)
            self.extend(forms.records(self._frame))
        return self.load(chain(self._read_back(), iter([self.drain()])))

    def load(self, batches: Iterable[list[Row]]) -> Relation:
        """Rows as they come. Without any, the columns are those that were declared, or else the guess if there is one."""
        filled = (batch for batch in batches if batch)
        first = next(filled, None)
        if first is None:
            return self._call.engine.empty(self._schema or self._guess or UNKNOWN_COLUMNS)
        return self._call.engine.load_mappings(chain([first], filled), self._schema)

    def close(self) -> None:
        if self._aside is not None:
            self._aside.close()

    def _read_back(self) -> Iterator[list[Row]]:
        if self._aside is None:
            return
        self._aside.seek(0)
        try:
            while True:
                yield pickle.load(self._aside)
        except EOFError:
            return


class Outlets:
    """The output ports of one run."""

    def __init__(
        self,
        call: Call,
        ports: tuple[Port, ...],
        made: dict[str, Outlet],
        aside: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._call = call
        self._ports = ports
        self._made = made
        self._aside = aside
        """The thread cannot be stopped in here: laying rows aside is the engine's work, not the code's."""

    def get(self, port: str) -> Outlet | None:
        """None when the port is not connected."""
        return self._made.get(port)

    def emit(self, port: str, row: Row) -> None:
        """`emit(port, row)` of the code."""
        if not isinstance(row, Mapping):
            raise TypeError(f"emit: a row must be a mapping, and is {forms.kind(row)}")
        self._check(port, "emit")
        outlet = self._made.get(port)
        if outlet is None:
            self.count_unread(port, 1)
        else:
            outlet.add(dict(row))
            if outlet.is_full:
                with self._aside():
                    outlet.lay_aside()

    def count_unread(self, port: str, rows: int) -> None:
        """A link may ask how many rows a port would have had, without reading them."""
        name = f"NB_LINE_OUT_{port}"
        before = self._call.after.get(name)
        self._call.after[name] = rows + (before if isinstance(before, int) else 0)

    def routed(self, output: Any) -> dict[str, Any]:
        """`output` of the code as port -> frame or list of rows."""
        if output is None:
            return {}
        if forms.is_frame(output):
            return {"main": output}
        if not isinstance(output, Mapping):
            return {"main": forms.rows(output, "output")}
        for port in output:
            self._check(port, "output")
        return {
            port: value if forms.is_frame(value) else forms.rows(value, f"output[{port!r}]")
            for port, value in output.items()
        }

    def put(self, routed: Mapping[str, Any]) -> None:
        for port, value in routed.items():
            outlet = self._made.get(port)
            if outlet is None:
                self.count_unread(port, len(value) if hasattr(value, "__len__") else 0)
                continue
            if forms.is_frame(value):
                outlet.put_frame(value)
            else:
                outlet.extend(value)

    def finish(self, but: frozenset[str] = frozenset()) -> None:
        """Hand all rows over; those of the ports in `but` are there already."""
        for port, outlet in self._made.items():
            if port not in but:
                self._call.put(port, outlet.relation())

    def close(self) -> None:
        for outlet in self._made.values():
            outlet.close()

    def _check(self, port: Any, where: str) -> None:
        if isinstance(port, str) and any(known.accepts(port) for known in self._ports):
            return
        known = ", ".join(f"`{each.name}`" for each in self._ports)
        message = f"{where}: `{port}` is not an output port; the ports are {known}"
        near = similar(port, [each.name for each in self._ports]) if isinstance(port, str) else ""
        hint = ". A single row of `output` stands in a list" if where == "output" else ""
        raise ComponentFailure("output", f"{message}{near}{hint}")
