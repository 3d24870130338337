"""`file_archive` and `file_unarchive`: files packed into one archive, and unpacked from it.

Law: nothing is ever written outside the folder `to`, whatever the archive calls its members, and nothing is written at all before
every name in it has been looked at. Links and devices in an archive are not made.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import secrets
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.files.changes import FilePath, Overwrite, not_there
from penstock.components.files.listing import Exclude, Found, Patterns, facts, find, listed
from penstock.components.flow.tool_calls import file_failures, local_file
from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import READS_FILE
from penstock.tools import file_changes
from penstock.tools.base import open_regular
from penstock.tools.parameters import about

Level = Annotated[int, Meta(ge=0, le=9)]
Format = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "gz"]
GivenFormat = Annotated[
    Literal["auto", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "gz"],
    about("The kind of archive; `auto` goes by its name. `gz` is one compressed file."),
]

_ENDINGS: dict[str, Format] = {
    ".zip": "zip", ".tar": "tar", ".tar.gz": "tar.gz", ".tgz": "tar.gz", ".tar.bz2": "tar.bz2", ".tbz2": "tar.bz2",
    ".tar.xz": "tar.xz", ".txz": "tar.xz", ".gz": "gz",
}  # fmt: skip


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
    to: Annotated[str, about("The archive to make.")]
    pattern: Patterns = "*"
    exclude: Exclude = None
    recursive: Annotated[bool, about("Of a folder: also what lies in folders below.")] = True
    format: GivenFormat = "auto"
    prefix: Annotated[str, about("A folder inside the archive that everything is put into.")] = ""
    level: Annotated[Level | None, about("How hard to compress, 0 to 9; the format's own choice if left out.")] = None
    overwrite: Overwrite = True
    missing_ok: Annotated[bool, about("Nothing to pack is no failure; no archive is made then.")] = False


class FileArchive(Action[ArchiveParams]):
    """Pack a file, or the files of a folder, into one archive: zip, tar (plain, gz, bz2, xz), or one file as gz.

    Members of a folder are named by their paths from it. Links are packed as what they lead to. An archive that lies in the
    folder it is made of does not pack itself.

    The result is `{path, count, size}`. After-variables: `FILENAME`, `COUNT` (files in it), `SIZE` in bytes.
    """

    type: ClassVar[str] = "file_archive"
    family: ClassVar[str] = "file"

    def run(self, params: ArchiveParams, call: Call) -> JsonMap:
        path, to = local_file(params.path, call), local_file(params.to, call)
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


Source = tuple[Path, str]


def _members(params: ArchiveParams, path: Path, to: Path) -> list[Source]:
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


def _made(to: Path, members: list[Source], form: Format, params: ArchiveParams) -> int:
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


def _write_zip(file: Any, members: list[Source], form: Format, level: int | None) -> None:
    # Times before 1980 cannot be said in this format; they become 1980.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level, strict_timestamps=False) as archive:
        for path, name in members:
            archive.write(path, name)


def _write_tar(file: Any, members: list[Source], form: Format, level: int | None) -> None:
    kind = form.partition(".")[2]
    options: dict[str, Any] = {}
    if level is not None and kind:
        # bzip2 counts from 1.
        options = {"preset": level} if kind == "xz" else {"compresslevel": max(level, 1 if kind == "bz2" else 0)}
    with cast("Any", tarfile.open)(fileobj=file, mode=f"w:{kind}", dereference=True, **options) as archive:
        for path, name in members:
            archive.add(path, name, recursive=False)


def _write_gz(file: Any, members: list[Source], form: Format, level: int | None) -> None:
    ((path, name),) = members
    named = Path(name).name
    with path.open("rb") as source, gzip.GzipFile(named, "wb", 9 if level is None else level, file) as packed:
        shutil.copyfileobj(source, packed, file_changes.CHUNK)


_WRITERS: dict[Format, Callable[[Any, list[Source], Format, int | None], None]] = {
    "zip": _write_zip,
    "tar": _write_tar,
    "tar.gz": _write_tar,
    "tar.bz2": _write_tar,
    "tar.xz": _write_tar,
    "gz": _write_gz,
}


MAX_MEMBERS = 1_000_000
_DRIVE = re.compile(r"[A-Za-z]:")


class UnarchiveParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, about("The archive.", schema=READS_FILE)]
    to: Annotated[str, about("The folder to unpack into; it is made when it is not there.")]
    pattern: Annotated[
        str | list[str] | None, about("Which members: their names or paths in the archive; all if left out.")
    ] = None
    format: GivenFormat = "auto"
    overwrite: Overwrite = True
    password: Annotated[str | None, about("Of an encrypted zip (the old kind of encryption).")] = None
    max_bytes: Annotated[
        int, about("The most that may come out of it, in bytes (10 GiB); a bomb is stopped there.", gt=0)
    ] = 10 * 1024**3


class FileUnarchive(Action[UnarchiveParams]):
    """Unpack a zip, a tar (plain, gz, bz2, xz) or a gz file into a folder.

    A member whose name would lead out of the folder (`/etc/passwd`, `../x`) makes the whole archive refused, with kind
    `unsafe_archive`, before anything is written. Links and devices are left out and named in `skipped`. Each file appears
    whole. Times and permissions in the archive are not taken over. Unpacking again leads to the same files.

    The result is `{path, to, count, bytes, files, skipped}`. After-variables: `COUNT`, `BYTES`.
    """

    type: ClassVar[str] = "file_unarchive"
    family: ClassVar[str] = "file"

    def run(self, params: UnarchiveParams, call: Call) -> JsonMap:
        path, to = local_file(params.path, call), local_file(params.to, call)
        form = format_of(path, params.format)
        with file_failures(path):
            if not path.exists():
                raise not_there(path)
            open_regular(path).close()
            with _broken_archives(path), _OPENERS[form](path, params.password) as members:
                files, skipped = _judged(members, params, path)
                size = _unpack(files, to, params)
        for name in skipped:
            call.say(f"left out of `{path.name}`: `{name}` is a link or a device")
        call.after.update({"COUNT": len(files), "BYTES": size})
        names: list[Json] = [str(to / name) for name in files]
        return {
            "path": str(path),
            "to": str(to),
            "count": len(files),
            "bytes": size,
            "files": names,
            "skipped": [*skipped],
        }


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    size: int
    is_plain: bool
    """A regular file, and neither a link nor a device."""
    read: Callable[[], Iterable[bytes]]


@contextmanager
def _broken_archives(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        message = f"`{path}` is not what its format says, or is damaged: {error or 'it ends too early'}"
        raise ComponentFailure("format", message, path=str(path)) from error
    except NotImplementedError as error:
        raise ComponentFailure("format", f"`{path}` is packed in a way that is not supported: {error}") from error
    except RuntimeError as error:
        # What zipfile raises for a password that is missing or wrong.
        raise ComponentFailure("password", f"`{path}` cannot be decrypted: {error}; give its `password`") from error


@contextmanager
def _read_zip(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    secret = None if password is None else password.encode()
    with zipfile.ZipFile(path) as archive:

        def member(info: zipfile.ZipInfo) -> Member:
            mode = info.external_attr >> 16
            plain = stat.S_IFMT(mode) in (0, stat.S_IFREG)
            return Member(info.filename, info.file_size, plain, lambda: _chunks(lambda: archive.open(info, pwd=secret)))

        yield [member(info) for info in archive.infolist() if not info.is_dir()]


@contextmanager
def _read_tar(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    with tarfile.open(path) as archive:

        def member(info: tarfile.TarInfo) -> Member:
            return Member(info.name, info.size, info.isreg(), lambda: _chunks(lambda: archive.extractfile(info)))

        yield [member(info) for info in archive if not info.isdir()]


@contextmanager
def _read_gz(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name + ".unpacked"
    yield [Member(name, 0, True, lambda: _chunks(lambda: gzip.GzipFile(path)))]


_OPENERS: dict[Format, Callable[[Path, str | None], Any]] = {
    "zip": _read_zip,
    "tar": _read_tar,
    "tar.gz": _read_tar,
    "tar.bz2": _read_tar,
    "tar.xz": _read_tar,
    "gz": _read_gz,
}


def _chunks(opened: Callable[[], Any]) -> Iterator[bytes]:
    with opened() as file:
        while chunk := file.read(file_changes.CHUNK):
            yield chunk


def _judged(members: Iterable[Member], params: UnarchiveParams, path: Path) -> tuple[dict[str, Member], list[str]]:
    """The files to unpack, by the path each will have below the folder; and the names of what is left out."""
    files: dict[str, Member] = {}
    skipped: list[str] = []
    for number, member in enumerate(members):
        if number >= MAX_MEMBERS:
            raise ComponentFailure("too_large", f"`{path}` has more than {MAX_MEMBERS:,} members")
        name = _inside(member.name, path)
        if params.pattern is not None and not _matches(name, listed(params.pattern)):
            continue
        if member.is_plain:
            files[name] = member
        else:
            skipped.append(member.name)
    if sum(member.size for member in files.values()) > params.max_bytes:
        raise _too_large(params.max_bytes)
    return files, skipped


def _inside(name: str, path: Path) -> str:
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    rooted = name.startswith(("/", "\\")) or _DRIVE.match(name) is not None
    if not parts or ".." in parts or rooted or "\0" in name:
        message = f"`{path}` is refused: its member `{name[:200]}` would be written outside the folder"
        raise ComponentFailure("unsafe_archive", message, path=str(path))
    return "/".join(parts)


def _matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, each) or fnmatchcase(name.rpartition("/")[2], each) for each in patterns)


def _unpack(files: dict[str, Member], to: Path, params: UnarchiveParams) -> int:
    to.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.realpath(to))
    targets = {name: to / name for name in files}
    for target in targets.values():
        # A link that lies in the folder already could lead a harmless name out of it.
        if not Path(os.path.realpath(target)).is_relative_to(root):
            raise ComponentFailure("unsafe_archive", f"`{target}` leads out of `{to}` through a link", path=str(target))
        if not params.overwrite and os.path.lexists(target):
            raise ComponentFailure("file_exists", f"`{target}` exists already", path=str(target))
    written = 0
    for name, member in files.items():
        written += file_changes.replace(
            targets[name], _bounded(member.read(), params.max_bytes - written, params), overwrite=params.overwrite
        )
    return written


def _bounded(chunks: Iterable[bytes], left: int, params: UnarchiveParams) -> Iterator[bytes]:
    """The size that an archive states is only a claim."""
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise _too_large(params.max_bytes)
        yield chunk


def _too_large(limit: int) -> ComponentFailure:
    return ComponentFailure("too_large", f"more than `max_bytes` ({limit:,} bytes) would come out of the archive")
