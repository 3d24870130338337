"""Object stores, through obstore: S3 and compatible services, Google Cloud Storage, Azure.

Law: the library opens its own sockets and follows redirects, so an address that an author names cannot be judged where they are
opened: it must be one that the operator opened. No other option can name one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from penstock.tools.addresses import Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.network import address_refused
from penstock.tools.places.base import CHUNK, Credential, Entry, Location, Place, fields

PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4
# A file may be large and the connection slow: the time without data is limited, and the total time generously.
CLIENT = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "1h"}
RETRY = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
CLIENT_OPTIONS = ("allow_http", "allow_invalid_certificates", "proxy_url", "root_certificate", "timeout")
# What can be said to a store without naming a host: parts of the path or the signature of a request, and words of its URL.
SECRET_OPTIONS = frozenset([
    "access_key_id", "secret_access_key", "session_token", "token", "access_key", "account_key", "sas_key",
    "sas_token", "client_secret", "bearer_token", "root_certificate",
])  # fmt: skip
WORD_OPTIONS = frozenset([
    "region", "default_region", "skip_signature", "request_payer", "allow_http", "allow_invalid_certificates",
    "timeout", "account_name", "client_id", "tenant_id", "unsigned_payload", "checksum_algorithm",
    "virtual_hosted_style_request",
])  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9-]+")
INSTALL = "hint: `pip install 'penstock[objects]'`"


def open_store(url: str, credential: Credential, allowed: Addresses) -> Any:
    """The store behind a URL, with the fields of a keychain entry as options. Nothing is asked of it yet."""
    if find_spec("obstore") is None:
        raise ToolFailure("missing_package", f"`{url}` needs the package `obstore`, which is not installed; {INSTALL}")
    from obstore.exceptions import BaseError  # An optional dependency.
    from obstore.store import from_url

    options = store_options(credential, allowed)
    client = CLIENT | {name: value for name, value in options.items() if name in CLIENT_OPTIONS}
    config = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    try:
        if urlsplit(url).scheme in ("file", "memory"):
            return from_url(url)
        return from_url(url, config=config, client_options=client, retry_config=RETRY)  # type: ignore[call-overload]
    except (BaseError, ValueError, OSError) as error:
        raise ToolFailure("parameters", f"`{url}` cannot be opened: {message_of(error)}") from error


def store_options(credential: Credential, allowed: Addresses) -> dict[str, str | bool]:
    """The fields of a keychain entry as options of the library. Raises ToolFailure for one that names an unopened address."""
    given = {name: value for name, value in fields(credential).items() if value is not None}
    options = {name: value if isinstance(value, bool) else _text(value) for name, value in given.items()}
    _refuse_endpoints(options, allowed)
    if str(options.get("endpoint", options.get("endpoint_url", ""))).startswith("http://"):
        options.setdefault("allow_http", True)
    return options


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _refuse_endpoints(options: Mapping[str, str | bool], allowed: Addresses) -> None:
    if allowed.is_open:
        return
    for name, value in options.items():
        plain = (
            name.lower().removeprefix("aws_").removeprefix("azure_").removeprefix("google_").removeprefix("storage_")
        )
        if _is_plain(plain, value) or (plain in ("endpoint", "endpoint_url") and _is_opened(str(value), allowed)):
            continue
        raise address_refused(f"`{name}` could lead the object store's client to an address that is not judged")


def _is_plain(name: str, value: str | bool) -> bool:
    if name == "service_account_key":
        try:
            key = json.loads(str(value))
        except (ValueError, RecursionError):
            return False
        return isinstance(key, dict) and not {"gcs_base_url", "token_uri"} & {
            field for field, text in key.items() if not str(text).startswith("https://oauth2.googleapis.com/")
        }
    return name in SECRET_OPTIONS or (name in WORD_OPTIONS and bool(_WORD.fullmatch(str(value))))


def _is_opened(url: str, allowed: Addresses) -> bool:
    try:
        return allowed.opens(urlsplit(url).hostname or "")
    except ValueError:
        return False


_KINDS = {
    "NotFoundError": "not_found",
    "FileNotFoundError": "not_found",
    "AlreadyExistsError": "exists",
    "PermissionDeniedError": "permission",
    "UnauthenticatedError": "permission",
    "UnknownConfigurationKeyError": "parameters",
    "InvalidPathError": "parameters",
    "NotSupportedError": "unsupported",
}
# The service of a cloud's machines that gives out their credentials: asked when there are no others.
_OF_THE_MACHINE = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")


def store_failure(error: Exception, url: str) -> ToolFailure:
    """What an object store or its client says, as one sentence and a kind that a policy can test for."""
    words = message_of(error)
    bucket = "/".join(url.split("/")[:3])
    if any(host in words for host in _OF_THE_MACHINE) or "MissingCredentials" in words:
        hint = "hint: name a keychain entry in `credentials`, with `access_key_id` and `secret_access_key`, for example"
        return ToolFailure("credential", f"there are no credentials for `{bucket}`; {hint}", path=url)
    if "NoSuchBucket" in words or "ContainerNotFound" in words:
        return ToolFailure(
            "not_found",
            f"there is no bucket `{bucket}`; hint: see its name, region and endpoint",
            path=url,
            bucket=bucket,
        )
    if isinstance(error, (PermissionError,)) or _KINDS.get(type(error).__name__) == "permission" or " 403 " in words:
        hint = "hint: see the keys in the keychain entry, and what they allow"
        return ToolFailure("permission", f"no permission for `{url}`{_reason(words)}; {hint}", path=url)
    if (kind := _KINDS.get(type(error).__name__)) is not None:
        said = {"not_found": f"there is no file `{url}`", "exists": f"`{url}` exists already"}
        return ToolFailure(kind, said.get(kind, f"`{url}`: {words}"), path=url)
    if type(error).__name__ == "PreconditionError":
        return ToolFailure("changed", f"`{url}` changed while it was read", retryable=True, path=url)
    if "dns error" in words or "lookup address" in words:
        hint = "hint: see the endpoint and the region"
        return ToolFailure("dns", f"the host of `{bucket}` cannot be resolved; {hint}", path=url)
    return ToolFailure("connection", f"`{url}`: {_last_words(words)}", retryable=True, path=url)


def message_of(error: Exception) -> str:
    """Without the library's own view of itself, which comes after an empty line."""
    return " ".join(str(error).partition("\n\nDebug source")[0].split())


def _reason(words: str) -> str:
    found = re.search(r"<Code>(\w+)</Code>", words)
    return f" ({found[1]})" if found else ""


def _last_words(words: str) -> str:
    return words if len(words) <= 300 else f"{words[:300]}…"


class ObjectPlace(Place):
    def __init__(self, location: Location, credential: Credential, allowed: Addresses) -> None:
        super().__init__(location)
        # An extra, and 36 ms to load: only for those who have files in such a place.
        import obstore
        import obstore.exceptions

        self._obstore = obstore
        self._store: Any = open_store(location.root, credential, allowed)

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise store_failure(error, self.location.url(path)) from error

    def look(self, path: str) -> Entry | None:
        key = path.strip("/")
        if not key or path.endswith("/"):
            return self._folder(key)  # A store knows nothing of a folder but its files.
        try:
            with self._failures(path):
                return _entry(self._obstore.head(self._store, key))
        except ToolFailure as failure:
            if failure.kind != "not_found" or "bucket" in failure.detail:
                raise
        return self._folder(key)

    def _folder(self, key: str) -> Entry | None:
        with self._failures(key):
            for page in self._obstore.list(self._store, f"{key}/" if key else None, chunk_size=1):
                for _ in page:
                    return Entry(key, key.rpartition("/")[2], is_folder=True)
        return None

    def entries(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        prefix = folder.strip("/")
        start = len(prefix) + 1 if prefix else 0
        with self._failures(folder):
            if not recursive:
                found: Any = self._obstore.list_with_delimiter(self._store, prefix or None)
                pages: Iterable[Any] = [found["objects"]]
                for each in found["common_prefixes"]:
                    yield Entry(each, each[start:], is_folder=True)
            else:
                pages = self._obstore.list(self._store, prefix or None)
            seen: set[str] = set()
            for page in pages:
                for meta in page:
                    relative = meta["path"][start:]
                    for end in (at for at, mark in enumerate(relative) if mark == "/"):
                        if relative[:end] not in seen:
                            seen.add(relative[:end])
                            yield Entry(meta["path"][: start + end], relative[:end], is_folder=True)
                    if relative:
                        yield _entry(meta, relative)

    def read(self, entry: Entry, start: int = 0) -> Iterator[bytes]:
        if entry.size is not None and start >= entry.size:
            return
        options: Any = {"if_match": entry.version} if entry.version else {}
        if start:
            options["range"] = {"offset": start}
        with self._failures(entry.path):
            for chunk in self._obstore.get(self._store, entry.path, options=options).stream(min_chunk_size=CHUNK):
                yield bytes(chunk)

    def part(self, entry: Entry, start: int, length: int) -> bytes:
        end = start + length if entry.size is None else min(start + length, entry.size)
        if end <= start:
            return b""
        options: Any = {"range": (start, end), **({"if_match": entry.version} if entry.version else {})}
        with self._failures(entry.path):
            return bytes(self._obstore.get(self._store, entry.path, options=options).bytes())

    def write(self, path: str, chunks: Iterable[bytes], *, overwrite: bool = True) -> int:
        counted = _Counted(chunks)
        if not overwrite and self.look(path) is not None:
            url = self.location.url(path)
            raise ToolFailure("exists", f"`{url}` exists already", path=url)
        with self._failures(path):
            first = counted.first(PART_BYTES)
            if len(first) < PART_BYTES:
                self._obstore.put(self._store, path, first, use_multipart=False)
            else:
                # What is not completed is never seen: it is aborted here, or by the bucket's own rules after a crash.
                self._obstore.put(
                    self._store, path, chain([first], counted), chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
                )
        return counted.size

    def delete(self, path: str) -> None:
        with self._failures(path):
            self._obstore.delete(self._store, path)

    def copy(self, entry: Entry, to: str) -> None:
        with self._failures(entry.path):
            self._obstore.copy(self._store, entry.path, to)


class _Counted:
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.size = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        self.size += len(chunk)
        return chunk

    def first(self, least: int) -> bytes:
        found: list[bytes] = []
        while self.size < least:
            try:
                found.append(next(self))
            except StopIteration:
                break
        return b"".join(found)


def _entry(meta: Any, relative: str | None = None) -> Entry:
    path = str(meta["path"])
    modified = meta["last_modified"].replace(tzinfo=None)
    return Entry(path, relative or path.rpartition("/")[2], meta["size"], modified, version=meta["e_tag"])
