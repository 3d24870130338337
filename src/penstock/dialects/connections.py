"""`connections`: databases that a document names once, and uses by name.

Law: a named connection is no more than its mapping, written where it is used: `connection: warehouse` becomes `auth: {…}` before
anything else is read. So tools and components know one notion of a database, and checks of secrets and templates see it where it
takes effect. In a job the names stand beside `data` and `control`, which are links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.dialects.reader import Reader, did_you_mean, is_template, listed
from penstock.dialects.secrets import literals_in
from penstock.dialects.source.node import SourceNode
from penstock.dialects.words import CONNECTION_KINDS as KINDS

LINKS = ("data", "control")
CONNECTIONS = "connections"
_NEED = {
    "postgres": ("url", "host", "database"),
    "mysql": ("url", "host", "database"),
    "sqlite": ("url", "path"),
    "duckdb": ("url", "path"),
    "adbc": ("driver",),
    "dbapi": ("driver",),
}
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


def write_out_connections(
    reading: Reader[Any], root: SourceNode, users: Iterator[SourceNode], engines: Iterable[SourceNode] = ()
) -> None:
    """Takes the named connections out of the tree and writes each where it is used. `users` are mappings of parameters, `engines`
    those that have an `engine`."""
    section = root.get("connections")
    if section is None or section.kind != "mapping":
        return
    named = {name: node for name, node in section.entries.items() if name not in LINKS and node.kind == "mapping"}
    for name, node in named.items():
        reading.name(SourceNode("scalar", section.keys[name], name), "the name of a connection")
        _check(reading, name, node)
        del section.entries[name], section.keys[name]
    for params in users:
        _write_out(reading, params, named)
    for holder in engines:
        _write_out_for_engine(holder, named)


def _check(reading: Reader[Any], name: str, node: SourceNode) -> None:
    kind = reading.choice(node.get("kind"), f"`connections.{name}.kind`", KINDS, "Y0601")
    if node.get("kind") is None:
        hint = f"it is one of {listed(KINDS)}"
        reading.findings.error("Y0601", f"the connection `{name}` has no `kind`", node.position, hint=hint)
    if kind is not None and not any(word in node.entries for word in _NEED[kind]):
        need = listed(_NEED[kind])
        reading.findings.error("Y0601", f"the connection `{name}` says nothing of {need}", node.position)
    alone = SourceNode("mapping", node.position, entries={"connections": node})
    for literal in literals_in(alone):
        reading.findings.error(
            "Y0602", f"a secret of the connection `{name}` is written in the document", literal.node.position,
            hint="declare it in `keychain` and write `{{ keychain.name }}`",
        )  # fmt: skip
    driver = node.get("driver")
    if kind in ("adbc", "dbapi") and driver is not None and not is_template(driver):
        _check_driver(reading, name, driver)


def _check_driver(reading: Reader[Any], name: str, driver: SourceNode) -> None:
    text = reading.text(driver, f"`connections.{name}.driver`")
    if text is None:
        return
    if not _MODULE.match(text):
        hint = "it is the name of a Python module, such as `adbc_driver_snowflake` or `oracledb`"
        reading.findings.error("Y0601", f"{driver.shown} is not a driver", driver.position, hint=hint)
        return
    from penstock.tools.sql.drivers import install_hint  # Slow to import: few documents name a driver.

    hint = install_hint(text) or ""
    if hint:
        # A worker that runs the document may have it.
        reading.findings.warning("Y0603", f"the driver `{text}` is not installed here", driver.position, hint=hint)


def _write_out(reading: Reader[Any], params: SourceNode, named: dict[str, SourceNode]) -> None:
    given = params.get("connection")
    name = None if given is None else given.text()
    if given is None or name is None or not named:
        return
    if name not in named:
        meant = did_you_mean(name, named)
        if meant:
            reading.findings.error("Y0604", f"there is no connection `{name}`", given.position, label=meant)
        return
    if "auth" in params.entries:
        hint = "the login belongs to the connection"
        reading.findings.error("Y0604", "`auth` beside a named connection", params.keys["auth"], hint=hint)
        return
    kind, wanted = named[name].get("kind"), params.get("kind")
    if kind is not None and wanted is not None and kind.value != wanted.value:
        message = f"`{name}` is a connection of the kind `{kind.value}`, and this takes `{wanted.value}`"
        reading.findings.error("Y0604", message, given.position)
        return
    params.entries["auth"], params.keys["auth"] = named[name], params.keys["connection"]
    del params.entries["connection"], params.keys["connection"]


def _write_out_for_engine(holder: SourceNode, named: dict[str, SourceNode]) -> None:
    """Beside the engine stand those that it may mean: one, or where a template decides, all."""
    engine = holder.get("engine")
    if engine is None or not named:
        return
    if engine.kind == "scalar":
        if not is_template(engine):
            return
        engine = holder.entries["engine"] = SourceNode(
            "mapping", engine.position, entries={"kind": engine}, keys={"kind": engine.position}
        )
    if engine.kind != "mapping":
        return
    kind, given = engine.get("kind"), engine.get("connection")
    name = None if given is None else given.text()
    is_open = (kind is not None and is_template(kind)) or (given is not None and is_template(given))
    # A name that is none of them is reported with all that there are.
    meant = {name: named[name]} if name in named and not is_open else named
    if is_open or given is not None:
        engine.entries["connections"] = SourceNode(
            "mapping", engine.position, entries=dict(meant), keys=dict.fromkeys(meant, engine.position)
        )
        engine.keys["connections"] = engine.position


def engine_holders(root: SourceNode) -> Iterator[SourceNode]:
    """`job_config` and every component of a job: what may say which engine runs the rows."""
    for holder in (root.get("job_config"), *_components(root)):
        if holder is not None:
            yield holder


def _components(root: SourceNode) -> Iterator[SourceNode]:
    components = root.get("components")
    if components is not None:
        yield from (*components.items, *components.entries.values())


def component_params(root: SourceNode) -> Iterator[SourceNode]:
    """The parameters of every component of a job."""
    for component in _components(root):
        params = component.get("params")
        if params is not None and params.kind == "mapping":
            yield params


def task_params(root: SourceNode, kinds: tuple[str, ...]) -> Iterator[SourceNode]:
    """Every mapping of a playbook whose `kind` is one of these: tasks, and ends of a transfer."""
    waiting = [node for key in ("workflow", "workbook") if (node := root.get(key)) is not None]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kind = node.get("kind")
        if kind is not None and kind.value in kinds:
            yield node
        waiting += [*node.items, *node.entries.values()]
