"""What leaves the reject port of a reader: the reason, the place, and what was found there."""

from __future__ import annotations

from penstock.ports.rows import Column, Schema

REJECTED: Schema = (
    Column("error_code", "VARCHAR"),
    Column("error_message", "VARCHAR"),
    Column("file", "VARCHAR"),
    Column("line", "BIGINT"),
    Column("column", "VARCHAR"),
    Column("raw_line", "VARCHAR"),
)
