"""Secrets that are written into parameters: found, warned of, blanked in what is kept, and read again from the file."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from penstock.dialects.secrets import literal_secrets, masked_literals, restored_text
from tests.cases import cases
from tests.dialects.job.support import codes as job_codes
from tests.dialects.playbook.support import problems as playbook_problems
from tests.dialects.playbook.support import tasks
from tests.engine import document, play, resume

FOUND = {
    "password: hunter22": "password: '***'",
    "password: 123456": "password: '***'",
    "api_key: 'abc def'": "api_key: '***'",
    "headers: {Authorization: Bearer abc.def, Accept: x}": "headers: {Authorization: '***', Accept: x}",
    "headers: {X-Api-Key: abcdef}": "headers: {X-Api-Key: '***'}",
    "connection: {host: h, password: hunter22}": "connection: {host: h, password: '***'}",
    "url: postgres://u:hunter22@h/db": "url: postgres://u:***@h/db",
    "url: \"https://u:hunter22@h/?a=1\"": "url: \"https://u:***@h/?a=1\"",
    "url: https://h/x?a=1&api_key=hunter22&b=2": "url: https://h/x?a=1&api_key=***&b=2",
    "dsn: host=h password=hunter22 dbname=x": "dsn: host=h password=*** dbname=x",
    "code: |\n    get('https://u:hunter22@h')\n    x = 1": "code: |\n    get('https://u:***@h')\n    x = 1",
    "password: |\n    hunter22\n  more: 1": "password: '***'\n\n  more: 1",
}  # fmt: skip
LEFT = (
    "password: '{{ keychain.pw }}'",
    "headers: {Authorization: 'Bearer {{ keychain.t }}'}",
    "url: 'postgres://u:{{ keychain.pw }}@h/db'",
    "url: http://localhost:8080/a@b?page=2",
    "rename: {password: pw}",
    "password: ''",
    "max_tokens: 100",
    "token_url: https://h/token",
    "set: {ctx.token: abc}",
)


def written(line: str) -> str:
    return (
        "components:\n- name: a\n  type: x\n  params:\n" + textwrap.indent(line.replace("\n  ", "\n"), "  " * 2) + "\n"
    )


@cases("line, kept", FOUND.items())
def test_what_is_kept_has_the_same_lines_without_the_secret(line: str, kept: str) -> None:
    text = written(line)
    assert masked_literals(text).split() == written(kept).split()
    assert len(masked_literals(text).splitlines()) == len(text.splitlines())
    assert literal_secrets(text)


@cases("line", LEFT)
def test_what_is_no_secret_stays(line: str) -> None:
    assert masked_literals(written(line)) == written(line)


@cases("line", FOUND)
def test_a_resume_reads_it_again_from_the_file(line: str) -> None:
    text = written(line)
    assert restored_text(masked_literals(text), text) == (text, [])


def test_it_is_found_again_where_it_stands_in_a_file_that_has_changed() -> None:
    text = written("url: postgres://u:hunter22@h/db\npassword: abc")
    changed = text.replace("name: a", "name: a\n  desc: more")
    kept = masked_literals(text)
    again, missing = restored_text(kept, changed)
    assert (literal_secrets(again), missing) == (literal_secrets(text), [])
    assert restored_text(kept, "components: []\n")[1] == ["url", "password"]
    assert restored_text(kept, None)[1] == ["url", "password"]


def test_a_password_in_a_parameter_is_a_warning_in_both_languages() -> None:
    found = playbook_problems(tasks("- {name: a, kind: noop, value: 'http://u:hunter22@h'}"))
    assert [(problem.code, problem.severity.value) for problem in found] == [("Y0210", "warning")]
    job = "components:\n  - {name: a, type: warn, params: {message: 'http://u:hunter22@h'}}\n"
    assert job_codes(job) == ["Y0210"]


def test_a_plan_shows_no_secret() -> None:
    from penstock.dialects.playbook import compile_text
    from penstock.dialects.playbook.plan import plan
    from tests.dialects.playbook.support import CATALOG

    net = compile_text(tasks("- {name: a, kind: noop, value: 'http://u:hunter22@h'}"), "x.yaml", CATALOG).net
    assert net is not None
    assert "hunter22" not in str(plan(net))
    assert "http://u:***@h" in str(plan(net))


TALKS = """
- step: start
  tool:
    - {name: say, kind: noop, value: "at postgres://u:hunter22@h/db"}
    - {name: look, kind: files, action: stat, path: "{{ workload.flag }}"}
"""


def test_a_secret_in_a_parameter_is_in_nothing_that_is_stored_and_a_resume_finds_it_again(tmp_path: Path) -> None:
    text = f"workload: {{flag: {tmp_path}/flag}}\nworkflow:\n{textwrap.indent(TALKS, '  ')}"
    run = play(text, tmp_path)
    assert run.status == "failed"
    assert "hunter22" not in str(run.events)
    stored = b"".join(path.read_bytes() for path in (tmp_path / ".penstock").rglob("*") if path.is_file())
    assert b"hunter22" not in stored
    (tmp_path / "flag").touch()
    assert resume(tmp_path).status == "completed"


def test_a_resume_whose_secret_is_gone_from_the_file_says_so(tmp_path: Path) -> None:
    from penstock.kernel.errors import Refused

    text = f"workload: {{flag: {tmp_path}/flag}}\nworkflow:\n{textwrap.indent(TALKS, '  ')}"
    play(text, tmp_path)
    (tmp_path / "playbook.yaml").write_text(document("- step: start"), encoding="utf-8")
    with pytest.raises(Refused, match="the secret in `value` was written into the document"):
        resume(tmp_path)
