"""The one table of words: every filter, test, function and method the language knows, and what each is for.

A word that is not here does not exist, at plan time and at run time. No word knows the time, chance, files or the network, so an
expression over the same values gives the same result for ever. The reference page is made from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.expr import regex
from penstock.expr.values import COMPARISONS, MISSING, is_sequence, to_text
from penstock.expr.words import items, scalars, text
from penstock.expr.words.entry import FILTERS, FUNCTIONS, METHODS, TABLES, TESTS, Entry, WordKind

__all__ = [
    "APPLIES_FILTER",
    "APPLIES_TEST",
    "FILTERS",
    "FUNCTIONS",
    "METHODS",
    "PATTERN_WORDS",
    "TABLES",
    "TESTS",
    "Entry",
]

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
_filter("map", items.map_, "A filter applied to every element, or an attribute of every element.")
_filter("select", items.select, "The elements that are true, or pass a test.")
_filter("reject", items.reject, "The elements that are not true, or fail a test.")
_filter("selectattr", items.selectattr, "The elements whose attribute is true, or passes a test.")
_filter("rejectattr", items.rejectattr, "The elements whose attribute is not true, or fails a test.")

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
