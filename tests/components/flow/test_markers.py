"""Components that only say something: noop, pre_job, post_job, set_global, die, warn."""

from __future__ import annotations

import pytest

from penstock.components.registry import ComponentRegistry

from .support import failed, run


def test_noop_gives_its_value_and_does_nothing() -> None:
    ran = run("noop", {"value": [1, {"a": None}]})
    assert (ran.result, ran.outputs, ran.said, ran.globals) == ([1, {"a": None}], {}, [], {})


@pytest.mark.parametrize("type", ["pre_job", "post_job"])
def test_a_marker_is_known_by_its_role_and_has_no_parameters(type: str) -> None:
    component = ComponentRegistry().get(type)
    assert (component.role, component.inputs, component.outputs) == (type, (), ())
    assert run(type, {}).result is None
    assert "there is no such parameter" in failed(type, {"anything": 1}).message


def test_set_global_writes_every_value_with_its_type() -> None:
    ran = run("set_global", {"values": {"b": [1, 2], "a": {"x": None}, "n": 1.5}})
    assert ran.globals == {"b": [1, 2], "a": {"x": None}, "n": 1.5}
    assert ran.result == {"names": ["a", "b", "n"]}


@pytest.mark.parametrize("name", ["two words", "", "a.b", "__x__"])
def test_set_global_refuses_a_name_that_only_the_run_has_brought(name: str) -> None:
    failure = failed("set_global", {"values": {"good": 1, name: 2}})
    assert failure.kind == "parameters"
    assert failure.message.startswith(f"`{name}` cannot be the name of a global: ")


def test_set_global_wants_a_mapping() -> None:
    failure = failed("set_global", {"values": [1]})
    assert (failure.kind, "`values`: expected a mapping" in failure.message) == ("parameters", True)


def test_die_ends_in_an_error_with_the_code_for_the_process() -> None:
    failure = failed("die", {"message": "no orders", "code": 7})
    assert (failure.kind, failure.message, failure.exit_code) == ("die", "no orders", 7)


def test_die_says_something_even_when_its_author_does_not() -> None:
    failure = failed("die", {})
    assert (failure.message, failure.exit_code) == ("the job was told to die", 1)


@pytest.mark.parametrize("code", [0, 256, -1])
def test_the_code_of_die_is_one_that_a_process_can_exit_with(code: int) -> None:
    assert failed("die", {"code": code}).kind == "parameters"


def test_warn_writes_each_line_into_the_log_and_goes_on() -> None:
    ran = run("warn", {"message": "few rows\nonly 2", "code": 10})
    assert ran.said == ["warning: few rows", "warning: only 2"]
    assert ran.after == {"WARN_MESSAGE": "few rows\nonly 2", "WARN_CODE": 10}
    assert ran.result == {"message": "few rows\nonly 2", "code": 10}
