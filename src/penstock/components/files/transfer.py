"""`file_transfer`: files to and from FTP and SFTP servers.

Law: a file appears under its name only when all of it is there, on either side; a source is deleted only after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from penstock.components.base import Action, Call, ComponentFailure, Known, PlanCall, Schemas
from penstock.components.files.listing import OptionalPatterns, facts, find, listed
from penstock.components.flow.tool_calls import file_failures, local_file, place_failures, require, tool_failures
from penstock.kernel.values import JsonMap
from penstock.ports.components import Mistake, Port
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_FILE, only_when, url
from penstock.ports.rows import Column, Schema
from penstock.tools import file_changes
from penstock.tools.network import addresses_of, require_allowed, resolve_host
from penstock.tools.parameters import about
from penstock.tools.places.base import PORTS, Entry, Scheme, Server, joined
from penstock.tools.places.servers import Remote, client, parent, put_whole, search, server_at

COLUMNS: Schema = (
    Column("remote", "VARCHAR"),
    Column("path", "VARCHAR"),
    Column("name", "VARCHAR"),
    Column("size", "BIGINT"),
    Column("modified", "TIMESTAMP"),
)
Row = tuple[str, str | None, str, int | None, Any]


class TransferParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[
        Literal["get", "put", "list", "delete", "move"],
        about("Fetch from the server, send to it; or list, delete, rename there."),
    ]
    url: Annotated[
        str,
        about(
            "`ftp://host`, `ftps://host` or `sftp://host`; a path in it is where `remote` starts, "
            "with `/~/` below the login's own folder, as without a path.",
            schema=url("ftp", "ftps", "sftp"),
        ),
    ]
    remote: Annotated[str, about("The file on the server; with `pattern`, and for `list`, the folder.")] = ""
    path: Annotated[
        str | None,
        about(
            "The file here. A folder that exists, or a name that ends in `/`: into it; with `pattern` always.",
            schema=only_when(READS_FILE, action=["put"], missing_ok=[None, False]),
        ),
    ] = None
    to: Annotated[str | None, about("`move`: the new place on the server.")] = None
    pattern: OptionalPatterns = None
    recursive: Annotated[bool, about("With `pattern`: also in folders below.")] = False
    overwrite: Annotated[bool, about("Replace what is there; otherwise that is a failure.")] = True
    missing_ok: Annotated[bool, about("Nothing there to work on is no failure.")] = False
    remove_source: Annotated[bool, about("`get`, `put`: delete the original once the copy is complete.")] = False
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "Keychain entry with `username` and `password`, or `private_key` (and `passphrase`) for SFTP.",
            schema=KEYCHAIN_ENTRY,
        ),
    ] = None
    verify: Annotated[
        bool | str,
        about(
            "Know the server. FTPS: by its certificate; a path names the file of certificates to trust. "
            "SFTP: by its key in `~/.ssh/known_hosts`; a path names another such file."
        ),
    ] = True
    host_key: Annotated[
        str | None, about("SFTP: the server's key, as `SHA256:…` or as it stands in a file of known hosts.")
    ] = None
    timeout: Annotated[float, about("Seconds the server may stay silent.", gt=0)] = 60.0
    passive: Annotated[bool, about("FTP: this side opens the data connections.")] = True
    encoding: Annotated[str, about("FTP: the encoding of names on the server.")] = "utf-8"


class FileTransfer(Action[TransferParams]):
    """Fetch files from an FTP, FTPS or SFTP server, or send them there.

    A file that is sent is written under another name first and renamed when it is complete, so nobody there picks up half of it;
    a file that is fetched appears here whole as well. With `pattern` all files of a folder that match are taken, and files done
    before are replaced, so a run can be repeated. `remove_source: true` makes a move of it.

    The result is `{count, bytes, files}`; `main`, when it is read, has a row for each file: `remote`, `path` (null unless there
    is one here), `name`, `size`, `modified` (UTC). After-variables: `COUNT`, `BYTES`.

    SFTP needs the package `paramiko`. Plain FTP sends password and data without encryption. Failures are of kind `auth`,
    `host_key`, `tls`, `connection`, `timeout`, `dns`, `missing_file`, `file_exists`, `permission`, `ftp_status` and others.
    """

    type: ClassVar[str] = "file_transfer"
    family: ClassVar[str] = "file"
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="one row per file"),)

    def check(self, params: TransferParams, inputs: Known, call: PlanCall) -> list[Mistake]:
        return _mistakes(params)

    def schemas(self, params: TransferParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": COLUMNS}

    async def run(self, params: TransferParams, call: Call) -> JsonMap:
        require(_mistakes(params))
        with place_failures():
            remote = client(await _server(params, call))
        working = asyncio.ensure_future(call.threads.run(_perform, remote, params, call))
        try:
            rows: list[Row] = await asyncio.shield(working)
        except asyncio.CancelledError:
            remote.abort()
            working.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            await asyncio.wait({working}, timeout=2)
            raise
        size = sum(row[3] or 0 for row in rows)
        call.after.update({"COUNT": len(rows), "BYTES": size})
        if "main" in call.connected:
            call.put("main", await call.threads.run(call.engine.load, COLUMNS, [rows]))
        return {
            "count": len(rows),
            "bytes": size,
            "files": [{"remote": row[0], "path": row[1], "size": row[3]} for row in rows],
        }


_NEEDS: dict[str, tuple[str, ...]] = {
    "get": ("path",),
    "put": ("path",),
    "list": (),
    "delete": (),
    "move": ("remote", "to"),
}


def _mistakes(params: TransferParams) -> list[Mistake]:
    found = [
        Mistake((), f"`action: {params.action}` needs `{name}`")
        for name in _NEEDS[params.action]
        if not getattr(params, name)
    ]
    for name, actions in (("path", ("get", "put")), ("to", ("move",))):
        if getattr(params, name) is not None and params.action not in actions:
            found.append(Mistake((name,), f"`{name}` is for `{'` and `'.join(actions)}`, not for `{params.action}`"))
    if params.pattern is None and not params.remote and params.action in ("get", "delete"):
        found.append(Mistake((), f"`action: {params.action}` needs `remote`, or a `pattern`"))
    if params.pattern is not None and params.action == "move":
        found.append(Mistake(("pattern",), "`move` is for one file: leave `pattern` out, or iterate over the files"))
    return found


async def _server(params: TransferParams, call: Call) -> Server:
    scheme, host, port, login = _address(params.url)
    if isinstance(params.auth, str):
        with tool_failures():
            login |= call.credential(params.auth)
    elif params.auth is not None:
        login |= params.auth
    with tool_failures():
        addresses = await addresses_of(host, port, resolve_host, params.timeout)
        require_allowed(host, addresses, call.settings.addresses)
    if scheme == "ftp" and login.get("password") is not None:
        call.say(f"the password for `{host}` is sent without encryption; `ftps://` and `sftp://` are safe")
    verify = params.verify
    return server_at(
        scheme,
        host,
        port,
        addresses,
        login,
        **({} if params.host_key is None else {"host_key": params.host_key}),
        verify=str(local_file(verify, call)) if isinstance(verify, str) else verify,
        timeout=params.timeout,
        passive=params.passive,
        encoding=params.encoding,
    )


def _address(url: str) -> tuple[Scheme, str, int, dict[str, Any]]:
    hint = "write `sftp://host`, `ftps://host:990/folder` or `ftp://host`"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ComponentFailure("parameters", f"`url` cannot be read: {hint}") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise ComponentFailure("parameters", f"`url` is not that of a file server: {hint}")
    scheme: Scheme = parts.scheme
    given = {"username": parts.username, "password": parts.password}
    login = {name: unquote(value) for name, value in given.items() if value}
    return scheme, parts.hostname, port or PORTS[scheme], login


def _perform(remote: Remote, params: TransferParams, call: Call) -> list[Row]:
    base = unquote(urlsplit(params.url).path).rstrip("/")
    # `sftp://host/~/inbox` is below the login's own folder, `sftp://host/inbox` below the root.
    base = base.removeprefix("/~/").removeprefix("/~") if base.startswith("/~") else base
    try:
        with place_failures():
            remote.connect()
            return _ACTIONS[params.action](remote, params, base, call)
    finally:
        remote.close()


def _at(base: str, params: TransferParams) -> str:
    return joined(base, params.remote) if params.remote else base


def _row(each: Entry, path: Path | None = None, size: int | None = None) -> Row:
    name = each.path.rpartition("/")[2]
    return each.path, None if path is None else str(path), name, each.size if size is None else size, each.modified


def _sources(remote: Remote, params: TransferParams, place: str) -> list[Entry]:
    """The files on the server that are meant."""
    if params.pattern is not None:
        if params.missing_ok and remote.look(place or ".") is None:
            return []
        return search(remote, place, listed(params.pattern), recursive=params.recursive)
    found = remote.look(place)
    if found is None and params.missing_ok:
        return []
    if found is None:
        raise ComponentFailure("missing_file", f"the server has no `{place}`", path=place)
    if found.is_folder:
        raise ComponentFailure(
            "file", f"`{place}` on the server is a folder: say which files with `pattern`", path=place
        )
    return [found]


def _get(remote: Remote, params: TransferParams, base: str, call: Call) -> list[Row]:
    to = local_file(params.path or "", call)
    into = params.pattern is not None or to.is_dir() or (params.path or "").endswith("/")
    done: list[Row] = []
    for each in _sources(remote, params, _at(base, params)):
        target = to / each.relative if into else to
        with file_failures(target):
            size = file_changes.replace(target, _counted(remote.read(each.path), each), overwrite=params.overwrite)
        if params.remove_source:
            remote.delete(each.path)
        done.append(_row(each, target, size))
    return done


def _counted(chunks: Iterable[bytes], source: Entry) -> Iterator[bytes]:
    """An FTP server that breaks off looks like one that is done: only the size tells them apart."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        yield chunk
    if source.size is not None and size < source.size:
        message = f"`{source.path}` has {source.size:,} bytes on the server and only {size:,} came"
        raise ComponentFailure("connection", message, retryable=True)


def _put(remote: Remote, params: TransferParams, base: str, call: Call) -> list[Row]:
    path = local_file(params.path or "", call)
    with file_failures(path):
        if params.missing_ok and not path.exists():
            return []
        if params.pattern is not None:
            found = find(path, params.pattern, recursive=params.recursive)
        else:
            found = [facts(path)]
            if found[0].is_folder:
                raise ComponentFailure("file", f"`{path}` is a folder: say which of its files with `pattern`")
    into = params.pattern is not None or not params.remote or params.remote.endswith("/")
    place = _at(base, params)
    done: list[Row] = []
    for each in found:
        target = joined(place, each.relative) if into else place
        with file_failures(each.path):
            size = put_whole(remote, target, file_changes.chunks_of(each.path), overwrite=params.overwrite)
            if params.remove_source:
                each.path.unlink()
        done.append((target, str(each.path), each.path.name, size, each.modified.replace(tzinfo=None)))
    return done


def _list(remote: Remote, params: TransferParams, base: str, call: Call) -> list[Row]:
    place = _at(base, params)
    if params.missing_ok and remote.look(place or ".") is None:
        return []
    found = search(remote, place, listed(params.pattern or "*"), recursive=params.recursive)
    return [_row(each) for each in found]


def _delete(remote: Remote, params: TransferParams, base: str, call: Call) -> list[Row]:
    done = []
    for each in _sources(remote, params, _at(base, params)):
        remote.delete(each.path)
        done.append(_row(each))
    return done


def _move(remote: Remote, params: TransferParams, base: str, call: Call) -> list[Row]:
    target = joined(base, params.to or "")
    found = _sources(remote, params, _at(base, params))
    for each in found:
        if not params.overwrite and remote.look(target) is not None:
            raise ComponentFailure("file_exists", f"the server has a `{target}` already", path=target)
        if parent(target) not in ("", "/"):
            remote.make_folder(parent(target))
        remote.rename(each.path, target)
    return [_row(Entry(target, target, each.size, each.modified)) for each in found]


_ACTIONS: dict[str, Callable[[Remote, TransferParams, str, Call], list[Row]]] = {
    "get": _get,
    "put": _put,
    "list": _list,
    "delete": _delete,
    "move": _move,
}
