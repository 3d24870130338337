"""`file_copy`, `file_move`, `file_delete`, `file_touch`.

Law: a file that is replaced is replaced whole. Each can be run again after a crash: what is done already is found done, or
`missing_ok` says that it may be.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.files.listing import OptionalPatterns, Recursive, entries_at, find
from penstock.components.flow.tool_calls import file_failures, local_file, place_failures, tool_call
from penstock.components.io.file_paths import place_at
from penstock.components.io.parameters import Credentials
from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import READS_ANYWHERE, only_when
from penstock.tools import file_changes
from penstock.tools.base import ToolFailure
from penstock.tools.files import FilesParams, perform
from penstock.tools.parameters import about
from penstock.tools.places.base import Place, again, is_elsewhere, missing
from penstock.tools.places.local import LocalPlace

FilePath = Annotated[
    str,
    about(
        "The file or folder, relative to the document's folder, or its URL; with `pattern`, the folder.",
        schema=only_when(READS_ANYWHERE, missing_ok=[None, False]),
    ),
]
Overwrite = Annotated[bool, about("Replace what is there. If false, that is a failure of kind `file_exists`.")]
MissingOk = Annotated[bool, about("Nothing there to work on is no failure.")]


class CopyParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: FilePath
    to: Annotated[
        str,
        about(
            "Where it goes; a URL too. A folder that exists, or a name that ends in `/`: into it; with `pattern` always."
        ),
    ]
    pattern: OptionalPatterns = None
    recursive: Recursive = False
    overwrite: Overwrite = True
    missing_ok: MissingOk = False
    credentials: Credentials = None
    to_credentials: Annotated[
        Credentials, about("The same for the URL in `to`, where it is another; `credentials` when left out.")
    ] = None


class FileCopy(Action[CopyParams]):
    """Copy a file, a folder, or the files of a folder that match a pattern.

    With `pattern`, the matching files go into the folder `to`, and with `recursive` the folders they lie in come along. A
    folder without `pattern` is copied whole, to a place that is not there yet. Folders on the way are made; times and
    permissions are kept; readers see the old file or the new one, never half of it.

    The result is `{count, files: [{path, to}]}`. After-variables: `COUNT`, `FILENAME` (the last place written to).
    """

    type: ClassVar[str] = "file_copy"
    family: ClassVar[str] = "file"

    def run(self, params: CopyParams, call: Call) -> JsonMap:
        return _put(params, call, file_changes.copy, removes=False)


class FileMove(Action[CopyParams]):
    """Move or rename a file, a folder, or the files of a folder that match a pattern.

    Between file systems the file is copied whole before the original is deleted. A file that is not there is a failure; after
    a crash it may have been moved already, which `missing_ok: true` accepts. With `pattern`, files that were moved already
    are simply not found again. Otherwise as `file_copy`.

    The result is `{count, files: [{path, to}]}`. After-variables: `COUNT`, `FILENAME` (the last place moved to).
    """

    type: ClassVar[str] = "file_move"
    family: ClassVar[str] = "file"

    def run(self, params: CopyParams, call: Call) -> JsonMap:
        return _put(params, call, file_changes.move, removes=True)


def _put(params: CopyParams, call: Call, change: Callable[..., None], *, removes: bool) -> JsonMap:
    if is_elsewhere(params.path) or is_elsewhere(params.to):
        with place_failures():
            return _put_elsewhere(params, call, removes=removes)
    path, to = local_file(params.path, call), local_file(params.to, call)
    done: list[Json] = []
    with file_failures(path):
        for source, target in _pairs(params, path, to):
            change(source, target, overwrite=params.overwrite)
            done.append({"path": str(source), "to": str(target)})
            call.after["FILENAME"] = str(target)
    call.after["COUNT"] = len(done)
    return {"count": len(done), "files": done}


def _put_elsewhere(params: CopyParams, call: Call, *, removes: bool) -> JsonMap:
    """Between two places, of which one may be this machine: file by file, each whole."""
    source, path = place_at(params.path, call, params.credentials)
    target, to = place_at(
        params.to, call, params.credentials if params.to_credentials is None else params.to_credentials
    )
    there = source.look(path)
    into = params.pattern is not None or params.to.endswith("/") or _is_folder(target, to)
    if there is None and not params.missing_ok:
        raise missing(source.location, path) if is_elsewhere(params.path) else not_there(Path(path))
    found = [] if there is None else [there]
    if there is not None and there.is_folder:
        if params.pattern is None:
            raise ToolFailure("is_directory", f"`{params.path}` is a folder: say which of its files with `pattern`")
        found = entries_at(source, path, params.pattern, recursive=params.recursive)
    done: list[Json] = []
    for each in found:
        goes_to = f"{to.rstrip('/')}/{each.relative}" if into else to
        if not params.overwrite and target.look(goes_to) is not None:
            raise ToolFailure("exists", f"`{_shown(target, goes_to)}` exists already")
        if source is not target:
            again(lambda each=each, goes_to=goes_to: target.write(goes_to, source.read(each)))  # type: ignore[misc]
        else:
            again(lambda each=each, goes_to=goes_to: source.copy(each, goes_to))  # type: ignore[misc]
        if removes and (source is not target or each.path != goes_to):
            source.delete(each.path)
        done.append({"path": _shown(source, each.path), "to": _shown(target, goes_to)})
        call.after["FILENAME"] = _shown(target, goes_to)
    call.after["COUNT"] = len(done)
    return {"count": len(done), "files": done}


def _is_folder(place: Place, path: str) -> bool:
    try:
        found = place.look(path)
    except ToolFailure:
        return False  # What is wrong with it is said by who writes there.
    return found is not None and found.is_folder


def _shown(place: Place, path: str) -> str:
    return path if isinstance(place, LocalPlace) else place.location.url(path)


def _pairs(params: CopyParams, path: Path, to: Path) -> list[tuple[Path, Path]]:
    if params.missing_ok and not os.path.lexists(path):
        return []
    if params.pattern is not None:
        found = find(path, params.pattern, recursive=params.recursive)
        # With a target inside the source, a second run would find what the first has put there.
        return [(each.path, to / each.relative) for each in found if not _lies_in(each.path, to, path)]
    if not os.path.lexists(path):
        raise not_there(path, to / path.name if params.to.endswith("/") or to.is_dir() else to)
    return [(path, to / path.name if to.is_dir() or params.to.endswith("/") else to)]


def _lies_in(path: Path, to: Path, source: Path) -> bool:
    return to != source and path.is_relative_to(to) and to.is_relative_to(source)


def not_there(path: Path, target: Path | None = None) -> ComponentFailure:
    message = f"there is no `{path}`"
    if any(mark in path.name for mark in "*?["):
        message += f"; give the folder as `path: {path.parent.name or '.'}` and `pattern: {path.name}`"
    elif target is not None and target.exists():
        message += f", but `{target}` is there: if an earlier run may have moved it, say `missing_ok: true`"
    return ComponentFailure("missing_file", message, path=str(path))


class DeleteParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: FilePath
    pattern: OptionalPatterns = None
    recursive: Annotated[
        bool, about("With `pattern`: also in folders below. Without: a folder with all that is in it.")
    ] = False
    missing_ok: MissingOk = False
    credentials: Credentials = None


class FileDelete(Action[DeleteParams]):
    """Delete a file, a folder, or the files of a folder that match a pattern.

    A folder needs `recursive: true`, and the folder that this document lies in is never deleted. Of a link only the link is
    deleted. With `pattern` only files are deleted, and none matching is no failure.

    The result is `{count, files}`. After-variable: `COUNT`.
    """

    type: ClassVar[str] = "file_delete"
    family: ClassVar[str] = "file"
    makes_files: ClassVar[bool] = False

    def run(self, params: DeleteParams, call: Call) -> JsonMap:
        if is_elsewhere(params.path):
            with place_failures():
                return _delete_elsewhere(params, call)
        path = local_file(params.path, call)
        deleted: list[Json] = []
        with file_failures(path):
            if params.pattern is None:
                if not params.missing_ok and not os.path.lexists(path):
                    raise not_there(path)
                asked = FilesParams(
                    action="delete", path=params.path, recursive=params.recursive, missing_ok=params.missing_ok
                )
                if perform(asked, tool_call(call))["deleted"]:
                    deleted.append(str(path))
            elif not params.missing_ok or os.path.lexists(path):
                for each in find(path, params.pattern, recursive=params.recursive):
                    each.path.unlink(missing_ok=True)
                    deleted.append(str(each.path))
        call.after["COUNT"] = len(deleted)
        return {"count": len(deleted), "files": deleted}


def _delete_elsewhere(params: DeleteParams, call: Call) -> JsonMap:
    place, path = place_at(params.path, call, params.credentials)
    there = place.look(path)
    if there is None and not params.missing_ok:
        raise missing(place.location, path)
    if there is None:
        found = []
    elif params.pattern is not None:
        found = entries_at(place, path, params.pattern, recursive=params.recursive)
    elif not there.is_folder:
        found = [there]
    elif not params.recursive or not path.strip("/"):
        hint = "add `recursive: true` to delete all of it, or say which files with `pattern`"
        raise ToolFailure("is_directory", f"`{place.location.url(path)}` is a folder: {hint}")
    else:
        found = [each for each in place.entries(path.rstrip("/"), recursive=True) if not each.is_folder]
    for each in found:
        place.delete(each.path)
    call.after["COUNT"] = len(found)
    return {"count": len(found), "files": [place.location.url(each.path) for each in found]}


class TouchParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The file, relative to the document's folder.")]
    create: Annotated[bool, about("Make an empty file when there is none.")] = True


class FileTouch(Action[TouchParams]):
    """Make an empty file, or set the time of one that is there to now.

    What is in the file stays as it is. Folders on the way are made. The result is `{path, created}`. After-variables:
    `FILENAME`, `CREATED`.
    """

    type: ClassVar[str] = "file_touch"
    family: ClassVar[str] = "file"

    def run(self, params: TouchParams, call: Call) -> JsonMap:
        path = local_file(params.path, call)
        now = call.clock.now()
        with file_failures(path):
            created = not path.exists()
            if created and not params.create:
                raise not_there(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (now, now))
        call.after.update({"FILENAME": str(path), "CREATED": created})
        return {"path": str(path), "created": created}
