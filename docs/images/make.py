"""Make the pictures of the README: the graph of the orders example, and a terminal in the middle of its run.

python docs/images/make.py
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PLAYBOOK = "examples/orders/orders.yaml"
REGIONS = ("north", "coast", "hills", "south", "lakes", "plain", "delta", "west")
sys.path.insert(0, str(PROJECT / "examples"))

from api import serving  # noqa: E402


def frames(command: list[str], environment: dict[str, str]) -> list[str]:
    """What a terminal showed, picture by picture."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(terminal, 65536):
            said += piece
    except OSError:  # the other end of a terminal closes with an error
        pass
    process.communicate()
    os.close(terminal)
    text = said.decode().replace("\r\n", "\n").replace("\r", "")
    return re.split(r"(?:\x1b\[2K|\x1b\[1A)+", text)


def screenshot(frame: str) -> str:
    import io

    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(record=True, width=72, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ penstock run {PLAYBOOK}\n{frame}"))
    return console.export_svg(title="penstock", theme=MONOKAI, unique_id="penstock")


def main() -> None:
    penstock = [sys.executable, "-m", "penstock"]
    subprocess.run([*penstock, "graph", PLAYBOOK, "-o", str(HERE / "graph-orders.svg")], cwd=PROJECT, check=True)
    with tempfile.TemporaryDirectory() as folder, serving(delay=0.12) as (url, _):
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "72", "LINES": "20", "PENSTOCK_HOME": folder}
        # Regions without orders are through at once, so the bar has moved while the customers still wait for their next try.
        settings = [
            f"api_url={url}",
            f"database={folder}/orders.duckdb",
            "page_size=4",
            f"regions=[{', '.join(REGIONS)}]",
        ]
        inputs = [word for setting in settings for word in ("--set", setting)]
        shown = frames([*penstock, "run", PLAYBOOK, *inputs], environment)
    telling = [frame for frame in shown if "next try" in frame and "━" in frame]
    (HERE / "run-orders.svg").write_text(screenshot(telling[len(telling) // 2]), encoding="utf-8")


if __name__ == "__main__":
    main()
