"""The `files` tool: files here and elsewhere, one action per task.

Law: every action can be done again after a crash and leads to the same files, `append` excepted.
"""

from __future__ import annotations

import base64
import binascii
import csv
import datetime
import hashlib
import io
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET

from penstock.kernel.values import Json, JsonMap
from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.json_text import json_mistake
from penstock.ports.meanings import KEYCHAIN_ENTRY, READS_ANYWHERE, only_when
from penstock.tools import file_changes
from penstock.tools.base import Call, Tool, ToolFailure, local_path, os_failure, require_regular
from penstock.tools.parameters import about
from penstock.tools.places.base import Entry, Location, Place, again, is_elsewhere, missing, required, translated
from penstock.tools.places.local import LocalPlace
from penstock.tools.places.mirror import Mirror

# ---- Between the bytes of a file and the values of a playbook: text, JSON, JSON lines, CSV.
# Law: what is written in a format and read in it again is the same value; CSV alone keeps no types, all its values are text.

Format = Literal["text", "json", "jsonl", "csv", "bytes"]

_BY_SUFFIX: dict[str, Format] = {".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}


def format_by_name(path: Path) -> Format | None:
    return _BY_SUFFIX.get(path.suffix.lower())


def text_from(data: bytes, encoding: str, path: Path) -> str:
    """The text of a file. A byte order mark is not part of it."""
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ToolFailure(
            "decode",
            f"`{path}` is not text in `{encoding}`: byte {error.start} does not fit; "
            "give the right `encoding` or `format: bytes`",
            path=str(path),
            byte=error.start,
        ) from error
    except LookupError as error:
        raise ToolFailure(
            "parameters", f"`{encoding}` is not an encoding; write `utf-8`, `latin-1`, `cp1252` …"
        ) from error


def bytes_from(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise ToolFailure("parameters", f"the content cannot be written in `{encoding}`: {error.reason}") from error
    except LookupError as error:
        raise ToolFailure(
            "parameters", f"`{encoding}` is not an encoding; write `utf-8`, `latin-1`, `cp1252` …"
        ) from error


def _undecodable(path: Path, what: str, error: Exception | str, line: int | None = None) -> ToolFailure:
    place = f"`{path}`" if line is None else f"`{path}` line {line}"
    return ToolFailure("decode", f"{place} is not {what}: {error}", path=str(path), line=line)


def decode(data: bytes, form: Format, encoding: str, delimiter: str, path: Path) -> Json:
    """The value in a file's bytes; `bytes` itself is not for here, as it never becomes a value."""
    text = text_from(data, encoding, path)
    if form == "json":
        return _json(text, path)
    if form == "jsonl":
        lines = enumerate(text.split("\n"), start=1)
        return [_json(line, path, number) for number, line in lines if line.strip()]
    if form == "csv":
        return _rows(text, delimiter, path)
    return text


def _json(text: str, path: Path, line: int | None = None) -> Json:
    try:
        value: Json = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        reason = json_mistake(text, error)
        # A line of its own has no other lines: there it is the file's line that counts.
        raise _undecodable(path, "JSON", reason if line is None else reason.removeprefix("line 1, "), line) from error
    return value


def _rows(text: str, delimiter: str, path: Path) -> Json:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_one(delimiter), strict=True)
    rows: list[Json] = []
    header: list[str] | None = None
    try:
        for row in reader:
            if not row:
                continue
            if header is None:
                header = row
                if len(set(header)) != len(header):
                    twice = next(name for name in header if header.count(name) > 1)
                    raise csv.Error(f"the column `{twice}` is there twice")
                continue
            if len(row) != len(header):
                raise csv.Error(f"{len(row)} values for {len(header)} columns")
            rows.append(dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise _undecodable(path, "CSV", error, reader.line_num) from error
    return rows


def _one(delimiter: str) -> str:
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ToolFailure("parameters", f"`delimiter` is `{delimiter}`: it must be one character, such as `,` or `;`")
    return delimiter


def encode(content: Any, form: Format, delimiter: str) -> str:
    """The text of a whole file."""
    if form == "json":
        return _json_text(content, indent=2) + "\n"
    if form == "jsonl":
        return encode_lines(content)
    if form == "csv":
        rows = _mappings(content)
        return encode_rows(rows, list(dict.fromkeys(name for row in rows for name in row)), delimiter, with_header=True)
    return content if isinstance(content, str) else _json_text(content)


def encode_lines(content: Any) -> str:
    items = content if isinstance(content, list) else [content]
    return "".join(_json_text(item) + "\n" for item in items)


def _json_text(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolFailure("parameters", f"`content` cannot be written as JSON: {error}") from error


def _mappings(content: Any) -> list[dict[str, Any]]:
    rows = content if isinstance(content, list) else [content]
    for row in rows:
        if not isinstance(row, dict):
            raise ToolFailure(
                "parameters", "CSV is written from a list of mappings, one per row: `[{column: value, …}, …]`"
            )
    return rows


def encode_rows(rows: Iterable[dict[str, Any]], columns: list[str], delimiter: str, *, with_header: bool) -> str:
    target = io.StringIO(newline="")
    writer = csv.writer(target, delimiter=_one(delimiter), lineterminator="\n")
    if with_header and columns:
        writer.writerow(columns)
    for row in rows:
        unknown = row.keys() - set(columns)
        if unknown:
            raise ToolFailure("parameters", f"the file has no column `{min(unknown)}`; it has `{'`, `'.join(columns)}`")
        writer.writerow([_cell(row.get(name)) for name in columns])
    return target.getvalue()


def encode_more_rows(content: Any, existing: str, delimiter: str) -> str:
    """Rows in the order of the columns that a file already has."""
    header = next(csv.reader(io.StringIO(existing, newline=""), delimiter=_one(delimiter)), [])
    return encode_rows(_mappings(content), header, delimiter, with_header=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json_text(value)


Action = Literal["read", "write", "append", "list", "copy", "move", "delete", "mkdir", "exists", "checksum", "stat"]
DEFAULT_MAX_BYTES = 100 * 1024 * 1024


class FilesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[Action, about("What to do.")]
    path: Annotated[
        str,
        about(
            "The file or folder, relative to the document's folder; or a URL: `s3://`, `gs://`, `az://`, `https://`, `sftp://`.",
            schema=only_when(READS_ANYWHERE, action=["read", "copy", "move", "checksum", "stat"]),
        ),
    ]
    to: Annotated[
        str | None, about("Where `copy` and `move` lead. A folder that exists, or a name ending in `/`: into it.")
    ] = None
    content: Annotated[
        Any, about("What `write` and `append` put there: text, any JSON value, or a reference to a result.")
    ] = UNSET
    format: Annotated[
        Format | None,
        about(
            "How the file is read or written. If left out, by its name: `.json`, `.jsonl`, `.csv`, otherwise text. "
            "`bytes` reads into the result store and writes base64 text."
        ),
    ] = None
    encoding: Annotated[str, about("The encoding of text.")] = "utf-8"
    delimiter: Annotated[str, about("The delimiter between the values of a CSV row.")] = ","
    pattern: Annotated[str, about("Which names `list` gives: `*.csv`, `2024-*/*.json` …")] = "*"
    recursive: Annotated[bool, about("`list`: also in folders below. `delete`: a folder with all that is in it.")] = (
        False
    )
    overwrite: Annotated[bool, about("If false, `write`, `copy` and `move` fail when the file exists.")] = True
    missing_ok: Annotated[
        bool, about("A file that is not there is no failure: `read` gives null, `list` nothing, `delete` is done.")
    ] = False
    algorithm: Annotated[str, about("For `checksum`: `sha256`, `sha1`, `md5`, `blake2b` …")] = "sha256"
    max_bytes: Annotated[int, about("The largest file that `read` takes (100 MiB).", gt=0)] = DEFAULT_MAX_BYTES
    credentials: Annotated[
        str | dict[str, Any] | None, about("The keychain entry for a URL in `path` or `to`.", schema=KEYCHAIN_ENTRY)
    ] = None


class FilesTool(Tool[FilesParams]):
    """Reads, writes and moves files, on this machine and elsewhere.

    The result has `path`, and by action:

    - `read`: `data` (a text or value; a reference for `format: bytes`) and `size`
    - `write`, `append`: `size`, the bytes written. Writing is atomic: readers see the old file or the new one. Folders on the
      way are made. A text is written as it is, unless `format` is given; other values as JSON or in the format of the name.
    - `list`: `data`, sorted by name: `{name, path, type, size, modified}` each; and `count`
    - `copy`, `move`: `to`
    - `delete`: `deleted`; a folder needs `recursive: true`
    - `mkdir`: `created`; folders on the way are made too
    - `exists`: `data`, true or false
    - `checksum`: `data`, in hexadecimal, with `algorithm` and `size`
    - `stat`: `exists`, `type`, `size`, `modified`, `mode`

    CSV rows are mappings by the names in the first row, and all their values are text. Failures are of kind `not_found`,
    `permission`, `exists`, `is_directory`, `decode`, `too_large`, `disk_full`, `io`, `unsupported_scheme` or `parameters`, of
    URLs also `credential`, `connection`, `timeout`, `dns`, `changed` or `address_refused`. Folders elsewhere are listed and
    deleted, but neither copied nor made: a file that is written brings its own.
    """

    kind: ClassVar[str] = "files"

    async def run(self, params: FilesParams, call: Call) -> JsonMap:
        result: JsonMap = await call.threads.run(perform, params, call)
        return result


def perform(params: FilesParams, call: Call) -> JsonMap:
    """Do the action. Blocks."""
    if is_elsewhere(params.path) or is_elsewhere(params.to or ""):
        _check(params)
        return _perform_elsewhere(params, call)
    path = local_path(params.path, call)
    _check(params)
    try:
        return _ACTIONS[params.action](params, path, call)
    except FileNotFoundError as error:
        if not params.missing_ok or params.action in ("write", "append", "mkdir"):
            raise os_failure(error, path) from error
        return _nothing(params.action, path)
    except OSError as error:
        raise os_failure(error, _blamed(error, path)) from error


def _blamed(error: OSError, path: Path) -> Path:
    """The path the author knows. Names of our own temporary files would only puzzle."""
    named = error.filename2 or error.filename
    return Path(named) if isinstance(named, str) and not named.endswith(".tmp") else path


def _check(params: FilesParams) -> None:
    needs = {"to": ("copy", "move"), "content": ("write", "append")}
    for name, actions in needs.items():
        given = getattr(params, name) not in (None, UNSET) or (name == "content" and params.content is None)
        if params.action in actions and not given:
            raise ToolFailure("parameters", f"`action: {params.action}` needs `{name}`")
        if params.action not in actions and given:
            raise ToolFailure("parameters", f"`{name}` is for `{'` and `'.join(actions)}`, not for `{params.action}`")


def _perform_elsewhere(params: FilesParams, call: Call) -> JsonMap:
    with tempfile.TemporaryDirectory(prefix="penstock-files-") as work:
        mirror = Mirror(Path(work), call.credential, call.settings.addresses)
        try:
            return _AT[params.action](params, call, mirror)
        except ToolFailure as failure:
            if failure.kind != "not_found" or not params.missing_ok or params.action in ("write", "append"):
                failure.message = mirror.shown(failure.message)
                raise
            return _nothing(params.action, Location.parsed(params.path).url())
        finally:
            mirror.close()


def _on_copy(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    (copy,) = mirror.copies(params.path, params.credentials)
    return _shown(_ACTIONS[params.action](params, copy, call), mirror)


def _to_send(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    place, location = mirror.at(params.path, params.credentials)
    if not params.overwrite and params.action == "write" and place.look(location.path) is not None:
        raise ToolFailure("exists", f"`{location.url()}` exists already", path=location.url())
    target = mirror.target(params.path, params.credentials, begun=params.action == "append")
    done = _shown(_ACTIONS[params.action](params, target, call), mirror)
    mirror.send()
    return done


def _shown(result: JsonMap, mirror: Mirror) -> JsonMap:
    return result | {"path": mirror.shown(str(result["path"]))}


def _list_there(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    place, location = mirror.at(params.path, params.credentials)
    there = place.look(location.path)
    if there is None or not there.is_folder:
        raise missing(location)
    rule = translated(f"**/{params.pattern}" if params.recursive else params.pattern)
    deep = params.recursive or "/" in params.pattern
    found = sorted(
        place.entries(location.path.rstrip("/") or location.path, recursive=deep), key=lambda one: one.relative
    )
    entries: list[Json] = [
        {"name": one.relative, "path": location.url(one.path), **_facts_there(one)}
        for one in found
        if rule.fullmatch(one.relative)
    ]
    return {"path": location.url(), "data": entries, "count": len(entries)}


def _facts_there(entry: Entry) -> JsonMap:
    modified = None if entry.modified is None else f"{entry.modified.isoformat(timespec='milliseconds')}Z"
    return {"type": "folder" if entry.is_folder else "file", "size": entry.size, "modified": modified}


def _stat_there(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    place, location = mirror.at(params.path, params.credentials)
    there = place.look(location.path)
    if params.action == "exists":
        return {"path": location.url(), "data": there is not None}
    if there is None:
        raise missing(location)
    return {"path": location.url(), "exists": True, **_facts_there(there), "mode": None}


def _delete_there(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    place, location = mirror.at(params.path, params.credentials)
    there = place.look(location.path)
    if there is None:
        raise missing(location)
    if there.is_folder and (not params.recursive or not location.path.strip("/")):
        words = f"`{location.url()}` is a folder: add `recursive: true` to delete all of it"
        raise ToolFailure("is_directory", words, path=location.url())
    found = [there] if not there.is_folder else place.entries(location.path.rstrip("/"), recursive=True)
    for each in [one for one in found if not one.is_folder]:
        place.delete(each.path)
    return {"path": location.url(), "deleted": True}


def _put_there(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    def placed(path: str) -> tuple[Place, str]:
        if not is_elsewhere(path):
            return LocalPlace(), str(local_path(path, call))
        place, location = mirror.at(path, params.credentials)
        return place, location.path

    source, path = placed(params.path)
    target, to = placed(params.to or "")
    entry = required(source, path)
    there = target.look(to)
    if str(params.to).endswith("/") or (there is not None and there.is_folder):
        to, there = f"{to.rstrip('/')}/{path.rpartition('/')[2]}", None
    if not params.overwrite and (there or target.look(to)) is not None:
        raise ToolFailure("exists", f"`{_named(target, to)}` exists already")
    if source is target:
        again(lambda: source.copy(entry, to))
    else:
        again(lambda: target.write(to, source.read(entry)))
    if params.action == "move" and (source is not target or path != to):
        source.delete(path)
    return {"path": _named(source, path), "to": _named(target, to)}


def _named(place: Place, path: str) -> str:
    return path if isinstance(place, LocalPlace) else place.location.url(path)


def _make_there(params: FilesParams, call: Call, mirror: Mirror) -> JsonMap:
    url = Location.parsed(params.path).url()
    raise ToolFailure("unsupported", f"`{url}`: no folders are made elsewhere; a file that is written brings its own")


_AT: dict[Action, Callable[[FilesParams, Call, Mirror], JsonMap]] = {
    "read": _on_copy, "checksum": _on_copy, "write": _to_send, "append": _to_send, "list": _list_there,
    "copy": _put_there, "move": _put_there, "delete": _delete_there, "mkdir": _make_there, "exists": _stat_there,
    "stat": _stat_there,
}  # fmt: skip


def _nothing(action: Action, path: Path | str) -> JsonMap:
    result: JsonMap = {"path": str(path)}
    if action == "list":
        return result | {"data": [], "count": 0}
    if action == "delete":
        return result | {"deleted": False}
    return result | {"exists": False} if action == "stat" else result | {"data": None}


def _read(params: FilesParams, path: Path, call: Call) -> JsonMap:
    size = require_regular(path).st_size
    form = params.format or format_by_name(path) or "text"
    data: Json
    if form == "bytes":
        data = call.blobs.put(_bounded(path, params.max_bytes), "application/octet-stream").as_json()
    else:
        content = b"".join(_bounded(path, params.max_bytes))
        size = len(content)
        data = decode(content, form, params.encoding, params.delimiter, path)
    return {"path": str(path), "data": data, "size": size}


def _bounded(path: Path, limit: int) -> Iterable[bytes]:
    seen = 0
    for chunk in file_changes.chunks_of(path):
        seen += len(chunk)
        if seen > limit:
            words = f"`{path}` is larger than `max_bytes` ({limit:,} bytes): raise it, or use `format: bytes` and a larger one"
            raise ToolFailure("too_large", words, path=str(path), limit=limit)
        yield chunk


def _write(params: FilesParams, path: Path, call: Call) -> JsonMap:
    size = file_changes.replace(path, _chunks(params, path, call), overwrite=params.overwrite)
    return {"path": str(path), "size": size}


def _chunks(params: FilesParams, path: Path, call: Call) -> Iterable[bytes]:
    content = params.content
    if is_ref(content):
        content = ResultRef.from_json(content)
    if isinstance(content, ResultRef):
        return file_changes.chunks_of(Path(call.blobs.path(content)))
    if isinstance(content, (bytes, bytearray)):
        return [bytes(content)]
    if params.format == "bytes":
        return [_from_base64(content)]
    form = params.format or (None if isinstance(content, str) else format_by_name(path)) or "text"
    return [bytes_from(encode(content, form, params.delimiter), params.encoding)]


def _from_base64(content: Any) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ToolFailure(
            "parameters", f"with `format: bytes`, `content` is base64 text or a reference: {error}"
        ) from error


def _append(params: FilesParams, path: Path, call: Call) -> JsonMap:
    content = params.content
    form = params.format or (None if isinstance(content, str) else format_by_name(path)) or "text"
    if form == "json":
        raise ToolFailure(
            "parameters", "a JSON file is one value and cannot be appended to; use `format: jsonl`, or read and write"
        )
    if form == "jsonl":
        data = bytes_from(encode_lines(content), params.encoding)
    elif form == "csv" and path.exists() and path.stat().st_size:
        beginning = (
            next(iter(file_changes.chunks_of(path)), b"").decode(params.encoding, "ignore").removeprefix("\ufeff")
        )
        data = bytes_from(encode_more_rows(content, beginning, params.delimiter), params.encoding)
    else:
        data = b"".join(_chunks(params, path, call))
    return {"path": str(path), "size": file_changes.append(path, data, on_new_line=form in ("jsonl", "csv"))}


def _kind_of(mode: int) -> str:
    names = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return names.get(stat.S_IFMT(mode), "other")


def _facts(path: Path) -> JsonMap:
    try:
        found = path.stat()
    except FileNotFoundError:
        # A link that leads nowhere is still something that is there.
        found = path.lstat()
    modified = datetime.datetime.fromtimestamp(found.st_mtime, datetime.UTC)
    return {
        "type": _kind_of(found.st_mode),
        "size": found.st_size,
        "modified": modified.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "mode": f"{stat.S_IMODE(found.st_mode):04o}",
    }


def _list(params: FilesParams, path: Path, call: Call) -> JsonMap:
    # `glob` is silent about a folder that is not there or may not be read; this is not.
    with os.scandir(path):
        pass
    try:
        found = path.rglob(params.pattern) if params.recursive else path.glob(params.pattern)
        names = sorted((each.relative_to(path).as_posix(), each) for each in found)
    except (NotImplementedError, ValueError) as error:
        raise ToolFailure("parameters", f"`pattern` is `{params.pattern}`: {error}") from error
    entries: list[Json] = []
    for name, each in names:
        try:
            facts = _facts(each)
        except FileNotFoundError:
            continue
        facts.pop("mode")
        entries.append({"name": name, "path": str(each), **facts})
    return {"path": str(path), "data": entries, "count": len(entries)}


def _target(params: FilesParams, path: Path, call: Call) -> Path:
    to = local_path(params.to or "", call)
    return to / path.name if to.is_dir() or str(params.to).endswith("/") else to


def _copy(params: FilesParams, path: Path, call: Call) -> JsonMap:
    path.lstat()
    to = _target(params, path, call)
    file_changes.copy(path, to, overwrite=params.overwrite)
    return {"path": str(path), "to": str(to)}


def _move(params: FilesParams, path: Path, call: Call) -> JsonMap:
    path.lstat()
    to = _target(params, path, call)
    file_changes.move(path, to, overwrite=params.overwrite)
    return {"path": str(path), "to": str(to)}


def _delete(params: FilesParams, path: Path, call: Call) -> JsonMap:
    path.lstat()
    if path.is_dir() and not path.is_symlink():
        if not params.recursive:
            raise ToolFailure(
                "is_directory", f"`{path}` is a folder: add `recursive: true` to delete all of it", path=str(path)
            )
        # An empty variable in a path must not cost the author the folder of the document.
        if Path(os.path.realpath(call.folder)).is_relative_to(os.path.realpath(path)):
            raise ToolFailure("parameters", f"`{path}` has this document in it and is not deleted")
    file_changes.delete(path)
    return {"path": str(path), "deleted": True}


def _mkdir(params: FilesParams, path: Path, call: Call) -> JsonMap:
    created = not path.is_dir()
    path.mkdir(parents=True, exist_ok=True)
    return {"path": str(path), "created": created}


def _exists(params: FilesParams, path: Path, call: Call) -> JsonMap:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {"path": str(path), "data": False}
    return {"path": str(path), "data": True}


def _checksum(params: FilesParams, path: Path, call: Call) -> JsonMap:
    require_regular(path)
    name = params.algorithm.lower()
    if name not in hashlib.algorithms_available or name.startswith("shake"):
        known = "`, `".join(sorted(each for each in hashlib.algorithms_guaranteed if not each.startswith("shake")))
        raise ToolFailure("parameters", f"`{params.algorithm}` is not a checksum; there are `{known}`")
    digest, size = hashlib.new(name, usedforsecurity=False), 0
    for chunk in file_changes.chunks_of(path):
        digest.update(chunk)
        size += len(chunk)
    return {"path": str(path), "data": digest.hexdigest(), "algorithm": name, "size": size}


def _stat(params: FilesParams, path: Path, call: Call) -> JsonMap:
    return {"path": str(path), "exists": True, **_facts(path)}


_ACTIONS: dict[Action, Callable[[FilesParams, Path, Call], JsonMap]] = {
    "read": _read, "write": _write, "append": _append, "list": _list, "copy": _copy, "move": _move,
    "delete": _delete, "mkdir": _mkdir, "exists": _exists, "checksum": _checksum, "stat": _stat,
}  # fmt: skip
