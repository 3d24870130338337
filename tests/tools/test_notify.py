"""The notify tool against a real SMTP server and a real webhook on loopback."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings, ToolFailure
from penstock.tools.mail import Letter, Server, Session
from penstock.tools.notify import NotifyParams, NotifyTool
from penstock.tools.registry import example_of
from tests.cases import cases

from .certificates import issue
from .mail_server import Mailbox, mail_server
from .support import Reply, SharedResources, make_call, run, run_async, serve

MAIL = {
    "via": "smtp",
    "host": "127.0.0.1",
    "security": "none",
    "from": "Ann <ann@example.com>",
    "to": "bob@example.com",
}
ACCOUNT = {"mail": {"username": "ann", "password": "right"}}


def tell(tmp_path: Path, params: dict[str, Any], **overrides: Any) -> Any:
    return run(NotifyTool(), params, make_call(tmp_path, **overrides))


def failed(tmp_path: Path, params: dict[str, Any], **overrides: Any) -> ToolFailure:
    with pytest.raises(ToolFailure) as caught:
        tell(tmp_path, params, **overrides)
    return caught.value


def mailed(tmp_path: Path, box: Mailbox, **params: Any) -> Any:
    return tell(tmp_path, {**MAIL, "port": box.port, "text": "hello", **params}).result


# ---- mail


def test_a_mail_reaches_everybody_it_is_for(tmp_path: Path) -> None:
    with mail_server() as box:
        result = mailed(
            tmp_path,
            box,
            to=["bob@example.com", "Cy <cy@example.com>"],
            cc="dee@example.com, eve@example.com",
            bcc="fay@example.com",
            subject="Grüße ✓",
            text="Zeile eins\n.\nZeile drei ✓\n",
        )
    everybody = [f"{name}@example.com" for name in ("bob", "cy", "dee", "eve", "fay")]
    assert result["accepted"] == everybody
    assert (result["via"], result["refused"]) == ("smtp", {})
    ((sender, recipients, message),) = box.letters
    assert (sender, recipients) == ("ann@example.com", everybody)
    assert message["From"] == "Ann <ann@example.com>"
    assert message["To"] == "bob@example.com, Cy <cy@example.com>"
    assert message["Subject"] == "Grüße ✓"
    assert message.get_content().splitlines() == ["Zeile eins", ".", "Zeile drei ✓"]
    assert "fay" not in message.as_string()


def test_html_and_attachments_come_along(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n")
    (tmp_path / "b.bin").write_bytes(b"\x00\xff")
    with mail_server() as box:
        mailed(tmp_path, box, html="<b>hello</b>", attachments=["a.csv", "b.bin"])
        mailed(tmp_path, box, text=None, html="<i>only</i>")
    both, only = (letter[2] for letter in box.letters)
    body = both.get_body(("html",))
    assert body is not None
    assert body.get_content().strip() == "<b>hello</b>"
    assert [(part.get_filename(), part.get_content_type()) for part in both.iter_attachments()] == [
        ("a.csv", "text/csv"),
        ("b.bin", "application/octet-stream"),
    ]
    assert only.get_content_type() == "text/html"


def test_a_second_attempt_has_the_same_message_id(tmp_path: Path) -> None:
    with mail_server() as box:
        first, second = mailed(tmp_path, box), mailed(tmp_path, box)
    assert first["message_id"] == second["message_id"]
    assert box.letters[0][2]["Message-ID"] == first["message_id"]


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_the_password_goes_over_tls_that_is_verified(tmp_path: Path, security: str) -> None:
    trusted, context = issue(tmp_path, "localhost")
    with mail_server(tls=context, implicit_tls=security == "tls") as box:
        params = MAIL | {"host": "localhost", "port": box.port, "security": security, "text": "x", "auth": "mail"}
        tell(tmp_path, params | {"verify": trusted.name}, credentials=ACCOUNT)
    assert (box.logins, box.encrypted) == ([("ann", "right")], [True])


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_that_cannot_be_verified_keeps_the_password_back(tmp_path: Path, security: str) -> None:
    _, context = issue(tmp_path, "localhost")
    with mail_server(tls=context, implicit_tls=security == "tls") as box:
        params = MAIL | {"host": "localhost", "port": box.port, "security": security, "text": "x", "auth": "mail"}
        failure = failed(tmp_path, params, credentials=ACCOUNT)
    assert (failure.kind, failure.retryable) == ("tls", False)
    assert (box.logins, box.letters) == ([], [])


def test_a_server_without_starttls_is_not_given_the_mail(tmp_path: Path) -> None:
    with mail_server() as box:
        failure = failed(tmp_path, MAIL | {"port": box.port, "security": "starttls", "text": "x"})
    assert failure.kind == "protocol"
    assert box.letters == []


def test_an_open_password_is_remarked_upon(tmp_path: Path) -> None:
    said: list[str] = []
    with mail_server() as box:
        params = MAIL | {"port": box.port, "text": "x", "auth": "mail"}
        tell(tmp_path, params, credentials=ACCOUNT, say=said.append)
    assert "without encryption" in said[0]
    assert "right" not in said[0]


def test_a_wrong_password_is_an_auth_failure(tmp_path: Path) -> None:
    with mail_server() as box:
        params = MAIL | {"port": box.port, "text": "x", "auth": {"username": "ann", "password": "wr0ng"}}
        failure = failed(tmp_path, params)
    assert (failure.kind, failure.retryable) == ("auth", False)
    assert failure.helpers["smtp"]["code"] == 535
    assert "wr0ng" not in failure.message


@cases(
    "answers, kind, retryable",
    [
        ({"GREETING": "421 too busy"}, "smtp_status", True),
        ({"GREETING": "554 not you"}, "smtp_status", False),
        ({"MAIL": "550 no such sender"}, "smtp_status", False),
        ({"MAIL": "451 later"}, "smtp_status", True),
        ({"RCPT": "550 unknown"}, "recipients", False),
        ({"RCPT": "450 later"}, "recipients", True),
        ({"DATA": "552 too big"}, "smtp_status", False),
        ({"MAIL": "drop"}, "connect", True),
    ],
)
def test_what_the_server_answers_decides_the_kind(
    tmp_path: Path, answers: dict[str, str], kind: str, retryable: bool
) -> None:
    with mail_server(answers) as box:
        failure = failed(tmp_path, MAIL | {"port": box.port, "text": "x"})
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert box.letters == []


def test_an_address_that_is_refused_does_not_keep_the_mail_from_the_others(tmp_path: Path) -> None:
    with mail_server({"rcpt TO:<no@example.com>": "550 unknown"}) as box:
        result = mailed(tmp_path, box, to="bob@example.com, no@example.com")
    assert result["accepted"] == ["bob@example.com"]
    assert result["refused"] == {"no@example.com": {"code": 550, "message": "unknown"}}


@pytest.mark.parametrize("verb", ["GREETING", "MAIL"])
def test_a_silent_server_is_a_timeout(tmp_path: Path, verb: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, mail_server({"MAIL": "hang"}) as box:
        port = mute.getsockname()[1] if verb == "GREETING" else box.port
        failure = failed(tmp_path, MAIL | {"port": port, "text": "x", "timeout": 0.1})
    assert (failure.kind, failure.retryable) == ("timeout", True)


def test_the_total_time_is_a_limit_too(tmp_path: Path) -> None:
    with mail_server({"MAIL": "hang"}) as box:
        failure = failed(tmp_path, MAIL | {"port": box.port, "text": "x"}, spec={"timeout": 0.2})
    assert (failure.kind, failure.retryable) == ("timeout", True)


def test_a_cancelled_mail_lets_go_of_its_connection(tmp_path: Path) -> None:
    async def cancelled(box: Mailbox) -> None:
        params = MAIL | {"port": box.port, "text": "x"}
        task = asyncio.ensure_future(run_async(NotifyTool(), params, make_call(tmp_path)))
        await asyncio.to_thread(box.hanging.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with mail_server({"MAIL": "hang"}) as box:
        asyncio.run(cancelled(box))
    assert box.letters == []


def test_a_closed_port_and_an_unknown_name_have_their_kinds(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    failure = failed(tmp_path, MAIL | {"port": port, "text": "x"})
    assert (failure.kind, failure.retryable) == ("connect", True)
    assert failed(tmp_path, MAIL | {"host": "no-such-host.invalid", "text": "x"}).kind == "dns"


def test_the_private_network_is_closed_for_mail_too(tmp_path: Path) -> None:
    closed = Settings(PUBLIC_ONLY)
    with mail_server() as box:
        for host in ("127.0.0.1", "localhost", "2130706433"):
            failure = failed(tmp_path, MAIL | {"host": host, "port": box.port, "text": "x"}, settings=closed)
            assert failure.kind == "address_refused"
    assert box.commands == []


def test_the_mail_goes_to_the_address_that_was_judged_and_the_name_is_not_looked_up_again() -> None:
    letter = Letter("ann@example.com", ["bob@example.com"], [], [], "s", "t", None, [], 0.0, "k")
    with mail_server() as box:
        # The name itself leads nowhere: only the judged address can have been dialled.
        server = Server("mail.invalid", box.port, "none", ["127.0.0.1"], 5.0, 5.0, True, None)
        assert Session(server).send(letter)["accepted"] == ["bob@example.com"]


@cases(
    "params, words",
    [
        ({"to": []}, "at least one"),
        ({"to": "nobody"}, "`nobody`"),
        ({"from": "Ann"}, "`Ann`"),
        ({"subject": "one\r\nBcc: evil@example.com"}, "cannot be written"),
        ({"auth": {"token": "t"}}, "`username` and `password`"),
        ({"url": "http://x"}, "`url` is for `via: webhook`"),
        ({"host": None}, "needs `host`"),
        ({"text": None}, "needs `text` or `html`"),
    ],
)
def test_a_mail_that_cannot_be_written_is_told(tmp_path: Path, params: dict[str, Any], words: str) -> None:
    with mail_server() as box:
        failure = failed(tmp_path, MAIL | {"port": box.port, "text": "x"} | params)
    assert failure.kind == "parameters"
    assert words in failure.message
    assert box.commands == []


def test_an_attachment_that_is_not_there_is_told(tmp_path: Path) -> None:
    with mail_server() as box:
        failure = failed(tmp_path, MAIL | {"port": box.port, "text": "x", "attachments": ["no.csv"]})
    assert failure.kind == "not_found"
    assert box.letters == []


# ---- webhook


def test_a_webhook_gets_the_text_in_the_shape_chat_programs_take(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, "ok")) as server:
        outcome = tell(tmp_path, {"via": "webhook", "url": f"{server.url}/hook", "text": "done"})
        (request,) = server.requests
    assert (request.method, request.json) == ("POST", {"text": "done"})
    assert request.headers["idempotency-key"] == "key-1"
    assert outcome.result == {"via": "webhook", "status": 200, "data": "ok"}
    assert outcome.helpers["http"]["status"] == 200


def test_a_webhook_takes_any_json_headers_and_auth(tmp_path: Path) -> None:
    with serve(lambda request: Reply(204)) as server:
        params = {"via": "webhook", "url": server.url, "json": [1], "headers": {"X-A": "b"}, "auth": "t"}
        tell(tmp_path, params, credentials={"t": {"token": "s"}})
        (request,) = server.requests
    assert request.json == [1]
    assert (request.headers["x-a"], request.headers["authorization"]) == ("b", "Bearer s")


def test_the_path_of_a_webhook_is_in_no_message(tmp_path: Path) -> None:
    with serve(lambda request: Reply(404, "no_team")) as server:
        failure = failed(tmp_path, {"via": "webhook", "url": f"{server.url}/services/s3cret?k=s3cret", "text": "x"})
    assert (failure.kind, failure.detail["data"]) == ("http_status", "no_team")
    assert "s3cret" not in f"{failure.message} {failure.detail} {failure.helpers}"


@pytest.mark.clause("P6.6")
def test_a_webhook_is_tried_again_within_one_run(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200 if len(server.requests) == 2 else 503)) as server:
        spec = {"retry": {"attempts": 2, "delay": 0}}
        outcome = tell(tmp_path, {"via": "webhook", "url": server.url, "text": "x"}, spec=spec)
        assert len(server.requests) == 2
    assert outcome.helpers["http"]["requests"] == 2


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"text": "x"}, "needs `url`"),
        ({"url": "http://x"}, "needs `text` or `json`"),
        ({"url": "http://x", "text": "x", "host": "y"}, "`host` is for `via: smtp`"),
    ],
)
def test_a_webhook_that_cannot_be_called_is_told(tmp_path: Path, params: dict[str, Any], words: str) -> None:
    failure = failed(tmp_path, {"via": "webhook", **params})
    assert failure.kind == "parameters"
    assert words in failure.message


def test_a_webhook_shares_the_connections_of_the_run(tmp_path: Path) -> None:
    async def twice() -> None:
        call = make_call(tmp_path)
        for _ in range(2):
            await run_async(NotifyTool(), {"via": "webhook", "url": server.url, "text": "x"}, call)
        assert isinstance(call.resources, SharedResources)
        assert len(call.resources._made) == 1
        await call.resources.close()

    with serve(lambda request: Reply()) as server:
        asyncio.run(twice())


def test_every_parameter_is_described_and_the_example_is_a_valid_task() -> None:
    described = msgspec.json.schema(NotifyParams)["$defs"]["NotifyParams"]["properties"]
    assert "from" in described
    assert all(each.get("description") for each in described.values())
    (task,) = yaml.safe_load(example_of(NotifyTool))
    params = {name: value for name, value in task.items() if name not in ("name", "kind")}
    assert msgspec.convert(params, NotifyParams).via == "smtp"
