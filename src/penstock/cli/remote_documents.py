"""Documents as a server compiles them, which may know other tools and components than this machine does."""

from __future__ import annotations

from typing import Any

from penstock.app.library import Library
from penstock.kernel.errors import Refused
from penstock.remote.client import Client, decoded
from penstock.remote.sending import Sent, as_seen_here


def planned(url: str, file: str) -> Any:
    """The lowered form."""
    return decoded(_asked(url, file, "/api/plan", {}))


def planned_text(url: str, file: str) -> str:
    """That of a job, for people."""
    return _asked(url, file, "/api/plan", {"format": "text"}).decode()


def drawn(url: str, file: str, form: str) -> str:
    return _asked(url, file, "/api/graph", {"format": form}).decode()


def _asked(url: str, file: str, path: str, more: dict[str, Any]) -> bytes:
    sent = Sent(Library(), file)
    try:
        return Client(url).raw("POST", path, body={"document": sent.body, **more}, is_safe=True)
    except Refused as error:
        raise as_seen_here(error, sent) from error
