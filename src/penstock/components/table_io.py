"""Which class each type of the input and output components is. Nothing is imported before a job names the type."""

from __future__ import annotations

from penstock.ports.components import SHARED_COMMIT

_HERE = "penstock.components.io"

TABLE: dict[str, str] = {
    "read_csv": f"{_HERE}.read_csv:ReadCsv",
    "write_csv": f"{_HERE}.write_csv:WriteCsv",
    "read_positional": f"{_HERE}.read_positional:ReadPositional",
    "write_positional": f"{_HERE}.write_positional:WritePositional",
    "read_json": f"{_HERE}.read_json:ReadJson",
    "write_json": f"{_HERE}.write_json:WriteJson",
    "read_parquet": f"{_HERE}.parquet:ReadParquet",
    "write_parquet": f"{_HERE}.parquet:WriteParquet",
    "read_arrow": f"{_HERE}.arrow:ReadArrow",
    "write_arrow": f"{_HERE}.arrow:WriteArrow",
    "read_excel": f"{_HERE}.read_excel:ReadExcel",
    "write_excel": f"{_HERE}.write_excel:WriteExcel",
    "read_xml": f"{_HERE}.read_xml:ReadXml",
    "write_xml": f"{_HERE}.write_xml:WriteXml",
    "read_sql": f"{_HERE}.read_sql:ReadSql",
    "write_sql": f"{_HERE}.write_sql:WriteSql",
    "run_sql": f"{_HERE}.run_sql:RunSql",
    "http_rows": f"{_HERE}.http_rows:HttpRows",
    "fixed_rows": f"{_HERE}.fixed_rows:FixedRows",
    "generate_rows": f"{_HERE}.generate_rows:GenerateRows",
    "read_file": f"{_HERE}.read_file:ReadFile",
    "write_file": f"{_HERE}.write_file:WriteFile",
    "log_rows": f"{_HERE}.log_rows:LogRows",
}

OF_THE_PLANNER = {SHARED_COMMIT: f"{_HERE}.shared_commit:SharedCommit"}
"""Types that documents do not name: the planner puts them in."""
