"""Which components there are, how they are described, and what is refused before it can fail in a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.components.base import Action, Call, Component, ComponentFailure, Port
from penstock.components.registry import ComponentRegistry, built_in, describe, example_of, register
from penstock.kernel.errors import Refused
from tests.cases import cases


class Nothing(msgspec.Struct):
    pass


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    kept = dict(ComponentRegistry.registered)
    yield
    ComponentRegistry.registered.clear()
    ComponentRegistry.registered.update(kept)


def make(type_: str = "mine", **body: Any) -> Any:
    return type("Mine", (Action,), {"type": type_, "Params": Nothing, "run": lambda self, params, call: None, **body})


def test_an_unknown_type_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(Refused, match="no component of type `filtre`; did you mean `filter`") as refused:
        ComponentRegistry().get("filtre")
    assert refused.value.hint == "`penstock components` lists the types"


def test_a_component_is_made_once() -> None:
    known = ComponentRegistry()
    assert known.get("filter") is known.get("filter")


def test_what_code_registers_is_found_and_may_be_replaced() -> None:
    known = ComponentRegistry()
    first, second = make(), make()
    register(first)
    assert type(known.get("mine")) is first
    register(second)
    assert type(known.get("mine")) is second
    assert known.types()[-1] == "mine"


def test_a_built_in_type_cannot_be_taken() -> None:
    with pytest.raises(Refused, match="the type `filter` is built in"):
        register(make("filter"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (object(), "is not a component"),
        (type("Bare", (Component,), {"type": "bare", "Params": Nothing}), "does nothing"),
        (type("Mine", (Action,), {"Params": Nothing}), "has no `type`"),
        (type("Mine", (Action,), {"type": "mine"}), "has no `Params`"),
        (make(inputs=("input",)), "must be `Port`s"),
        (make(Params=msgspec.defstruct("Odd", [("a", "Unheard")])), "cannot be used"),
    ],
)
def test_a_class_that_would_fail_later_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        register(wrong)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], ComponentRegistry]:
    """An installed package whose module has this text offers its `Class` as the component `theirs`."""

    def offer(text: str) -> ComponentRegistry:
        info = tmp_path / "theirs-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[penstock.components]\ntheirs = theirs_module:Class\n")
        (tmp_path / "theirs_module.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "theirs_module", raising=False)
        return ComponentRegistry()

    return offer


def test_an_installed_package_offers_a_component(offer: Callable[[str], ComponentRegistry]) -> None:
    known = offer("from tests.components.test_registry import Theirs as Class")
    assert isinstance(known.get("theirs"), Theirs)
    assert known.types()[-1] == "theirs"


def test_a_broken_plug_in_is_refused_with_its_reason(offer: Callable[[str], ComponentRegistry]) -> None:
    known = offer('raise ValueError("no licence")')
    with pytest.raises(Refused, match="`theirs` of the package `theirs` cannot be loaded: ValueError: no licence"):
        known.get("theirs")


def test_a_plug_in_that_has_another_type_than_it_is_offered_under_is_refused(
    offer: Callable[[str], ComponentRegistry],
) -> None:
    known = offer("from tests.components.test_registry import make\nClass = make('other')")
    with pytest.raises(Refused, match="is offered as `theirs`, and its type is `other`"):
        known.describe("theirs")


class Theirs(Action[Nothing]):
    """Theirs."""

    type = "theirs"
    Params = Nothing

    def run(self, params: Nothing, call: Call) -> None: ...


def test_parameters_are_converted_and_every_mistake_is_named() -> None:
    known = ComponentRegistry()
    assert known.convert("sample", {"count": "3"}).count == 3  # type: ignore[attr-defined]
    with pytest.raises(ComponentFailure) as failure:
        known.convert("sample", {"count": "many", "sead": 1})
    assert failure.value.kind == "parameters"
    assert "`count`: expected a whole number" in failure.value.message
    assert "`sead`: there is no such parameter; did you mean `seed`?" in failure.value.message


def test_a_description_has_what_a_document_is_checked_against() -> None:
    described = ComponentRegistry().describe("filter")
    assert described is not None
    assert described.summary == "Keep the rows for which a condition is true."
    assert described.family == "transform"
    assert described.params["where"].required
    assert described.schema["properties"]["where"]["type"] == "string"  # type: ignore[index, call-overload]
    assert [port.name for port in described.ports.outputs] == ["main", "reject"]
    assert described.is_relational
    assert not described.is_iterator
    assert ComponentRegistry().describe("nothing_of_the_kind") is None


def test_ports_may_come_from_parameters() -> None:
    params = {"lookups": {"lookup_a": {"on": ["id"]}}, "outputs": {"good": {}, "bad": {"reject": True}}}
    ports = ComponentRegistry().ports("map", params)
    assert [port.name for port in ports.inputs] == ["input", "lookup_a"]
    assert [(port.name, port.reject) for port in ports.outputs] == [("good", False), ("bad", True)]


@cases("type_", sorted(built_in()))
def test_every_built_in_component_can_be_loaded_and_described(type_: str) -> None:
    component = ComponentRegistry().get(type_)
    ComponentRegistry.check(type(component), type_)
    described = describe(type(component))
    assert described.type == type_
    assert described.summary.endswith(".")
    assert all(one.description for one in described.params.values()), "every parameter says what it is"
    assert example_of(type(component)).strip(), "every component shows how it is used"


def test_a_port_of_a_description_is_a_port() -> None:
    assert Port("input_*").accepts("input_a")
    assert not Port("input_*").accepts("output_a")
