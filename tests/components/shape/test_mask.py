"""`mask`: what is hidden stays hidden."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from penstock.components.base import ComponentFailure
from tests.cases import cases
from tests.components.harness import columns, mistakes, run, schema


def masked(value: Any, how: Any, salt: str = "", type: str = "VARCHAR") -> Any:
    return run(
        "mask", {"columns": {"v": how}, "salt": salt}, {"input": [{"v": value}]}, schemas={"input": schema(v=type)}
    ).main[0]["v"]


@cases(
    "value, how, made",
    [
        ("secret", "redact", "***"),
        (None, "redact", "***"),
        ("secret", {"method": "redact", "text": "[hidden]"}, "[hidden]"),
        ("secret", "clear", None),
        ("4111111111111111", {"method": "keep", "last": 4}, "************1111"),
        ("4111111111111111", {"method": "keep", "first": 2, "last": 2, "text": "x"}, "41xxxxxxxxxxxx11"),
        ("abc", {"method": "keep", "last": 4}, "***"),
        ("abcd", {"method": "keep", "first": 2, "last": 2}, "****"),
        (None, {"method": "keep", "last": 4}, None),
        ("a", "md5", hashlib.md5(b"a").hexdigest()),
        (None, "sha256", None),
    ],
)
def test_values_are_hidden_as_asked(value: Any, how: Any, made: Any):
    assert masked(value, how) == made


def test_a_salt_goes_before_the_value():
    assert masked("a", "sha256", salt="pepper") == hashlib.sha256(b"peppera").hexdigest()


def test_other_types_are_hidden_as_they_are_written():
    assert masked(42, "sha256", type="BIGINT") == hashlib.sha256(b"42").hexdigest()


def test_masked_columns_are_text_and_others_stay():
    params = {"columns": {"a": "sha256", "b": "clear"}}
    given = {"input": schema(a="BIGINT", b="DATE", c="DATE")}
    assert columns("mask", params, given) == {"a": "VARCHAR", "b": "VARCHAR", "c": "DATE"}


def test_an_unknown_column_is_found_before_the_run():
    (mistake,) = mistakes("mask", {"columns": {"emial": "sha256"}}, {"input": schema(email="VARCHAR")})
    assert mistake.path == ("columns", "emial")


@pytest.mark.parametrize("how", ["rot13", {"method": "keep"}])
def test_a_method_that_hides_nothing_is_refused(how: Any):
    with pytest.raises(ComponentFailure) as caught:
        masked("a", how)
    assert caught.value.kind == "parameters"
