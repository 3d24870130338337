"""Which database a connection leads to, to tell whether two of them lead to the same."""

from __future__ import annotations

import os

from penstock.tools.sql.connection import Address


def place_of(driver: str, address: Address) -> object:
    """Which database it is, as far as its description tells."""
    told = {name: value for name, value in address.options.items() if name not in ("kind", "connect_timeout")}
    where = (address.url, address.host, address.port, address.database, address.user)
    return (driver, where, tuple(sorted(told.items())))


def place_of_file(path: str) -> object:
    return ("duckdb", os.path.realpath(path))
