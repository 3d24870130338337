from __future__ import annotations

import base64
import html
import json
import shlex
from urllib.parse import quote, unquote, urlencode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.expr.template import Names, render
from penstock.keychain import Keychain, Secret, SecretAltered
from penstock.keychain.resolved import Entry
from tests.cases import cases

# The machine may be busy: no example is judged by how long it took.
calm = settings(deadline=None)


def debased(text: str) -> str:
    return base64.b64decode(text).decode()


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def keychain(text: str) -> Keychain:
    return Keychain({"t": Entry(Secret(text))})


def marker(keys: Keychain) -> str:
    return str(keys.view()["t"])


@pytest.mark.clause("P2.6")
def test_a_template_holds_a_marker_and_the_tool_gets_the_text():
    keys = keychain("s3cret")
    rendered = f"Bearer {keys.view()['t']}!"
    assert "s3cret" not in rendered
    assert keys.reveal(rendered) == "Bearer s3cret!"


@calm
@given(texts, st.text(), st.text())
def test_a_secret_is_inserted_as_it_is(text, before, after):
    keys = keychain(text)
    assert keys.reveal(before + marker(keys) + after) == before + text + after


@calm
@given(texts)
def test_a_url_encoded_marker_becomes_the_url_encoded_secret(text):
    keys = keychain(text)
    for encode in (quote, lambda each: quote(each, safe=""), lambda each: urlencode({"k": each})[2:]):
        assert unquote(keys.reveal(encode(marker(keys)))) == text


@calm
@given(texts)
def test_a_json_escaped_marker_becomes_the_json_escaped_secret(text):
    keys = keychain(text)
    for encode in (json.dumps, lambda each: msgspec.json.encode(each).decode()):
        assert json.loads(keys.reveal(encode({"k": [marker(keys)]}))) == {"k": [text]}


@calm
@given(texts)
def test_a_marker_escaped_for_html_becomes_the_secret_escaped_for_html(text):
    keys = keychain(text)
    assert html.unescape(keys.reveal(html.escape(marker(keys)))) == html.unescape(html.escape(text))


@calm
@given(texts, st.text())
def test_a_marker_quoted_for_a_shell_becomes_the_secret_quoted_for_a_shell(text, before):
    keys = keychain(text)
    assert shlex.split(keys.reveal(f"send {shlex.quote(before + marker(keys))} now")) == ["send", before + text, "now"]


@cases("word, decoded", [("quote", lambda text: shlex.split(text)[0]), ("urlencode", unquote), ("b64encode", debased)])
def test_a_template_may_encode_a_secret_itself(word, decoded):
    keys = keychain('it\'s <a> & "b" $HOME')
    rendered = render(f"{{{{ keychain.t | {word} }}}}", Names({"keychain": keys.view()}))
    assert "HOME" not in rendered
    assert decoded(keys.reveal(rendered)) == 'it\'s <a> & "b" $HOME'


@calm
@given(texts, st.text(st.characters(exclude_categories=["Cs"])))
def test_a_base64_text_with_a_marker_in_it_is_filled_in(text, user):
    keys = keychain(text)
    encoded = base64.b64encode(f"{user}:{marker(keys)}".encode()).decode()
    assert keys.reveal(f"Basic {encoded}") == f"Basic {base64.b64encode(f'{user}:{text}'.encode()).decode()}"


@calm
@given(st.integers(0, 8))
def test_base64_without_padding_and_url_safe_base64_keep_their_form(length):
    keys = keychain("p?>w~" * 3)
    inside = "x" * length + "??>>" + marker(keys) + "??>>"
    encoded = base64.urlsafe_b64encode(inside.encode()).decode().rstrip("=")
    filled = keys.reveal(encoded)
    assert not set(filled) & set("+/")
    again = base64.urlsafe_b64decode(filled + "=" * (-len(filled) % 4)).decode()
    assert again == "x" * length + "??>>" + "p?>w~" * 3 + "??>>"


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        str.title,
        lambda text: text[3:],
        lambda text: text[:-3],
        lambda text: text.replace("pnsk", "x"),
        lambda text: quote(quote(text)),
        lambda text: quote(json.dumps(text)),
        lambda text: json.dumps(shlex.quote(text)),
        lambda text: text.replace("'", "''"),
        repr,
        lambda text: base64.b64encode(text.upper().encode()).decode(),
        lambda text: base64.b64encode(b"\xff" + text.encode()).decode(),
        lambda text: "xxx/" + base64.b64encode(text.encode()).decode()[1:],
    ],
)
def test_a_marker_changed_in_any_other_way_is_refused(change):
    keys = keychain("s3cret-value")
    with pytest.raises(SecretAltered, match="urlencode"):
        keys.reveal(change(marker(keys)))


def test_the_marker_of_another_keychain_is_refused():
    with pytest.raises(SecretAltered):
        keychain("mine").reveal(marker(keychain("theirs")))


def test_reveal_goes_through_the_whole_value_and_leaves_the_original_alone():
    keys = Keychain({"t": Entry(Secret("one")), "pg": Entry({"host": "h", "password": Secret("two")})})
    view = keys.view()
    given_value = {
        "list": [view["t"], f"a{view['t']}b", 1, None, True, 2.5, b"bytes"],
        "tuple": (view["pg"],),
        f"key {view['t']}": "x",
    }
    revealed = keys.reveal(given_value)
    assert revealed == {
        "list": ["one", "aoneb", 1, None, True, 2.5, b"bytes"],
        "tuple": [{"host": "h", "password": "two"}],
        "key one": "x",
    }
    assert given_value["list"][0] is view["t"]


def test_without_secrets_reveal_gives_the_value_itself():
    value = {"a": ["b"]}
    assert Keychain().reveal(value) is value
