"""`scd`: a dimension that keeps its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from penstock.components.base import Call, Mistake, PlanCall, Port
from penstock.components.transform.base import Known, Parameters, Transform, absent, actual, missing, refuse, repeated
from penstock.ports.rows import Schema

if TYPE_CHECKING:
    from sqlglot import exp

ANY_TIME = "1970-01-01 00:00:00"
"""Stands for the time of the run while nothing runs."""


class ScdParams(Parameters, kw_only=True):
    keys: Annotated[list[str], Meta(min_length=1, description="The columns that name one thing of the dimension.")]
    type1: Annotated[
        list[str], Meta(description="Columns whose new value takes the place of the old one, without history.")
    ] = []  # noqa: RUF012
    type2: Annotated[
        list[str] | None,
        Meta(
            description="Columns whose change begins a new version; all but the keys when this and `type1` are left out."
        ),
    ] = None
    as_of: Annotated[
        str | None, Meta(description="The date or time from which the input holds; that of the run when left out.")
    ] = None
    valid_from: Annotated[str, Meta(min_length=1, description="Column with the time a version begins.")] = "valid_from"
    valid_to: Annotated[str, Meta(min_length=1, description="Column with the time it ended.")] = "valid_to"
    current: Annotated[str, Meta(min_length=1, description="Column that is true for the version that holds.")] = (
        "is_current"
    )
    open_end: Annotated[
        str | None,
        Meta(description="What `valid_to` has while a version holds, such as `9999-12-31`; NULL when left out."),
    ] = None
    surrogate_key: Annotated[
        str | None,
        Meta(description="A column that numbers the versions, counted on from the highest there is."),
    ] = None
    gone: Annotated[
        Literal["keep", "close"],
        Meta(description="Things that are not in the input stay as they are, or their version ends."),
    ] = "keep"


class Scd(Transform[ScdParams]):
    """Bring a dimension up to date, with its history (slowly changing dimension, types 1 and 2).

    `input` has the things as they are now, `dimension` the versions known so far; on the first load it need not be connected. A
    key that is new makes a version. A change in a column of `type2` ends the version that holds (`valid_to` is `as_of`, which
    is no longer part of it) and begins a new one. A change in columns of `type1` only is written into the version that holds.

    - `insert`: versions to be added
    - `update`: versions to be changed, as they are to be; `keys` and `valid_from`, or the surrogate key, tell which
    - `unchanged`: versions that hold and stay as they are
    - `main`: the whole new dimension, to be written in place of the old one

    The new dimension has the columns of the old one; on the first load those of the input, then `valid_from`, `valid_to` and
    `is_current`. Two missing values are equal. If a key occurs more than once in the input, its last row counts. Running the same
    input again changes nothing.
    """

    type = "scd"
    Params = ScdParams
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("input", description="the things as they are now"),
        Port("dimension", required=False, description="the versions known so far"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main", reject=True, description="the whole new dimension"),
        Port("insert", reject=True, description="new versions"),
        Port("update", reject=True, description="versions that change"),
        Port("unchanged", reject=True, description="versions that hold and stay as they are"),
    )
    example = """\
components:
  - name: dimension
    type: fixed_rows
    params:
      columns: [id, name, city, valid_from, valid_to, is_current]
      rows: [[1, Ann, Ulm, '2025-01-01', null, true], [2, Bob, Kiel, '2025-01-01', null, true]]
  - name: today
    type: fixed_rows
    params:
      columns: [id, name, city]
      rows: [[1, Ann, Bonn], [2, Robert, Kiel], [3, Cyd, Jena]]
  - name: history
    type: scd
    params:
      keys: [id]
      type1: [name]
      type2: [city]
      as_of: '2026-03-01'
  - name: show
    type: log_rows
connections:
  data:
    - today.main -> history.input
    - dimension.main -> history.dimension
    - history.main -> show.input
"""

    @classmethod
    def passes(cls, params: Mapping[str, object]) -> None:
        return None

    def is_fusable(self, params: ScdParams, connected: frozenset[str]) -> bool:
        return params.as_of is not None  # a query has no clock

    def wrong(self, params: ScdParams, inputs: Known) -> Iterable[Mistake]:
        source, dimension = inputs.get("input"), inputs.get("dimension")
        tracked = {"keys": params.keys, "type1": params.type1, "type2": params.type2 or []}
        for parameter, names in tracked.items():
            yield from absent((parameter,), names, source)
            yield from absent((parameter,), names, dimension, "dimension")
        every = [name for names in tracked.values() for name in names]
        for mistake in repeated((), every):
            yield Mistake((), f"{mistake.message} among `keys`, `type1` and `type2`")
        for parameter in ("valid_from", "valid_to", "current", "surrogate_key"):
            name = getattr(params, parameter)
            if name is not None:
                yield from missing((parameter,), name, dimension, "dimension")
                if source is not None and actual(name, source) is not None:
                    yield Mistake((parameter,), f"`{name}` is a column of `input`, and it is made here")
        for parameter in ("as_of", "open_end"):
            yield from _no_time(parameter, getattr(params, parameter))

    def queries(self, params: ScdParams, inputs: Mapping[str, Schema], call: PlanCall) -> dict[str, exp.Query]:
        from penstock.components.shape.history import History

        return History(params, params.as_of or ANY_TIME, inputs["input"], inputs.get("dimension")).queries()

    def run(self, params: ScdParams, call: Call) -> None:
        from penstock.components.shape.history import History
        from penstock.data import select

        inputs = {port: call.input(port) for port in call.inputs}
        schemas = {port: rows.schema for port, rows in inputs.items()}
        refuse(self.wrong(params, schemas))
        now = datetime.fromtimestamp(call.clock.now(), UTC).strftime("%Y-%m-%d %H:%M:%S")
        made = History(params, now, schemas["input"], schemas.get("dimension")).queries()
        for port in sorted(call.connected):
            call.put(port, call.engine.select(select.sql(made[port]), inputs))


def _no_time(parameter: str, value: str | None) -> Iterable[Mistake]:
    if value is not None:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            yield Mistake((parameter,), f"`{value}` is neither a date nor a time", hint="write it like `2026-03-01`")
