"""The objects below a URL of an object store, in the order of their keys."""

from __future__ import annotations

import heapq
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import urlsplit

import msgspec

from penstock.kernel.values import Json, JsonMap
from penstock.ports.collections import Page
from penstock.ports.meanings import OBJECT_STORES
from penstock.tools.base import Call, ToolFailure
from penstock.tools.pages.base import Reader
from penstock.tools.parameters import about
from penstock.tools.places.objects import open_store, store_failure

AT_ONCE = 1_000
"""So many keys are listed with one question to the store."""
MOST_HELD = 100_000


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
            raise store_failure(error, self.params.url) from error
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
    if urlsplit(params.url).scheme not in (*OBJECT_STORES, "file", "memory"):
        raise ToolFailure("parameters", f"`{params.url}` is not the URL of an object store; hint: `s3://BUCKET/PREFIX`")
    entry = call.credential(params.auth) if isinstance(params.auth, str) else params.auth or {}
    return open_store(params.url, {**entry, **params.options}, call.settings.addresses)
