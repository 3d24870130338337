"""What the code puts on a port becomes rows there, however many there are, with one type per column.

Types are settled over all rows of a port, so its rows are loaded in one go: those of the port that is drawn from while the code
runs as they come, those of the others from a file that takes what does not fit into memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import IO, Any

from penstock.components import forms
from penstock.components.base import Call, ComponentFailure, Port
from penstock.data.types import UNKNOWN_COLUMNS
from penstock.ports.rows import Relation, Schema
from penstock.tools.parameters import similar

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
