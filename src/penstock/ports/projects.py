"""Projects: a folder of documents with all they need, kept in the catalog as one version.

Law: a project is its files and nothing else. The same files make the same archive, byte by byte, so that its checksum names the
content, and unchanged content makes no new version. Nothing in an archive leads out of the folder it is unpacked into.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol

from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap, frozen
from penstock.ports.blobs import REF_MARK, ResultRef

KIND = "project"
MEDIA = "application/x-tar"
MOST_FILES = 5_000
LARGEST_FILE = 32 * 1024 * 1024
LARGEST = 64 * 1024 * 1024
LONGEST_NAME = 400
DOCUMENTS = (".yaml", ".yml")


class BadArchive(Refused):
    """What was sent is not an archive of a project."""


@frozen
class File:
    data: bytes
    is_executable: bool = False

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


Files = Mapping[str, File]
"""Path within the project, with forward slashes -> content."""


class ProjectFolders(Protocol):
    """The files of projects on this machine."""

    def folder(self, archive: ResultRef) -> Path:
        """A folder with the files of an archive, as they were stored. Unavailable if the archive cannot be read."""
        ...


def packed(files: Files) -> bytes:
    """The archive: a tar without timestamps and owners, in a fixed order."""
    check(files)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(path)
            entry.size = len(files[path].data)
            entry.mode = 0o755 if files[path].is_executable else 0o644
            archive.addfile(entry, io.BytesIO(files[path].data))
    return made.getvalue()


def unpacked(archive: bytes) -> dict[str, File]:
    """The files of an archive. BadArchive for anything other than plain files with safe names."""
    found: dict[str, File] = {}
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as entries:
            for entry in entries:
                if not entry.isreg() or entry.issparse():
                    raise BadArchive(
                        f"`{entry.name}` is not a plain file", "a project has files, and no links or devices"
                    )
                total += entry.size
                if len(found) >= MOST_FILES or entry.size > LARGEST_FILE or total > LARGEST:
                    raise BadArchive(
                        f"with `{entry.name}` the project is too large: {MOST_FILES:,} files, {LARGEST:,} bytes, and "
                        f"{LARGEST_FILE:,} in each of them are allowed",
                        _SMALLER,
                    )
                stream = entries.extractfile(entry)
                assert stream is not None
                found[entry.name] = File(stream.read(), bool(entry.mode & 0o100))
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise BadArchive(
            f"this is not an archive of a project: {error}", "`penstock catalog put DIR` makes one"
        ) from error
    check(found)
    return found


def compressed(archive: bytes) -> bytes:
    return gzip.compress(archive, mtime=0)


def expanded(data: bytes) -> bytes:
    """The archive in compressed bytes, whatever size they claim to have."""
    room = LARGEST + MOST_FILES * 2048
    try:
        stream = zlib.decompressobj(wbits=31)
        archive = stream.decompress(data, room + 1)
    except zlib.error as error:
        raise BadArchive(
            f"this is not an archive of a project: {error}", "`penstock catalog put DIR` makes one"
        ) from error
    if len(archive) > room:
        raise BadArchive(f"the project has more than {LARGEST:,} bytes", _SMALLER)
    if not stream.eof:
        raise BadArchive("the archive of the project is cut off", "send it again")
    return archive


_SMALLER = "leave out what documents do not need with `.penstockignore`; keep large data where workers can read it"


def check(files: Files) -> None:
    """Refused (BadArchive) if it is too large, or a name is not valid on every machine."""
    if not files:
        raise BadArchive("there are no files in the project", "put a folder with at least one document")
    if len(files) > MOST_FILES:
        raise BadArchive(f"the project has more than {MOST_FILES:,} files", _SMALLER)
    total = 0
    for path, file in files.items():
        if not is_decent(path):
            raise BadArchive(
                f"`{path[:LONGEST_NAME]}` cannot be a file of a project",
                f"names have no `\\`, `:` or control codes in them, and up to {LONGEST_NAME} characters",
            )
        if len(file.data) > LARGEST_FILE:
            raise BadArchive(f"`{path}` has more than {LARGEST_FILE:,} bytes", _SMALLER)
        total += len(file.data)
    if total > LARGEST:
        largest = sorted(files, key=lambda path: -len(files[path].data))[:3]
        shown = ", ".join(f"`{path}` ({len(files[path].data):,})" for path in largest)
        raise BadArchive(
            f"the project has {total:,} bytes, and {LARGEST:,} are allowed; the largest: {shown}", _SMALLER
        )
    for path in files:
        if any(str(parent) in files for parent in PurePosixPath(path).parents):
            raise BadArchive(f"`{path}` lies in a file")


def is_decent(path: str) -> bool:
    parts = path.split("/")
    return (
        0 < len(path) <= LONGEST_NAME
        and path.isprintable()
        and not any(mark in path for mark in "\\:")
        and all(part not in ("", ".", "..") for part in parts)
    )


# ---- what the catalog keeps


@frozen
class Manifest:
    """What is in a version of a project, and where its archive is stored."""

    archive: ResultRef
    files: Mapping[str, JsonMap]
    """Path -> `size`, `sha256`, and `executable` if it is so."""

    @staticmethod
    def of(files: Files, archive: ResultRef) -> Manifest:
        listed: dict[str, JsonMap] = {}
        for path in sorted(files):
            listed[path] = {"size": len(files[path].data), "sha256": files[path].checksum}
            if files[path].is_executable:
                listed[path]["executable"] = True
        return Manifest(archive, listed)

    def text(self) -> str:
        return json.dumps({"archive": ref_json(self.archive), "files": dict(self.files)}, indent=1, ensure_ascii=False)

    @staticmethod
    def read(text: str) -> Manifest:
        data = json.loads(text)
        return Manifest(ResultRef.from_json(data["archive"]), data["files"])

    def document(self, path: str) -> str | None:
        """The file of a document that is named with or without its extension."""
        for name in (path, *(f"{path}{ending}" for ending in DOCUMENTS)):
            if name in self.files and name.endswith(DOCUMENTS):
                return name
        return None


def ref_json(archive: ResultRef) -> JsonMap:
    """Without the mark by which results are read in where they stand."""
    return {name: value for name, value in archive.as_json().items() if name not in (REF_MARK, "schema_hint")}
