"""Where entries are resolved: the document's folder, the state folder, the environment, the time. Nothing else is consulted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.keychain.errors import NotAsked, Unresolved
from penstock.keychain.redaction import Redaction
from penstock.keychain.store import PASSPHRASE
from penstock.ports.ambient import Clock
from penstock.tools.addresses import OPEN, Addresses

# An entry named `key` must not be given the passphrase of the local store.
NOT_FOR_ENTRIES = frozenset({PASSPHRASE, "PENSTOCK_HOME"})
# Nor may a name that came with data, such as a payload, choose a setting of Penstock itself.
_SETTINGS = (
    "ALLOW_ADDRESS", "ALLOW_HOST", "BASE", "DATABASE", "DEBUG", "DISPATCH", "POOL", "REPLY_FD", "RESULTS", "SECRET_KEY",
    "SERVER", "SLOTS", "TOKEN",
)  # fmt: skip
OWN_SETTINGS = NOT_FOR_ENTRIES | {f"PENSTOCK_{name}" for name in _SETTINGS}


@dataclass(frozen=True, slots=True)
class Surroundings:
    folder: Path
    home: Path
    environ: Mapping[str, str]
    clock: Clock
    redaction: Redaction
    """Registers a secret that is not itself an entry, such as an access token."""
    allowed: Addresses = OPEN
    """Where an issuer that a document names may be."""
    asks: bool = True
    """Are services outside of this machine asked? Otherwise what only they can say is not known (`NotAsked`)."""
    is_here: bool = True
    """Does it run on this machine? Otherwise variables, files and the store of this one say nothing (`NotAsked`)."""

    def variable(self, name: str) -> str | None:
        """A variable that is set and not blank, without line ends behind it. Raises Unresolved when it is not text."""
        if not self.is_here:
            raise NotAsked
        value = None if name in NOT_FOR_ENTRIES else self.environ.get(name)
        if value is None or not value.strip():
            return None
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unresolved(f"the environment variable `{name}` is not valid UTF-8") from error
        # Values that went through `echo` or an editor end in a newline that nobody meant.
        return value.rstrip("\r\n")

    def for_data(self) -> Surroundings:
        """The same for a name that came with data: of the environment, only what is meant for entries."""
        environ = {
            name: value
            for name, value in self.environ.items()
            if name == PASSPHRASE or (name.startswith("PENSTOCK_") and name not in OWN_SETTINGS)
        }
        return replace(self, environ=environ)


def variable_name(*parts: str) -> str:
    """`pg-k8s`, `host` -> `PENSTOCK_PG_K8S_HOST`."""
    return "_".join(["PENSTOCK", *(re.sub("[^A-Z0-9]", "_", part.upper()) for part in parts)])
