"""Names that code finds without making them: libraries, copies of its args, the run's context; and `return` at its end."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from penstock.kernel.values import Json
from penstock.ports.blobs import ResultRef
from penstock.ports.results import view
from penstock.tools.base import Call
from tests.cases import cases
from tests.tools.running import Runner


@pytest.fixture(params=["thread", "process"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    return Runner("python", tmp_path, isolation=request.param)


@pytest.fixture
def in_thread(tmp_path: Path) -> Runner:
    return Runner("python", tmp_path, isolation="thread")


# ---- libs


def test_libs_are_modules_and_names_of_modules(run: Runner):
    libs = {
        "js": "json",
        "paths": "os.path",
        "day": {"from": "datetime", "import": "date"},
        "p": {"from": "os", "import": "path"},
    }
    code = "result = [js.dumps([1]), paths.basename('a/b'), day(2026, 1, 2), p is paths]"
    assert run({"code": code, "libs": libs}).result == ["[1]", "b", "2026-01-02", True]


def test_a_module_within_a_package_can_be_named_as_what_is_imported_from_it(run: Runner):
    libs = {"policy": {"from": "email", "import": "policy"}, "text": "email.mime.text"}
    assert run({"code": "result = [policy.__name__, text.__name__]", "libs": libs}).result == [
        "email.policy",
        "email.mime.text",
    ]


def test_libs_are_there_for_main_and_for_functions(run: Runner):
    code = "def f():\n    return js.loads('[1]')\ndef main():\n    return f()"
    assert run({"code": code, "libs": {"js": "json"}}).result == [1]


def test_modules_beside_the_document_are_libs_too(run: Runner, tmp_path: Path):
    (tmp_path / "names_beside.py").write_text("answer = 42\n")
    assert run({"code": "result = n.answer", "libs": {"n": "names_beside"}}).result == 42


def test_all_libs_that_are_missing_are_named_before_the_code_runs(run: Runner):
    libs = {"a": "no_such_a", "b": {"from": "json", "import": "nothing_such"}, "c": "json"}
    ended = run({"code": "print('ran')", "libs": libs})
    assert ended.kind == "import"
    assert ended.detail == {"modules": ["no_such_a", "json.nothing_such"]}
    assert ended.message.startswith(
        "`libs` cannot be imported: `a`: ModuleNotFoundError: No module named 'no_such_a'; `b`: "
    )
    assert ended.py["exception_type"] == "ModuleNotFoundError"
    assert ended.said == []


def test_a_module_that_fails_while_it_is_imported_says_why(run: Runner, tmp_path: Path):
    (tmp_path / "broken_beside.py").write_text("raise ValueError('on purpose')\n")
    ended = run({"code": "result = 1", "libs": {"b": "broken_beside"}})
    assert (ended.kind, ended.message) == ("import", "`libs` cannot be imported: `b`: ValueError: on purpose")


@cases(
    "params, says",
    [
        ({"libs": {"a b": "json"}}, "`a b` in `libs` cannot be a name in Python"),
        ({"libs": {"class": "json"}}, "`class` in `libs` cannot be a name in Python"),
        ({"libs": {"x": "json"}, "args": {"x": 1}}, "`libs` and `args` both give `x`"),
        ({"libs": {"x": {"from": "json"}}}, "is a mapping without `import`"),
        ({"libs": ["json"]}, "`libs`"),
    ],
)
def test_libs_that_cannot_be_bound_are_refused(in_thread: Runner, params: dict[str, Any], says: str):
    ended = in_thread({"code": "result = 1", **params})
    assert ended.kind == "parameters"
    assert says in ended.message


# ---- args as a whole


def test_args_and_input_data_are_copies_of_the_args(run: Runner):
    code = "input_data['c'] = 3\nargs['d'] = 4\nresult = [sorted(input_data), sorted(args), a, execution_id]"
    assert run({"code": code, "args": {"a": 1, "b": 2}}).result == [["a", "b", "c"], ["a", "b", "d"], 1, "run-1"]


def test_an_arg_of_that_name_is_the_arg(run: Runner):
    given = {"input_data": 1, "args": 2, "execution_id": 3, "context": 4}
    code = "result = [input_data, args, execution_id, context]"
    assert run({"code": code, "args": given}).result == [1, 2, 3, 4]


def test_main_is_given_what_it_asks_for_by_these_names_and_has_no_default_for(run: Runner):
    code = "def main(input_data, execution_id, args='own', /, *, a):\n    return [input_data, execution_id, args, a]"
    assert run({"code": code, "args": {"a": 1}}).result == [{"a": 1}, "run-1", "own", 1]


def test_code_without_args_has_empty_ones(run: Runner):
    assert run({"code": "result = input_data.get('n', args)"}).result == {}


def test_the_codes_own_variable_of_such_a_name_is_its_own(run: Runner):
    assert run({"code": "context = 5\nargs = 6\nresult = context + args"}).result == 11
    assert run({"code": "def main(*args):\n    return args"}).result == []


# ---- context


class Names:
    """What the templates of a task could name, and how often it was asked for."""

    def __init__(self, **names: Any) -> None:
        self.asked = 0
        self._names = names

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return self._names


def test_context_is_what_templates_can_name(run: Runner):
    names = Names(load={"rows": [1, 2]}, city="Oslo", ctx={"n": 1})
    code = (
        "result = [context['load']['rows'], context.get('city'), context.get('none', 0), sorted(context), len(context)]"
    )
    assert run({"code": code}, names=names).result == [[1, 2], "Oslo", 0, ["city", "ctx", "load"], 3]


def test_context_can_be_given_to_functions_and_returned(run: Runner):
    names = Names(a=1, b=[2])
    assert run({"code": "def main(context):\n    return context"}, names=names).result == {"a": 1, "b": [2]}
    assert run({"code": "def f(c):\n    return dict(c)\nresult = f(context)"}, names=names).result == {"a": 1, "b": [2]}


def test_context_cannot_be_written(run: Runner):
    ended = run({"code": "context['a'] = 1"}, names=Names(a=2))
    assert (ended.kind, ended.py["exception_type"]) == ("exception", "TypeError")


def test_what_code_does_to_values_of_the_context_happens_to_its_own_copies(in_thread: Runner):
    rows = [1]
    names = Names(rows=MappingProxyType({"rows": rows}))
    ended = in_thread({"code": "context['rows']['rows'].append(2)\nresult = context['rows']"}, names=names)
    assert (ended.result, rows) == ({"rows": [1, 2]}, [1])


def test_code_that_does_not_name_the_context_is_given_none(run: Runner):
    names = Names(a=1)
    assert run({"code": "result = 1"}, names=names).result == 1
    assert names.asked == 0


@cases(
    "code, loaded",
    [
        ("result = context['small']", []),
        ("result = context.get('small', 0)", []),
        ("x = 1  # the context of it\nresult = 1", []),
        ("def main(context):\n    return context['large']", ["large"]),
        ("name = 'large'\nresult = context[name]", ["large"]),
    ],
)
def test_only_results_that_the_code_may_look_at_are_read_from_the_store(run: Runner, code: str, loaded: list[str]):
    read: list[str] = []

    def load(ref: ResultRef) -> Json:
        read.append(ref.key)
        return {"rows": [1]}

    large = view(ResultRef("file", "large", 9, "sha256:0", "application/json", {"type": "object"}), load)
    ended = run({"code": code}, names=Names(small=1, large=large), load=load)
    assert ended.failure is None
    assert read == loaded


def test_a_large_result_that_is_looked_at_is_its_value(run: Runner):
    ref = ResultRef("file", "large", 9, "sha256:0", "application/json", {"type": "object"})
    names = Names(large=view(ref, lambda ref: {"rows": [1]}), within={"ref": ref.as_json()})
    code = "result = [context['large'], context['within']]"
    ended = run({"code": code}, names=names, load=lambda ref: {"rows": [2]})
    assert ended.result == [{"rows": [1]}, {"ref": {"rows": [2]}}]


# ---- return


def test_a_return_outside_of_functions_gives_the_result(run: Runner):
    assert run({"code": "x = a + 1\nreturn {'x': x}", "args": {"a": 1}}).result == {"x": 2}
    assert run({"code": "return"}).result is None
    assert run({"code": "for n in range(9):\n    if n == 3:\n        return n"}).result == 3


def test_what_is_returned_wins_over_main_and_result(run: Runner):
    code = "result = 1\ndef main():\n    return 2\nif a:\n    return 3"
    assert run({"code": code, "args": {"a": True}}).result == 3
    assert run({"code": code, "args": {"a": False}}).result == 2
    assert run({"code": "result = 1\nif a:\n    return None", "args": {"a": True}}).result is None
    assert run({"code": "result = 1\nif a:\n    return 3", "args": {"a": False}}).result == 1


def test_an_async_main_can_be_returned(run: Runner):
    code = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 5\nreturn main()"
    assert run({"code": code}).result == 5


def test_variables_beside_a_return_are_the_modules(run: Runner):
    code = """
from __future__ import annotations
import dataclasses, pickle
import os.path as paths

count: int = 0
undefined: str
names = [n for n in "ab"]

@dataclasses.dataclass
class Row:
    n: int
    total: int = count

def add(n: int) -> None:
    global count
    count += n

def fact(n):
    return n * fact(n - 1) if n else 1

try:
    raise ValueError(5)
except ValueError as error:
    add(error.args[0])
with open(os.devnull) if "os" in globals() else open(paths.devnull) as nothing:
    pass
match {"k": [1, 2, 3]}:
    case {"k": [first, *others], **rest}:
        pass
if (last := [w := n for n in others][-1]) == w:
    return [count, names, pickle.loads(pickle.dumps(Row(4))).n, fact(5), first, rest, last, globals()["count"]]
"""
    assert run({"code": code}).result == [5, ["a", "b"], 4, 120, 1, {}, 3, 5]


def test_a_failure_beside_a_return_names_its_line_as_ever(run: Runner):
    ended = run({"code": "x = 1\nif x:\n    y = 1 / 0\nreturn x"})
    assert ended.message == "ZeroDivisionError: division by zero (line 3 of `code`, flow.yaml:27)"
    assert ended.detail["traceback"] == (
        '  File "flow.yaml", line 27, in <module>\n    y = 1 / 0\nZeroDivisionError: division by zero'
    )


@cases(
    "code, line",
    [
        ("yield 1\nreturn 2", 1),
        ("x = 1\nreturn 2\nyield 1", 2),
        ("class A:\n    return 1", 2),
        ("from os import *\nreturn path", 1),
        ("return 1\nbreak", 2),
    ],
)
def test_a_return_where_there_can_be_none_is_a_syntax_error(in_thread: Runner, code: str, line: int):
    ended = in_thread({"code": code})
    assert (ended.kind, ended.detail["line"]) == ("syntax", line)


def test_a_script_may_return_too(run: Runner, tmp_path: Path):
    (tmp_path / "some.py").write_text("# what it does\nreturn [a, __file__]\n")
    assert run({"script": "some.py", "args": {"a": 1}}).result == [1, str(tmp_path / "some.py")]


def test_names_are_a_field_of_a_call_that_knows_none_by_default(in_thread: Runner):
    call: Call = in_thread.call([])
    assert (call.names(), call.caller) == ({}, None)
