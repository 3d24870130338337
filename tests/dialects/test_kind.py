"""What a document is, from its top-level keys alone."""

from __future__ import annotations

from pathlib import Path

from penstock.dialects.kind import kind_of, kind_of_file
from tests.cases import cases


@cases(
    "text, kind",
    [
        ("kind: Job\n", "job"),
        ("kind: Joblet\ncomponents: []\n", "joblet"),
        ("kind: Playbook\ncomponents: []\n", "playbook"),
        ("components: [{name: a}]\n", "job"),
        ("{components: {a: {type: noop}}}\n", "job"),
        ("components: []\ninputs: {rows: a.input}\n", "joblet"),
        ("workflow: []\ncomponents: []\n", "playbook"),
        ("workflow: []\n", "playbook"),
        ("deep: {components: []}\n", "playbook"),
        ("x: &a [1]\ny: *a\ncomponents: []\n", "job"),
        ("\ufeffkind: Job\n", "job"),
        ("kind: Job\nbroken: [", "job"),
        ("- components\n", "playbook"),
        ("components", "playbook"),
        ("", "playbook"),
        ("a: [", "playbook"),
        ("a:\n\tb: 1\n", "playbook"),
    ],
)
def test_kind_decides_and_without_one_the_sections_do(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_a_file_that_cannot_be_read_is_left_to_the_reader_of_playbooks(tmp_path: Path) -> None:
    assert kind_of_file(tmp_path / "missing.yaml") == "playbook"
    assert kind_of_file(tmp_path) == "playbook"
    assert kind_of_file(Path("nul\0.yaml")) == "playbook"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"kind: Job\nmetadata: {name: caf\xe9}\n")
    assert kind_of_file(latin) == "job"
