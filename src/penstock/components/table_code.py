"""Components that run code, check rows, and change what stands in columns."""

from __future__ import annotations

_HERE = "penstock.components"

TABLE: dict[str, str] = {
    "python": f"{_HERE}.code.python:Python",
    "assert_rows": f"{_HERE}.quality.assert_rows:AssertRows",
    "check_schema": f"{_HERE}.quality.check_schema:CheckSchema",
    "convert_types": f"{_HERE}.quality.convert_types:ConvertTypes",
    "data_profile": f"{_HERE}.quality.data_profile:DataProfile",
    "replace": f"{_HERE}.shape.replace:Replace",
    "extract_regex": f"{_HERE}.shape.extract:ExtractRegex",
    "extract_json": f"{_HERE}.shape.extract:ExtractJson",
    "extract_delimited": f"{_HERE}.shape.extract:ExtractDelimited",
    "extract_positional": f"{_HERE}.shape.extract:ExtractPositional",
    "fuzzy_match": f"{_HERE}.shape.fuzzy_match:FuzzyMatch",
    "scd": f"{_HERE}.shape.scd:Scd",
    "split": f"{_HERE}.shape.split:Split",
    "merge_changes": f"{_HERE}.shape.merge_changes:MergeChanges",
    "mask": f"{_HERE}.shape.mask:Mask",
    "format_columns": f"{_HERE}.shape.format_columns:FormatColumns",
}
