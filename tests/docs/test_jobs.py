"""What the pages about jobs show is true: files are written, commands are run, and what they print is what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generator.component_pages import AFTER, component_pages, own_variables
from docs.generator.document_pages import job_page
from docs.generator.examples import UNREACHABLE, UNSTEADY, output_of, run_example, stale, steady
from penstock.components.registry import ComponentRegistry, built_in, example_of
from penstock.dialects.job.words import SCOPES
from tests.docs.pages import DOCS, PROJECT
from tests.docs.sessions import PAGES, place, play

REGISTRY = ComponentRegistry(with_lineage=False)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing of this machine's user is in sight."""
    for name in ("PENSTOCK_HOME", "PENSTOCK_DEBUG", "PENSTOCK_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("xdg")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_its_commands_print(page: Path) -> None:
    with place() as folder:
        wrong = play(page, folder)
    assert wrong == [], f"python -m tests.docs.sessions {page.relative_to(PROJECT)} writes it anew"


def test_every_page_that_is_meant_to_be_run_is_run() -> None:
    assert {page.stem for page in PAGES} >= {
        "data-quality",
        "databases",
        "errors-and-recovery",
        "files-and-archives",
        "first-job",
        "first-playbook",
        "README",
        "globals",
        "iterators",
        "joblets",
        "playbooks-and-jobs",
        "python-components",
    }


@pytest.mark.parametrize("type_", steady())
def test_the_example_of_a_component_runs_and_shows_what_its_page_says(type_: str, tmp_path: Path) -> None:
    text = example_of(type(REGISTRY.get(type_)))
    assert f"type: {type_}" in text.replace('"', ""), "an example shows the component it belongs to"
    given = run_example(text, tmp_path.resolve(), REGISTRY)
    assert (given.status, given.error) == ("completed", None)
    assert given.lines == output_of(type_, text), "python -m docs.generator docs/reference --run-all puts it down anew"


@pytest.mark.parametrize("type_", UNSTEADY)
def test_the_example_of_a_component_that_differs_each_time_runs_all_the_same(type_: str, tmp_path: Path) -> None:
    given = run_example(example_of(type(REGISTRY.get(type_))), tmp_path, REGISTRY)
    assert (given.status, given.error) == ("completed", None)


def test_every_example_is_on_record() -> None:
    assert stale() == [], "`make docs` runs them"
    assert {*steady(), *UNSTEADY, *UNREACHABLE} == {*built_in()}


def test_every_component_has_a_page_with_its_ports_and_parameters() -> None:
    pages = component_pages()
    for type_ in built_in():
        described = REGISTRY.describe(type_)
        assert described is not None
        page = pages[f"components/{type_}.md"]
        assert f"[`{type_}`]({type_}.md)" in pages["components/index.md"]
        for port in (*described.ports.inputs, *described.ports.outputs):
            assert f"| `{port.name}` |" in page, (type_, port.name)
        for param in described.params.values():
            assert f"| `{param.name}` |" in page, (type_, param.name)
            assert param.description, (type_, param.name)


def test_every_key_of_a_job_is_listed() -> None:
    page = job_page()
    for name, scope in SCOPES.items():
        section = page.partition(f'<a id="{name}"></a>')[2].partition("<a id=")[0]
        for key in scope.words:
            assert f"| `{key}` |" in section, f"{name}.{key}"


def test_after_variables_are_taken_from_the_words_about_them() -> None:
    assert own_variables("Does it with `SQL`. After-variables: `COUNT`,\n`FILENAME` (the last). Never `THIS`.") == [
        "COUNT",
        "FILENAME",
    ]
    assert "NB_LINE" in AFTER


def test_every_built_in_component_is_a_word_for_those_who_come_from_talend_or_is_one_they_lack() -> None:
    page = (DOCS / "how-to" / "talend-words.md").read_text(encoding="utf-8")
    ours = {
        "assert_rows", "data_profile", "derive", "file_checksum", "file_list", "format_columns", "iterate_groups", "iterate_query",
        "lookup", "merge_changes", "noop", "playbook", "read_arrow", "read_iceberg", "read_orc", "sequence", "split", "write_arrow", "write_iceberg", "write_orc",
    }  # fmt: skip
    assert {type_ for type_ in built_in() if f"[`{type_}`]" not in page} == ours
