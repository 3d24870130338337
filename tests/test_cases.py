"""The helper of tables says what failed, and lets nothing pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases

SEEN: list[int] = []


@cases("number", [1, 2, pytest.param(3, id="three")])
def test_every_case_is_run_with_its_values_and_the_fixtures(number: int, tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    SEEN.append(number)
    assert len(SEEN) == number


def test_all_that_fail_are_named() -> None:
    @cases("left, right", [(1, 1), (1, 2), pytest.param(2, 3, id="two and three")])
    def check(left: int, right: int) -> None:
        assert left == right

    with pytest.raises(pytest.fail.Exception, match=r"2 of 3 cases failed\n--- \(1, 2\)[\s\S]*--- two and three"):
        check()
