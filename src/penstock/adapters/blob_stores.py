"""Which result store a setting means, and opening it; a package that a store needs is loaded when one is opened.

    file:FOLDER, file:///FOLDER, FOLDER      files in a folder of this machine or a shared one
    postgresql://USER@HOST/DATABASE          PostgreSQL
    nats://HOST:4222/BUCKET                  a NATS JetStream object store; several servers with commas
    s3://BUCKET/PREFIX?endpoint=…&region=…   object storage; also gs://, az://
    memory:                                  nothing outlives the process

Copies of remote results are kept in `cache/results` in the state folder.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import KEY, KeptBlobs, Missing, ResultRef, checksum_of, key_of

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
            # Only a fleet needs psycopg: it takes long to import.
            from penstock.adapters.postgres.blobs import PostgresBlobs
        return PostgresBlobs(spec, cache)
    if scheme in NATS:
        return _nats(spec, cache)
    if scheme in OBJECTS:
        return _objects(spec, cache)
    if scheme == "memory":
        return MemoryBlobs()
    raise Refused(f"`{scheme}:` is not a kind of result store", FORMS)


def _files(place: str, home: Path) -> KeptBlobs:
    is_url = place.startswith("//")
    path = unquote(place.removeprefix("//")) if is_url else place
    if is_url and not path.startswith("/"):
        raise Refused(f"`file:{place}` names a machine", "write `file:///FOLDER` with three slashes, or `file:FOLDER`")
    return FileBlobs(Path(path).expanduser().absolute() if path else home)


def _nats(spec: str, cache: Path) -> KeptBlobs:
    with _needing("nats", "nats", "penstock[nats]"):
        # NATS is an optional dependency.
        from penstock.adapters.nats.blobs import BUCKET, NatsBlobs
    servers, bucket = spec, BUCKET
    first, slash, last = spec.rpartition("/")
    if slash and not first.endswith("/"):
        servers, bucket = first, last or BUCKET
    return NatsBlobs(servers, bucket, cache)


def _objects(spec: str, cache: Path) -> KeptBlobs:
    with _needing("obstore", spec.partition(":")[0], "penstock[objects]"):
        # Object stores are an optional dependency.
        from penstock.adapters.objects import ObjectBlobs
    place, _, query = spec.partition("?")
    options: dict[str, Any] = {name: SWITCHES.get(value, value) for name, value in parse_qsl(query)}
    return ObjectBlobs(place, cache, **options)


@contextmanager
def _needing(package: str, scheme: str, install: str) -> Iterator[None]:
    """An installed package that lacks a dependency reports its own error."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise Refused(
            f"a result store at `{scheme}:` needs the package `{package}`, which is not installed",
            f"install it with `pip install '{install}'`",
        ) from error


# ---- Removing results that nothing refers to any more: mark what the log and the results themselves mention, sweep the
# rest.
# Law: a result stays if anything that survives mentions its key, in whatever shape: as a reference, as the rows of a
# component, in a text. Results that can hold references (JSON) are looked into, and so are those of which a mention does not
# say what they hold. Nothing is removed unless everything could be looked at, and what was put within the grace stays in any
# case: between a result and the entry that refers to it lies the rest of its task. So the grace has to be longer than the
# longest task.
# A store belongs to one log. What another log refers to is not known here, and would be removed.

JSON = b"application/json"
# Kinds of store that a fleet can have in common; a word that names none of them is somebody's text.
KINDS = frozenset({"file", "postgres", "nats", "object"})
# Put by every sweep in order to read the store's clock from it.
PROBE = b"penstock: a sweep looked at the clock of this store"
SHORTEST_GRACE = 60.0
MARKS_A_TURN = 500

# A reference as it is written (`ResultRef.as_json`), with `$ref` or without, is its key with these around it. In any other
# order or shape it is a key and nothing more.
MENTION = re.compile(KEY.pattern.encode())
BEFORE = re.compile(rb'"store"\s*:\s*"([^"]{1,100})"\s*,\s*"key"\s*:\s*"$')
AFTER = re.compile(rb'"\s*,\s*"size"\s*:\s*\d+\s*,\s*"checksum"\s*:\s*"[0-9a-f]*"\s*,\s*"media"\s*:\s*"([^"]{1,500})"')
BEFORE_BYTES = 200
# Writers of JSON may escape slashes, and any character by its number; in a text inside JSON quotes are escaped, too.
ESCAPED = re.compile(rb'\\{1,8}(?:(["/])|u00([2-7][0-9a-fA-F]))')
# No mention is longer than the first. Escaped it is at most thirteen times as long, and that much is kept from each piece, so
# that a mention which two pieces cut in half is whole in the second look.
LONGEST = 2_048
KEPT = 16 * LONGEST


class Swept(NamedTuple):
    deleted: int
    kept: int


class Mention(NamedTuple):
    """`store` and `holds_json` are None if the mention does not tell."""

    checksum: bytes
    store: str | None
    holds_json: bool | None


def sweep(blobs: KeptBlobs, referred: Iterable[bytes], grace_s: float, now: float | None = None) -> Swept:
    """Remove every result of `blobs` that is older than the grace and that nothing mentions.

    `referred` gives everything that survives and can mention results: the payloads of all entries of all executions, their
    documents, their requests. It is read once, after the moment has been set from which the grace is counted: `now`, or else
    what the store's own clock says.
    """
    if grace_s < SHORTEST_GRACE:
        raise Refused(f"a grace of {grace_s:g} s is too short", f"give at least {SHORTEST_GRACE:g} s, better a day")
    cutoff = (_clock(blobs) if now is None else now) - grace_s
    with closing(Marks()) as marks:
        _mark(blobs, referred, marks)
        return _remove_unmarked(blobs, marks, cutoff)


class Unmarked(NamedTuple):
    results: int
    size: int


def would_sweep(blobs: KeptBlobs, referred: Iterable[bytes], older_than: float) -> Unmarked:
    """What a sweep would remove if nothing but `referred` survived; nothing is touched."""
    results = size = 0
    last = ""
    with closing(Marks()) as marks:
        _mark(blobs, referred, marks)
        for key, _ in blobs.keys(older_than):
            if key != last and not marks.has(key) and (found := blobs.size(key)) is not None:
                results, size = results + 1, size + found
            last = key  # A store may give a key more than once, one time after the other.
    return Unmarked(results, size)


def _mark(blobs: KeptBlobs, referred: Iterable[bytes], marks: Marks) -> None:
    for payload in referred:
        marks.add(mentions([payload]))
    for mention in marks.pending():
        marks.add(mentions(_inside(blobs, mention)))


def mentions(pieces: Iterable[bytes]) -> Iterator[Mention]:
    """Every mention of a result in bytes that come in pieces, some of them twice."""
    rest = b""
    for piece, is_last in _with_end(pieces):
        raw = rest + piece
        window = _unescaped(raw)
        end = len(window) if is_last else len(window) - LONGEST
        for match in MENTION.finditer(window):
            if match.start() < end:
                yield _mention(window, match)
        rest = raw[-KEPT:]


def _mention(window: bytes, match: re.Match[bytes]) -> Mention:
    before = BEFORE.search(window[max(0, match.start() - BEFORE_BYTES) : match.start()])
    after = AFTER.match(window, match.end())
    return Mention(
        bytes.fromhex(checksum_of(match[0].decode())),
        before[1].decode("utf-8", "replace") if before else None,
        after[1] == JSON if after else None,
    )


class Marks:
    """What is to stay, in a private database that spills to disk: memory stays constant."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE mark (checksum BLOB, store TEXT, look INTEGER, PRIMARY KEY (checksum, store)) WITHOUT ROWID"
        )
        self._database.execute("CREATE INDEX to_look_into ON mark (look) WHERE look = 1")
        self._database.execute("BEGIN")

    def add(self, found: Iterable[Mention]) -> None:
        """`look` is 1 for what is still to be scanned, 0 for a leaf, which may turn out not to be one, and NULL for what was
        scanned."""
        self._database.executemany(
            "INSERT INTO mark VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET look = 1 WHERE look = 0 AND excluded.look = 1",
            ((one.checksum, one.store or "", int(one.holds_json is not False)) for one in found),
        )

    def pending(self) -> Iterator[Mention]:
        """What is still to be scanned, including what is added meanwhile; each once."""
        take = (
            "UPDATE mark SET look = NULL WHERE (checksum, store) IN "
            "(SELECT checksum, store FROM mark WHERE look = 1 LIMIT ?) RETURNING checksum, store"
        )
        while page := self._database.execute(take, (MARKS_A_TURN,)).fetchall():
            for checksum, store in page:
                yield Mention(checksum, store or None, None)

    def has(self, key: str) -> bool:
        checksum = bytes.fromhex(checksum_of(key))
        return self._database.execute("SELECT 1 FROM mark WHERE checksum = ?", (checksum,)).fetchone() is not None

    def close(self) -> None:
        self._database.close()


def _inside(blobs: KeptBlobs, mention: Mention) -> Iterator[bytes]:
    """The bytes of a result. A missing one refers to nothing; one in a store that is not open might, and stops the sweep."""
    key = key_of(mention.checksum.hex())
    if mention.store in KINDS.difference(blobs.stores):
        raise Refused(
            f"the results cannot be swept: `{key}` lies in a {mention.store} store, and none is open here",
            "open the store it was written to as well: what it holds may refer to results in this one",
        )
    for store in blobs.stores if mention.store is None else (mention.store,):
        try:
            if store in blobs.stores:
                yield from blobs.read(ResultRef(store, key, 0, ""))
                return
        except Missing:
            continue
        except Unavailable as error:
            raise Unavailable(
                f"the results cannot be swept, because one of them cannot be read: {error.message}",
                "put it back from a backup, or delete it together with the runs that refer to it",
            ) from error


def _remove_unmarked(blobs: KeptBlobs, marks: Marks, cutoff: float) -> Swept:
    deleted = kept = 0
    for key, seen in blobs.keys(cutoff):
        if not marks.has(key) and blobs.discard(key, seen):
            deleted += 1
        else:
            kept += 1
    blobs.tidy(cutoff)
    return Swept(deleted, kept)


def _clock(blobs: KeptBlobs) -> float:
    """Clocks of machines differ: the age of a result is measured by the clock of the store."""
    seen = blobs.seen(blobs.put([PROBE], "text/plain").key)
    if seen is None:
        raise Unavailable("the result store has lost what was put a moment ago", "see what is wrong with it first")
    return seen


def _unescaped(data: bytes) -> bytes:
    if b"\\" not in data:
        return data
    return ESCAPED.sub(lambda match: match[1] or bytes.fromhex(match[2].decode()), data)


def _with_end(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each piece, and an empty one that is the last."""
    return chain(((piece, False) for piece in pieces), [(b"", True)])
