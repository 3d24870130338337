"""What a server process needs in order to work, each as something that can be tried: database, results, state folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from penstock.adapters.folders import make_folder, unavailable_file
from penstock.app.stores import Places
from penstock.ports.blobs import BlobStore
from penstock.ports.log import EventLog

# Always the same bytes, so that there is one such result, however often it is tried.
PROBE = b"penstock: can results be put here? ".ljust(4096, b".")


class Needs:
    def __init__(self, places: Places, log: EventLog, blobs: BlobStore) -> None:
        self._log, self._blobs, self._home = log, blobs, places.home
        self.checks: dict[str, Callable[[], None]] = {"the result store": self._results}
        self.close: Callable[[], None] = lambda: None
        if places.database is None:
            self.checks["the state folder"] = self._folder
        else:
            from penstock.adapters.postgres_probe import PostgresProbe

            probe = PostgresProbe(places.database)
            self.checks = {"the database": probe.check, **self.checks}
            self.close = probe.close

    def _results(self) -> None:
        self._blobs.put([PROBE], "text/plain")

    def _folder(self) -> None:
        self._log.headers(1)
        write_to(self._home)


def write_to(folder: Path) -> None:
    """Raises Unavailable when no file can be written there."""
    make_folder(folder)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unavailable_file(error, folder) from error
