"""Whatever is in a document, compiling it gives a net or problems, never an exception."""

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.dialects.playbook.plan import picture, plan
from penstock.dialects.playbook.refused import yaml_text
from penstock.dialects.problems import Severity
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.kernel.values import Json
from tests.depth import times
from tests.dialects.playbook.support import HEAD, TABLE, compiled, whole
from tests.dialects.playbook.test_spec_examples import LABELLED, TODAY


def _tree(document: str) -> Json:
    root = load_text(document, "x.yaml").root
    assert root is not None
    return to_json(root)


DOCUMENTS = [_tree(whole(text)) for doc in TABLE.values() for text in (doc.bad, doc.good) if text]
DOCUMENTS += [_tree(HEAD + LABELLED), _tree(HEAD + TODAY)]

WORDS = sorted({word for doc in DOCUMENTS for word in str(doc).replace("'", " ").split() if word.isidentifier()})
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 99), st.sampled_from([*WORDS, "", "{{ x }}", "{{ x ", "ctx.a", "a b"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _paths(inner, (*path, index))
    return found


def _replaced(value: Json, path: tuple[str | int, ...], new: Json) -> Json:
    if not path:
        return new
    head, *rest = path
    if isinstance(value, dict):
        return {**value, str(head): _replaced(value[str(head)], tuple(rest), new)}
    assert isinstance(value, list)
    return [_replaced(inner, tuple(rest), new) if index == head else inner for index, inner in enumerate(value)]


@st.composite
def documents(draw: st.DrawFn) -> Json:
    document = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_paths(document)))
        document = _replaced(document, path, draw(VALUES))
    return document


@settings(max_examples=times(30), deadline=None, derandomize=True)
@given(documents())
def test_a_damaged_document_gives_a_net_or_problems(document):
    text = yaml_text(document) + "\n"
    result = compiled(text)
    lines = text.count("\n") + 1
    for problem in result.problems:
        assert 0 <= problem.position.line <= lines
    if result.net is None:
        assert any(problem.severity is Severity.ERROR for problem in result.problems)
    else:
        assert plan(result.net)["digest"] == compiled(text).net.digest
        assert picture(result.net).svg()
        assert picture(result.net).mermaid()
        assert picture(result.net).dot()


@settings(max_examples=times(30), deadline=None, derandomize=True)
@given(VALUES)
def test_a_rewrite_reads_back_as_the_value_it_was_made_of(value):
    loaded = load_text(yaml_text({"value": value}) + "\n", "x.yaml")
    assert loaded.problems == []
    assert loaded.root is not None
    assert to_json(loaded.root) == {"value": value}
