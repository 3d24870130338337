"""Where entries are resolved: the document's folder, the state folder, the environment, the time. Nothing else is consulted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.keychain.errors import Unresolved
from penstock.keychain.redaction import Redaction
from penstock.keychain.store import PASSPHRASE
from penstock.ports.ambient import Clock
from penstock.tools.addresses import OPEN, Addresses

# An entry named `key` must not be given the passphrase of the local store.
NOT_FOR_ENTRIES = frozenset({PASSPHRASE, "PENSTOCK_HOME"})


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

    def variable(self, name: str) -> str | None:
        """A variable that is set and not blank, without line ends behind it. Raises Unresolved when it is not text."""
        value = None if name in NOT_FOR_ENTRIES else self.environ.get(name)
        if value is None or not value.strip():
            return None
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unresolved(f"the environment variable `{name}` is not valid UTF-8") from error
        # Values that went through `echo` or an editor end in a newline that nobody meant.
        return value.rstrip("\r\n")


def variable_name(*parts: str) -> str:
    """`pg-k8s`, `host` -> `PENSTOCK_PG_K8S_HOST`."""
    return "_".join(["PENSTOCK", *(re.sub("[^A-Z0-9]", "_", part.upper()) for part in parts)])
