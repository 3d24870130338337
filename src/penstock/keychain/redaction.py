"""What is known to be secret never leaves in the open.

Law: once a text was added, no spelling of it (penstock.keychain.secret) passes `hide`. Nothing is ever taken out again: a
token that was replaced is still not for the log. The compiled form is swapped whole, so any thread may hide while another adds.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import NoReturn

from penstock.kernel.values import Json
from penstock.keychain.secret import NONCE, Spelling, spellings

# ---- Which of many needles may be in a text, at a cost that does not grow with their number.
# A needle of 15 bytes or more always covers one whole machine word of the text, wherever it stands. So the text is read as
# words of eight bytes and each is looked up in a set of the words that needles can put there: one pass for hundreds of
# needles. Shorter needles need words of four bytes and twice the time; a few needles are faster searched for one by one. The
# sieve takes whatever is cheapest for the needles it has.

# Milliseconds per MB, measured on CPython 3.11; only their ratios matter.
_PASS = {8: 3.4, 4: 7.5}


def _search_cost(needle: bytes) -> float:
    return 0.03 + 3.4 / len(needle)


class Sieve:
    __slots__ = ("_by_word", "_one_by_one", "_word", "_words")

    def __init__(self, needles: Iterable[bytes]) -> None:
        every = list(dict.fromkeys(needles))
        self._word = min((0, 8, 4), key=lambda word: _cost(every, word))
        self._one_by_one = [needle for needle in every if not _fits(needle, self._word)]
        self._by_word: dict[int, list[bytes]] = defaultdict(list)
        for needle in every:
            if _fits(needle, self._word):
                # The end of a needle: tokens of one issuer begin alike.
                tail = needle[-(2 * self._word - 1) :]
                for shift in range(self._word):
                    self._by_word[int.from_bytes(tail[shift : shift + self._word], sys.byteorder)].append(needle)
        self._words = frozenset(self._by_word)

    def found(self, data: bytes) -> set[bytes]:
        """Exactly the needles that `data` contains."""
        there = {needle for needle in self._one_by_one if needle in data}
        if self._words:
            words = memoryview(data)[: len(data) // self._word * self._word].cast("Q" if self._word == 8 else "I")
            likely = {needle for word in self._words.intersection(words) for needle in self._by_word[word]}
            there.update(needle for needle in likely if needle in data)
        return there


def _fits(needle: bytes, word: int) -> bool:
    return word > 0 and len(needle) >= 2 * word - 1


def _cost(needles: list[bytes], word: int) -> float:
    return _PASS.get(word, 0.0) + sum(_search_cost(needle) for needle in needles if not _fits(needle, word))


MASK = "***"

_OPEN = rb"(?:<|%(?:25)?3[Cc]|\\+u003[Cc]|&lt;)?"
_CLOSE = rb"(?:>|%(?:25)?3[Ee]|\\+u003[Ee]|&gt;)?"
_CONTROL = rb"(?:\x02|%(?:25)?02|\\+u0002|\\+x02)"
_QUOTE = rb"(?:'\"'\"'|'|%(?:25)?27|\\+u0027|&#(?:39|[xX]27);)"
_COLON = rb"(?::|%(?:25)?3[Aa])"
_MARKERS = Spelling(
    NONCE.encode(),
    rb"(?:%s(?i:pnsk)%s%s)?" % (_OPEN, _CONTROL, _QUOTE),
    rb"%s(?:%s\d{20}%s)?" % (NONCE.encode(), _COLON, _CLOSE),
    reach=40,
)
# A shorter needle is found in most texts anyway: asking for it first would only cost time.
_WORTH_SIEVING = 4
_JSON_BEGINS = frozenset(bytes([each]) for each in b'{["-0123456789')


class _Compiled:
    __slots__ = ("_always", "_by_needle", "_sieve")

    def __init__(self, known: Iterable[Spelling]) -> None:
        self._always: list[Spelling] = []
        self._by_needle: dict[bytes, list[Spelling]] = defaultdict(list)
        for spelling in known:
            if len(spelling.needle) >= _WORTH_SIEVING:
                self._by_needle[spelling.needle].append(spelling)
            else:
                self._always.append(spelling)
        self._sieve = Sieve(self._by_needle)

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        tried = [*self._always]
        for needle in self._sieve.found(data):
            tried.extend(self._by_needle[needle])
        return sorted(span for spelling in tried for span in spelling.spans(data))


class Redaction:
    """A set of secret texts and how to keep them out of everything that is written."""

    __slots__ = ("_adding", "_compiled", "_known", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._adding = threading.Lock()
        self._texts: set[str] = set()
        self._known: dict[Spelling, None] = {}
        self._compiled: _Compiled | None = None
        self.add(*texts)

    def __repr__(self) -> str:
        return f"Redaction({len(self._texts)} texts)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a redaction holds secrets and cannot be serialised or copied")

    def add(self, *texts: str) -> None:
        """From now on these are hidden. A blank text cannot be, and is passed over."""
        with self._adding:
            new = [text for text in texts if text.strip() and text not in self._texts]
            if not new:
                return
            self._texts.update(new)
            self._known[_MARKERS] = None
            for text in new:
                self._known.update(dict.fromkeys(spellings(text)))
            self._compiled = _Compiled(self._known)

    @property
    def hides(self) -> bool:
        """Is anything known that must be hidden?"""
        return self._compiled is not None

    def shows(self, data: bytes) -> bool:
        """Would `hide_bytes` change this?"""
        compiled = self._compiled
        return compiled is not None and bool(compiled.spans(data))

    def hide_bytes(self, data: bytes) -> bytes:
        """`data` with every known secret replaced. What was JSON is still JSON.

        A stream must be hidden in whole lines, not in blocks that may cut a secret in two.
        """
        hidden = self._masked(data)
        return hidden if hidden is data or data[:1] not in _JSON_BEGINS else self._as_json(data, hidden)

    def hide(self, text: str) -> str:
        if self._compiled is None:
            return text
        data = text.encode("utf-8", "surrogatepass")
        hidden = self._masked(data)
        return text if hidden is data else hidden.decode("utf-8", "surrogatepass")

    def hide_tree(self, value: Json) -> Json:
        """A value with secrets hidden in its texts, in the names of its fields, and in numbers that are secrets."""
        if self._compiled is None:
            return value
        match value:
            case str():
                return self.hide(value)
            case dict():
                return {self.hide(key): self.hide_tree(each) for key, each in value.items()}
            case list():
                return [self.hide_tree(each) for each in value]
            case bool() | None:
                return value
            case _:
                return MASK if self.shows(str(value).encode()) else value

    def _masked(self, data: bytes) -> bytes:
        compiled = self._compiled
        spans = compiled.spans(data) if compiled is not None else ()
        if not spans:
            return data
        parts: list[bytes] = []
        end_of_last = -1
        for start, end in spans:
            if start > end_of_last:
                parts += [data[max(0, end_of_last) : start], MASK.encode()]
            end_of_last = max(end_of_last, end)
        parts.append(data[end_of_last:])
        return b"".join(parts)

    def _as_json(self, data: bytes, hidden: bytes) -> bytes:
        """A secret may be a bare number, or begin inside an escape: masked there, the text would no longer be JSON."""
        try:
            json.loads(hidden)
        except (ValueError, RecursionError):
            try:
                return json.dumps(self.hide_tree(json.loads(data)), separators=(",", ":")).encode()
            except (ValueError, RecursionError):
                return hidden
        return hidden
