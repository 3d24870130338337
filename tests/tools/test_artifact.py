"""The artifact tool, and the references of results that expressions give it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.blob_stores import mentions
from penstock.adapters.files.blobs import FileBlobs
from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.expr.scope import Visible
from penstock.expr.template import render
from penstock.kernel.errors import Refused
from penstock.ports.blobs import ResultRef
from penstock.ports.references import reference, reference_to, resolved
from penstock.ports.results import encode, loader, schema_hint, view
from penstock.tools.artifact import LARGEST_READ, ArtifactTool
from penstock.tools.base import ToolFailure
from tests.cases import cases
from tests.engine import play
from tests.tools.support import make_call, run


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs = FileBlobs(folder)
        self.loaded: list[ResultRef] = []

    def put(self, value: Any) -> ResultRef:
        return self.blobs.put([encode(value)], schema_hint=schema_hint(value))

    def __call__(self, **params: Any) -> Any:
        read = loader(self.blobs)

        def load(ref: ResultRef) -> Any:
            self.loaded.append(ref)
            return read(ref)

        return run(ArtifactTool(), params, make_call(self.folder, blobs=self.blobs, load=load))

    def fails(self, **params: Any) -> ToolFailure:
        with pytest.raises(ToolFailure) as caught:
            self(**params)
        return caught.value


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


# ---- the text


@cases("value", [None, True, 0, "", "grün ✓", [1, [2]], {"a": {"b": None}}, {"_": "penstock:inline/{}"}])
def test_the_text_for_a_small_result_carries_it(value: Any) -> None:
    assert resolved(reference(value)) == (value,)


def test_the_text_for_a_stored_result_leads_to_it(store: Store) -> None:
    ref = store.put({"a": 1})
    text = reference(view(ref, loader(store.blobs)))
    assert text == f"penstock:file/{ref.key}?size=7&media=application/json&type=object"
    found = resolved(text)
    assert isinstance(found, ResultRef)
    assert store.blobs.get(found) == b'{"a":1}'
    assert reference_to(found) == text


def test_a_sweep_sees_what_a_text_refers_to_wherever_it_stands() -> None:
    ref = MemoryBlobs().put([b"{}"])
    text = reference_to(ref)
    for holder in ({"ctx": text}, {"ctx": reference({"inner": text})}):
        assert [one.checksum.hex() for one in mentions([encode(holder)])][:1] == [ref.checksum]


@cases("width", [1, 19])
def test_a_stored_mapping_whose_keys_are_all_known_is_not_loaded_for_its_reference(store: Store, width: int) -> None:
    value = {f"k{n}": n for n in range(width)}
    ref = store.put(value)

    def load(_: ResultRef) -> Any:
        raise AssertionError("it was loaded")

    scope = Visible({}, (), ({"big": view(ref, load)},))
    assert render("{{ big._ref }}", scope) == reference_to(ref)


def test_a_stored_mapping_with_more_keys_than_are_known_is_looked_into(store: Store) -> None:
    value = {**{f"k{n}": n for n in range(20)}, "_ref": "mine"}
    scope = Visible({}, (), ({"big": view(store.put(value), loader(store.blobs))},))
    assert render("{{ big._ref }} {{ big.k3 }}", scope) == "mine 3"


@cases(
    "text",
    [
        "",
        "orders",
        "penstock:",
        "penstock:file/sha256/ab/cd?size=1&media=text/plain",
        f"penstock:file/sha256/ab/{'c' * 62}",
        f"penstock:file/sha256/ab/{'c' * 62}?size=x&media=text/plain",
        f"penstock:file/sha256/ab/{'c' * 62}?size=1",
        f"penstock:file/../sha256/ab/{'c' * 62}?size=1&media=text/plain",
        "penstock:inline/{",
        "penstock:inline/\ud800",
    ],
)
def test_a_text_that_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is not the reference of a result"):
        resolved(text)


# ---- the tool


@cases("name", ["result_ref", "ref", "uri"])
def test_a_result_is_read_by_its_reference(store: Store, name: str) -> None:
    value = {"rows": [1, 2], "data": "own"}
    text = reference_to(store.put(value))
    assert store(action="get", **{name: text}) == value
    assert store(input={name: text}) == value
    assert store(**{name: reference(value)}) == value


def test_a_large_result_is_not_loaded(store: Store) -> None:
    ref = store.put("x" * LARGEST_READ)
    found = store(ref=reference_to(ref))
    assert (found.key, found.size, found.media) == (ref.key, ref.size, "application/json")
    assert store.loaded == []


def test_bytes_stay_in_the_store(store: Store) -> None:
    ref = store.blobs.put([b"\xff\x00"], "application/octet-stream")
    found = store(ref=reference_to(ref))
    assert isinstance(found, ResultRef)
    assert store.blobs.get(found) == b"\xff\x00"


def test_the_reference_of_bytes_as_tools_give_it_is_one_too(store: Store) -> None:
    ref = store.put({"a": 1})
    assert store(result_ref=ref.as_json()) == {"a": 1}


def test_a_value_that_is_put_is_got_again(store: Store) -> None:
    value = {"a": [1, None, "ü"]}
    put = store(action="put", data=value)
    assert put["size"] == len(encode(value))
    assert store(result_ref=put["ref"]) == value
    assert store(result_ref=store(action="put", input={"data": None})["ref"]) is None
    assert store(action="put", data=store.put(value).as_json()) == put


@cases(
    "params, kind, words",
    [
        ({"result_ref": "orders"}, "reference", "`orders` is not the reference of a result; hint: `{{ NAME._ref }}`"),
        ({"uri": "s3://bucket/key"}, "reference", "a URL is not the reference of a result; hint: files elsewhere"),
        ({"result_ref": {"a": 1}}, "reference", "`result_ref` is a mapping, and not the reference of a result"),
        (
            {"ref": f"penstock:postgres/sha256/ab/{'c' * 62}?size=1&media=text/plain"},
            "reference",
            f"`postgres:sha256/ab/{'c' * 62}` is not a reference into the file store",
        ),
        ({"ref": f"penstock:file/sha256/ab/{'c' * 62}?size=1&media=text/plain"}, "not_found", f"sha256/ab/{'c' * 62}"),
        ({}, "parameters", "`action: get` needs one reference in `result_ref`, and nothing else"),
        ({"ref": "a", "uri": "b"}, "parameters", "`action: get` needs one reference"),
        ({"ref": "a", "data": 1}, "parameters", "`action: get` needs one reference"),
        ({"action": "put"}, "parameters", "`action: put` needs `data`"),
        ({"action": "put", "data": 1, "uri": "file:///x"}, "parameters", "to write a file elsewhere use `files`"),
        ({"input": {"reff": "x"}}, "parameters", "`input` has `reff`"),
    ],
)
def test_what_cannot_be_done_is_said(store: Store, params: dict[str, Any], kind: str, words: str) -> None:
    failure = store.fails(**params)
    assert failure.kind == kind
    assert words in failure.message


def test_a_reference_with_another_size_than_its_result_is_not_believed(store: Store) -> None:
    text = reference_to(store.put({"a": 1})).replace("size=7", "size=8")
    assert store.fails(ref=text).kind == "unavailable"


# ---- in a playbook


def test_the_result_of_every_step_and_task_has_a_reference(tmp_path: Path) -> None:
    played = play(
        """
        - step: start
          tool: { kind: python, code: "result = {'rows': ['x' * 100] * 20000, 'count': 20000}" }
          next: { arcs: [{ step: small, args: { kept: "{{ start._ref }}" } }] }
        - step: small
          tool:
            - { name: one, kind: noop, value: { n: 1 } }
            - { name: two, kind: artifact, input: { result_ref: "{{ one._ref }}" } }
            - name: three
              kind: artifact
              result_ref: "{{ args.kept }}"
              spec:
                policy:
                  rules:
                    - when: "{{ output.count == 20000 }}"
                      then: { do: continue, set_ctx: { last: "{{ output._ref }}" } }
            - name: all
              kind: noop
              value: { two: "{{ two.n }}", three: "{{ three.count }}", rows: "{{ three.rows | length }}" }
          next: { arcs: [{ step: end }] }
        - step: end
          tool:
            - { name: again, kind: artifact, result_ref: "{{ ctx.last }}" }
            - { name: step, kind: artifact, result_ref: "{{ small._ref }}" }
            - { name: told, kind: noop, value: ["{{ again.rows[0] | length }}", "{{ step }}", "{{ again == start }}"] }
        """,
        tmp_path,
    )
    assert (played.status, played.error) == ("completed", None)
    assert played.result == [100, {"two": 1, "three": 20000, "rows": 20000}, True]


def test_a_field_of_its_own_goes_before_the_reference(tmp_path: Path) -> None:
    played = play(
        """
        - step: start
          tool:
            - { name: wapi, kind: noop, value: { _ref: "record:a/Zm9v", data: 1 } }
            - { name: large, kind: python, code: "result = {'_ref': 'mine', 'rows': ['x' * 100] * 20000}" }
            - { name: told, kind: noop, value: ["{{ wapi._ref }}", "{{ large._ref }}"] }
        """,
        tmp_path,
    )
    assert played.result == ["record:a/Zm9v", "mine"]


@pytest.mark.parametrize("name", ["nothing", "workload", "workload.nothing"])
def test_what_is_no_result_has_no_reference(tmp_path: Path, name: str) -> None:
    played = play(
        f"""
        workload: {{ nothing: {{ c: 1 }} }}
        workflow:
          - step: start
            tool: {{ kind: log, message: "{{{{ {name}._ref }}}}!" }}
        """,
        tmp_path,
    )
    assert (played.status, played.error["kind"]) == ("failed", "expression")
    assert f"`{name}._ref` is undefined" in played.error["message"]


def test_a_sub_playbook_reads_what_its_caller_refers_to(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(
        """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child }
workload: { big: null }
workflow:
  - step: start
    tool: { kind: artifact, result_ref: "{{ workload.big }}" }
""",
        encoding="utf-8",
    )
    played = play(
        """
        - step: start
          tool: { kind: python, code: "result = {'rows': list(range(300000))}" }
          next: { arcs: [{ step: call }] }
        - step: call
          tool:
            - { name: child, kind: playbook, path: child.yaml, args: { big: "{{ start._ref }}" } }
            - { name: told, kind: noop, value: "{{ child.rows | length }}" }
        """,
        tmp_path,
    )
    assert (played.status, played.result) == ("completed", 300_000)


def test_a_secret_in_a_result_is_in_no_reference(tmp_path: Path) -> None:
    secret = "s3cr3t-" + base64.b32encode(b"penstock").decode()
    played = play(
        """
        keychain: [{ name: k, kind: env, var: K }]
        workflow:
          - step: start
            tool:
              - { name: leak, kind: noop, value: { it: "{{ keychain.k }}" } }
              - { name: told, kind: noop, value: "{{ leak._ref }}" }
        """,
        tmp_path,
        environ={"K": secret},
    )
    assert played.status == "completed"
    assert str(played.result).startswith("penstock:inline/")
    assert secret not in str(played.events)
