"""Which components there are, and how they are described."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec

from penstock.components.base import Action, Component, ComponentFailure, Iterator, Known, Port, Ports, Relational, Sink
from penstock.components.builtin import OF_THE_PLANNER, TABLE
from penstock.kernel.errors import Refused
from penstock.ports.components import NO_SCHEMAS, ComponentDescription, Inferred
from penstock.ports.rows import Schema
from penstock.tools import registry as tools
from penstock.tools.base import Tool, ToolFailure
from penstock.tools.parameters import convert
from penstock.tools.plugins import PluginFolder, PluginRegistry, check_params
from penstock.tools.plugins import built_in as load

C = TypeVar("C", bound=type[Component[Any]])


def built_in() -> dict[str, str]:
    """Type -> `module:Class`, the module in this package."""
    return TABLE


class ComponentRegistry(PluginRegistry[Component[Any]]):
    """The components of one process. Answers `penstock.ports.components.ComponentCatalog`."""

    what = "component"
    word = "type"
    group = "penstock.components"
    built_in = TABLE
    package = "penstock.components"
    registered: ClassVar[dict[str, type[Component[Any]]]] = {}

    def __init__(self, plugins: tuple[PluginFolder, ...] = (), *, with_lineage: bool = True) -> None:
        """`with_lineage: False` for who only wants to run a job: following columns is the dear part of a check."""
        super().__init__(plugins)
        self._with_lineage = with_lineage

    def with_plugins(self, plugins: tuple[PluginFolder, ...]) -> Self:
        return self.__class__(plugins, with_lineage=self._with_lineage)

    def hint(self) -> str:
        return "`penstock components` lists the types"

    def types(self) -> list[str]:
        return self.names()

    def find(self, name: str) -> type[Component[Any]] | None:
        if name in OF_THE_PLANNER:
            return cast("type[Component[Any]]", load("component", name, f"{self.package}.{OF_THE_PLANNER[name]}"))
        return super().find(name)

    def convert(self, type: str, values: Mapping[str, Any]) -> msgspec.Struct:
        """Rendered values as the component's parameters. Raises ComponentFailure of kind `parameters` that lists all mistakes."""
        try:
            return convert(type, self.get(type).Params, values)
        except ToolFailure as failure:
            found = ComponentFailure(failure.kind, failure.message)
            found.detail.update(failure.detail)
            raise found from None

    def describe(self, type: str) -> ComponentDescription | None:
        component_class = self.find(type)
        return None if component_class is None else describe(component_class)

    def page(self, type: str) -> ComponentDescription | None:
        """The description with the example, for readers: the example is in a file that running a job need not read."""
        component_class = self.find(type)
        if component_class is None:
            return None
        return replace(describe(component_class), example=example_of(component_class))

    def ports(self, type: str, params: Mapping[str, Any]) -> Ports:
        return self.get(type).ports(params)

    def infer(
        self,
        type: str,
        params: Mapping[str, Any],
        inputs: Known,
        outputs: tuple[str, ...],
        folder: Path,
        declared: Mapping[str, Schema] = NO_SCHEMAS,
    ) -> Inferred:
        from penstock.components.inference import infer  # Only checks of jobs need it, and it loads sqlglot.

        return infer(self.get(type), params, inputs, outputs, folder, declared, with_lineage=self._with_lineage)

    @classmethod
    def check(cls, found: Any, whose: str) -> None:
        if not (isinstance(found, type) and issubclass(found, Component)):
            hint = "a component is a subclass of `Relational`, `Sink`, `Iterator` or `Action`, or a function under `@component`"
            raise Refused(f"{whose} is not a component", hint)
        if not isinstance(getattr(found, "type", None), str) or not found.type:
            raise Refused(f"{whose} has no `type`")
        if not issubclass(found, (Relational, Sink, Iterator, Action)):
            raise Refused(f"{whose} does nothing", "derive it from `Relational`, `Sink`, `Iterator` or `Action`")
        if not all(isinstance(port, Port) for port in (*found.inputs, *found.outputs)):
            raise Refused(f"the ports of {whose} must be `Port`s", 'for example `inputs = (Port("input"),)`')
        check_params(getattr(found, "Params", None), whose)


def register(component_class: C) -> C:
    """Make a component known to this process, for code and notebooks. The same type again replaces the earlier one."""
    ComponentRegistry.register(component_class)
    return component_class


def describe(component_class: type[Component[Any]]) -> ComponentDescription:
    """What a document is checked against and an editor offers. The example is left out: `ComponentRegistry.page` has it."""
    told = tools.describe(
        type("Told", (Tool,), {"kind": component_class.type, "Params": component_class.Params, "defaults": {}})
    )
    doc = inspect.getdoc(component_class) or ""
    return ComponentDescription(
        type=component_class.type,
        family=component_class.family,
        summary=" ".join(doc.partition("\n\n")[0].split()),
        doc=doc,
        params=told.params,
        schema=told.schema,
        ports=Ports(component_class.inputs, component_class.outputs),
        startable=component_class.startable,
        makes_files=component_class.makes_files,
        is_iterator=issubclass(component_class, Iterator),
        is_relational=issubclass(component_class, (Relational, Sink)),
    )


def example_of(component_class: type[Component[Any]]) -> str:
    """A whole job in YAML that uses the component. A built-in type has its own in `examples/`."""
    if component_class.type not in TABLE:
        return component_class.example
    from importlib.resources import files  # Only pages need it: it takes some milliseconds to import.

    return files("penstock.components").joinpath("examples", f"{component_class.type}.yaml").read_text("utf-8")
