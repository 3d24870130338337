"""Values and views that the tests of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from hypothesis import settings

from penstock.expr.template import ExpressionError, Names, render
from tests.depth import times

# The same examples on every machine, however slow it is.
steady = settings(deadline=None, derandomize=True, max_examples=times(25))

SCOPE = Names(
    {
        "workload": {
            "api_url": "http://localhost:8080",
            "items": [{"id": 1, "x": "a"}, {"id": 2, "x": "b"}],
            "empty": [],
            "text": "Hello World",
            "n": 7,
            "ratio": 0.5,
            "flag": True,
            "nothing": None,
            "when": "2025-01-31T13:45:10Z",
        },
        "iter": {"page": 3, "index": 0},
        "_prev": {"rows": [1, 2, 3]},
        "outcome": {"status": "error", "http": {"status": 429}},
        "row": {"_id": "k1", "list": [3, 1, 2], "nested": [[1, 2], [3, [4]]], "b": 2, "a": 1},
    }
)


class View(Mapping[str, Any]):
    """A read-only mapping that is no dict, as lazily read results are."""

    def __init__(self, inner: dict[str, Any]) -> None:
        self._inner = inner
        self.secret = "not for expressions"

    def __getitem__(self, key: str) -> Any:
        return self._inner[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


class ListView(Sequence[Any]):
    def __init__(self, inner: list[Any]) -> None:
        self._inner = inner

    def __getitem__(self, key: Any) -> Any:
        return self._inner[key]

    def __len__(self) -> int:
        return len(self._inner)

    @property
    def data(self) -> list[Any]:
        return self._inner


class Opaque:
    """Something that must be handed on as it is, such as a secret: only its text is public."""

    value = "hidden"

    def __str__(self) -> str:
        return "<opaque>"

    def reveal(self) -> str:
        return "hidden"


def value(expression: str, **names: Any) -> Any:
    return render("{{ " + expression + " }}", Names({**SCOPE, **names}))


def refusal(template: str, **names: Any) -> ExpressionError:
    """The error a template ends in."""
    try:
        result = render(template, Names({**SCOPE, **names}))
    except ExpressionError as error:
        return error
    raise AssertionError(f"{template!r} gave {result!r}")


def calls_of(job: Callable[[], object]) -> int:
    """How many calls of functions, Python's and C's, it takes: the same on every machine."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        job()
    finally:
        sys.setprofile(None)
    return count
