"""Paths from parameters, and what the operating system says about them, in words an author can act on."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from penstock.tools.base import Call, ToolFailure

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//)")

_KINDS = {
    errno.ENOENT: ("not_found", "there is no `{path}`"),
    errno.ENOTDIR: ("not_found", "a part of `{path}` is a file, not a folder"),
    errno.EACCES: ("permission", "no permission for `{path}`"),
    errno.EPERM: ("permission", "no permission for `{path}`"),
    errno.EROFS: ("permission", "`{path}` is on a read-only file system"),
    errno.EEXIST: ("exists", "`{path}` exists already"),
    errno.ENOTEMPTY: ("exists", "the folder `{path}` is not empty"),
    errno.EISDIR: ("is_directory", "`{path}` is a folder"),
    errno.ENOSPC: ("disk_full", "no space is left on the disk for `{path}`"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up, no room for `{path}`"),
}
# A disk can be given room and a share can come back; none of the others mends itself.
_RETRYABLE = {"disk_full", "io"}


def os_failure(error: OSError, path: Path) -> ToolFailure:
    """The failure for an error of the operating system: not_found, permission, exists, is_directory, disk_full or io."""
    kind, words = _KINDS.get(error.errno or 0, ("io", "`{path}`: " + (error.strerror or str(error))))
    return ToolFailure(kind, words.replace("{path}", str(path)), retryable=kind in _RETRYABLE, path=str(path))


def require_regular(path: Path) -> os.stat_result:
    """What is known of a regular file. A pipe or a device could block for ever or have no end, so these are refused."""
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailure("io", f"`{path}` is not a regular file", path=str(path))
    return found


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, open for reading."""
    try:
        require_regular(path)
        return path.open("rb")
    except OSError as error:
        raise os_failure(error, path) from error


def local_path(path: str, call: Call) -> Path:
    """A path or `file://` URL from a parameter as an absolute path; relative ones start at the document's folder."""
    given = _without_scheme(path)
    if not given.strip():
        raise ToolFailure("parameters", "the path is empty")
    if "\0" in given:
        raise ToolFailure("parameters", "the path has a NUL character in it")
    try:
        return call.resolve(given)
    except RuntimeError as error:
        raise ToolFailure("not_found", f"`{path}`: there is no such home folder", path=path) from error


def _without_scheme(path: str) -> str:
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    if scheme[1].lower() != "file":
        raise ToolFailure(
            "unsupported_scheme", f"`{scheme[1]}://` is not supported here: give a local path or a `file://` URL"
        )
    url = urlsplit(path)
    if url.netloc not in ("", "localhost"):
        raise ToolFailure(
            "unsupported_scheme", f"`{path}` names the host `{url.netloc}`: write `file:///` for this machine"
        )
    return unquote(url.path)
