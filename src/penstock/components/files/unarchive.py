"""`file_unarchive`: one archive, unpacked.

Law: nothing is ever written outside the folder `to`, whatever the archive calls its members, and nothing is written at all before
every name in it has been looked at. Links and devices in an archive are not made.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, ComponentFailure
from penstock.components.files.archive import Format, GivenFormat, format_of
from penstock.components.files.changes import Overwrite, not_there
from penstock.components.files.listing import listed
from penstock.components.flow.tool_calls import file_failures, place_of
from penstock.kernel.values import Json, JsonMap
from penstock.ports.meanings import READS_FILE
from penstock.tools import file_changes
from penstock.tools.paths import open_regular

MAX_MEMBERS = 1_000_000
_DRIVE = re.compile(r"[A-Za-z]:")


class UnarchiveParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The archive.", extra_json_schema=READS_FILE)]
    to: Annotated[str, Meta(description="The folder to unpack into; it is made when it is not there.")]
    pattern: Annotated[
        str | list[str] | None, Meta(description="Which members: their names or paths in the archive; all if left out.")
    ] = None
    format: GivenFormat = "auto"
    overwrite: Overwrite = True
    password: Annotated[str | None, Meta(description="Of an encrypted zip (the old kind of encryption).")] = None
    max_bytes: Annotated[
        int, Meta(gt=0, description="The most that may come out of it, in bytes (10 GiB); a bomb is stopped there.")
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
    Params = UnarchiveParams
    example: ClassVar[str] = """\
components:
  - name: drop
    type: shell
    params: {command: "mkdir -p packed && echo 1 > packed/a.csv && tar czf packed.tar.gz packed"}
  - name: unpack
    type: file_unarchive
    params: {path: packed.tar.gz, to: unpacked, pattern: "*.csv"}
connections:
  control: drop (ok) unpack
"""

    def run(self, params: UnarchiveParams, call: Call) -> JsonMap:
        path, to = place_of(params.path, call), place_of(params.to, call)
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
def _zip(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    secret = None if password is None else password.encode()
    with zipfile.ZipFile(path) as archive:

        def member(info: zipfile.ZipInfo) -> Member:
            mode = info.external_attr >> 16
            plain = stat.S_IFMT(mode) in (0, stat.S_IFREG)
            return Member(info.filename, info.file_size, plain, lambda: _chunks(lambda: archive.open(info, pwd=secret)))

        yield [member(info) for info in archive.infolist() if not info.is_dir()]


@contextmanager
def _tar(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    with tarfile.open(path) as archive:

        def member(info: tarfile.TarInfo) -> Member:
            return Member(info.name, info.size, info.isreg(), lambda: _chunks(lambda: archive.extractfile(info)))

        yield [member(info) for info in archive if not info.isdir()]


@contextmanager
def _gz(path: Path, password: str | None) -> Iterator[Iterable[Member]]:
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name + ".unpacked"
    yield [Member(name, 0, True, lambda: _chunks(lambda: gzip.GzipFile(path)))]


_OPENERS: dict[Format, Callable[[Path, str | None], Any]] = {
    "zip": _zip,
    "tar": _tar,
    "tar.gz": _tar,
    "tar.bz2": _tar,
    "tar.xz": _tar,
    "gz": _gz,
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
