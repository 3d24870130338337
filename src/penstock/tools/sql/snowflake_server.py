"""A Snowflake that runs the rows of a job: how it is reached for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from penstock.tools.sql.drivers import DbapiSession, described_address

_SESSION: Final = {"TIMEZONE": "UTC", "QUOTED_IDENTIFIERS_IGNORE_CASE": False}


class SnowflakeServer:
    def __init__(self, login: Mapping[str, Any]) -> None:
        """`login` is a connection of a document, with all secrets in it."""
        options = login.get("options")
        self.place = described_address({**login, "options": dict(options) if options else {}})

    def connect(self) -> DbapiSession:
        """Raises ToolFailure. The session lives as long as this process keeps it, and no longer than that."""
        given = self.place.options
        told = {**given, "session_parameters": {**dict(given.get("session_parameters") or {}), **_SESSION}}
        # Whatever the options say: nobody else commits a statement that stands alone.
        return DbapiSession(
            replace(self.place, options={"client_session_keep_alive": True, **told, "autocommit": True})
        )
