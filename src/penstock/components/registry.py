"""Which components there are, and how they are described."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec

from penstock.components.base import Action, Component, ComponentFailure, Iterator, Known, Port, Ports, Relational, Sink
from penstock.kernel.errors import Refused
from penstock.ports.components import NO_SCHEMAS, SHARED_COMMIT, ComponentDescription, Inferred
from penstock.ports.rows import Schema
from penstock.tools import registry as tools
from penstock.tools.base import Tool, ToolFailure
from penstock.tools.parameters import convert
from penstock.tools.plugins import PluginFolder, PluginRegistry, check_params
from penstock.tools.plugins import built_in as load

TABLE: dict[str, str] = {
    # Input and output.
    "read_csv": "io.csv:ReadCsv",
    "write_csv": "io.csv:WriteCsv",
    "read_positional": "io.positional:ReadPositional",
    "write_positional": "io.positional:WritePositional",
    "read_json": "io.json:ReadJson",
    "write_json": "io.json:WriteJson",
    "read_parquet": "io.parquet:ReadParquet",
    "write_parquet": "io.parquet:WriteParquet",
    "read_arrow": "io.arrow:ReadArrow",
    "write_arrow": "io.arrow:WriteArrow",
    "read_orc": "io.arrow:ReadOrc",
    "write_orc": "io.arrow:WriteOrc",
    "read_delta": "io.lake:ReadDelta",
    "write_delta": "io.lake:WriteDelta",
    "read_iceberg": "io.lake:ReadIceberg",
    "write_iceberg": "io.lake:WriteIceberg",
    "read_avro": "io.avro:ReadAvro",
    "write_avro": "io.avro:WriteAvro",
    "read_excel": "io.excel:ReadExcel",
    "write_excel": "io.excel:WriteExcel",
    "read_xml": "io.xml:ReadXml",
    "write_xml": "io.xml:WriteXml",
    "read_sql": "io.sql.read_sql:ReadSql",
    "write_sql": "io.sql.write_sql:WriteSql",
    "run_sql": "io.sql.run_sql:RunSql",
    "http_rows": "io.http_rows:HttpRows",
    "fixed_rows": "io.fixed_rows:FixedRows",
    "generate_rows": "io.generate_rows:GenerateRows",
    "read_file": "io.file:ReadFile",
    "write_file": "io.file:WriteFile",
    "log_rows": "io.log_rows:LogRows",
    # Transforms.
    "aggregate": "transform.aggregate:Aggregate",
    "denormalise": "transform.aggregate:Denormalise",
    "derive": "transform.derive:Derive",
    "fill_down": "transform.window:FillDown",
    "filter": "transform.filter:Filter",
    "join": "transform.join:Join",
    "lookup": "transform.lookup:Lookup",
    "map": "transform.map:Map",
    "normalise": "transform.normalise:Normalise",
    "pivot": "transform.pivot:Pivot",
    "replicate": "transform.union:Replicate",
    "sample": "transform.filter:Sample",
    "select": "transform.derive:Select",
    "sequence": "transform.window:Sequence",
    "sort": "transform.sort:Sort",
    "sql": "transform.sql:Sql",
    "top": "transform.filter:Top",
    "union": "transform.union:Union",
    "unique": "transform.filter:Unique",
    "unpivot": "transform.normalise:Unpivot",
    "window": "transform.window:Window",
    # Code, quality and the values in columns.
    "python": "code.python:Python",
    "assert_rows": "quality.assert_rows:AssertRows",
    "check_schema": "quality.check_schema:CheckSchema",
    "convert_types": "quality.convert_types:ConvertTypes",
    "data_profile": "quality.data_profile:DataProfile",
    "replace": "shape.replace:Replace",
    "extract_regex": "shape.extract:ExtractRegex",
    "extract_json": "shape.extract:ExtractJson",
    "extract_delimited": "shape.extract:ExtractDelimited",
    "extract_positional": "shape.extract:ExtractPositional",
    "fuzzy_match": "shape.fuzzy_match:FuzzyMatch",
    "scd": "shape.scd:Scd",
    "split": "shape.split:Split",
    "merge_changes": "shape.merge_changes:MergeChanges",
    "mask": "shape.mask:Mask",
    "format_columns": "shape.format_columns:FormatColumns",
    # Orchestration and files.
    "run_job": "flow.run_job:RunJob",
    "playbook": "flow.run_job:Playbook",
    "iterate_rows": "flow.iterate:IterateRows",
    "iterate_groups": "flow.iterate:IterateGroups",
    "iterate_list": "flow.iterate:IterateList",
    "iterate_range": "flow.iterate:IterateRange",
    "iterate_while": "flow.iterate:IterateWhile",
    "iterate_files": "flow.iterate:IterateFiles",
    "iterate_query": "flow.iterate:IterateQuery",
    "pre_job": "flow.markers:PreJob",
    "post_job": "flow.markers:PostJob",
    "noop": "flow.markers:Noop",
    "set_global": "flow.context_load:SetGlobal",
    "context_load": "flow.context_load:ContextLoad",
    "die": "flow.die:Die",
    "warn": "flow.die:Warn",
    "log_catcher": "flow.measures:LogCatcher",
    "flow_meter": "flow.measures:FlowMeter",
    "stats": "flow.measures:Stats",
    "sleep": "flow.wait:Sleep",
    "wait_for_file": "flow.wait:WaitForFile",
    "wait_for_rows": "flow.wait:WaitForRows",
    "shell": "flow.shell:Shell",
    "mail": "flow.mail:Mail",
    "http_call": "flow.http_call:HttpCall",
    "file_copy": "files.changes:FileCopy",
    "file_move": "files.changes:FileMove",
    "file_delete": "files.changes:FileDelete",
    "file_touch": "files.changes:FileTouch",
    "file_exists": "files.inspection:FileExists",
    "file_properties": "files.inspection:FileProperties",
    "file_list": "files.inspection:FileList",
    "file_compare": "files.inspection:FileCompare",
    "file_checksum": "files.inspection:FileChecksum",
    "file_archive": "files.archive:FileArchive",
    "file_unarchive": "files.archive:FileUnarchive",
    "file_transfer": "files.transfer:FileTransfer",
}
"""Type -> `module:Class`, the module in this package."""

OF_THE_PLANNER = {SHARED_COMMIT: "io.sql.transaction:SharedCommit"}
"""Types that documents do not name: the planner inserts them."""


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
        engine: str = "duckdb",
    ) -> Inferred:
        from penstock.components.inference import infer  # Only checks of jobs need it, and it loads sqlglot.

        return infer(
            self.get(type), params, inputs, outputs, folder, declared, engine=engine, with_lineage=self._with_lineage
        )

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
    description = tools.describe(
        type("Told", (Tool,), {"kind": component_class.type, "Params": component_class.Params, "defaults": {}})
    )
    doc = inspect.getdoc(component_class) or ""
    return ComponentDescription(
        type=component_class.type,
        family=component_class.family,
        summary=" ".join(doc.partition("\n\n")[0].split()),
        doc=doc,
        params=description.params,
        schema=description.schema,
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

    return files("penstock.components").joinpath("examples", f"{component_class.type}.yaml").read_text("utf-8")
