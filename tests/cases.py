"""Many cases in one test, for tables of quick cases that need nothing of their own: pytest takes longer for a test than such a case
takes.

    @cases("text, value", [("1", 1), ("x", "x")])
    def test_a_text_has_the_value_it_says(text: str, value: object) -> None: ...

Every case is tried, and the failure names all that failed. A test that writes files or changes anything that the next case would see
is parametrised with `pytest.mark.parametrize` instead.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def cases(names: str, table: Iterable[Any]) -> Callable[[Test], Test]:
    """Takes what `pytest.mark.parametrize` takes; `pytest.param` may name a case."""
    wanted = [name.strip() for name in names.split(",")]
    rows = [_row(each, len(wanted)) for each in table]
    assert rows, "a table without a case"

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def run(*itself: Any, **fixtures: Any) -> None:
            failed = []
            for name, values in rows:
                try:
                    test(*itself, **dict(zip(wanted, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception):
                    failed.append(f"--- {name}\n{traceback.format_exc(limit=-4)}")
            if failed:
                pytest.fail(f"{len(failed)} of {len(rows)} cases failed\n" + "\n".join(failed[:20]), pytrace=False)

        plain = inspect.signature(test)
        left = [one for name, one in plain.parameters.items() if name not in wanted]
        run.__signature__ = plain.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorated


def _row(given: Any, width: int) -> tuple[str, tuple[Any, ...]]:
    name = getattr(given, "id", None)
    values = given.values if isinstance(given, type(pytest.param())) else given
    values = tuple(values) if width > 1 or values is not given else (values,)
    return str(name) if isinstance(name, str) else ascii(values)[:300], values
