"""Which components there are. Nothing is imported before it is asked for.

Built-in types are tables; plug-ins in a folder beside the document come next (`plugin_folder`), then what code registers;
installed packages offer more through the entry-point group `penstock.components` (name = type, value = the class), which is
looked at only for a type that is none of these.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import inspect as types

from penstock.components.base import Action, Component, ComponentFailure, Iterator, Known, Port, Ports, Relational, Sink
from penstock.components.builtin import OF_THE_PLANNER, TABLE
from penstock.kernel.errors import Refused
from penstock.ports.components import NO_SCHEMAS, ComponentDescription, Inferred
from penstock.ports.plugins import offered
from penstock.ports.rows import Schema
from penstock.tools import registry as loading
from penstock.tools import registry as tools
from penstock.tools.base import Tool, ToolFailure
from penstock.tools.parameters import convert, similar
from penstock.tools.registry import MOST_SCOPED, PluginFolder, collected, plugin_folders

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "penstock.components"
ComponentClass: TypeAlias = "type[Component[Any]]"

_registered: dict[str, type[Component[Any]]] = {}
C = TypeVar("C", bound=type[Component[Any]])


def built_in() -> dict[str, str]:
    """Type -> `module:Class`, the module in this package."""
    return TABLE


def register(component_class: C) -> C:
    """Make a component known to this process, for code and notebooks. The same type again replaces the earlier one."""
    _checked(component_class, f"`{getattr(component_class, '__name__', component_class)}`")
    if component_class.type in built_in():
        raise Refused(f"the type `{component_class.type}` is built in", "give the component a type of its own")
    if not collected("component", component_class.type, component_class):
        _registered[component_class.type] = component_class
    return component_class


class ComponentRegistry:
    """The components of one process, each made once. Answers `penstock.ports.components.ComponentCatalog`."""

    def __init__(self, plugins: tuple[PluginFolder, ...] = (), *, with_lineage: bool = True) -> None:
        """`with_lineage: False` for who only wants to run a job: following columns is the dear part of a check. `plugins`:
        folders with components for some documents only; see `at`."""
        self.plugins = plugins
        self._with_lineage = with_lineage
        self._made: dict[str, Component[Any]] = {}
        self._scoped: dict[tuple[int, ...], ComponentRegistry] = {}

    def at(self, folder: Path) -> ComponentRegistry:
        """The components that documents in that folder have: all of these, and those of its plug-ins."""
        plugins = plugin_folders(folder)
        if not plugins:
            return self
        key = tuple(map(id, plugins))
        if key not in self._scoped:
            if len(self._scoped) >= MOST_SCOPED:
                self._scoped.clear()
            self._scoped[key] = ComponentRegistry(plugins, with_lineage=self._with_lineage)
        return self._scoped[key]

    def get(self, type: str) -> Component[Any]:
        """Raises Refused when there is no such type, or its plug-in is broken."""
        made = self._made.get(type)
        if made is None or (type in _registered and not self._is_own(type) and made.__class__ is not _registered[type]):
            component_class = self._find(type)
            if component_class is None:
                hint = "`penstock components` lists the types"
                raise Refused(f"there is no component of type `{type}`{similar(type, self.types())}", hint)
            made = self._made[type] = component_class()
        return made

    def types(self) -> list[str]:
        """Built-in ones first, then the others by name."""
        known = built_in()
        own = {name for folder in self.plugins for name in folder.names("component")}
        return [*known, *sorted({*_registered, *own, *self._offers()} - {*known})]

    def convert(self, type: str, values: Mapping[str, Any]) -> msgspec.Struct:
        """Rendered values as the component's parameters. Raises ComponentFailure of kind `parameters` that lists all mistakes."""
        try:
            return convert(type, self.get(type).Params, values)
        except ToolFailure as failure:
            found = ComponentFailure(failure.kind, failure.message)
            found.detail.update(failure.detail)
            raise found from None

    def describe(self, type: str) -> ComponentDescription | None:
        component_class = self._find(type)
        return None if component_class is None else describe(component_class)

    def page(self, type: str) -> ComponentDescription | None:
        """The description with the example, for readers: the example is in a file that running a job need not read."""
        component_class = self._find(type)
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
        from penstock.components.inference import infer

        return infer(self.get(type), params, inputs, outputs, folder, declared, with_lineage=self._with_lineage)

    def _find(self, type: str) -> type[Component[Any]] | None:
        if (target := TABLE.get(type) or OF_THE_PLANNER.get(type)) is not None:
            return cast("ComponentClass", loading.built_in("component", type, f"penstock.components.{target}"))
        for folder in self.plugins:
            if (found := folder.find("component", type, _checked)) is not None:
                return cast("ComponentClass", found)
        if type in _registered:
            return _registered[type]
        offer = self._offers().get(type)
        return (
            None if offer is None else cast("ComponentClass", loading.plugged_in(offer, "component", "type", _checked))
        )

    def _is_own(self, type: str) -> bool:
        return any(type in folder.names("component") for folder in self.plugins)

    def _offers(self) -> Mapping[str, EntryPoint]:
        return offered(GROUP)


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


def _checked(component_class: Any, whose: str) -> None:
    """A class that would fail later, in the middle of a run, is refused here."""
    if not (isinstance(component_class, type) and issubclass(component_class, Component)):
        hint = "a component is a subclass of `Relational`, `Sink`, `Iterator` or `Action`, or a function under `@component`"
        raise Refused(f"{whose} is not a component", hint)
    if not isinstance(getattr(component_class, "type", None), str) or not component_class.type:
        raise Refused(f"{whose} has no `type`")
    if not issubclass(component_class, (Relational, Sink, Iterator, Action)):
        raise Refused(f"{whose} does nothing", "derive it from `Relational`, `Sink`, `Iterator` or `Action`")
    if not all(isinstance(port, Port) for port in (*component_class.inputs, *component_class.outputs)):
        raise Refused(f"the ports of {whose} must be `Port`s", 'for example `inputs = (Port("input"),)`')
    params = getattr(component_class, "Params", None)
    if not (isinstance(params, type) and issubclass(params, msgspec.Struct)):
        raise Refused(f"{whose} has no `Params`", "`Params` is a subclass of `msgspec.Struct`")
    try:
        types.type_info(params)
    except (TypeError, NameError) as error:
        raise Refused(f"the `Params` of {whose} cannot be used: {error}") from error
