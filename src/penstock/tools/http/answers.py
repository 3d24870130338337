"""What an answer over HTTP says of where to go on: links in its headers, and values in its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_LINK = re.compile(r'<([^>]*)>\s*((?:;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^\s;,]+)\s*)*)')


def next_link(header: str) -> str | None:
    for found in _LINK.finditer(header):
        relations = re.findall(r'rel\s*=\s*"?([^";,]*)"?', found[2])
        if any("next" in relation.lower().split() for relation in relations):
            return found[1]
    return None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def value_at(value: Any, path: str) -> Any:
    """What a path such as `data.items` or `pages.0.rows` leads to; None when it leads nowhere."""
    for step in (step for step in path.removeprefix("$").split(".") if step):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
