"""Modules beside a document: code in it may import them by their names.

A process keeps one module of a name, and a project has other files in every version: so modules of another project or version
that have a name which this one has, too, are let go before its code begins. Code that imports while it runs, beside code of
another version in the same process, may still see that one's; code in a process of its own does not.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from pathlib import Path

from penstock.ports.folders import CatalogFolder

_lock = threading.Lock()
_of_projects: set[str] = set()
"""Folders of projects that are among those which modules are looked for in."""


def prefer(folder: Path) -> None:
    """Modules in that folder can be imported; one there never hides an installed one."""
    place = str(folder)
    with _lock:
        if isinstance(folder, CatalogFolder) and folder.around.files is not None:
            _let_go(place)
            _of_projects.add(place)
            sys.path[:] = [one for one in sys.path if one not in _of_projects] + [
                place,
                *(one for one in sys.path if one in _of_projects and one != place),
            ]
        elif place not in sys.path:
            sys.path.append(place)


def _let_go(place: str) -> None:
    try:
        names = {name.partition(".")[0] for name in os.listdir(place)}
    except OSError:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] not in names or not isinstance(file, str):
            continue
        home = next((one for one in _of_projects if file.startswith(one + os.sep)), None)
        if home is not None and home != place:
            del sys.modules[name]
    importlib.invalidate_caches()
