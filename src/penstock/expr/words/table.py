"""The one table of words: every filter, test, function and method the language knows, and what each is for.

A word that is not here does not exist, at plan time and at run time. No word knows the time, chance, files or the network, so an
expression over the same values gives the same result for ever. The reference page is made from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from penstock.expr import regex
from penstock.expr.budget import HEADER, SLOT, Frame, cost_of
from penstock.expr.errors import Misuse
from penstock.expr.nodes import WordKind
from penstock.expr.values import COMPARISONS, MISSING, elements, is_sequence, to_text
from penstock.expr.words import items, scalars, text

# ---- Entries of the table, and how they are called: paid for first, refused when the value does not fit


class Entry(Struct, frozen=True):
    """`run` takes the value first (functions: their first argument), and before it the frame when `framed`.

    A call pays for looking at all elements and characters of its arguments once, and for a result of that size. A word that
    does more, or makes more, is `framed` and pays for that itself, before it does it.

    ours       Jinja has no such word
    cheap      costs the same whatever the size of the value
    slow       costs more than others before it looks at anything: dates, encodings
    undefined  is asked about undefined values too; all other words give undefined for undefined
    """

    name: str
    kind: WordKind
    run: Callable[..., Any]
    summary: str
    ours: bool = False
    cheap: bool = False
    slow: bool = False
    undefined: bool = False
    framed: bool = False

    def parameters(self) -> tuple[tuple[str, ...], int, bool, bool]:
        """The names of the arguments, how many of them are required, and whether more may follow, positional or by name."""
        code = self.run.__code__
        skipped = (0 if self.kind == "function" else 1) + self.framed
        names = code.co_varnames[skipped : code.co_argcount]
        required = len(names) - len(self.run.__defaults__ or ())
        return names, max(0, required), bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)

    def signature(self) -> str:
        """How it is written, for the reference: `replace(old, new, count=none)`."""
        names, required, more, named = self.parameters()
        defaults = (self.run.__defaults__ or ())[-(len(names) - required) :] if len(names) > required else ()
        parts = [*names[:required]]
        for name, value in zip(names[required:], defaults, strict=True):
            parts.append(f"{name}={_written(value)}")
        parts += ["…"] if more or named else []
        return f"{self.name}({', '.join(parts)})" if parts or self.kind in ("function", "method") else self.name

    def complaint(self, positional: int, keywords: tuple[str, ...]) -> str:
        """What is wrong with so many arguments, or nothing."""
        names, required, more, named = self.parameters()
        if positional > len(names) and not more:
            most = f"at most {len(names)} argument{'s' if len(names) != 1 else ''}" if names else "no arguments"
            return f"takes {most}, not {positional}"
        for keyword in keywords:
            if keyword in names[:positional]:
                return f"is given `{keyword}` twice"
            if keyword not in names and not named:
                return f"has no argument `{keyword}`"
        missing = [name for name in names[positional:required] if name not in keywords]
        return f"needs the argument `{missing[0]}`" if missing else ""


FILTERS: dict[str, Entry] = {}
TESTS: dict[str, Entry] = {}
FUNCTIONS: dict[str, Entry] = {}
METHODS: dict[str, Entry] = {}
TABLES: dict[WordKind, dict[str, Entry]] = {"filter": FILTERS, "test": TESTS, "function": FUNCTIONS, "method": METHODS}


_CALL = 2
_SLOW = 20


def call(entry: Entry, frame: Frame, arguments: list[Any], named: dict[str, Any]) -> Any:
    """Undefined goes in, undefined comes out; the work is paid for before it is done."""
    everything = (*arguments, *named.values()) if named else arguments
    if not entry.undefined:
        for argument in everything:
            if argument is MISSING:
                return MISSING
    if entry.cheap:
        frame.spend(1)
    else:
        frame.spend((_SLOW if entry.slow else _CALL) + sum(map(cost_of, everything)))
    if entry.framed:
        return entry.run(frame, *arguments, **named)
    result = entry.run(*arguments, **named)
    if type(result) is str:
        frame.hold(HEADER + (len(result) if result.isascii() else 4 * len(result)))
    elif type(result) is list:
        frame.hold(HEADER + SLOT * len(result))
    return result


def _written(value: object) -> str:
    if value is MISSING:
        return "…"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return repr(value)


# ---- Words that apply another word to every element: `map`, `select`, `reject` …


def _entry(table: dict[str, Entry], name: Any) -> Entry:
    # The plan-time check has already seen to it that the name is written out and known.
    entry = table.get(name) if isinstance(name, str) else None
    if entry is None:
        raise Misuse(f"`{name}` is not a word that can be applied to elements")
    return entry


def map_(frame: Frame, value: Any, filter: Any = None, *arguments: Any, **named: Any) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found))
    if filter is None:
        if "attribute" not in named or not named.keys() <= {"attribute", "default"}:
            raise Misuse("`map` takes the name of a filter, or `attribute=` (and `default=`)")
        return items.pluck(frame, found, **named)
    entry = _entry(FILTERS, filter)
    for argument in (*arguments, *named.values()):
        # The same list may end up in every element, so it is paid for every time.
        frame.copies(argument, len(found))
    results = (call(entry, frame, [element, *arguments], named) for element in found)
    return [None if result is MISSING else result for result in results]


def _chosen(frame: Frame, value: Any, attribute: Any, test: Any, arguments: tuple[Any, ...], wanted: bool) -> list[Any]:
    found = elements(frame, value)
    frame.items(len(found))
    look = items.chosen_part(frame, attribute, len(found))
    holds: Callable[[Any], bool] = bool
    if test is not None:
        entry = _entry(TESTS, test)

        def holds(part: Any) -> bool:
            return call(entry, frame, [part, *arguments], {}) is True

    return [element for element in found if holds(look(element)) is wanted]


def select(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, None, test, arguments, True)


def reject(frame: Frame, value: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, None, test, arguments, False)


def selectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, attribute, test, arguments, True)


def rejectattr(frame: Frame, value: Any, attribute: Any, test: Any = None, *arguments: Any) -> list[Any]:
    return _chosen(frame, value, attribute, test, arguments, False)


# Where the name of another word stands among the arguments; it must be written out, so that it can be checked before the run.
APPLIES_FILTER: Final = {"map": 0}
APPLIES_TEST: Final = {"select": 0, "reject": 0, "selectattr": 1, "rejectattr": 1}
PATTERN_WORDS: Final = frozenset({"regex_replace", "regex_search", "regex_findall", "matching"})


def _add(kind: WordKind, names: str, run: Callable[..., Any], summary: str, traits: str = "") -> None:
    """`names` are the name and its aliases; `traits` are those of an Entry. What takes a frame is framed."""
    framed = run.__code__.co_varnames[:1] == ("frame",)
    for name in names.split():
        flags = dict.fromkeys(traits.split(), True)
        TABLES[kind][name] = Entry(name, kind, run, summary, framed=framed, **flags)


def _filter(names: str, run: Callable[..., Any], summary: str, traits: str = "") -> None:
    _add("filter", names, run, summary, traits)


def _test(names: str, run: Callable[..., Any], summary: str, traits: str = "cheap") -> None:
    _add("test", names, run, summary, traits)


def _function(names: str, run: Callable[..., Any], summary: str, traits: str = "") -> None:
    _add("function", names, run, summary, traits)


def _method(names: str, run: Callable[..., Any], summary: str) -> None:
    _add("method", names, run, summary)


# Any value
_filter(
    "default d",
    items.default,
    "This value instead of an undefined one; with `true`, also instead of an empty one.",
    "cheap undefined",
)
_filter("string", to_text, "The value written as text.")
_filter("bool", scalars.bool_, "True or false, also of texts such as `yes` and `off`.", "ours")
_filter("tojson", items.tojson, "The value as JSON text.")
_filter("fromjson", items.fromjson, "The value that a JSON text stands for.", "ours")

# Numbers
_filter("int", scalars.int_, "A whole number of a text or number; the first argument is taken when it is none.")
_filter("float", scalars.float_, "A number of a text; the first argument is taken when it is none.")
_filter("abs", scalars.abs_, "The number without its sign.")
_filter("round", scalars.round_, "The number rounded to so many digits; method `common`, `ceil` or `floor`.")

# Text
_filter("upper", text.upper, "The text in capital letters.")
_filter("lower", text.lower, "The text in small letters.")
_filter("title", text.title, "Every Word With A Capital.")
_filter("capitalize", text.capitalize, "The first letter a capital, the others small.")
_filter("trim", text.trim, "The text without white space (or these characters) at both ends.")
_filter("replace", text.replace, "Every `old` replaced by `new`.")
_filter("split", text.split, "A list of the parts between the separators; without one, the words.")
_filter("lines", text.lines, "A list of the lines of a text.", "ours")
_filter("join", text.join, "The elements as one text, with this between them.")
_filter("truncate", text.truncate, "The text cut to this length, with `...` at the end.")
_filter("indent", text.indent, "Every line but the first moved to the right.")
_filter("center", text.center, "The text in the middle of so many characters.")
_filter("ljust", text.ljust, "The text filled up on its right.", "ours")
_filter("rjust", text.rjust, "The text filled up on its left: `7 | string | rjust(3, '0')`.", "ours")
_filter("format", text.format_, "printf-style: `'%s-%03d' | format(a, b)`.", "slow")
_filter("quote", text.quote, "Text quoted for a shell; of a list each element, with blanks between them.", "ours slow")
_filter("urlencode", text.urlencode, "Text quoted for a URL; a mapping becomes a query string.", "slow")
_filter("b64encode", text.b64encode, "Base64 of the text.", "ours slow")
_filter("b64decode", text.b64decode, "The text that a base64 text stands for.", "ours slow")
_filter("sha256", text.sha256, "The SHA-256 of the text, in hexadecimal.", "ours slow")
_filter(
    "regex_replace",
    regex.regex_replace,
    r"Every match replaced; `\1` in the replacement is the first group.",
    "ours",
)
_filter("regex_search", regex.regex_search, "The first match, or one group of it; null when there is none.", "ours")
_filter("regex_findall", regex.regex_findall, "A list of all matches.", "ours")

# Dates
_filter("to_datetime", scalars.to_datetime, "ISO text of a time written in another format.", "ours slow")
_filter("strftime", scalars.strftime, "A time written in this format.", "ours slow")
_filter("timestamp", scalars.timestamp, "Seconds since 1970 of a time.", "ours slow")
_filter(
    "date_add",
    scalars.date_add,
    "A time moved by so many days, hours …; negative numbers move it back.",
    "ours slow",
)
_filter(
    "date_diff",
    scalars.date_diff,
    "How far a time is after another, in `seconds`, `minutes`, `hours`, `days` or `weeks`.",
    "ours slow",
)
_filter("date_trunc", scalars.date_trunc, "The begin of the `year`, `month`, `day`, `hour` … of a time.", "ours slow")

# Lists and mappings
_filter("length count", items.length, "How many elements, keys or characters.", "cheap")
_filter("first", items.first, "The first element; undefined when there is none.", "cheap")
_filter("last", items.last, "The last element; undefined when there is none.", "cheap")
_filter("list", items.list_, "A new list of the elements.")
_filter("reverse", items.reverse, "The elements, or the text, backwards.")
_filter("sort", items.sort, "The elements in order, by themselves or by an attribute.")
_filter("dictsort", items.dictsort, "The pairs of a mapping in order of their keys or values.")
_filter("min", items.min_, "The smallest element; undefined when there is none.")
_filter("max", items.max_, "The largest element; undefined when there is none.")
_filter("sum", items.sum_filter, "The sum of the elements, or of an attribute of them.")
_filter("unique", items.unique, "Every element once, in the order of first appearance.")
_filter("groupby", items.groupby, "Pairs of a value of the attribute and the list of elements that have it.")
_filter("batch", items.batch, "Lists of so many elements each.")
_filter("flatten", items.flatten, "The elements of the lists inside, down to so many levels.", "ours")
_filter("items", items.items, "The pairs of a mapping.")
_filter("keys", items.keys, "The keys of a mapping.", "ours")
_filter("values", items.values, "The values of a mapping.", "ours")
_filter("combine", items.combine, "One mapping of several; later ones win.", "ours")
_filter("zip", items.zip_, "Lists of the first elements, the second ones, and so on.", "ours")
_filter("pluck", items.pluck, "The same attribute of every element; `map(attribute=…)` does the same.", "ours")
_filter("map", map_, "A filter applied to every element, or an attribute of every element.")
_filter("select", select, "The elements that are true, or pass a test.")
_filter("reject", reject, "The elements that are not true, or fail a test.")
_filter("selectattr", selectattr, "The elements whose attribute is true, or passes a test.")
_filter("rejectattr", rejectattr, "The elements whose attribute is not true, or fails a test.")

_test("defined", lambda value: value is not MISSING, "There is such a value.", "cheap undefined")
_test("undefined", lambda value: value is MISSING, "There is no such value.", "cheap undefined")
_test("none null", lambda value: value is None, "It is null.")
_test("true", lambda value: value is True, "It is true itself.")
_test("false", lambda value: value is False, "It is false itself.")
_test("boolean", lambda value: isinstance(value, bool), "It is true or false.")
_test("integer", lambda value: type(value) is int, "It is a whole number.")
_test("float", lambda value: type(value) is float, "It is a number with a fraction.")
_test("number", lambda value: type(value) in (int, float), "It is a number.")
_test("string", lambda value: isinstance(value, str), "It is text.")
_test("mapping", lambda value: isinstance(value, Mapping), "It is a mapping.")
_test("sequence", is_sequence, "It is a list.")
_test(
    "iterable", lambda value: is_sequence(value) or isinstance(value, (str, Mapping)), "It has elements to go through."
)
_test("empty", lambda value: items.length(value) == 0, "It has no elements, keys or characters.", "ours cheap")
_test("even", lambda value: scalars.number_of("even", value) % 2 == 0, "It is an even number.")
_test("odd", lambda value: scalars.number_of("odd", value) % 2 == 1, "It is an odd number.")
_test("divisibleby", scalars.divisible, "It can be divided by this number.")
_test("startingwith", text.startswith, "The text starts so.", "ours")
_test("endingwith", text.endswith, "The text ends so.", "ours")
_test("matching", regex.matching, "The pattern is found in the text.", "ours")
_test("in", COMPARISONS["in"], "It is among these.")
_test("eq equalto ==", COMPARISONS["=="], "It is equal to this.")
_test("ne !=", COMPARISONS["!="], "It is not equal to this.")
_test("lt lessthan <", COMPARISONS["<"], "It is less than this.")
_test("le <=", COMPARISONS["<="], "It is at most this.")
_test("gt greaterthan >", COMPARISONS[">"], "It is more than this.")
_test("ge >=", COMPARISONS[">="], "It is at least this.")

_function(
    "range", items.range_, "Whole numbers from a start up to, not including, a stop; not kept in memory.", "cheap"
)
_function("len", items.length, "How many elements, keys or characters.", "ours cheap")
_function("abs", scalars.abs_, "The number without its sign.", "ours")
_function("min", items.min_function, "The smallest of these, or of the elements of one list.", "ours")
_function("max", items.max_function, "The largest of these, or of the elements of one list.", "ours")
_function("sum", scalars.sum_, "The sum of the elements.", "ours")
_function("round", scalars.round_function, "The nearest whole number, or rounded to so many digits.", "ours")
_function("int", scalars.int_, "A whole number of a text or number.", "ours")
_function("float", scalars.float_, "A number of a text.", "ours")
_function("str", to_text, "The value written as text.", "ours")
_function("bool", scalars.bool_, "True or false, also of texts such as `yes` and `off`.", "ours")
_function("list", items.list_, "A new list of the elements.", "ours")
_function("dict", items.dict_, "A mapping: `dict(a=1, b=2)`.")
_function("sorted", items.sort, "The elements in order.", "ours")
_function("zip", items.zip_, "Lists of the first elements, the second ones, and so on.", "ours")
_function("any", items.any_, "At least one element is true.", "ours")
_function("all", items.all_, "Every element is true.", "ours")

_method("get", items.get, "The value of a key, or null, or the second argument.")
_method("items", items.items, "The pairs of a mapping.")
_method("keys", items.keys, "The keys of a mapping.")
_method("values", items.values, "The values of a mapping.")
_method("upper", text.upper, "The text in capital letters.")
_method("lower", text.lower, "The text in small letters.")
_method("title", text.title, "Every Word With A Capital.")
_method("strip", text.trim, "The text without white space (or these characters) at both ends.")
_method("lstrip", text.lstrip, "The same, on the left only.")
_method("rstrip", text.rstrip, "The same, on the right only.")
_method("split", text.split, "A list of the parts between the separators.")
_method("replace", text.replace, "Every `old` replaced by `new`.")
_method("startswith", text.startswith, "The text starts so.")
_method("endswith", text.endswith, "The text ends so.")
_method("join", text.join_method, "The elements as one text, with this text between them.")
_method("count", items.count, "How often it is in the text or list.")
_method("index", items.index, "At which place it first is in the text or list; an error when it is not.")
