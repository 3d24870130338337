from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import pprint
import traceback
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.keychain import Keychain, Redaction, Secret, reveal
from penstock.keychain.resolved import Entry

# The machine may be busy: no example is judged by how long it took.
calm = settings(deadline=None)

CANARY = "canary-7f3a9c/+ä"


@pytest.mark.clause("P2.6")
@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda secret: json.dumps({"a": [secret]}),
        msgspec.json.encode,
        msgspec.msgpack.encode,
        msgspec.to_builtins,
        lambda secret: msgspec.convert(secret, str),
        pickle.dumps,
        lambda secret: pickle.dumps({"a": secret}, protocol=0),
        copy.copy,
        copy.deepcopy,
        lambda secret: copy.deepcopy([{"a": secret}]),
        lambda secret: secret.__getstate__(),
        lambda secret: dataclasses.asdict(dataclasses.make_dataclass("D", ["field"])(secret)),
        len,
        iter,
        vars,
        bytes,
    ],
)
def test_a_secret_cannot_be_serialised_or_copied_or_taken_apart(write):
    with pytest.raises((TypeError, msgspec.ValidationError)) as caught:
        write(Secret(CANARY))
    assert CANARY not in str(caught.value)


@pytest.mark.clause("P2.6")
@pytest.mark.parametrize(
    "write",
    [
        str,
        repr,
        ascii,
        "{}".format,
        lambda secret: f"{secret} {secret!r}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: str([secret, {"k": secret}]),
        lambda secret: json.dumps(secret, default=str),
        lambda secret: str(ValueError(secret)) + repr(ValueError(secret)),
        lambda secret: "".join(traceback.format_exception(ValueError("bad", secret))),
        pprint.pformat,
        lambda secret: str(MappingProxyType({"a": secret})),
    ],
)
def test_nothing_that_prints_a_secret_shows_it(write):
    assert CANARY not in write(Secret(CANARY))


def test_a_log_line_with_a_secret_does_not_show_it(caplog):
    secret = Secret(CANARY)
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("token %s %r", secret, secret)
    assert "token" in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.clause("P2.6")
def test_a_template_language_that_can_call_public_methods_still_finds_none():
    assert [name for name in dir(Secret) if not name.startswith("_")] == []


@pytest.mark.clause("P2.6")
def test_the_view_for_templates_is_read_only_and_shows_nothing():
    keys = Keychain({"t": Entry(Secret(CANARY)), "pg": Entry({"password": Secret(CANARY), "tags": [Secret(CANARY)]})})
    view = keys.view()
    assert (
        CANARY not in str(view) + str(view["pg"]) + str(list(view["pg"].items())) + f"{view['t']} {view['pg']['tags']}"
    )
    with pytest.raises(TypeError):
        view["t"] = "x"
    with pytest.raises(TypeError):
        view["pg"]["password"] = "x"
    with pytest.raises(TypeError):
        view["pg"]["tags"][0] = "x"


def test_reveal_is_the_way_out():
    assert reveal(Secret(CANARY)) == CANARY


def test_secrets_are_equal_to_secrets_with_the_same_text_and_to_nothing_else():
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2


def test_a_secret_is_true_when_it_has_a_text():
    assert Secret("x")
    assert not Secret("")


def test_two_secrets_never_share_a_marker():
    assert str(Secret("a")) != str(Secret("a"))


def test_a_secret_is_made_of_text():
    with pytest.raises(TypeError, match="made of text"):
        Secret(b"bytes")  # type: ignore[arg-type]


@pytest.mark.parametrize("holder", [Keychain({"t": Entry(Secret(CANARY))}), Redaction([CANARY])])
def test_what_holds_secrets_cannot_be_serialised_and_does_not_print_them(holder):
    assert CANARY not in repr(holder) + str(holder)
    for write in (pickle.dumps, copy.deepcopy, json.dumps, msgspec.json.encode):
        with pytest.raises(TypeError):
            write(holder)


@calm
@given(st.text(min_size=6))
def test_a_marker_says_nothing_about_the_text(text):
    assert text not in str(Secret(text))
