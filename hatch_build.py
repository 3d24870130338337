"""The build hook: a wheel, and an editable installation, have the page in them. How it is built is in `web/build.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/penstock/web"


class PageHook(BuildHookInterface):
    def dependencies(self) -> list[str]:
        """Asked before the build: Node comes from PyPI only where the machine has none and the page is not built already."""
        web = _build_module(self.root)
        if self.target_name != "wheel" or web is None or web.is_fresh() or web.node_of_machine() is not None:
            return []
        return [web.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        web = _build_module(self.root)
        if self.target_name != "wheel" or web is None:
            return
        try:
            web.build()
        except web.NotBuilt as error:
            # An engine without its page is of more use than no engine.
            what = "an older page is used" if web.is_built() else "there will be no web page; everything else works"
            self.app.display_warning(f"penstock: {error}: {what}")
        except web.Broken as error:
            self.app.abort(f"penstock: the page cannot be built: {error}")


def _build_module(root: str) -> ModuleType | None:
    """None in a source tree without the sources of the page."""
    path = Path(root) / "web" / "build.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("penstock_web_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
