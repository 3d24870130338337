"""Which tools there are, how they are described, and how values become their parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
import yaml

from penstock.kernel.errors import Refused
from penstock.ports.plugins import ParamInfo, ToolCatalog
from penstock.tools import registry as module
from penstock.tools.base import Tool, ToolFailure, tool
from penstock.tools.parameters import convert
from penstock.tools.registry import Registry, example_of, register
from tests.cases import cases
from tests.tools.running import python_process

WrongModel = msgspec.defstruct("WrongModel", [("a", Annotated[int | None, msgspec.Meta(ge=1)])])
OURS = ("python", "shell", "playbook", "noop", "sleep", "log")


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    before = dict(Registry.registered)
    yield
    Registry.registered.clear()
    Registry.registered.update(before)


def offer(folder: Path, distribution: str, entry: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with one plug-in, as an installer would leave it."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[penstock.tools]\n{entry}\n")
    name = entry.partition("=")[2].partition(":")[0].strip()
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


# ---- finding tools


@cases("kind", OURS)
def test_a_built_in_tool_is_found_by_its_kind_and_made_once(kind: str):
    registry = Registry()
    assert registry.get(kind).kind == kind
    assert registry.get(kind) is registry.get(kind)


def test_every_built_in_kind_of_the_table_is_there():
    registry = Registry()
    assert [registry.get(kind).kind for kind in module.BUILT_IN] == list(module.BUILT_IN)


def test_a_kind_that_is_not_there_gets_a_suggestion():
    with pytest.raises(Refused, match=r"there is no tool of kind `pythn`; did you mean `python`\?"):
        Registry().get("pythn")


def test_nothing_is_imported_before_it_is_asked_for():
    program = """
import sys
from penstock.tools.registry import Registry
Registry().get("noop")
heavy = ("penstock.tools.http.tool", "penstock.tools.python.tool", "importlib.metadata", "aiohttp", "httpx2", "psycopg", "duckdb")
print([name for name in heavy if name in sys.modules])
"""
    out, error = python_process(program).communicate(timeout=60)
    assert (out, error) == ("[]\n", "")


def test_a_registered_tool_is_found_and_can_be_replaced_as_notebooks_do():
    registry = Registry()

    @register
    @tool("greet")
    def greet(name: str) -> str:
        """Say hello."""
        return f"hello {name}"

    first = registry.get("greet")

    @register
    @tool("greet")
    def greet_again(name: str, loud: bool = False) -> str:
        """Say hello again."""
        return name

    assert type(first) is greet
    assert type(registry.get("greet")) is greet_again
    assert "greet" in registry.kinds()


def test_a_built_in_kind_cannot_be_taken():
    with pytest.raises(Refused, match="`http` is built in"):
        register(tool("http")(lambda: None))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (object, "is not a tool"),
        (type("NoKind", (Tool,), {"Params": msgspec.defstruct("P", [])}), "has no `kind`"),
        (type("NoParams", (Tool,), {"kind": "x"}), "has no `Params`"),
        (type("Wrong", (Tool,), {"kind": "x", "Params": WrongModel}), "the `Params` of `Wrong` cannot be used"),
    ],
)
def test_a_class_that_could_not_run_is_refused_at_once(made: Any, says: str):
    with pytest.raises(Refused, match=says):
        register(made)


def test_an_installed_package_can_offer_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = """
from penstock.tools.base import tool
@tool("shout")
def Shout(text: str):
    "Shout it."
    return text.upper()
"""
    offer(tmp_path, "acme-tools", "shout = acme_shout:Shout", code, monkeypatch)
    registry = Registry()
    assert registry.get("shout").kind == "shout"
    assert registry.kinds()[-1] == "shout"
    described = registry.describe("shout")
    assert described is not None
    assert described.summary == "Shout it."


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("Other = 1", "AttributeError"),
        ("Broken = 5", "`acme_broken:Broken` of the package `acme-broken` is not a tool"),
        (
            "from penstock.tools.base import tool\nBroken = tool('other')(lambda: None)",
            "offered as `broken`, and its kind is `other`",
        ),
    ],
)
def test_a_broken_plug_in_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str):
    offer(tmp_path, "acme-broken", "broken = acme_broken:Broken", code, monkeypatch)
    registry = Registry()
    with pytest.raises(Refused) as caught:
        registry.get("broken")
    assert says in caught.value.message
    assert "`acme-broken`" in caught.value.message
    assert caught.value.hint
    assert registry.get("noop").kind == "noop"


# ---- describing them


def test_the_registry_is_a_catalog_of_tools():
    catalog: ToolCatalog = Registry()
    assert catalog.describe("no-such-kind") is None
    described = catalog.describe("shell")
    assert described is not None
    assert described.summary == "Run a command or a script, or several scripts."
    assert described.one_of == ("command", "cmds")
    assert described.params["cmds"] == ParamInfo(
        "cmds",
        False,
        ("string", "array", "null"),
        None,
        "Scripts that run one after another, each in a process of its own, until one fails; text is one script.",
    )
    assert described.params["output"].enum == ("json", "lines", "text")
    assert described.params["timeout"].types == ("number", "null")
    assert described.params["timeout"].required is False


@cases("kind", OURS)
def test_every_parameter_has_a_description_and_a_place_in_the_schema(kind: str):
    described = Registry().describe(kind)
    assert described is not None
    assert described.summary
    assert all(param.description for param in described.params.values())
    assert described.schema["type"] == "object"
    assert described.schema["additionalProperties"] is False
    assert set(described.schema["properties"]) == set(described.params)
    assert [name for name, param in described.params.items() if param.required] == described.schema["required"]


def test_a_nested_model_is_defined_inside_the_schema():
    described = Registry().describe("python")
    assert described is not None
    assert set(described.schema["$defs"]) == {"Limits", "Name", "PythonScript", "PythonSource"}
    assert described.params["limits"].types == ("object",)


@cases("kind", OURS)
def test_the_example_of_each_tool_has_right_parameters(kind: str):
    registry = Registry()
    tasks = yaml.safe_load(example_of(type(registry.get(kind))))
    assert tasks
    for task in tasks:
        assert task.pop("kind") == kind
        assert task.pop("name")
        registry.convert(kind, task)


# ---- parameters


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: float = 0
    names: list[str] = []


class Model(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    text: str
    maybe: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    rate: float = 0.5
    flag: bool = False
    mode: Literal["fast", "slow"] = "fast"
    either: str | int | None = None
    words: str | list[str] = ""
    headers: dict[str, str] = {}
    anything: Any = None
    inner: Inner = Inner()


def converted(**values: Any) -> Any:
    return convert("model", Model, values)


def mistakes(**values: Any) -> dict[str, str]:
    with pytest.raises(ToolFailure) as caught:
        converted(**values)
    assert caught.value.kind == "parameters"
    return {problem["parameter"]: problem["message"] for problem in caught.value.detail["problems"]}  # type: ignore[union-attr]


def test_text_that_says_a_number_is_one():
    made = converted(text="x", count="5", rate="2.5", flag="true")
    assert (made.count, made.rate, made.flag) == (5, 2.5, True)


def test_a_number_where_only_text_is_accepted_becomes_text():
    made = converted(text=5, maybe=2.5, words=["a", 1, True], headers={"X-Count": 3}, inner={"names": [1]})
    assert (made.text, made.maybe, made.words) == ("5", "2.5", ["a", "1", "true"])
    assert (made.headers, made.inner.names) == ({"X-Count": "3"}, ["1"])
    assert converted(text=True, words=7).words == "7"
    assert converted(text=False).text == "false"


def test_a_number_where_numbers_are_accepted_stays_one():
    made = converted(text=1, either=5, anything={"n": [1, 2.5, True]})
    assert (made.either, made.anything) == (5, {"n": [1, 2.5, True]})


def test_every_mistake_is_told_at_once():
    assert mistakes(
        txt="x",
        count=0,
        rate="abc",
        flag=[],
        mode="fats",
        words={},
        headers=[1],
        inner={"seconds": "x", "naem": 1},
        maybe=["a"],
    ) == {
        "txt": "there is no such parameter; did you mean `text`?",
        "count": "expected a whole number >= 1",
        "rate": "expected a number, got text",
        "flag": "expected `true` or `false`, got a list",
        "mode": "expected one of `fast`, `slow`, got `fats`; did you mean `fast`?",
        "words": "expected text or a list, got a mapping",
        "headers": "expected a mapping, got a list",
        "inner.seconds": "expected a number, got text",
        "inner.naem": "there is no such parameter; did you mean `names`?",
        "maybe": "expected text, got a list",
        "text": "is needed",
    }


def test_a_mistake_inside_a_list_names_its_place():
    assert mistakes(text="x", words=["a", {}]) == {"words[1]": "expected text, got a mapping"}
    assert mistakes(text="x", headers={"a": None}) == {"headers[...]": "expected text, got nothing"}


def test_the_message_reads_as_one_sentence():
    with pytest.raises(
        ToolFailure, match=r"^parameters of `model`: `text`: expected text, got a mapping; `rate`: expected"
    ):
        converted(text={}, rate={})


def test_values_are_never_printed():
    with pytest.raises(ToolFailure) as caught:
        converted(text="x", rate="hunter2", count="hunter2", flag="hunter2", inner="hunter2")
    assert "hunter2" not in f"{caught.value.message}{caught.value.detail}"


def test_a_rule_of_the_model_itself_is_told_in_its_own_words():
    class Pair(msgspec.Struct):
        a: int = 0
        b: int = 0

        def __post_init__(self) -> None:
            if self.a > self.b:
                raise ValueError("`a` must not be above `b`")

    with pytest.raises(ToolFailure, match=r"^parameters of `pair`: `a` must not be above `b`$"):
        convert("pair", Pair, {"a": 2, "b": 1})
