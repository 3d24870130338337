"""Which result store a setting means, and opening it; a package that a store needs is loaded when one is opened.

    file:FOLDER, file:///FOLDER, FOLDER      files in a folder of this machine or a shared one
    postgresql://USER@HOST/DATABASE          PostgreSQL
    nats://HOST:4222/BUCKET                  a NATS JetStream object store; several servers with commas
    s3://BUCKET/PREFIX?endpoint=…&region=…   object storage; also gs://, az://
    memory:                                  nothing outlives the process

Copies of what lies far away are kept in `cache/results` in the state folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from penstock.kernel.errors import Refused
from penstock.ports.blobs import KeptBlobs

CACHE = Path("cache") / "results"
POSTGRES = ("postgres", "postgresql")
NATS = ("nats", "tls", "ws", "wss")
OBJECTS = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
FORMS = "write `file:FOLDER`, `postgresql://…`, `nats://HOST/BUCKET`, `s3://BUCKET/PREFIX`, `gs://…` or `az://…`"
SWITCHES = {"true": True, "false": False}


def open_blobs(spec: str, home: Path) -> KeptBlobs:
    """The store that `spec` names; Refused when it names none, or one whose package is not installed."""
    scheme, colon, rest = spec.partition(":")
    if not colon or scheme == "file":
        return _files(rest if colon else spec, home)
    cache = home / CACHE
    if scheme in POSTGRES:
        with _needing("psycopg", scheme, "psycopg[binary]"):
            from penstock.adapters.postgres.blobs import PostgresBlobs
        return PostgresBlobs(spec, cache)
    if scheme in NATS:
        return _nats(spec, cache)
    if scheme in OBJECTS:
        return _objects(spec, cache)
    if scheme == "memory":
        from penstock.adapters.memory.blobs import MemoryBlobs

        return MemoryBlobs()
    raise Refused(f"`{scheme}:` is not a kind of result store", FORMS)


def _files(place: str, home: Path) -> KeptBlobs:
    from penstock.adapters.files.blobs import FileBlobs

    is_url = place.startswith("//")
    path = unquote(place.removeprefix("//")) if is_url else place
    if is_url and not path.startswith("/"):
        raise Refused(f"`file:{place}` names a machine", "write `file:///FOLDER` with three slashes, or `file:FOLDER`")
    return FileBlobs(Path(path).expanduser().absolute() if path else home)


def _nats(spec: str, cache: Path) -> KeptBlobs:
    with _needing("nats", "nats", "penstock[nats]"):
        from penstock.adapters.nats.blobs import BUCKET, NatsBlobs
    servers, bucket = spec, BUCKET
    first, slash, last = spec.rpartition("/")
    if slash and not first.endswith("/"):
        servers, bucket = first, last or BUCKET
    return NatsBlobs(servers, bucket, cache)


def _objects(spec: str, cache: Path) -> KeptBlobs:
    with _needing("obstore", spec.partition(":")[0], "penstock[objects]"):
        from penstock.adapters.objects.blobs import ObjectBlobs
    place, _, query = spec.partition("?")
    options: dict[str, Any] = {name: SWITCHES.get(value, value) for name, value in parse_qsl(query)}
    return ObjectBlobs(place, cache, **options)


@contextmanager
def _needing(package: str, scheme: str, install: str) -> Iterator[None]:
    """A package that is there and lacks another one tells its own story."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise Refused(
            f"a result store at `{scheme}:` needs the package `{package}`, which is not installed",
            f"install it with `pip install '{install}'`",
        ) from error
