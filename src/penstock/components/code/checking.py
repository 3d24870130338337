"""What is wrong with declared columns before a row is read."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.components.base import Mistake
from penstock.components.types import sql_type, wrong_type
from penstock.ports.rows import Column, Schema


def mistakes(output_schema: Mapping[str, str] | None) -> list[Mistake]:
    found: list[Mistake] = []
    for name, type in (output_schema or {}).items():
        found += wrong_type(("output_schema", name), type)
    return found


def columns(output_schema: Mapping[str, str]) -> Schema:
    return tuple(Column(name, sql_type(type)) for name, type in output_schema.items())
