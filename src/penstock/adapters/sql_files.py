"""SQL lives in files: numbered ones make the schema, `queries.sql` has every statement under a name with its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from sqlite3 import complete_statement

FOLDER = Path(__file__).parent


def sql_folder(store: str) -> Path:
    """`postgres/log` has its statements in `postgres/sql/log`."""
    engine, part = store.split("/")
    return FOLDER / engine / "sql" / part


def queries(store: str) -> dict[str, str]:
    """Statements by name, without comments and closing semicolon."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (sql_folder(store) / "queries.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("-- name: "):
            lines = found.setdefault(line.removeprefix("-- name: ").strip(), [])
        elif line and not line.startswith("--"):
            lines.append(line)
    return {name: "\n".join(text).removesuffix(";") for name, text in found.items()}


def filtered(known: Mapping[str, str], name: str, values: Mapping[str, object]) -> str:
    """The query `name`, with `{filters}` replaced by its conditions `name.VALUE` for each value that is given.

    A condition that is left out lets an index serve the others; `:x IS NULL OR …` makes the planner read the whole table.
    """
    given = [known[f"{name}.{one}"] for one, value in values.items() if value is not None and f"{name}.{one}" in known]
    return known[name].replace("{filters}", "".join(f" AND {condition}" for condition in given))


def schema_files(store: str) -> dict[int, Path]:
    """The numbered files in their order: `0001_log.sql` is version 1."""
    paths = sorted(sql_folder(store).glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return {int(path.name[:4]): path for path in paths}


def statements(text: str) -> list[str]:
    """A schema file cut into statements, so that they can run inside the transaction that records the version."""
    found: list[str] = []
    pending = ""
    for line in text.splitlines(keepends=True):
        if not pending and (not line.strip() or line.startswith("--")):
            continue
        pending += line
        if complete_statement(pending):
            found.append(pending.strip())
            pending = ""
    if pending.strip():
        found.append(pending.strip())
    return found
