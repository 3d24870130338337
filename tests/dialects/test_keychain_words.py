"""`keychain` in either language: words of other engines, what is refused with a remedy, and the order of entries."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from penstock.components.registry import ComponentRegistry
from penstock.dialects.job import compile_file as compile_job
from penstock.dialects.problems import Problem
from penstock.dialects.secrets import masked, restored, restored_text, without_secrets
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import to_json
from penstock.kernel.values import JsonMap
from tests.cases import cases
from tests.dialects.playbook.support import HEAD, compiled

COMPONENTS = ComponentRegistry()
STEP = "workflow: [{step: start, tool: {kind: noop}}]\n"


def both(tmp_path: Path, keychain: str) -> tuple[list[Problem], list[Problem], list[Any]]:
    """The problems of a playbook and of a job with this keychain, and the entries that their nets have."""
    text = "keychain:\n" + textwrap.indent(textwrap.dedent(keychain).strip("\n"), "  ") + "\n"
    playbook = compiled(HEAD + "workload: {env: dev}\n" + text + STEP)
    file = tmp_path / "job.yaml"
    file.write_text(
        "context: {env: dev}\n"
        + text
        + "components: [{name: a, type: fixed_rows, params: {rows: [[1]], columns: [id]}}]\n"
    )
    job = compile_job(file, COMPONENTS)
    of_job = [one for one in job.problems if one.code.startswith(("P", "Y"))]
    nets = [list(each.net.keychain) for each in (playbook, job) if each.net is not None]
    return list(playbook.problems), of_job, nets


SAME = {
    "- {name: a, kind: secrets, provider: vault, map: {k: secret/a#b}}":
        {"name": "a", "kind": "secret_manager", "provider": "vault", "map": {"k": "secret/a#b"}},
    "- {name: a, kind: credential, credential: pg_main}": {"name": "a", "kind": "secret_manager", "key": "pg_main"},
    "- {name: a, kind: credential, credential_ref: pg_main}": {"name": "a", "kind": "secret_manager", "key": "pg_main"},
    "- {name: a, kind: credential, ref: pg_main, type: postgres}": {"name": "a", "kind": "secret_manager", "key": "pg_main"},
    "- {name: a, kind: credential, key: pg_main, scope: local}": {"name": "a", "kind": "secret_manager", "key": "pg_main"},
    "- {name: a, kind: credential}": {"name": "a", "kind": "secret_manager"},
    "- {name: a, kind: credential_ref, ref: pg_main}": {"name": "a", "kind": "secret_manager", "key": "pg_main"},
    "- {name: a, kind: env, var: X, scope: global, auto_renew: true, ttl_seconds: 60}":
        {"name": "a", "kind": "env", "var": "X"},
    "- {name: a, kind: oauth2, endpoint: 'https://h/t', scope: global, data: {x: y}}":
        {"name": "a", "kind": "oauth2", "endpoint": "https://h/t", "data": {"x": "y"}},
    "- {name: a, kind: oauth2, token_url: 'https://h/t', client_id: x, client_secret: {env: S}, scope: read}":
        {"name": "a", "kind": "oauth2", "token_url": "https://h/t", "client_id": "x", "client_secret": {"env": "S"},
         "scope": "read"},
}  # fmt: skip


@cases("written, read", SAME.items())
def test_words_of_other_engines_are_read_as_todays(tmp_path: Path, written: str, read: JsonMap) -> None:
    in_playbook, in_job, nets = both(tmp_path, written)
    assert [one.code for one in (*in_playbook, *in_job)] == []
    assert nets == [[read], [read]]


def test_type_is_read_as_kind_with_a_hint_that_shows_the_rewrite(tmp_path: Path) -> None:
    in_playbook, in_job, nets = both(tmp_path, "- {name: a, type: env, var: X}")
    for (problem,) in (in_playbook, in_job):
        assert (problem.code, problem.severity.value, problem.rewrite) == ("P0906", "warning", "kind: env")
    assert nets == [[{"name": "a", "kind": "env", "var": "X"}]] * 2


REFUSED = {
    "- {name: a, kind: secrets, provider: gcp, map: {k: projects/1/secrets/x}}":
        ("P0907", "there is no provider `gcp` here; use `vault`, `local` or `environment`"),
    "- {name: a, kind: secret_manager, provider: aws, key: x}":
        ("P0907", "there is no provider `aws` here; use `vault`, `local` or `environment`"),
    "- {name: a, kind: bearer, provider: azure}":
        ("P0907", "there is no provider `azure` here; use `vault`, `local` or `environment`"),
    "- {name: a, kind: google_id_token, target_audience: 'https://h'}": ("P0902", "`google_id_token` is not a kind of secret"),
    "- {name: a, kind: google_oauth}": ("P0902", "`google_oauth` is not a kind of secret"),
    "- {name: a, kind: static}": ("P0905", "a `static` entry has no `value`"),
    "- {name: a, kind: bearer, token: '{{ keychain.a }}'}": ("P0908", "`a` reads itself"),
    "- {name: a, kind: bearer, token: '{{ keychain.b }}'}\n- {name: b, kind: env, var: X}":
        ("P0908", "`a` reads `b`, which comes after it"),
    "- {name: a, kind: bearer, token: '{{ keychain.b.x }}'}\n- {name: b, kind: bearer, token: '{{ keychain.a }}'}":
        ("P0908", "`a` and `b` read each other"),
    "- {name: b, kind: env, var: X}\n- {name: a, kind: bearer, token: '{{ keychain.c }}'}":
        ("P0908", "`c` is not declared in `keychain`"),
}  # fmt: skip


@cases("written, expected", REFUSED.items())
def test_what_cannot_be_resolved_here_is_an_error_in_both_languages(
    tmp_path: Path, written: str, expected: tuple[str, str]
) -> None:
    in_playbook, in_job, nets = both(tmp_path, written)
    for problems in (in_playbook, in_job):
        assert [(one.code, one.message) for one in problems if one.severity.value == "error"] == [expected]
    assert nets == []


def test_a_google_log_in_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    for (problem,) in both(tmp_path, "- {name: a, kind: google_id_token}")[:2]:
        assert problem.hint == "no Google log-in here; put a token into the keychain (`bearer`)"


def test_an_entry_that_reads_those_above_it_is_no_problem(tmp_path: Path) -> None:
    keychain = """
    - {name: login, kind: secrets, provider: vault, map: {id: "secret/{{ env }}/id", pw: secret/x#pw}}
    - {name: oauth, kind: oauth2, endpoint: "https://h/t", data: {id: "{{ keychain.login.id }}", pw: "{{ keychain.login.pw }}"}}
    - {name: both, kind: static, map: {a: "{{ keychain.oauth.access_token }}", b: "x{{ keychain.login.pw }}"}}
    """
    in_playbook, in_job, nets = both(tmp_path, keychain)
    assert [one.code for one in (*in_playbook, *in_job)] == []
    assert [[entry["name"] for entry in net] for net in nets] == [["login", "oauth", "both"]] * 2


# ---- secrets that an entry has inside

TEXT = """\
keychain:
  - { name: a, type: static, map: { id: hunter22, pw: hunter33, shown: "{{ workload.x }}" } }
  - name: b
    kind: oauth2
    endpoint: https://h/t
    headers: { Authorization: Basic hunter44, X-Tenant: t1 }
    data: { client_secret: hunter55, grant_type: client_credentials, password: { env: PW } }
  - { name: c, kind: secrets, map: { token: secret/token }, provider: vault }
  - { name: d, kind: basic, username: ann, password: hunter66 }
"""


def test_secrets_inside_an_entry_are_blanked_where_they_stand() -> None:
    kept = masked(TEXT)
    assert "hunter" not in kept
    assert len(kept.splitlines()) == len(TEXT.splitlines())
    for left in (
        'shown: "{{ workload.x }}"',
        "X-Tenant: t1",
        "grant_type: client_credentials",
        "{ env: PW }",
        "token: secret/token",
    ):
        assert left in kept


def test_they_are_read_again_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    entries: list[JsonMap] = [
        {"name": "a", "kind": "static", "map": {"id": "***", "pw": "***", "shown": "{{ workload.x }}"}},
        {"name": "b", "kind": "oauth2", "headers": {"Authorization": "***", "X-Tenant": "t1"}},
    ]
    again = restored(entries, str(file))
    assert again[0]["map"] == {"id": "hunter22", "pw": "hunter33", "shown": "{{ workload.x }}"}
    assert again[1]["headers"] == {"Authorization": "Basic hunter44", "X-Tenant": "t1"}
    assert without_secrets(again) == entries


def test_several_secrets_on_one_line_are_all_blanked_and_read_again() -> None:
    inner = "auth: {password: B22B22, username: joe}, headers: {authorization: A11A11}, method: GET"
    text = f"workflow:\n- step: start\n  tool: {{kind: http, url: 'https://u:C33C33@h/', {inner}}}\n"
    kept = masked(text)
    for secret in ("A11A11", "B22B22", "C33C33"):
        assert secret not in kept
    assert "username: joe" in kept
    assert "method: GET" in kept
    again, gone = restored_text(kept, text.replace("\n", "\n# Other lines.\n", 1))
    assert gone == []
    assert load_json(again) == load_json(text)
    assert restored_text(kept, None)[1] == ["url", "password", "authorization"]


def load_json(text: str) -> Any:
    root = load_text(text).root
    assert root is not None
    return to_json(root)
