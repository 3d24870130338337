"""Expressions by the million, made from the grammar, over all words and awkward values.

    python -m tests.expr.fuzz --count 1000000 --seed 7

What must hold for every one of them: it gives a value or is refused as an expression (nothing of Python's comes out, and the
evaluator's last resort, `Unforeseen`, is not needed); it takes no longer and no more memory than what it paid for; it gives the
same answer, for the same price, twice; it changes nothing it was given. Time and memory are measured here and nowhere in the test
suite, which uses the same expressions and counts calls instead (test_fuzz.py).
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from msgspec import Struct

from penstock.expr.budget import MAX_MEMORY, MAX_STEPS, Frame, deep_size
from penstock.expr.compile import ExpressionCompiler
from penstock.expr.errors import ExpressionError, Misuse, Unforeseen
from penstock.expr.parse import parse_condition
from penstock.expr.rules import read_expression
from penstock.expr.scope import Names
from penstock.expr.template import render_lenient
from penstock.expr.values import MISSING
from penstock.expr.words.table import APPLIES_FILTER, APPLIES_TEST, FILTERS, FUNCTIONS, METHODS, PATTERN_WORDS, TESTS
from tests.expr.support import ListView, Opaque, View

_SECONDS_PER_STEP = 1e-6
_SECONDS_AT_LEAST = 0.03
_SMALL_BUDGET = 20_000
_BYTES_AT_LEAST = 8 * 1024 * 1024


def _shared(leaf: Any, levels: int, width: int) -> Any:
    """A list that holds one list many times: small in memory, without end when it is walked."""
    made = leaf
    for _ in range(levels):
        made = [made] * width
    return made


def awkward_values() -> dict[str, Any]:
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]
    return {
        "shared": _shared([1], 30, 2),
        "twin": _shared([1], 30, 2),
        "other": [*_shared([1], 29, 2), 5],
        "wide": _shared(["x", None], 6, 10),
        "mapped": {"a": _shared({"k": 1}, 25, 2), "b": 2},
        "deep": deep,
        "numbers": list(range(3000)),
        "mixed": [1, "a", None, 2.5, True, [1], {"k": "v"}, -1, ""],
        "rows": [{"id": i % 7, "name": f"n{i % 13}", "tags": [i, str(i)], "at": "2025-01-31"} for i in range(200)],
        "texts": ["b", "A", "ä", "", "zz" * 100],
        "empty": [],
        "nothing": None,
        "yes": True,
        "text": "Hello, World; a=1, b=22, c=333",
        "long": "abc def\n" * 4000,
        "wide_text": "é☃ß" * 3000,
        "controls": "\x00\x1f\u2028" * 500,
        "half": "a\ud800b",
        "json": '{"a": [1, 2, {"b": null}], "c": "é"}',
        "brackets": "[" * 5000,
        "date": "2025-01-31T13:45:10.5+02:00",
        "last_day": "9999-12-31T23:59:59Z",
        "moment": datetime(2025, 1, 31, 13, 45, tzinfo=UTC),
        "day": date(1, 1, 1),
        "n": 7,
        "zero": 0,
        "negative": -3,
        "huge": 10**1200,
        "large": 2**64,
        "digits": 10**4200 - 1,
        "endless": range(10**12),
        "collide": [k * (2**61 - 1) for k in range(1, 400)],
        "ratio": 0.5,
        "tiny": 5e-324,
        "biggest": 1.7976931348623157e308,
        "infinite": float("inf"),
        "nan": float("nan"),
        "view": View({"a": 1, "b": [1, 2]}),
        "list_view": ListView([3, 1, 2]),
        "opaque": Opaque(),
        "bytes": b"abc",
        "pair": (1, "a"),
        "counted": range(1000),
    }


_LITERALS = tuple(
    r"""
    0 ¦ 1 ¦ 2 ¦ 3 ¦ -1 ¦ 7 ¦ 64 ¦ 1000 ¦ 10001 ¦ 100000 ¦ 2**64 ¦ 10**300 ¦ 10**400 ¦ 1.5 ¦ -0.0 ¦ 1e308 ¦ 1e-300
    ¦ true ¦ false ¦ none ¦ [] ¦ {} ¦ '' ¦ 'a' ¦ 'b' ¦ ',' ¦ ' ' ¦ '\n' ¦ 'id' ¦ 'name' ¦ 'tags.0' ¦ '0' ¦ '0.1' ¦ 'é'
    ¦ '%s' ¦ '%d-%05.1f' ¦ '%(a)s' ¦ '%Y-%m-%d' ¦ '%H%M%S%f%j%U' ¦ 'days' ¦ 'month' ¦ 'value' ¦ 'key' ¦ 'common' ¦ 'ceil'
    ¦ '(a?){20}c' ¦ '(a+)+$' ¦ '.*b|a' ¦ '[a-z]+' ¦ '(\\w+)=(\\d+)' ¦ '\\pL' ¦ '(' ¦ '\\1' ¦ '<\\g<0>>'
    ¦ '2025-01-31' ¦ '1e5' ¦ 'yes' ¦ '0x1F' ¦ 'a b  c' ¦ '[1,2]' ¦ '{"a":1}' ¦ 'YWJj' ¦ 'a'*1000 ¦ [1]*100
    ¦ range(10) ¦ range(100000) ¦ range(10**11) ¦ 0.5 ¦ range(5,0,-1) ¦ [1,2,3] ¦ ['b','a'] ¦ [[1,2],[3]] ¦ [['k',1],['l',2]]
    ¦ {'a':1,'b':[2]} ¦ {1:2} ¦ [none] ¦ [true,1,1.0] ¦ [{'a':1},{'b':2}]
    """.strip().split("¦")
)
_TEXTS = tuple(text for text in map(str.strip, _LITERALS) if text[0] == text[-1] == "'")
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or")


class Grammar:
    """Makes expressions; the same seed makes the same ones."""

    def __init__(self, seed: int, names: list[str]) -> None:
        self.random = random.Random(seed)
        self.names = names
        self.depth = 0
        self.kinds: list[tuple[int, Callable[[], str]]] = [
            (26, self._filter),
            (12, self._method),
            (10, self._function),
            (10, self._test),
            (18, self._operator),
            (3, self._get),
            (4, self._slice),
            (3, self._list),
            (2, self._dict),
            (3, self._choice),
            (2, lambda: f"-({self.expression()})"),
            (2, lambda: f"not ({self.expression()})"),
        ]

    def expression(self) -> str:
        if self.depth >= 4 or self.random.random() < 0.12 + 0.17 * self.depth:
            return self._leaf()
        self.depth += 1
        weights = [weight for weight, _ in self.kinds]
        made = self.random.choices(self.kinds, weights)[0][1]()
        self.depth -= 1
        return made

    def template(self) -> str:
        """Statements around expressions."""
        chosen = self.random.randrange(4)
        if chosen == 0:
            return "{% for v in " + self._value() + " %}{{ v }}{{ " + self.expression() + " }}{% endfor %}"
        if chosen == 1:
            doubling = "{% set v = [v, v] %}" * self.random.randrange(25)
            return "{% set v = " + self.expression() + " %}" + doubling + "{{ v | " + self._word(FILTERS) + " }}"
        if chosen == 2:
            return "{% if " + self.expression() + " %}{{ " + self.expression() + " }}{% else %}-{% endif %}"
        return "a {{ " + self.expression() + " }} b {{ " + self.expression() + " }}"

    def _leaf(self) -> str:
        return self.random.choice(self.names) if self.random.random() < 0.6 else self.random.choice(_LITERALS).strip()

    def _value(self) -> str:
        made = self.expression()
        return made if made.isidentifier() else f"({made})"

    def _word(self, table: dict[str, Any]) -> str:
        names = sorted(name for name in table if name.isidentifier())
        return self._call(table, self.random.choice(names))

    def _call(self, table: dict[str, Any], name: str) -> str:
        names, required, more, _ = table[name].parameters()
        most = len(names) + (2 if more else 0)
        count = self.random.randint(required, most) if self.random.random() < 0.8 else required
        arguments = [self.expression() for _ in range(count)]
        applied = APPLIES_FILTER.get(name) if table is FILTERS else None
        tested = APPLIES_TEST.get(name) if table is FILTERS else None
        if applied is not None and count > applied:
            arguments[applied] = repr(self.random.choice(sorted(FILTERS)))
        if tested is not None and count > tested:
            arguments[tested] = repr(self.random.choice(sorted(TESTS)))
        if name in PATTERN_WORDS and arguments and self.random.random() < 0.7:
            arguments[0] = self.random.choice(_TEXTS)
        return f"{name}({', '.join(arguments)})" if arguments or table is not FILTERS else name

    def _filter(self) -> str:
        return f"{self._value()} | {self._word(FILTERS)}"

    def _method(self) -> str:
        return f"{self._value()}.{self._word(METHODS)}"

    def _function(self) -> str:
        return self._word(FUNCTIONS)

    def _test(self) -> str:
        negated = "not " if self.random.random() < 0.2 else ""
        return f"({self._value()} is {negated}{self._word(TESTS)})"

    def _operator(self) -> str:
        return f"({self.expression()}) {self.random.choice(_OPERATORS)} ({self.expression()})"

    def _get(self) -> str:
        return f"{self._value()}[{self.expression()}]"

    def _slice(self) -> str:
        bounds = ":".join(
            self.expression() if self.random.random() < 0.6 else "" for _ in range(self.random.choice((2, 3)))
        )
        return f"{self._value()}[{bounds}]"

    def _list(self) -> str:
        return f"[{', '.join(self.expression() for _ in range(self.random.randrange(5)))}]"

    def _dict(self) -> str:
        pairs = (f"{self._leaf()}: {self.expression()}" for _ in range(self.random.randrange(3)))
        return "{" + ", ".join(pairs) + "}"

    def _choice(self) -> str:
        return f"({self.expression()} if {self.expression()} else {self.expression()})"


class Worst(Struct):
    """The most that one expression took, and which one it was."""

    seconds: float = 0.0
    slowest: str = ""
    megabytes: float = 0.0
    largest: str = ""

    def time(self, seconds: float, text: str) -> None:
        if seconds > self.seconds:
            self.seconds, self.slowest = seconds, text

    def space(self, size: int, text: str) -> None:
        if size / 1e6 > self.megabytes:
            self.megabytes, self.largest = size / 1e6, text


class Answer(Struct):
    """How an evaluation ended. `failed` is what must not happen; `refusal` is what may."""

    steps: int = 0
    memory: int = 0
    value: Any = MISSING
    refusal: str = ""
    failed: str = ""


def evaluated(text: str, scope: Names, budget: int = MAX_STEPS) -> Answer:
    """An expression without the door of the evaluator around it, so that nothing is caught that an operation let out."""
    frame = Frame(scope)
    frame.steps = budget
    answer = Answer()
    try:
        expr = parse_condition(text)
        findings = read_expression(expr, True)[0]
        if findings:
            return Answer(refusal=findings[0].message)
        answer.value = ExpressionCompiler(text, strict=False).compile(expr)(frame)
    except (Misuse, ExpressionError) as error:
        answer.refusal = str(error)
    except RecursionError:
        answer.refusal = "nested too deeply"
    except Exception as error:  # the oracle itself: this is what must not come out
        answer.failed = f"{type(error).__name__}: {error}"
    answer.steps = budget - frame.steps
    answer.memory = MAX_MEMORY - frame.memory
    return answer


def rendered(text: str, scope: Names) -> Answer:
    """A template through the door."""
    try:
        return Answer(value=render_lenient(text, scope))
    except Unforeseen as error:
        return Answer(failed=str(error))
    except ExpressionError as error:
        return Answer(refusal=str(error))
    except Exception as error:  # the oracle itself
        return Answer(failed=f"{type(error).__name__}: {error}")


def fingerprint(value: Any) -> str:
    """A value in short; of one that is without end, its begin."""
    if value is MISSING or isinstance(value, Opaque) or deep_size(value, 300) >= 300:
        return type(value).__name__
    try:
        return f"{type(value).__name__} {value!r}" if not isinstance(value, (View, ListView)) else repr(list(value))
    except (RecursionError, ValueError):
        return type(value).__name__


def difference(first: Answer, second: Answer) -> str:
    """What is not the same in two answers to one expression."""
    if (first.steps, first.memory, first.refusal) != (second.steps, second.memory, second.refusal):
        return f"ended as {first.refusal or 'a value'} for {first.steps}, then as {second.refusal or 'a value'} for {second.steps}"
    one, other = fingerprint(first.value), fingerprint(second.value)
    return "" if one == other else f"gave {one[:100]}, then {other[:100]}"


def _too_slow(seconds: float, answer: Answer, budget: int) -> str:
    allowed = _SECONDS_AT_LEAST + min(answer.steps, budget) * _SECONDS_PER_STEP
    return f"took {seconds:.3f} s for {answer.steps:,} steps" if seconds > allowed else ""


def _timed(text: str, scope: Names, budget: int) -> tuple[Answer, float]:
    begin = time.thread_time()
    answer = evaluated(text, scope, budget)
    return answer, time.thread_time() - begin


def _too_large(text: str, scope: Names, budget: int, worst: Worst) -> str:
    tracemalloc.start()
    answer = evaluated(text, scope, budget)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    worst.space(peak, text)
    allowed = _BYTES_AT_LEAST + min(2 * answer.memory, 2 * MAX_MEMORY)
    return f"took {peak / 1e6:.1f} MB and paid for {answer.memory / 1e6:.1f} MB" if peak > allowed else ""


def judged(text: str, scope: Names, budget: int, measures_memory: bool, worst: Worst) -> str:
    """What is wrong with the evaluation of an expression; empty when nothing is."""
    first, seconds = _timed(text, scope, budget)
    second, again = _timed(text, scope, budget)
    # The faster of both counts: a collection of garbage, or another process, may have been in the way.
    worst.time(min(seconds, again), text)
    slow = _too_slow(min(seconds, again), first, budget)
    large = _too_large(text, scope, budget, worst) if measures_memory else ""
    return first.failed or slow or difference(first, second) or large


def judged_template(text: str, scope: Names, worst: Worst) -> str:
    begin = time.thread_time()
    answer = rendered(text, scope)
    seconds = time.thread_time() - begin
    worst.time(seconds, text)
    return answer.failed or (
        f"took {seconds:.3f} s" if seconds > MAX_STEPS * _SECONDS_PER_STEP + _SECONDS_AT_LEAST else ""
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description="Evaluate random expressions and report what must not happen.")
    arguments.add_argument("--count", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--memory-every", type=int, default=20, help="measure the memory of one in so many")
    given = arguments.parse_args()
    scope = Names(awkward_values())
    grammar = Grammar(given.seed, sorted(scope))
    before = {name: fingerprint(value) for name, value in scope.items()}
    failures = 0
    worst = Worst()
    gc.freeze()
    for number in range(given.count):
        if number % 50 == 49:
            text = grammar.template()
            wrong = judged_template(text, scope, worst)
        else:
            text = grammar.expression()
            # A small budget shows as well that an operation pays too little, and most are over sooner.
            budget = MAX_STEPS if number % 50 == 0 else _SMALL_BUDGET
            wrong = judged(text, scope, budget, number % given.memory_every == 0, worst)
        if not wrong and number % 1000 == 0 and {name: fingerprint(value) for name, value in scope.items()} != before:
            wrong = "something it was given has changed, in this or one of the last 1000"
        if wrong:
            failures += 1
            print(f"{number}: {wrong}\n    {text}", flush=True)
    print(f"{given.count:,} expressions, seed {given.seed}: {failures} failures", flush=True)
    print(f"the slowest took {worst.seconds:.3f} s: {worst.slowest}", flush=True)
    print(f"the largest took {worst.megabytes:.1f} MB: {worst.largest}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
