"""The objects below a URL of an object store, in the order of their keys."""

from __future__ import annotations

import heapq
import json
import re
from datetime import timedelta
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlsplit

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.ports.meanings import OBJECT_STORES
from penstock.tools.addresses import Addresses
from penstock.tools.base import Call, ToolFailure
from penstock.tools.network import address_refused
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about

AT_ONCE = 1_000
"""So many keys are listed with one question to the store."""
MOST_HELD = 100_000
CLIENT = {"connect_timeout": "10s", "timeout": "60s"}
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
])  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9-]+")


class ObjectPagesParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, about("Where the objects are: `s3://BUCKET/PREFIX`, `gs://…`, `az://…`, or `file:///FOLDER`.")]
    pattern: Annotated[str, about("Which keys, as they are below the URL: `*.csv`; `*` stands for `/` too.")] = "*"
    auth: Annotated[
        str | dict[str, Any] | None,
        about(
            "A keychain entry with what the store wants: `access_key_id` and `secret_access_key`, `region`, "
            "`endpoint` and so on. Without it the environment and the machine are asked (`AWS_…`, `GOOGLE_…`, `AZURE_…`)."
        ),
    ] = None
    options: Annotated[
        dict[str, str | bool], about("More of these, such as `endpoint`, `region` or `allow_http`.")
    ] = {}


class ObjectPages(Reader[ObjectPagesParams]):
    """The objects below a URL of an object store: `{key, name, size, modified, url}`, sorted by key.

    `key` is the path below the URL, `name` its last part. Folders below are looked into. `iter.iter_key` is the key. An object
    that is removed after its page was read is still an element.
    """

    kind: ClassVar[str] = "objects"

    def __init__(self, params: ObjectPagesParams, call: Call) -> None:
        super().__init__(params, call)
        self._store: Any = _opened(params, call)

    async def page(self, token: Json, most: int, until: Json = None) -> Page:
        """A token is the last key that was listed, whether it fits the pattern or not."""
        from obstore.exceptions import BaseError  # An optional dependency.

        most = max(most, AT_ONCE)
        try:
            found = await self._listed(cast("str | None", token), cast("str | None", until), most + 1)
        except (BaseError, OSError) as error:
            raise _failure(error, self.params.url) from error
        part = found[:most]
        items = [self._item(one) for one in part if fnmatchcase(one["path"], self.params.pattern)]
        following: Json = part[-1]["path"] if part else token
        is_end = len(found) <= most
        if not items and not is_end:  # None of so many fits: the next ones may.
            return await self.page(following, most, until)
        return Page(items, following, is_end, [str(item["key"]) for item in items])

    async def _listed(self, after: str | None, until: str | None, most: int) -> list[Any]:
        import obstore  # An optional dependency.
        from obstore.store import LocalStore

        found: list[Any] = []
        is_sorted = not isinstance(self._store, LocalStore)
        async for chunk in obstore.list(self._store, offset=after, chunk_size=AT_ONCE):
            for one in chunk:
                if (until is None or one["path"] <= until) and (after is None or one["path"] > after):
                    is_sorted = is_sorted and (not found or found[-1]["path"] < one["path"])
                    found.append(one)
                elif is_sorted:
                    return found
            # Of a store that lists in the order of keys, no more than is wanted has to be listed.
            if is_sorted and len(found) >= most:
                return found[:most]
            if not is_sorted and len(found) > 2 * max(most, MOST_HELD):
                found = heapq.nsmallest(most, found, key=_key)
        return heapq.nsmallest(most, found, key=_key)

    def _item(self, meta: Any) -> JsonMap:
        key = str(meta["path"])
        return {
            "key": key,
            "name": key.rpartition("/")[2],
            "size": meta["size"],
            "modified": meta["last_modified"].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "url": f"{self.params.url.rstrip('/')}/{key}",
        }


def _key(meta: Any) -> str:
    return str(meta["path"])


def _opened(params: ObjectPagesParams, call: Call) -> Any:
    if find_spec("obstore") is None:
        raise ToolFailure(
            "missing_package",
            "a loop over `objects` needs the package `obstore`, which is not installed; "
            "hint: install it with `pip install 'penstock[objects]'`",
        )
    from obstore.exceptions import BaseError  # An optional dependency.
    from obstore.store import from_url

    scheme = urlsplit(params.url).scheme
    if scheme not in OBJECT_STORES:
        raise ToolFailure("parameters", f"`{params.url}` is not the URL of an object store; hint: `s3://BUCKET/PREFIX`")
    options = {**_credential(params, call), **params.options}
    _refuse_endpoints(options, call)
    client = CLIENT | {name: value for name, value in options.items() if name in CLIENT_OPTIONS}
    config = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    try:
        if scheme in ("file", "memory"):
            return from_url(params.url)
        return from_url(params.url, config=config, client_options=client, retry_config=RETRY)  # type: ignore[call-overload]
    except (BaseError, ValueError, OSError) as error:
        raise ToolFailure("parameters", f"`{params.url}` cannot be opened: {_message(error)}") from error


def _credential(params: ObjectPagesParams, call: Call) -> dict[str, str | bool]:
    if params.auth is None:
        return {}
    entry = call.credential(params.auth) if isinstance(params.auth, str) else params.auth
    return {
        name: value if isinstance(value, bool) else str(value) for name, value in entry.items() if value is not None
    }


def _refuse_endpoints(options: dict[str, str | bool], call: Call) -> None:
    """The library opens its own sockets and follows redirects, so an address that an author names cannot be judged where they are
    opened: it must be one that the operator opened. Other options must not be able to name one."""
    allowed = call.settings.addresses
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
    "NotFoundError": ("not_found", False),
    "FileNotFoundError": ("not_found", False),
    "PermissionDeniedError": ("permission", False),
    "UnauthenticatedError": ("permission", False),
    "UnknownConfigurationKeyError": ("parameters", False),
    "InvalidPathError": ("parameters", False),
}


def _failure(error: Exception, url: str) -> ToolFailure:
    kind, retryable = _KINDS.get(type(error).__name__, ("connect", True))
    return ToolFailure(kind, f"`{url}` cannot be listed: {_message(error)}", retryable=retryable)


def _message(error: Exception) -> str:
    """Without the library's own view of itself, which comes after an empty line."""
    return " ".join(str(error).partition("\n\nDebug source")[0].split())
