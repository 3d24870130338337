"""`file_archive`: files packed into one.

Law: the archive appears whole or not at all, with its members in the order of their names.
"""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.files.changes import FilePath, Overwrite, not_there
from penstock.components.files.listing import Exclude, Found, Patterns, facts, find
from penstock.components.flow.tool_calls import file_failures, place_of
from penstock.kernel.values import JsonMap
from penstock.tools import file_changes

Level = Annotated[int, Meta(ge=0, le=9)]
Format = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "gz"]
GivenFormat = Annotated[
    Literal["auto", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "gz"],
    Meta(description="The kind of archive; `auto` goes by its name. `gz` is one compressed file."),
]

_ENDINGS: dict[str, Format] = {
    ".zip": "zip",
    ".tar": "tar",
    ".tar.gz": "tar.gz",
    ".tgz": "tar.gz",
    ".tar.bz2": "tar.bz2",
    ".tbz2": "tar.bz2",
    ".tar.xz": "tar.xz",
    ".txz": "tar.xz",
    ".gz": "gz",
}


def format_of(path: Path, given: str) -> Format:
    if given != "auto":
        return cast("Format", given)
    name = path.name.lower()
    for ending in sorted(_ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return _ENDINGS[ending]
    known = "`, `".join(_ENDINGS)
    raise ComponentFailure("parameters", f"the name of `{path}` does not say its `format`; known are `{known}`")


class ArchiveParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: FilePath
    to: Annotated[str, Meta(description="The archive to make.")]
    pattern: Patterns = "*"
    exclude: Exclude = None
    recursive: Annotated[bool, Meta(description="Of a folder: also what lies in folders below.")] = True
    format: GivenFormat = "auto"
    prefix: Annotated[str, Meta(description="A folder inside the archive that everything is put into.")] = ""
    level: Annotated[
        Level | None, Meta(description="How hard to compress, 0 to 9; the format's own choice if left out.")
    ] = None
    overwrite: Overwrite = True
    missing_ok: Annotated[bool, Meta(description="Nothing to pack is no failure; no archive is made then.")] = False


class FileArchive(Action[ArchiveParams]):
    """Pack a file, or the files of a folder, into one archive: zip, tar (plain, gz, bz2, xz), or one file as gz.

    Members of a folder are named by their paths from it. Links are packed as what they lead to. An archive that lies in the
    folder it is made of does not pack itself.

    The result is `{path, count, size}`. After-variables: `FILENAME`, `COUNT` (files in it), `SIZE` in bytes.
    """

    type: ClassVar[str] = "file_archive"
    family: ClassVar[str] = "file"
    Params = ArchiveParams
    example: ClassVar[str] = """\
components:
  - name: drop
    type: shell
    params: {command: "mkdir -p month && echo 1 > month/a.csv && echo 2 > month/b.csv"}
  - name: pack
    type: file_archive
    params: {path: month, pattern: "*.csv", to: month.zip}
connections:
  control: drop (ok) pack
"""

    def run(self, params: ArchiveParams, call: Call) -> JsonMap:
        path, to = place_of(params.path, call), place_of(params.to, call)
        form = format_of(to, params.format)
        with file_failures(to):
            members = _members(params, path, to)
            if not members:
                return self._nothing(params, path, call)
            if form == "gz" and len(members) != 1:
                raise ComponentFailure(
                    "parameters", f"`gz` is one compressed file and there are {len(members)}: use `tar.gz` or `zip`"
                )
            size = _made(to, members, form, params)
        call.after.update({"FILENAME": str(to), "COUNT": len(members), "SIZE": size})
        return {"path": str(to), "count": len(members), "size": size}

    def _nothing(self, params: ArchiveParams, path: Path, call: Call) -> JsonMap:
        if not params.missing_ok:
            raise ComponentFailure("missing_file", f"there is nothing to pack: no file `{params.pattern}` in `{path}`")
        call.after["COUNT"] = 0
        return {"path": None, "count": 0, "size": 0}


Member = tuple[Path, str]


def _members(params: ArchiveParams, path: Path, to: Path) -> list[Member]:
    """What goes in, and under which name."""
    if not path.exists():
        if params.missing_ok:
            return []
        raise not_there(path)
    found: Sequence[Found] = [facts(path)]
    if found[0].is_folder:
        found = find(path, params.pattern, recursive=params.recursive, exclude=params.exclude)
    prefix = "/".join(part for part in params.prefix.split("/") if part not in ("", "."))
    if ".." in prefix.split("/"):
        raise ComponentFailure("parameters", f"`prefix` is `{params.prefix}`: it is a folder inside the archive")
    return [(each.path, f"{prefix}/{each.relative}" if prefix else each.relative) for each in found if each.path != to]


def _made(to: Path, members: list[Member], form: Format, params: ArchiveParams) -> int:
    if to.is_dir():
        raise ComponentFailure(
            "file_exists", f"`to` is the folder `{to}`: name the archive itself, `{to.name}/name.zip`"
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    temporary = to.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            _WRITERS[form](file, members, form, params.level)
            file.flush()
            os.fsync(file.fileno())
        size = temporary.stat().st_size
        file_changes.move(temporary, to, overwrite=params.overwrite)
    except UnicodeEncodeError as error:
        raise ComponentFailure("parameters", "the name of a file is not valid text and cannot be packed") from error
    finally:
        temporary.unlink(missing_ok=True)
    return size


def _zip(file: Any, members: list[Member], form: Format, level: int | None) -> None:
    # Times before 1980 cannot be said in this format; they become 1980.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level, strict_timestamps=False) as archive:
        for path, name in members:
            archive.write(path, name)


def _tar(file: Any, members: list[Member], form: Format, level: int | None) -> None:
    kind = form.partition(".")[2]
    options: dict[str, Any] = {}
    if level is not None and kind:
        # bzip2 counts from 1.
        options = {"preset": level} if kind == "xz" else {"compresslevel": max(level, 1 if kind == "bz2" else 0)}
    with cast("Any", tarfile.open)(fileobj=file, mode=f"w:{kind}", dereference=True, **options) as archive:
        for path, name in members:
            archive.add(path, name, recursive=False)


def _gz(file: Any, members: list[Member], form: Format, level: int | None) -> None:
    ((path, name),) = members
    named = Path(name).name
    with path.open("rb") as source, gzip.GzipFile(named, "wb", 9 if level is None else level, file) as packed:
        shutil.copyfileobj(source, packed, file_changes.CHUNK)


_WRITERS: dict[Format, Callable[[Any, list[Member], Format, int | None], None]] = {
    "zip": _zip,
    "tar": _tar,
    "tar.gz": _tar,
    "tar.bz2": _tar,
    "tar.xz": _tar,
    "gz": _gz,
}
