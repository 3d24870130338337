"""The corpus of what expressions can do: every operator and every word of the table, with what it gives."""

from __future__ import annotations

from penstock.expr import nodes
from penstock.expr.parse import parse
from penstock.expr.words.table import TABLES
from tests.cases import cases
from tests.expr.support import value

OPERATORS = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("7 / 2", 3.5),
    ("6 / 2", 3.0),
    ("-7 // 2", -4),
    ("-7 % 3", 2),
    ("2 ** 10", 1024),
    ("2 ** -1", 0.5),
    ("-2 ** 2", 4),
    ("2 ** 3 ** 2", 64),
    ("- -3", 3),
    ("+3", 3),
    ("1_000 + 0x10 + 0b11 + 0o7", 1026),
    ("1.5e3", 1500.0),
    ("'a' 'b'", "ab"),
    ("'tab\\there' == 'tab\there'", True),
    ("'\\u00e9\\x41\\d'", "éA\\d"),
    ("'a' ~ 1 ~ none ~ true", "a1NoneTrue"),
    ("'ab' * 3", "ababab"),
    ("2 * [0]", [0, 0]),
    ("[1] + [2, 3]", [1, 2, 3]),
    ("[1, 2,]", [1, 2]),
    ("()", []),
    ("(1,)", [1]),
    ("{'a': 1, 2: [3],}", {"a": 1, 2: [3]}),
    ("1 < 2 and 2 >= 2 and not 1 > 2", True),
    ("1 < 2 < 2", False),
    ("'a' in ['a'] and 'b' not in 'abc'", False),
    ("'k' in {'k': 1}", True),
    ("0 or '' or 'x'", "x"),
    ("1 and 'y'", "y"),
    ("'a' if 0 else 'b' if 0 else 'c'", "c"),
    ("row.list[1:]", [1, 2]),
    ("row.list[::-1]", [2, 1, 3]),
    ("row.list[:2:1]", [3, 1]),
    ("'hello'[1:3]", "el"),
    ("row.list[iter.index]", 3),
    ("{'a': {'b': 5}}['a'].b", 5),
    ("[[1, 2], [3]][0][1]", 2),
    ("True == true and None == none and False == false", True),
    ("-1 | abs", 1),
    ("1 + 2 | string | length", 2),
    ("workload.items is defined", True),
    ("3 is not none", True),
    ("10 is divisibleby 5 and 10 is not divisibleby 3", True),
]

FILTERS = [
    ("nope | default('x')", "x"),
    ("nope | d('x')", "x"),
    ("[1, {'a': none}] | string", "[1, {'a': None}]"),
    ("'Yes' | bool", True),
    ("'off' | bool", False),
    ("[1] | bool", True),
    ("{'a': [1, none, true, 'é']} | tojson", '{"a": [1, null, true, "é"]}'),
    ("[1] | tojson(indent=2)", "[\n  1\n]"),
    ("'{\"a\": [1.5, null]}' | fromjson", {"a": [1.5, None]}),
    ("' 12 ' | int", 12),
    ("'3.9' | int", 3),
    ("'zz' | int(0)", 0),
    ("'ff' | int(base=16)", 255),
    ("'1.5' | float + 1", 2.5),
    ("none | float(0.0)", 0.0),
    ("-5 | abs", 5),
    ("2.567 | round(1)", 2.6),
    ("2.1 | round(method='ceil')", 3.0),
    ("'aé' | upper", "AÉ"),
    ("'AÉ' | lower", "aé"),
    ("'a b' | title", "A B"),
    ("'aBC' | capitalize", "Abc"),
    ("'  a ' | trim", "a"),
    ("'--a-' | trim('-')", "a"),
    ("'aXbX' | replace('X', '-')", "a-b-"),
    ("'aaa' | replace('a', 'b', 2)", "bba"),
    ("'a,b' | split(',')", ["a", "b"]),
    ("' a  b ' | split", ["a", "b"]),
    ("'a\\nb' | lines", ["a", "b"]),
    ("[1, 'a', none] | join('-')", "1-a-None"),
    ("workload.items | join(',', attribute='x')", "a,b"),
    ("'hello big world' | truncate(12)", "hello..."),
    ("'abcdefgh' | truncate(6, true)", "abc..."),
    ("'a\\nb' | indent(2)", "a\n  b"),
    ("'a\\nb' | indent(2, first=true)", "  a\n  b"),
    ("'a' | center(3)", " a "),
    ("'a' | ljust(3) ~ '|'", "a  |"),
    ("7 | rjust(3, '0')", "007"),
    ("'%s-%03d %.1f%%' | format('a', 7, 1.25)", "a-007 1.2%"),
    ("'%(x)s' | format(x=[1])", "[1]"),
    ("'a b' | quote", "'a b'"),
    ("'a b/c&d' | urlencode", "a%20b/c%26d"),
    ("{'q': 'a b', 'n': 1, 'gone': none} | urlencode", "q=a%20b&n=1"),
    ("[['a', 1], ['a', 2]] | urlencode", "a=1&a=2"),
    ("'aé' | b64encode", "YcOp"),
    ("'YcOp' | b64decode", "aé"),
    ("'YQ' | b64decode", "a"),
    ("'a' | sha256", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    ("'2025-01-31' | regex_replace('(\\\\d+)-(\\\\d+)-(\\\\d+)', '\\\\3.\\\\2.\\\\1')", "31.01.2025"),
    ("'aaa' | regex_replace('a', 'b', 1)", "baa"),
    ("'id=42;' | regex_search('id=(?P<id>\\\\d+)', 'id')", "42"),
    ("'id=42;' | regex_search('id=\\\\d+')", "id=42"),
    ("'none' | regex_search('\\\\d')", None),
    ("'a1b22' | regex_findall('[0-9]+')", ["1", "22"]),
    ("'a=1,b=2' | regex_findall('(\\\\w)=(\\\\w)')", [["a", "1"], ["b", "2"]]),
    ("'31.01.2025' | to_datetime('%d.%m.%Y')", "2025-01-31T00:00:00"),
    ("0 | to_datetime", "1970-01-01T00:00:00Z"),
    ("workload.when | strftime('%d.%m.%Y %H:%M')", "31.01.2025 13:45"),
    ("'1970-01-02' | timestamp", 86400),
    ("'2025-01-31' | date_add(days=1)", "2025-02-01"),
    ("workload.when | date_add(hours=-14)", "2025-01-30T23:45:10Z"),
    ("'2025-01-02' | date_diff('2025-01-01', 'days')", 1.0),
    ("workload.when | date_trunc('month')", "2025-01-01T00:00:00Z"),
    ("workload.when | date_trunc('minute')", "2025-01-31T13:45:00Z"),
    ("row.list | length", 3),
    ("'abc' | count", 3),
    ("row.list | first", 3),
    ("row.list | last", 2),
    ("'ab' | list", ["a", "b"]),
    ("'ab' | reverse", "ba"),
    ("row.list | reverse", [2, 1, 3]),
    ("row.list | sort", [1, 2, 3]),
    ("row.list | sort(reverse=true)", [3, 2, 1]),
    ("['b', 'A'] | sort", ["A", "b"]),
    ("['b', 'A', 'a'] | sort(case_sensitive=true)", ["A", "a", "b"]),
    ("workload.items | sort(attribute='x', reverse=true) | map(attribute='id')", [2, 1]),
    ("{'b': 1, 'a': 2} | dictsort", [["a", 2], ["b", 1]]),
    ("{'b': 1, 'a': 2} | dictsort(by='value')", [["b", 1], ["a", 2]]),
    ("row.list | min", 1),
    ("row.list | max", 3),
    ("workload.items | max(attribute='id')", {"id": 2, "x": "b"}),
    ("row.list | sum", 6),
    ("workload.items | sum(attribute='id')", 3),
    ("[1, 2, 1, {'a': 1}, {'a': 1}] | unique", [1, 2, {"a": 1}]),
    ("['a', 'A'] | unique", ["a"]),
    ("[{'g': 1, 'n': 1}, {'g': 0, 'n': 2}, {'g': 1, 'n': 3}] | groupby('g') | map(attribute=0)", [0, 1]),
    ("range(5) | batch(2)", [[0, 1], [2, 3], [4]]),
    ("range(3) | batch(2, 'x')", [[0, 1], [2, "x"]]),
    ("row.nested | flatten", [1, 2, 3, 4]),
    ("row.nested | flatten(1)", [1, 2, 3, [4]]),
    ("iter | items", [["page", 3], ["index", 0]]),
    ("iter | keys", ["page", "index"]),
    ("iter | values", [3, 0]),
    ("iter | combine({'page': 4}, {'z': 1})", {"page": 4, "index": 0, "z": 1}),
    ("[1, 2] | zip(['a', 'b'])", [[1, "a"], [2, "b"]]),
    ("workload.items | pluck('x')", ["a", "b"]),
    ("['a', 'b'] | map('upper')", ["A", "B"]),
    ("['a'] | map('replace', 'a', 'c')", ["c"]),
    ("[{'a': {'b': 1}}, {}] | map(attribute='a.b', default=0)", [1, 0]),
    ("[0, 1, '', 'a'] | select", [1, "a"]),
    ("[1, 2, 3] | select('odd')", [1, 3]),
    ("[1, 2, 3] | reject('gt', 1)", [1]),
    ("workload.items | selectattr('id', '>', 1) | map(attribute='x')", ["b"]),
    ("[{'a': 1}, {}] | selectattr('a', 'defined')", [{"a": 1}]),
    ("[{'a': 1}, {}] | rejectattr('a')", [{}]),
]

TESTS = [
    ("1 is defined and nope is undefined", True),
    ("none is none and none is null", True),
    ("true is true and false is false and 1 is not true", True),
    ("true is boolean and 1 is integer and 1.0 is float and 1.0 is number and true is not number", True),
    ("'a' is string and {} is mapping and [] is sequence and 'a' is iterable and 1 is not iterable", True),
    ("[] is empty and 'a' is not empty", True),
    ("2 is even and 3 is odd and 4 is divisibleby(2)", True),
    ("'abc' is startingwith('a') and 'abc' is endingwith 'c' and 'a1' is matching '[0-9]'", True),
    ("1 is in [1] and 1 is eq 1 and 1 is equalto 1 and 1 is ne 2", True),
    ("1 is lt 2 and 1 is lessthan 2 and 1 is le 1 and 2 is gt 1 and 2 is greaterthan 1 and 2 is ge 2", True),
]

FUNCTIONS = [
    ("range(3) == [0, 1, 2]", True),
    ("range(10, 0, -5) | list", [10, 5]),
    ("len(row.list) + len('ab') + len(iter)", 7),
    ("abs(-2)", 2),
    ("min(3, 1, 2) + min([5, 4])", 5),
    ("max(row.list) + max(1, 2)", 5),
    ("sum([1, 2], 10)", 13),
    ("round(2.6)", 3),
    ("round(2.345, 2)", 2.35),
    ("int('5') + int('x', 1)", 6),
    ("float('1.5')", 1.5),
    ("str(1.0) ~ str(none)", "1.0None"),
    ("bool('no')", False),
    ("list('ab')", ["a", "b"]),
    ("dict(a=1, b=[2])", {"a": 1, "b": [2]}),
    ("dict([['a', 1]], b=2)", {"a": 1, "b": 2}),
    ("sorted(row.list, reverse=true)", [3, 2, 1]),
    ("zip([1, 2], ['a', 'b'])", [[1, "a"], [2, "b"]]),
    ("any([0, 1]) and not any([])", True),
    ("all([1, 1]) and not all([0])", True),
]

METHODS = [
    ("iter.get('page') + iter.get('none', 1)", 4),
    ("iter.items()", [["page", 3], ["index", 0]]),
    ("iter.keys()", ["page", "index"]),
    ("iter.values()", [3, 0]),
    ("'a'.upper() ~ 'B'.lower() ~ 'c d'.title()", "AbC D"),
    ("' a '.strip() ~ ' b '.lstrip() ~ ' c '.rstrip() ~ '-d-'.strip('-')", "ab  cd"),
    ("'a,b'.split(',')", ["a", "b"]),
    ("'aa'.replace('a', 'b')", "bb"),
    ("'ab'.startswith('a') and 'ab'.endswith('b')", True),
    ("'-'.join(['a', 'b'])", "a-b"),
    ("'banana'.count('a') + [1, 1].count(1)", 5),
    ("'abc'.index('c') + [5, 6].index(6)", 3),
]

CORPUS = OPERATORS + FILTERS + TESTS + FUNCTIONS + METHODS


@cases("expression, expected", CORPUS)
def test_an_allowed_expression_gives(expression, expected):
    result = value(expression)
    assert result == expected
    assert type(result) is type(expected)


def test_every_word_of_the_table_is_in_the_corpus():
    used: set[tuple[str, str]] = set()

    def walk(node: nodes.Expr) -> None:
        if isinstance(node, nodes.Word):
            used.add((node.kind, node.name))
        for child in nodes.children(node):
            walk(child)

    for expression, _ in CORPUS:
        single = parse("{{ " + expression + " }}").single
        assert single is not None
        walk(single)
    table = {(kind, name) for kind, words in TABLES.items() for name in words if name.isidentifier()}
    assert table == used


def test_every_word_says_what_it_is_for_and_how_it_is_written():
    for words in TABLES.values():
        for name, entry in words.items():
            assert entry.name == name
            assert entry.summary.endswith(".")
            assert entry.signature().startswith(name)
    assert TABLES["filter"]["replace"].signature() == "replace(old, new, count=none)"
    assert TABLES["filter"]["upper"].signature() == "upper"
    assert TABLES["function"]["range"].signature() == "range(…)"


def test_a_range_is_lazy():
    assert value("range(1000000)") == range(1000000)
    assert value("range(10 ** 11) | length") == 10**11
    assert value("range(100)[5:7] ~ ''") == "[5, 6]"
