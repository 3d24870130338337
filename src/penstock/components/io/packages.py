"""Packages that only some components need: asked for when they are used, and named plainly when they are not there."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from penstock.components.base import ComponentFailure


def import_module_or_fail(name: str, message: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ComponentFailure("missing_package", message) from None
