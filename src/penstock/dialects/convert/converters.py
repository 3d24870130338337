"""The converters there are: those that packages bring, and our own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points

from penstock.dialects.convert.frame import Converter
from penstock.dialects.convert.playbooks import PlaybookConverter
from penstock.kernel.errors import Unavailable

GROUP = "penstock.converters"
"""The entry points by which a package brings converters along: each a class that is made without arguments."""


@cache
def installed() -> tuple[Converter, ...]:
    """Those that packages bring come before our own: they may know a file better."""
    return (*_brought(), PlaybookConverter())


def _brought() -> Iterator[Converter]:
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            made: Converter = entry.load()()
        except Exception as error:  # Code of a package that is not ours fails as it likes.
            raise Unavailable(
                f"the converter `{entry.name}` cannot be loaded: {type(error).__name__}: {error}",
                "repair or remove the package that brings it",
            ) from error
        yield made
