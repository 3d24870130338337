"""mail and http_call against real servers on loopback."""

from __future__ import annotations

from pathlib import Path

from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings
from tests.tools.mail_server import mail_server
from tests.tools.support import Reply, serve

from .support import ScriptedClock, failed, run

MAIL = {"host": "127.0.0.1", "security": "none", "from": "a@example.com", "to": "b@example.com", "text": "hello"}


def test_a_mail_is_sent_and_has_the_same_id_when_it_is_sent_again(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_text("1,2\n")
    with mail_server() as box:
        params = {**MAIL, "port": box.port, "subject": "Done", "attachments": ["report.csv"]}
        first, second = (run("mail", params, folder=tmp_path) for _ in range(2))
    (_, recipients, message), _ = box.letters
    assert (recipients, message["Subject"]) == (["b@example.com"], "Done")
    assert [part.get_filename() for part in message.iter_attachments()] == ["report.csv"]
    assert first.result == {"message_id": message["Message-ID"], "accepted": ["b@example.com"], "refused": {}}
    assert first.after == second.after == {"MESSAGE_ID": message["Message-ID"]}


def test_a_mail_is_sent_with_a_login_from_the_keychain() -> None:
    with mail_server() as box:
        params = {**MAIL, "port": box.port, "auth": "post"}
        ran = run("mail", params, credentials={"post": {"username": "ann", "password": "right"}})
        failure = failed("mail", params, credentials={"post": {"username": "ann", "password": "wrong"}})
    assert "without encryption" in ran.said[0]
    assert (failure.kind, failure.retryable) == ("auth", False)


def test_a_mail_that_cannot_be_sent_is_a_failure() -> None:
    with mail_server({"GREETING": "421 come back later"}) as box:
        failure = failed("mail", {**MAIL, "port": box.port})
    assert (failure.kind, failure.retryable) == ("smtp_status", True)
    assert "`from`: is needed" in failed("mail", {"host": "h", "to": "x@example.com"}).message


def test_a_request_is_sent_and_its_answer_is_the_result() -> None:
    with serve(lambda request: Reply(201, {"got": request.json})) as server:
        ran = run("http_call", {"url": server.url, "method": "POST", "json": {"a": 1}, "idempotency_key": True})
    assert (ran.result["data"], ran.after) == ({"got": {"a": 1}}, {"STATUS": 201})
    assert server.requests[0].headers["idempotency-key"]


def test_a_bad_status_is_a_failure_and_known_afterwards() -> None:
    with serve(lambda request: Reply(404, "nothing here")) as server:
        failure = failed("http_call", {"url": server.url})
        assert run("http_call", {"url": server.url, "ok_status": 404}).after == {"STATUS": 404}
    assert failure.kind == "http_status"


def test_a_request_is_tried_again_as_often_as_it_is_told() -> None:
    answers = iter([Reply(503), Reply(200, {"ok": True})])
    with serve(lambda request: next(answers)) as server:
        ran = run("http_call", {"url": server.url, "attempts": 2}, clock=ScriptedClock())
    assert (ran.result["data"], len(server.requests)) == ({"ok": True}, 2)


def test_a_closed_private_network_stays_closed() -> None:
    failure = failed("http_call", {"url": "http://127.0.0.1:9/"}, settings=Settings(PUBLIC_ONLY))
    assert failure.kind == "address_refused"
    failure = failed("mail", MAIL, settings=Settings(PUBLIC_ONLY))
    assert failure.kind == "address_refused"
