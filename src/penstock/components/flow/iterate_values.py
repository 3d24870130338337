"""Iterators that need no input: over a list, over numbers, and for as long as a condition holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Call, ComponentFailure, Elements, Iterator, IteratorParams, PlanCall
from penstock.components.flow.tool_calls import require
from penstock.kernel.values import Json
from penstock.ports.components import Mistake
from penstock.ports.rows import Schema

Number = int | float
Count = Annotated[int, Meta(ge=0)]
MOST_ELEMENTS = 10_000_000


class IterateListParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    items: Annotated[
        list[Any] | str, Meta(description="The elements: a list of anything, or text that `separator` takes apart.")
    ]
    separator: Annotated[str, Meta(min_length=1, description="Stands between the elements when `items` is text.")] = ","


class IterateList(Iterator[IterateListParams]):
    """Run the body once for each element of a list.

    `items` is a list, often one that a template gives (`{{ global.tables }}`). Text is taken apart at `separator`: spaces
    around an element are dropped, and so are empty elements. No element at all is no error.
    """

    type: ClassVar[str] = "iterate_list"
    Params = IterateListParams
    example: ClassVar[str] = """\
components:
  - name: tables
    type: iterate_list
    params: {items: [orders, customers]}
  - name: tell
    type: warn
    params: {message: "table {{ iteration.item }}"}
connections:
  control: tables (iterate) tell
"""

    def elements(self, params: IterateListParams, call: Call) -> Elements:
        items = params.items
        if isinstance(items, str):
            items = [part.strip() for part in items.split(params.separator) if part.strip()]
        return Elements(items, len(items))


class IterateRangeParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    start: Annotated[Number, Meta(description="The first number.")] = 0
    stop: Annotated[
        Number | None, Meta(description="Where to end; this number itself is not an element. Either this or `count`.")
    ] = None
    step: Annotated[Number, Meta(description="From one number to the next; negative to count down, never 0.")] = 1
    count: Annotated[Count | None, Meta(description="How many numbers. Either this or `stop`.")] = None


class IterateRange(Iterator[IterateRangeParams]):
    """Run the body once for each number of a range.

    `start: 0, stop: 3` gives 0, 1 and 2: `stop` is where the range ends, not its last number. `start: 1, count: 3` gives 1, 2
    and 3. With a step that leads away from `stop` there is no element. Fractions are exact: `step: 0.1` gives 0.1, 0.2, 0.3.
    """

    type: ClassVar[str] = "iterate_range"
    Params = IterateRangeParams
    example: ClassVar[str] = """\
components:
  - name: years
    type: iterate_range
    params: {start: 2022, stop: 2025}
  - name: tell
    type: warn
    params: {message: "year {{ iteration.item }}"}
connections:
  control: years (iterate) tell
"""

    def check(self, params: IterateRangeParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        return _mistakes(params)

    def elements(self, params: IterateRangeParams, call: Call) -> Elements:
        require(_mistakes(params))
        start, step = _exact(params.start), _exact(params.step)
        count = params.count
        if count is None:
            assert params.stop is not None
            # Rounded up: of a last step that does not fit whole, the number it begins at is still an element.
            count = max(0, int(((_exact(params.stop) - start) / step).to_integral_value(ROUND_CEILING)))
        if count > MOST_ELEMENTS:
            raise ComponentFailure("parameters", f"the range has {count:,} numbers; at most {MOST_ELEMENTS:,} are run")
        return Elements(_numbers(start, step, count), count)


def _mistakes(params: IterateRangeParams) -> list[Mistake]:
    found = []
    if params.step == 0:
        found.append(Mistake(("step",), "`step` is 0: such a range has no end", hint="give a number other than 0"))
    if (params.stop is None) == (params.count is None):
        had = "neither" if params.stop is None else "both"
        message = f"a range has either `stop` or `count`, and this one has {had}"
        found.append(Mistake(() if params.stop is None else ("count",), message))
    return found


def _exact(number: Number) -> Decimal:
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _numbers(start: Decimal, step: Decimal, count: int) -> Iterable[Json]:
    if start == start.to_integral_value() and step == step.to_integral_value():
        return range(int(start), int(start + step * count), int(step))
    return (float(start + step * index) for index in range(count))


class IterateWhileParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    while_: Annotated[
        str | bool,
        Meta(description="A condition in the language of `if` links, evaluated again before each iteration."),
    ] = msgspec.field(name="while")
    max: Annotated[
        Count | None,
        Meta(description="Stop after this many iterations, successfully, whatever the condition says."),
    ] = None


class IterateWhile(Iterator[IterateWhileParams]):
    """Run the body for as long as a condition holds.

    The condition is evaluated before each iteration and sees what the iterations before it wrote: `global.page < 3`. The
    element is the number of the iteration. A global that is missing makes it false. More than 100 evaluations end the job
    with CONDITION_REEVALUATION_LIMIT, so that a condition which never becomes false is found out;
    `job_config.limits.max_reevaluations` allows more. `max` is a limit of the author's own and no error.
    """

    type: ClassVar[str] = "iterate_while"
    Params = IterateWhileParams
    example: ClassVar[str] = """\
components:
  - name: begin
    type: set_global
    params: {values: {page: 0}}
  - name: pages
    type: iterate_while
    params: {while: global.page < 3, globals: override}
  - name: next
    type: set_global
    params: {values: {page: "{{ global.page + 1 }}"}}
connections:
  control: |
    begin (ok) pages
    pages (iterate) next
"""

    def elements(self, params: IterateWhileParams, call: Call) -> Elements:
        raise ComponentFailure("engine", "`iterate_while` has no list of elements: the engine evaluates its condition")
