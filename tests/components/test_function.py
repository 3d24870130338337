"""A component from a function: rows in the form its annotations ask for, rows back in any form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from penstock.components.base import Action, Call, ComponentFailure, Port
from penstock.components.function import component
from penstock.kernel.errors import Refused
from penstock.ports.rows import Relation
from tests.components.harness import Ran, run, schema

PEOPLE = [{"name": "Ada", "born": 1815}, {"name": "Bob", "born": 1990}]


def ran(made: type[Action[Any]], params: dict[str, Any], inputs: dict[str, Any] | None = None, **more: Any) -> Ran:
    return run(made(), params, inputs if inputs is not None else {"input": PEOPLE}, **more)


@component("initials", inputs=("input",))
def initials(input: list[dict[str, Any]], column: str = "name") -> list[dict[str, Any]]:
    """Add initials."""
    return [row | {"initial": row[column][:1]} for row in input]


def test_a_function_takes_rows_and_parameters_and_gives_rows() -> None:
    assert initials.type == "initials"
    assert initials.__doc__ == "Add initials."
    assert ran(initials, {"column": "name"}).main == [
        {"name": "Ada", "born": 1815, "initial": "A"},
        {"name": "Bob", "born": 1990, "initial": "B"},
    ]


def test_a_function_may_stream() -> None:
    @component("adults", inputs=("input",))
    def adults(input: Iterator[dict[str, Any]], year: int) -> Iterator[dict[str, Any]]:
        for row in input:
            if row["born"] < year:
                yield row

    many = [{"born": number} for number in range(25_000)]
    assert len(ran(adults, {"year": 20_000}, {"input": many}).main) == 20_000


def test_frames_come_in_the_form_that_is_asked_for() -> None:
    @component("by_arrow", inputs=("input",))
    def by_arrow(input: pyarrow.Table) -> Any:
        assert isinstance(input, pyarrow.Table)
        return input.slice(1)

    @component("by_polars", inputs=("input",))
    def by_polars(input: polars.DataFrame) -> Any:
        return input.filter(polars.col("born") > 1900)

    @component("by_pandas", inputs=("input",))
    def by_pandas(input: pandas.DataFrame) -> Any:
        return input[input["born"] > 1900]

    for made in (by_arrow, by_polars, by_pandas):
        assert ran(made, {}).main == [PEOPLE[1]], made.type


def test_rows_may_be_handed_on_as_they_are() -> None:
    @component("pass_on", inputs=("input",))
    def pass_on(input: Relation) -> Relation:
        return input

    assert ran(pass_on, {}).main == PEOPLE


def test_a_mapping_of_ports_feeds_several_outputs() -> None:
    @component("halves", inputs=("input",), outputs=("old", "young", Port("reject", reject=True)))
    def halves(input: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "old": [row for row in input if row["born"] < 1900],
            "young": [row for row in input if row["born"] > 1900],
        }

    outputs = ran(halves, {}).outputs
    assert outputs["old"] == [PEOPLE[0]]
    assert outputs["young"] == [PEOPLE[1]]
    assert outputs["reject"] == []


def test_the_call_and_all_inputs_can_be_asked_for() -> None:
    @component("count_all", inputs=("input_*",), outputs=())
    def count_all(inputs: dict[str, list[dict[str, Any]]], call: Call) -> dict[str, int]:
        call.say("counting")
        call.globals["seen"] = sorted(inputs)
        return {port: len(rows) for port, rows in inputs.items()}

    done = ran(count_all, {}, {"input_b": PEOPLE, "input_a": PEOPLE[:1]})
    assert done.result == {"input_a": 1, "input_b": 2}
    assert done.said == ["counting"]
    assert done.globals == {"seen": ["input_a", "input_b"]}


def test_a_generator_runs_to_its_end_though_nobody_reads_its_rows() -> None:
    done: list[str] = []

    @component("working", inputs=("input",))
    def working(input: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        yield from input
        done.append("worked")

    assert ran(working, {}, connected=[]).outputs == {}
    assert done == ["worked"]


def test_a_frame_may_be_optional() -> None:
    @component("maybe", inputs=("input",))
    def maybe(input: polars.DataFrame | None = None) -> Any:
        return [{"rows": 0}] if input is None else input.head(1)

    assert ran(maybe, {}).main == PEOPLE[:1]
    assert ran(maybe, {}, {}).main == [{"rows": 0}]


def test_an_input_with_a_default_need_not_be_connected() -> None:
    @component("greet", inputs=("input",))
    def greet(input: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        return input or [{"name": "nobody"}]

    assert not greet.inputs[0].required
    assert ran(greet, {}, {}).main == [{"name": "nobody"}]


def test_an_async_function_runs_on_the_event_loop() -> None:
    import asyncio

    @component("slow", inputs=("input",))
    async def slow(input: list[dict[str, Any]]) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        return input

    @component("slow_stream", inputs=("input",))
    async def slow_stream(input: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        for row in input:
            await asyncio.sleep(0)
            yield row

    assert ran(slow, {}).main == PEOPLE
    assert ran(slow_stream, {}).main == PEOPLE


def test_a_source_needs_no_input() -> None:
    @component("numbers", startable=True)
    def numbers(count: int) -> Iterator[dict[str, int]]:
        yield from ({"n": number} for number in range(count))

    assert ran(numbers, {"count": 2}, {}).main == [{"n": 0}, {"n": 1}]
    assert numbers.startable


def test_no_rows_have_the_columns_that_came_in_or_were_declared() -> None:
    @component("drop_all", inputs=("input",))
    def drop_all(input: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return []

    assert [column.name for column in ran(drop_all, {}).schemas["main"]] == ["name", "born"]
    declared = {"main": schema(a="DATE")}
    assert ran(drop_all, {}, schemas=declared).schemas["main"] == declared["main"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "each row must be a mapping, and `int` came"),
        ("text", "rows are needed, and `str` came"),
        ({"name": "Ada"}, "its key `name` is not an output port; the ports are `main`"),
    ],
)
def test_what_is_no_rows_is_an_error_that_says_so(value: Any, words: str) -> None:
    @component("wrong", inputs=("input",))
    def wrong(input: list[dict[str, Any]]) -> Any:
        return value

    with pytest.raises(ComponentFailure, match=words) as failure:
        ran(wrong, {})
    assert failure.value.kind == "output"


def test_what_the_function_raises_is_the_failure() -> None:
    @component("broken", inputs=("input",))
    def broken(input: list[dict[str, Any]]) -> None:
        raise KeyError("price")

    with pytest.raises(ComponentFailure, match="KeyError: 'price'") as failure:
        ran(broken, {})
    assert failure.value.kind == "exception"
    assert "test_function.py" in str(failure.value.detail["traceback"])


def test_a_port_without_a_parameter_is_refused() -> None:
    def lonely(other: list[Any]) -> None: ...

    with pytest.raises(Refused, match="no parameter for its input port `input`"):
        component("lonely", inputs=("input",))(lonely)


def test_a_parameter_that_nothing_can_fill_is_refused() -> None:
    def loose(*rows: Any) -> None: ...

    with pytest.raises(Refused, match="cannot be filled"):
        component("loose")(loose)


def test_an_annotation_that_is_not_known_is_refused() -> None:
    def odd(input: Unheard) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(Refused, match="the annotation `Unheard` is not known"):
        component("odd", inputs=("input",))(odd)
