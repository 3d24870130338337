"""Wrong words on the command line, and streams that are not what they should be: one clear sentence, and the right exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.jobs import LOOP, ORDERS, write_job
from tests.cli.support import PATIENCE_S, call, environment
from tests.warm import starting

pytestmark = pytest.mark.usefixtures("folder")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("graph orders.yaml --format svgg", "`--format` is one of `mermaid`, `dot`, `svg`, `json`, not `svgg`; did you mean `svg`?"),
        ("run orders.yaml --set", "`--set` needs a value"),
        ("up --port 9000", "`penstock up` has no option `--port`; did you mean `--listen`?"),
        ("run orders.yaml --param x=1", "`penstock run` has no option `--param`; did you mean `--set`?"),
        ("run orders.yaml --quite", "`penstock run` has no option `--quite`; did you mean `--quiet`?"),
        ("run orders.yaml extra", "`penstock run` does not take `extra`"),
        ("runs --limit 0", "`--limit`: `0` is not a whole number from 1 on"),
        ("help rnu", "there is no command `rnu`; did you mean `run`?"),
        ("lineage orders.yaml larg", "the job has no component `larg`; did you mean `large`?"),
        ("lineage empty.yaml", "the document is empty"),
    ],
)  # fmt: skip
def test_wrong_words_are_answered_in_words(capsys: Capture, words: str, said: str) -> None:
    write_job("orders.yaml", ORDERS)
    Path("empty.yaml").touch()
    told = call(capsys, *words.split())
    assert (told.code, said in told.err) == (2, True), told.err


def test_the_log_of_a_component_that_the_job_does_not_have_is_refused(capsys: Capture) -> None:
    call(capsys, "run", write_job("orders.yaml", ORDERS), "--quiet")
    told = call(capsys, "logs", "@last", "--component", "shwo")
    assert (told.code, "the job has no component `shwo`; did you mean `show`?" in told.err) == (2, True)
    assert call(capsys, "logs", "@last", "--component", "totals").code == 0, "it is there, and said nothing"


def test_a_run_that_cannot_be_resumed_is_told_of_by_its_error_alone(capsys: Capture) -> None:
    call(capsys, "run", write_job("orders.yaml", ORDERS), "--quiet")
    told = call(capsys, "resume", "@last")
    assert told.code == 2
    assert told.err.startswith("error: the run is completed")


def test_components_count_once_and_iterations_by_themselves(capsys: Capture) -> None:
    told = call(capsys, "run", write_job("loop.yaml", LOOP), "--quiet")
    assert "2 components, 1 sub-job, 3 iterations (1 failed)" in told.err


def shell(words: str) -> tuple[int, str]:
    """With redirections, which only a shell can do."""
    line = f"{sys.executable} -m penstock {words}"
    done = subprocess.run(
        ["sh", "-c", line], check=False, capture_output=True, text=True, env=environment(), timeout=PATIENCE_S
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_data_that_cannot_be_written_is_an_error_and_words_that_cannot_are_not() -> None:
    write_job("orders.yaml", ORDERS)
    code, said = shell("run orders.yaml --json > /dev/full")
    assert (code, said) == (4, "error: no space left on device\n")
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert starting("validate", "orders.yaml", stderr=full, env=environment()).wait(PATIENCE_S) == 0


def test_a_secret_cannot_be_read_from_a_closed_stdin() -> None:
    code, said = shell("keychain set door <&-")
    assert (code, "the value is empty; nothing was stored" in said) == (2, True)


def test_the_doctor_goes_on_past_what_it_cannot_look_at(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(home: Path) -> list[object]:
        raise PermissionError(13, "Permission denied", str(home / "penstock.db"))

    from penstock.cli.commands import doctor

    monkeypatch.setattr(doctor, "CHECKS", (closed, doctor._sqlite))
    found = call(capsys, "doctor", "--json").json
    assert [one["state"] for one in found["checks"]] == ["error", "ok"]
    assert "permission denied" in found["checks"][0]["text"]
