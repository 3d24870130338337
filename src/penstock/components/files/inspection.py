"""`file_exists`, `file_properties`, `file_list`, `file_compare` and `file_checksum`: questions about files that change none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import msgspec

from penstock.components.base import Action, Call, ComponentFailure, Known, PlanCall, Schemas
from penstock.components.files.changes import not_there
from penstock.components.files.listing import (
    COLUMNS,
    Exclude,
    Found,
    Order,
    Patterns,
    Recursive,
    Sort,
    What,
    facts,
    find,
    find_at,
    found_at,
)
from penstock.components.flow.tool_calls import file_failures, local_file, place_failures, tool_call
from penstock.components.io.file_paths import mirror, one_file, shown
from penstock.components.io.parameters import Credentials
from penstock.kernel.values import JsonMap
from penstock.ports.components import Port
from penstock.ports.meanings import READS_ANYWHERE
from penstock.ports.rows import Column, Schema
from penstock.tools.base import open_regular
from penstock.tools.file_changes import chunks_of
from penstock.tools.files import FilesParams, perform
from penstock.tools.parameters import about
from penstock.tools.places.base import is_elsewhere, missing

PROPERTIES: Schema = (*COLUMNS, Column("mode", "VARCHAR"))


class PathParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The file or folder, relative to the document's folder; or its URL.")]
    credentials: Credentials = None


class FileExists(Action[PathParams]):
    """Say whether a file or folder is there.

    Either answer is OK; branch on it with `if` links: `EXISTS`, `not EXISTS`. A link that leads nowhere is not there. The
    result is `{exists, path}`. After-variables: `EXISTS`, `FILENAME`.
    """

    type: ClassVar[str] = "file_exists"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False

    def run(self, params: PathParams, call: Call) -> JsonMap:
        if is_elsewhere(params.path):
            with place_failures():
                place, location = mirror(params.path, call).at(params.path, params.credentials)
                found = place.look(location.path)
            call.after.update({"EXISTS": found is not None, "FILENAME": location.url()})
            return {"exists": found is not None, "path": location.url()}
        path = local_file(params.path, call)
        with file_failures(path):
            exists = perform(FilesParams(action="exists", path=params.path), tool_call(call))["data"]
        call.after.update({"EXISTS": exists, "FILENAME": str(path)})
        return {"exists": exists, "path": str(path)}


class FileProperties(Action[PathParams]):
    """What is known of a file or folder, as one row.

    Columns of `main`: `path` (absolute), `name`, `stem`, `extension`, `folder`, `type` (`file` or `folder`), `size` in bytes,
    `modified` (UTC), `mode` (`0644`). The result is the same as a mapping. After-variables: `FILENAME`, `SIZE`, `MODIFIED`.
    """

    type: ClassVar[str] = "file_properties"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", reject=True, description="one row"),)

    def schemas(self, params: PathParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": PROPERTIES}

    def run(self, params: PathParams, call: Call) -> JsonMap:
        found, mode = _known(params, call)
        row = (*found.as_row(), mode)
        about: JsonMap = {**found.as_json(), "type": row[5], "mode": mode}
        call.after.update({"FILENAME": found.address, "SIZE": found.size, "MODIFIED": about["modified"]})
        if "main" in call.connected:
            call.put("main", call.engine.load(PROPERTIES, [[row]]))
        return about


def _known(params: PathParams, call: Call) -> tuple[Found, str | None]:
    """What is known of it, and its permissions where there are such."""
    if is_elsewhere(params.path):
        with place_failures():
            place, location = mirror(params.path, call).at(params.path, params.credentials)
            found = place.look(location.path)
            if found is None:
                raise missing(location)
            return found_at(place, found), None
    path = local_file(params.path, call)
    with file_failures(path):
        return facts(path), f"{path.stat().st_mode & 0o7777:04o}"


class ListParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The folder, relative to the document's own; or its URL.")]
    credentials: Credentials = None
    pattern: Patterns = "*"
    exclude: Exclude = None
    recursive: Recursive = False
    what: Annotated[What, about("What to look for.")] = "files"
    sort: Annotated[Sort, about("By what they are ordered.")] = "name"
    order: Annotated[Order, about("The direction of that order.")] = "ascending"
    missing_ok: Annotated[bool, about("A folder that is not there has no files and is no error.")] = False


class FileList(Action[ListParams]):
    """The files of a folder as rows.

    Columns of `main`: `path` (absolute), `name`, `stem`, `extension`, `folder`, `type`, `size`, `modified` (UTC). To run
    something for each of them, use `iterate_files`. The result is `{count}`. After-variable: `COUNT`.
    """

    type: ClassVar[str] = "file_list"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False
    outputs: ClassVar[tuple[Port, ...]] = (Port("main", description="one row per file"),)

    def schemas(self, params: ListParams, inputs: Known, call: PlanCall) -> Schemas:
        return {"main": COLUMNS}

    def run(self, params: ListParams, call: Call) -> JsonMap:
        rows = [each.as_row() for each in found_in(params, call)]
        call.after["COUNT"] = len(rows)
        call.put("main", call.engine.load(COLUMNS, [rows]))
        return {"count": len(rows)}


class Listing(Protocol):
    """The parameters of `file_list` and `iterate_files`."""

    path: str
    credentials: Credentials
    pattern: Patterns
    exclude: Exclude
    recursive: Recursive
    what: What
    sort: Sort
    order: Order
    missing_ok: bool


def found_in(params: Listing, call: Call) -> list[Found]:
    """The files of a folder, here or elsewhere."""
    asked: dict[str, Any] = {name: getattr(params, name) for name in ("recursive", "what", "exclude", "sort", "order")}
    if is_elsewhere(params.path):
        with place_failures():
            place, location = mirror(params.path, call).at(params.path, params.credentials)
            return find_at(place, location.path, params.pattern, missing_ok=params.missing_ok, **asked)
    folder = local_file(params.path, call)
    if params.missing_ok and not folder.exists():
        return []
    with file_failures(folder):
        return find(folder, params.pattern, **asked)


class CompareParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("One file, or its URL.", schema=READS_ANYWHERE)]
    other: Annotated[str, about("The file to compare it with, or its URL.", schema=READS_ANYWHERE)]
    mode: Annotated[
        Literal["bytes", "text"], about("`text` compares line by line and takes all line ends for the same.")
    ] = "bytes"
    encoding: Annotated[str, about("The encoding of text.")] = "utf-8"
    check: Annotated[bool, about("Files that differ are a failure, of kind `different`.")] = False
    credentials: Credentials = None


class FileCompare(Action[CompareParams]):
    """Compare two files.

    The result is `{equal, difference, path, other}`; `difference` is the first byte that differs, counted from 0, or with
    `mode: text` the first line, counted from 1; null when the files are equal. After-variables: `EQUAL`, `DIFFERENCE`.
    """

    type: ClassVar[str] = "file_compare"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False

    def run(self, params: CompareParams, call: Call) -> JsonMap:
        path, other = (
            one_file(each, call, params.credentials) if is_elsewhere(each) else local_file(each, call)
            for each in (params.path, params.other)
        )
        with file_failures(path):
            if params.mode == "text":
                pairs = zip_longest(_lines(path, params.encoding), _lines(other, params.encoding))
                difference = next((number for number, (a, b) in enumerate(pairs, start=1) if a != b), None)
            else:
                difference = _first_byte(path, other)
        equal = difference is None
        call.after.update({"EQUAL": equal, "DIFFERENCE": difference})
        if params.check and not equal:
            what = "line" if params.mode == "text" else "byte"
            raise ComponentFailure("different", f"`{path}` and `{other}` differ from {what} {difference} on")
        return {"equal": equal, "difference": difference, "path": shown(path, call), "other": shown(other, call)}


def _lines(path: Path, encoding: str) -> Iterator[str]:
    open_regular(path).close()
    try:
        with path.open(encoding=encoding) as file:
            for line in file:
                yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ComponentFailure(
            "decode", f"`{path}` is not text in `{encoding}`: give its `encoding`, or compare with `mode: bytes`"
        ) from error
    except LookupError as error:
        raise ComponentFailure("parameters", f"`{encoding}` is not an encoding; write `utf-8`, `latin-1` …") from error


def _first_byte(path: Path, other: Path) -> int | None:
    for each in (path, other):
        open_regular(each).close()
    at = 0
    for one, two in zip_longest(_even(chunks_of(path)), _even(chunks_of(other)), fillvalue=b""):
        if one != two:
            short = min(len(one), len(two))
            return at + next((index for index in range(short) if one[index] != two[index]), short)
        at += len(one)
    return None


def _even(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """In pieces small enough to look through byte by byte, once a difference is found."""
    for chunk in chunks:
        for start in range(0, len(chunk), 4096):
            yield chunk[start : start + 4096]


class ChecksumParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The file, relative to the document's folder; or its URL.", schema=READS_ANYWHERE)]
    credentials: Credentials = None
    algorithm: Annotated[str, about("`sha256`, `sha1`, `md5`, `blake2b` …")] = "sha256"
    expected: Annotated[
        str | None, about("In hexadecimal; a file that has another one is a failure, of kind `checksum`.")
    ] = None


class FileChecksum(Action[ChecksumParams]):
    """The checksum of a file; or make sure that it is the one expected.

    The result is `{checksum, algorithm, size, path}`. After-variables: `CHECKSUM`, `FILENAME`.
    """

    type: ClassVar[str] = "file_checksum"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False

    def run(self, params: ChecksumParams, call: Call) -> JsonMap:
        path = (
            one_file(params.path, call, params.credentials)
            if is_elsewhere(params.path)
            else local_file(params.path, call)
        )
        name = shown(path, call)
        with file_failures(path):
            if not path.exists():
                raise not_there(path)
            asked = FilesParams(action="checksum", path=str(path), algorithm=params.algorithm)
            found = perform(asked, tool_call(call))
        checksum = str(found["data"])
        call.after.update({"CHECKSUM": checksum, "FILENAME": name})
        if params.expected is not None and params.expected.strip().lower() != checksum:
            message = f"`{name}` has the {found['algorithm']} checksum `{checksum}`, expected `{params.expected}`"
            raise ComponentFailure("checksum", message, path=name)
        return {"checksum": checksum, "algorithm": found["algorithm"], "size": found["size"], "path": name}
