"""Running the files tool in tests, in a document folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import ToolFailure
from penstock.tools.files import FilesTool

from .support import make_call, run


def do(tmp_path: Path, action: str, path: str, **params: Any) -> Any:
    folder = tmp_path / "doc"
    folder.mkdir(exist_ok=True)
    return run(FilesTool(), {"action": action, "path": path, **params}, make_call(folder))


def failed(tmp_path: Path, action: str, path: str, **params: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        do(tmp_path, action, path, **params)
    return caught.value


def visible(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if ".blobs" not in each.parts)
