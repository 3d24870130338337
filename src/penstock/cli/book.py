"""Names of files as a person at this terminal knows them."""

from __future__ import annotations

import os
from pathlib import Path


def near(file: str) -> str:
    """Relative to here when that is shorter."""
    try:
        relative = os.path.relpath(file, Path.cwd())
    except (ValueError, OSError):
        return file
    return relative if len(relative) < len(file) else file
