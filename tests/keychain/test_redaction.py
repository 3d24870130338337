from __future__ import annotations

import base64
import html
import itertools
import json
import random
import re
import shlex
import string
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.keychain import MASK, Redaction, Secret
from penstock.keychain.redaction import Sieve
from penstock.keychain.secret import base64_cores
from tests.cases import cases
from tests.depth import times

# The machine may be busy: no example is judged by how long it took.
calm = settings(deadline=None, max_examples=times(15))

characters = st.characters(exclude_categories=["Cs"])
secrets = st.text(characters, min_size=4, max_size=60).filter(lambda text: len(text.strip()) >= 4)
tokens = st.text(string.ascii_letters + string.digits + "-_+/=.", min_size=8, max_size=60)
around = st.binary(max_size=40)


def lower_percent(text: str) -> str:
    return "".join(part if len(part) != 3 else part.lower() for part in _split_percent(quote(text, safe="")))


def _split_percent(text: str) -> list[str]:
    parts, index = [], 0
    while index < len(text):
        size = 3 if text[index] == "%" else 1
        parts.append(text[index : index + size])
        index += size
    return parts


def base64_in_url(data: bytes) -> bytes:
    return quote(base64.b64encode(data), safe="").encode()


TEXT_SPELLINGS = {
    "raw": lambda text: text.encode(),
    "quote": lambda text: quote(text).encode(),
    "quote all": lambda text: quote(text, safe="").encode(),
    "quote as a browser": lambda text: quote(text, safe="!'()*~").encode(),
    "quote plus": lambda text: quote_plus(text).encode(),
    "quote lower": lambda text: lower_percent(text).encode(),
    "quote twice": lambda text: quote(quote(text, safe=""), safe="").encode(),
    "json": lambda text: json.dumps(text)[1:-1].encode(),
    "json unicode": lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    "json in json": lambda text: json.dumps(json.dumps(text))[3:-3].encode(),
    "json msgspec": lambda text: msgspec.json.encode(text)[1:-1],
    "json with slashes escaped": lambda text: json.dumps(text)[1:-1].replace("/", "\\/").encode(),
    "python": lambda text: repr(text)[1:-1].encode(),
    "python bytes": lambda text: repr(text.encode())[2:-1].encode(),
    "html": lambda text: html.escape(text).encode(),
    "shell": lambda text: shlex.quote(text).encode(),
    "shell by hand": lambda text: text.replace("'", "'\\''").encode(),
    "hex": lambda text: text.encode().hex().encode(),
    "HEX": lambda text: text.encode().hex().upper().encode(),
}


@pytest.mark.clause("P2.6")
@settings(deadline=None, max_examples=times(25))
@given(text=secrets, before=around, after=around)
@example(text="\\\\\\\\\\\\\\\\", before=b"\\" * 40, after=b"\\" * 40)
@example(text='a"\\"\\\\b/c', before=b"", after=b"")
@example(text="#abc#abc!", before=b"abc", after=b"abc")
@example(text="aaaa", before=b"aaa", after=b"aaa")
def test_a_secret_is_hidden_in_every_spelling(text, before, after):
    redaction = Redaction([text])
    for way, spelling in TEXT_SPELLINGS.items():
        written = spelling(text)
        hidden = redaction.hide_bytes(b"\n" + before + written + after)
        assert written not in hidden, way
        assert MASK.encode() in hidden, way


@pytest.mark.clause("P2.6")
@calm
@given(text=st.one_of(secrets, tokens), before=around, after=around)
def test_a_secret_inside_a_base64_text_is_hidden_at_every_alignment(text, before, after):
    redaction = Redaction([text])
    for encode in (base64.b64encode, base64.urlsafe_b64encode, base64_in_url):
        hidden = redaction.hide_bytes(encode(before + text.encode() + after))
        assert MASK.encode() in hidden, encode
        assert not any(core.encode() in hidden for core in base64_cores(text.encode())), encode


@calm
@given(st.binary(min_size=1, max_size=30), around, around)
def test_the_core_of_a_base64_text_does_not_depend_on_its_neighbours(data, before, after):
    encoded = base64.b64encode(before + data + after).decode()
    core = base64_cores(data)[len(before) % 3]
    assert core in encoded
    assert len(core) >= 8 * len(data) // 6 - 1


@pytest.mark.clause("P2.6")
@settings(deadline=None, max_examples=times(8))
@given(st.lists(tokens, min_size=1, max_size=12, unique=True), st.integers(0, 5000), st.randoms(use_true_random=False))
def test_many_secrets_at_random_places_of_a_large_text_are_all_hidden(texts, size, chance):
    ways = [*TEXT_SPELLINGS.values(), lambda text: base64.b64encode(text.encode())]
    filler = bytes(chance.choices(b'abcdefghij 0123456789\n{}":,', k=size))
    parts = []
    for text in texts:
        cut = chance.randint(0, len(filler))
        parts += [filler[:cut], b" ", chance.choice(ways)(text), b" ", filler[cut:]]
    hidden = Redaction(texts).hide_bytes(b"|" + b"".join(parts))
    for text in texts:
        for way in ways:
            assert way(text) not in hidden


@calm
@given(st.lists(secrets, max_size=3), st.text())
def test_hiding_twice_is_hiding_once_and_text_and_bytes_agree(texts, text):
    redaction = Redaction(texts)
    once = redaction.hide("|" + text + "".join(texts))
    assert redaction.hide_bytes(("|" + text + "".join(texts)).encode("utf-8", "surrogatepass")) == once.encode(
        "utf-8", "surrogatepass"
    )
    assert all(each == MASK or each not in once or set(each) <= {"*"} for each in texts)


@calm
@given(st.binary(max_size=200))
def test_without_secrets_everything_is_given_back_as_it_is(data):
    redaction = Redaction()
    assert redaction.hide_bytes(data) is data
    assert redaction.hide("text") == "text"
    assert not redaction.shows(data)


@calm
@given(st.text(string.ascii_lowercase, max_size=200))
def test_a_text_without_secrets_is_given_back_as_it_is(text):
    redaction = Redaction(["S3CRET-TOKEN", "ÄÖÜ!?"])
    assert redaction.hide(text) is text
    data = text.encode()
    assert redaction.hide_bytes(data) is data


def test_overlapping_secrets_leave_no_rest_of_either():
    redaction = Redaction(["abcdef", "defghi", "abcd"])
    assert redaction.hide("x abcdefghi y abcd z") == f"x {MASK} y {MASK} z"


def test_markers_are_hidden_too_whatever_became_of_them():
    secret = Secret("s3cret-value")
    redaction = Redaction(["s3cret-value"])
    for text in (
        str(secret),
        quote(str(secret)),
        json.dumps(str(secret)),
        html.escape(str(secret)),
        shlex.quote(str(secret)),
        str(secret).upper(),
    ):
        hidden = redaction.hide(f"a {text} b")
        assert MASK in hidden
        assert "pnsk" not in hidden.lower()
        assert not any(digit in hidden for digit in "123456789")


def test_a_secret_of_several_lines_is_hidden_line_by_line_and_indented():
    lines = [base64.b64encode(random.Random(number).randbytes(48)).decode() for number in range(20)]
    key = "\n".join(["-----BEGIN KEY-----", *lines, "-----END KEY-----"])
    redaction = Redaction([key])
    shown = redaction.hide("\n".join(f"    | {line}" for line in key.splitlines()))
    assert not any(line in shown for line in lines)
    assert redaction.hide(f"whole: {key}") == f"whole: {MASK}"
    assert redaction.hide(json.dumps({"key": key})) == json.dumps({"key": MASK})
    encoded = redaction.hide_bytes(base64.b64encode(key.encode()))
    assert not any(core.encode() in encoded for line in lines for core in base64_cores(line.encode()))


def test_a_long_secret_is_hidden_whole():
    text = "".join(random.Random(3).choices(string.printable.strip(), k=1500))
    assert Redaction([text]).hide(f"<{text}>") == f"<{MASK}>"


@cases(
    "text, hidden",
    [
        ("abc", MASK),
        ("password=abc", f"password={MASK}"),
        ('{"p": "abc", "q": "abcd"}', f'{{"p": "{MASK}", "q": "abcd"}}'),
        ("xabc abcx abc.", "xabc abcx abc."),
        ("abc abc", f"{MASK} {MASK}"),
        ("postgresql://u:abc@h/d", f"postgresql://u:{MASK}@h/d"),
    ],
)
def test_a_very_short_secret_is_hidden_only_where_it_stands_alone(text, hidden):
    assert Redaction(["abc"]).hide(text) == hidden


@cases("blank", ["", " ", "\n\t  \n"])
def test_a_blank_text_is_not_a_secret(blank):
    assert Redaction([blank]).hide("a b\n\t  \nc") == "a b\n\t  \nc"


class TestValues:
    redaction = Redaction(["123456", "s3cret", "nabcd"])

    def test_hiding_in_a_value_keeps_its_form(self):
        value = {"pin": 123456, "s3cret": ["a s3cret b", None, True, 1.5, 7], "n": -1234567.0}
        assert self.redaction.hide_tree(value) == {"pin": MASK, MASK: [f"a {MASK} b", None, True, 1.5, 7], "n": MASK}

    @pytest.mark.parametrize(
        ("data", "hidden"),
        [
            (b'{"pin":123456,"a":"s3cret"}', {"pin": MASK, "a": MASK}),
            (b"123456", MASK),
            (b'{"a":"line\\nabcd"}', {"a": "line\nabcd"}),
            (b'["s3cret"]', [MASK]),
        ],
    )
    def test_what_was_json_is_still_json(self, data, hidden):
        assert json.loads(self.redaction.hide_bytes(data)) == hidden

    def test_what_only_looks_like_json_is_hidden_all_the_same(self):
        assert self.redaction.hide_bytes(b'{"pin":123456,') == b'{"pin":***,'

    def test_shows_says_whether_there_is_anything_to_hide(self):
        assert self.redaction.shows(b'{"a":"s3cret"}')
        assert not self.redaction.shows(b'{"a":"secret"}')


def test_texts_that_are_no_valid_unicode_can_be_hidden():
    assert Redaction(["s3cret"]).hide("\ud800 s3cret \udfff") == f"\ud800 {MASK} \udfff"


class TestSieve:
    @calm
    @given(
        st.lists(st.binary(min_size=1, max_size=40), max_size=40),
        st.binary(max_size=300),
        st.integers(0, 300),
        st.data(),
    )
    def test_it_finds_exactly_the_needles_that_are_there(self, needles, hay, cut, data):
        planted = data.draw(st.lists(st.sampled_from(needles), max_size=3)) if needles else []
        hay = hay[:cut] + b"".join(planted) + hay[cut:]
        assert Sieve(needles).found(hay) == {needle for needle in needles if needle in hay}

    def test_a_needle_is_found_at_every_place(self):
        for size, count in itertools.product((7, 8, 12, 14, 15, 16, 40), (1, 60)):
            chance = random.Random(size)
            needles = [chance.randbytes(size) for _ in range(count)]
            sieve = Sieve(needles)
            for place in range(40):
                assert sieve.found(b"." * place + needles[-1] + b"." * (40 - place)) == {needles[-1]}, (size, count)


CONTROLS = [
    "\x01",
    "\x07",
    "\x08",
    "\t",
    "\n",
    "\x0b",
    "\x0c",
    "\r",
    "\x1b",
    "\x1c",
    "\x7f",
    "\x85",
    "\x9b",
    "\u200b",
    "\u2028",
]
CONTROLS += ["\x1b[31m", "\r\n", "\x1b]0;t\x07"]


@cases("control", CONTROLS)
def test_a_secret_with_control_codes_is_hidden_however_they_are_shown(control: str) -> None:
    secret = f"hunt{control}2pass99"
    redaction = Redaction([secret])
    shown = [
        secret,
        repr(secret),
        json.dumps(secret),
        quote(secret),
        base64.b64encode(secret.encode()).decode(),
        secret.replace(control, ""),
        *(
            "".join(each if each.isprintable() else instead for each in secret)
            for instead in (" ", "?", ".", "\ufffd", "\u00b7")
        ),
        "".join(f"^{chr(ord(each) ^ 64)}" if ord(each) < 32 else each for each in secret),
        "".join(chr(0x2400 + ord(each)) if ord(each) < 32 else each for each in secret),
        "".join(f"\\x{ord(each):02x}" if ord(each) < 32 else each for each in secret),
        re.sub(r"\x1b\[[0-9;]*m", "", secret),
        *secret.splitlines(),
    ]
    for text in shown:
        hidden = redaction.hide(f"| {text} |")
        assert "hunt" not in hidden, text
        assert "2pass99" not in hidden, text


def test_a_secret_of_control_codes_alone_hides_nothing_else() -> None:
    redaction = Redaction(["\x01\x02\x03\x04\x05"])
    assert redaction.hide("plain text") == "plain text"
    assert redaction.hide("a\x01\x02\x03\x04\x05b") == "a***b"
