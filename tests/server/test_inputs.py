"""Which inputs a run may be given: one rule, whoever gives them."""

from pathlib import Path

import pytest

from penstock import run
from penstock.components.registry import ComponentRegistry
from penstock.server.documents import DocumentInvalid, Documents, Pinned
from penstock.server.inputs import UnknownInput, require_known
from penstock.tools.registry import Registry

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: orders}
executor: {spec: {SPEC}}
workload:
  limit: 10
  database: {host: localhost, port: 5432}
  regions: {north: 1, south: 2}
workflow:
  - step: start
    desc: reads nothing called pages
    tool:
      - name: load
        kind: python
        args: {limit: "{{ workload.limit }}", host: "{{ workload.database.host }}", day: "{{ day }}", all: "{{ workload.regions }}"}
        code: "result = [limit, all]"
    next: {arcs: [{step: end, when: "{{ workload.urgent }}"}]}
  - step: end
    tool: {kind: noop}
"""

JOB = """\
job_config: {CONFIG}
context:
  default: {least: 1}
  strict: {least: 2, most: 9}
components:
  rows: {type: fixed_rows, params: {columns: [n], rows: [[1], [2]]}}
  kept: {type: filter, params: {where: "n >= {{ context.least }} and n < {{ context.other | default(5) }}"}}
connections: {data: ["rows.main -> kept.input"]}
"""


def given(text: str, **inputs: object) -> None:
    documents = Documents(Registry(), ComponentRegistry(with_lineage=False))
    require_known(documents.compile(Pinned("document.yaml", text))[0], inputs)


def playbook(spec: str = "timeout: 5") -> str:
    return PLAYBOOK.replace("{SPEC}", f"{{{spec}}}").replace("{{timeout", "{timeout")


def job(config: str = "fail_strategy: halt") -> str:
    return JOB.replace("{CONFIG}", f"{{{config}}}")


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"limit": 3},
        {"day": "2026-01-01"},
        {"urgent": True},
        {"event": {"anything": 1}},
        {"database": {"sslmode": "require"}},
        {"regions": {"nord": 3}},
    ],
)
def test_a_playbook_takes_what_it_declares_or_reads_and_what_its_trigger_brings(inputs: dict[str, object]) -> None:
    given(playbook(), **inputs)


@pytest.mark.parametrize(
    ("inputs", "message", "hint"),
    [
        ({"limt": 3}, "the workload has no `limt`, and nothing in the playbook reads it", "did you mean `limit`?"),
        ({"load": 3}, "the workload has no `load`", "`executor.spec.inputs: open` takes any name"),
        ({"database": {"hots": "x"}}, "`database` has no `hots`", "did you mean `database.host`?"),
    ],
)
def test_a_playbook_refuses_any_other_input(inputs: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(UnknownInput) as refused:
        given(playbook(), **inputs)
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")


def test_a_job_takes_what_its_groups_declare_and_refuses_the_rest() -> None:
    given(job(), least=1, most=2, other=3, event={})
    with pytest.raises(UnknownInput, match="the context has no `leest`, and nothing in the job reads it"):
        given(job(), leest=1)


def test_a_document_may_take_any_input() -> None:
    given(playbook("inputs: open"), anything=1)
    given(job("inputs: open"), anything=1)


def test_a_document_that_reads_its_inputs_as_a_whole_takes_any() -> None:
    given(playbook().replace('"{{ day }}"', '"{{ workload }}"'), anything=1)
    given(job().replace("{{ context.least }}", "{{ context | length }}"), anything=1)


def test_the_words_that_open_the_inputs_are_checked() -> None:
    for text in (playbook("inputs: opne"), job("inputs: opne")):
        with pytest.raises(Exception, match="not a rule for inputs"):
            given(text)


def test_the_rule_is_no_part_of_the_digest_unless_it_is_written() -> None:
    documents = Documents(Registry(), ComponentRegistry(with_lineage=False))

    def digest(text: str) -> str:
        return documents.compile(Pinned("document.yaml", text))[0].digest

    assert digest(job("inputs: declared")) == digest(job("fail_strategy: halt"))
    assert digest(job("inputs: open")) != digest(job("fail_strategy: halt"))


CALLER = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: caller}
workflow:
  - step: start
    tool: {kind: KIND, path: called.yaml, args: {leest: 2}}
"""


@pytest.mark.parametrize("kind", ["playbook", "job"])
def test_a_document_that_calls_another_is_held_to_the_same_rule(tmp_path: Path, kind: str) -> None:
    called = job() if kind == "job" else playbook().replace("limit: 10", "least: 10")
    (tmp_path / "called.yaml").write_text(called)
    (tmp_path / "caller.yaml").write_text(CALLER.replace("KIND", kind))
    with pytest.raises(DocumentInvalid, match="has no `leest`") as refused:
        run(tmp_path / "caller.yaml")
    assert [one.hint for one in refused.value.problems] == ["did you mean `least`?"]
    # What is known only while it runs is held to it then.
    (tmp_path / "caller.yaml").write_text(CALLER.replace("KIND", kind).replace("called.yaml", "\"{{ 'called' }}\""))
    ended = run(tmp_path / "caller.yaml")
    assert ended.status == "failed"
    assert "has no `leest`" in str(ended.error)
    assert "did you mean `least`?" in str(ended.error)


def test_python_is_held_to_the_same_rule_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(job())
    with pytest.raises(UnknownInput):
        run(tmp_path / "job.yaml", {"leest": 2})
    assert not (tmp_path / ".penstock").exists()
    assert run(tmp_path / "job.yaml", {"least": 2}).ok
