"""The encrypted local store: secrets of this machine's user, under the state folder.

Law: the file is either the old one or the new one, whole; it opens only with its key, and any change to it by another hand is
noticed (AES-256-GCM, the header included). The key is made of the passphrase in `PENSTOCK_KEY`, or lies beside the store in a
file that only its owner can read.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import Json, JsonMap
from penstock.ports.ambient import Clock, SystemClock
from penstock.ports.state_folder import make_state_folder

PASSPHRASE = "PENSTOCK_KEY"

_VERSION = 1
_SCRYPT_N = 2**15
_SCRYPT_MEMORY = 64 * 1024 * 1024
_MAX_BYTES = 16 * 1024 * 1024
_one_at_a_time = threading.Lock()


class StoredName(NamedTuple):
    """One line of `keychain list`. `shape` is `text` or `mapping`."""

    name: str
    shape: str
    updated_at: float


class LocalStore:
    def __init__(
        self, home: Path, environ: Mapping[str, str] | None = None, clock: Clock | None = None, patience_s: float = 5.0
    ) -> None:
        """`patience_s`: how long a writer waits for another one."""
        self._home = Path(home)
        self._patience_s = patience_s
        self._environ = os.environ if environ is None else environ
        self._clock = clock or SystemClock()

    @property
    def path(self) -> Path:
        return self._home / "keychain.enc"

    @property
    def key_path(self) -> Path:
        return self._home / "keychain.key"

    def exists(self) -> bool:
        return self.path.exists()

    def get(self, name: str) -> Json:
        """The value under `name`; None when there is none, for a stored value is never null."""
        record = self._read().get(name)
        return record["value"] if isinstance(record, dict) else None

    def names(self) -> list[StoredName]:
        """In alphabetical order, without any value."""
        found = []
        for name, record in sorted(self._read().items()):
            assert isinstance(record, dict)
            shape = "mapping" if isinstance(record["value"], dict) else "text"
            found.append(StoredName(name, shape, float(str(record["updated_at"]))))
        return found

    def set(self, name: str, value: str | JsonMap) -> None:
        if not name or not name.strip():
            raise Refused("a stored secret needs a name")
        if not isinstance(value, (str, dict)) or not value:
            raise Refused(f"`{name}`: a stored secret is a text or a mapping, and not empty")
        with self._locked():
            records = self._read()
            records[name] = {"value": value, "updated_at": self._clock.now()}
            self._write(records)

    def remove(self, name: str) -> bool:
        """False when there was nothing under that name."""
        if not self.exists():
            return False
        with self._locked():
            records = self._read()
            if name not in records:
                return False
            del records[name]
            self._write(records)
            return True

    def key_is_open_to_others(self) -> bool:
        try:
            return bool(stat.S_IMODE(self.key_path.stat().st_mode) & 0o077)
        except OSError:
            return False

    def _read(self) -> JsonMap:
        try:
            with self.path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Unavailable(f"the local keychain `{self.path}` cannot be read: {error.strerror}") from error
        header, nonce, sealed = _parse(data, self.path)
        return _open(self._key(header), header, nonce, sealed, self.path)

    def _write(self, records: JsonMap) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # Slow to import: only stored secrets need it.

        header, key = self._new_key()
        nonce = secrets.token_bytes(12)
        plain = json.dumps(records).encode()
        sealed = AESGCM(key).encrypt(nonce, plain, _canonical(header))
        document = {"header": header, "nonce": _text(nonce), "sealed": _text(sealed)}
        self._put(self.path, json.dumps(document).encode())

    def _key(self, header: JsonMap) -> bytes:
        """The key the store was written with; its header says of which sort that is."""
        if header["key"] == "file":
            return self._key_from_file()
        passphrase = self._environ.get(PASSPHRASE)
        if not passphrase:
            raise Refused(
                f"the local keychain `{self.path}` is locked with a passphrase, and `{PASSPHRASE}` is not set",
                f"set `{PASSPHRASE}` to the passphrase it was made with",
            )
        return _from_passphrase(passphrase, base64.b64decode(str(header["salt"])))

    def _new_key(self) -> tuple[JsonMap, bytes]:
        """The key to write with: a passphrase that is set wins, also over a key file used so far."""
        passphrase = self._environ.get(PASSPHRASE)
        if passphrase:
            salt = secrets.token_bytes(16)
            return {"version": _VERSION, "key": "scrypt", "salt": _text(salt)}, _from_passphrase(passphrase, salt)
        if not self.key_path.exists():
            self._put(self.key_path, _text(secrets.token_bytes(32)).encode() + b"\n")
        return {"version": _VERSION, "key": "file"}, self._key_from_file()

    def _key_from_file(self) -> bytes:
        try:
            with self.key_path.open("rb") as file:
                key = base64.b64decode(file.read(200).strip(), validate=True)
        except FileNotFoundError as error:
            raise Refused(
                f"the key of the local keychain is missing: there is no file `{self.key_path}`",
                "put the key file back; without it the stored secrets cannot be read and have to be set again",
            ) from error
        except OSError as error:
            raise Unavailable(f"the key file `{self.key_path}` cannot be read: {error.strerror}") from error
        except binascii.Error as error:
            raise Refused(f"the key file `{self.key_path}` is damaged") from error
        if len(key) != 32:
            raise Refused(f"the key file `{self.key_path}` is damaged: it does not hold 32 bytes")
        return key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, in any process. A lock that is never given up is reported, not waited for."""
        try:
            make_state_folder(self._home)
            handle = os.open(self._home / "keychain.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise Unavailable(f"the folder `{self._home}` cannot be written to: {error.strerror}") from error
        try:
            until = time.monotonic() + self._patience_s
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() > until:
                        raise Unavailable(f"another process holds the local keychain in `{self._home}`") from error
                    time.sleep(0.02)
            yield
        finally:
            os.close(handle)

    def _put(self, path: Path, data: bytes) -> None:
        """Whole or not at all, durable, and readable by its owner only from the first moment on."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            handle = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(fresh, path)
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise Unavailable(f"the local keychain `{path}` cannot be written: {error.strerror}") from error


def _from_passphrase(passphrase: str, salt: bytes) -> bytes:
    # All entries of a run read the store at the same time: one makes the key, the others wait for it.
    with _one_at_a_time:
        return _derived(passphrase, salt)


@lru_cache(maxsize=4)
def _derived(passphrase: str, salt: bytes) -> bytes:
    secret = passphrase.encode("utf-8", "surrogateescape")
    return hashlib.scrypt(secret, salt=salt, n=_SCRYPT_N, r=8, p=1, maxmem=_SCRYPT_MEMORY, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _canonical(header: JsonMap) -> bytes:
    return json.dumps(header, sort_keys=True).encode()


def _parse(data: bytes, path: Path) -> tuple[JsonMap, bytes, bytes]:
    damaged = Refused(
        f"the local keychain `{path}` is damaged",
        "restore the file from a copy, or remove it and set the secrets again",
    )
    if len(data) > _MAX_BYTES:
        raise damaged
    try:
        document: Any = json.loads(data)
        header = document["header"]
        nonce, sealed = base64.b64decode(document["nonce"]), base64.b64decode(document["sealed"])
        version, key = header["version"], header["key"]
        if key == "scrypt":
            base64.b64decode(header["salt"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged from error
    if version != _VERSION:
        raise Refused(f"the local keychain `{path}` has version `{version}`; this program reads version `{_VERSION}`")
    if key not in ("scrypt", "file") or len(nonce) != 12:
        raise damaged
    return header, nonce, sealed


def _open(key: bytes, header: JsonMap, nonce: bytes, sealed: bytes, path: Path) -> JsonMap:
    from cryptography.exceptions import InvalidTag  # Slow to import: only stored secrets need it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        plain = AESGCM(key).decrypt(nonce, sealed, _canonical(header))
    except InvalidTag as error:
        sort = f"the passphrase in `{PASSPHRASE}`" if header["key"] == "scrypt" else "the key file"
        raise Refused(
            f"the local keychain `{path}` cannot be opened: {sort} is not the one it was made with, or the file was changed",
            "use the key it was made with, or remove the file and set the secrets again",
        ) from error
    records: JsonMap = json.loads(plain)
    return records
