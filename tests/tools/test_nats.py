"""The nats tool against a real server with JetStream: keys and values, messages, streams, objects, and who may speak to whom."""

from __future__ import annotations

import asyncio
import base64
import builtins
import json
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nats.aio.client import Client
from nats.js import JetStreamContext, api

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.ports.blobs import ResultRef
from penstock.tools.addresses import PUBLIC_ONLY, Addresses
from penstock.tools.base import Settings, Success, ToolFailure
from penstock.tools.nats.connection import signer
from penstock.tools.nats.parameters import NEEDS, TAKES, NatsParams, Operation
from penstock.tools.nats.tool import NatsTool
from tests.cases import cases
from tests.engine import play
from tests.servers import nats_server, nats_url
from tests.tools.certificates import issue
from tests.tools.support import make_call, run, run_async

__all__ = ["nats_url"]


class Server:
    """The tool on one server, and a client of the test's own beside it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def __call__(self, operation: str, *, call: dict[str, Any] | None = None, **params: Any) -> Any:
        made = make_call(self.folder, **{"credentials": {"q": {"url": self.url}}, **(call or {})})
        outcome = run(NatsTool(), {"auth": "q", "operation": operation, **params}, made)
        assert isinstance(outcome, Success)
        return outcome.result

    def fails(self, operation: str, **params: Any) -> ToolFailure:
        with pytest.raises(ToolFailure) as caught:
            self(operation, **params)
        return caught.value

    def beside(self, work: Callable[[Client, JetStreamContext], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            client = await nats.connect(self.url)
            try:
                return await work(client, client.jetstream())
            finally:
                await client.close()

        return asyncio.run(whole())

    def bucket(self) -> str:
        name = f"b{uuid.uuid4().hex[:10]}"
        self.beside(lambda _, js: js.create_key_value(bucket=name, history=5))
        return name

    def stream(self, **config: Any) -> str:
        name = f"s{uuid.uuid4().hex[:10]}"
        self.beside(lambda _, js: js.add_stream(name=name, subjects=[f"{name}.>"], **config))
        return name


@pytest.fixture
def server(nats_url: str, tmp_path: Path) -> Server:
    return Server(nats_url, tmp_path)


# ---- keys and values


def test_a_value_that_was_put_is_got_again_as_it_was(server: Server) -> None:
    bucket = server.bucket()
    for revision, value in enumerate([{"a": [1, None]}, "text", 7, True, None, "grün", ""], start=1):
        put = server("kv_put", bucket=bucket, key="k.1", value=value)
        assert put == {"status": "success", "bucket": bucket, "key": "k.1", "revision": revision}
        got = server("kv_get", bucket=bucket, key="k.1")
        assert got == {"status": "success", "bucket": bucket, "key": "k.1", "value": value, "revision": revision}


def test_a_key_that_is_not_there_is_no_error(server: Server) -> None:
    bucket = server.bucket()
    nothing = {"status": "not_found", "bucket": bucket, "key": "k", "value": None, "revision": None}
    assert server("kv_get", bucket=bucket, key="k") == nothing
    server("kv_put", bucket=bucket, key="k", value=1)
    assert server("kv_delete", bucket=bucket, key="k") == {"status": "success", "bucket": bucket, "key": "k"}
    assert server("kv_get", bucket=bucket, key="k") == nothing


def test_an_earlier_revision_can_be_got_until_the_key_is_purged(server: Server) -> None:
    bucket = server.bucket()
    first = server("kv_put", bucket=bucket, key="k", value="old")["revision"]
    server("kv_put", bucket=bucket, key="k", value="new")
    assert server("kv_get", bucket=bucket, key="k", revision=first)["value"] == "old"
    assert server("kv_purge", bucket=bucket, key="k")["status"] == "success"
    assert server("kv_get", bucket=bucket, key="k", revision=first)["status"] == "not_found"


def test_a_put_with_a_revision_is_made_only_if_nobody_was_faster(server: Server) -> None:
    bucket = server.bucket()
    first = server("kv_put", bucket=bucket, key="k", value=1, revision=0)["revision"]
    server("kv_put", bucket=bucket, key="k", value=2, revision=first)
    for stale in (0, first):
        assert server.fails("kv_put", bucket=bucket, key="k", value=3, revision=stale).kind == "conflict"
    assert server("kv_get", bucket=bucket, key="k")["value"] == 2


def test_the_keys_of_a_bucket_are_listed_without_those_that_are_deleted(server: Server) -> None:
    bucket = server.bucket()
    assert server("kv_keys", bucket=bucket) == {"status": "success", "bucket": bucket, "keys": [], "count": 0}
    for key in ("b.2", "a.1", "b.1", "gone"):
        server("kv_put", bucket=bucket, key=key, value=key)
    server("kv_delete", bucket=bucket, key="gone")
    assert server("kv_keys", bucket=bucket)["keys"] == ["a.1", "b.1", "b.2"]
    assert server("kv_keys", bucket=bucket, pattern="b.*") == {
        "status": "success",
        "bucket": bucket,
        "keys": ["b.1", "b.2"],
        "count": 2,
    }


def test_a_bucket_that_is_not_there_is_named_and_can_be_made(server: Server) -> None:
    name = f"b{uuid.uuid4().hex[:10]}"
    failure = server.fails("kv_put", bucket=name, key="k", value=1)
    assert (failure.kind, failure.retryable, failure.detail) == ("not_found", False, {"bucket": name})
    assert failure.message == f"there is no bucket `{name}`; hint: `create: true` makes it"
    assert server.fails("kv_get", bucket=name, key="k").kind == "not_found"
    assert server("kv_put", bucket=name, key="k", value=1, create=True)["revision"] == 1
    assert server("kv_put", bucket=name, key="k", value=2, create=True)["revision"] == 2


def test_bytes_that_are_no_text_are_base64(server: Server) -> None:
    bucket = server.bucket()
    data = base64.b64encode(b"\xff\x00").decode()
    server("kv_put", bucket=bucket, key="k", value=data, encoding="base64")
    got = server("kv_get", bucket=bucket, key="k")
    assert (got["value"], got["encoding"]) == (data, "base64")
    for encoding in ("json", "utf-8"):
        assert server.fails("kv_get", bucket=bucket, key="k", encoding=encoding).kind == "parse"
    assert server.fails("kv_put", bucket=bucket, key="k", value="no base64!", encoding="base64").kind == "parameters"


def test_text_that_looks_like_json_can_be_kept_as_text(server: Server) -> None:
    bucket = server.bucket()
    server("kv_put", bucket=bucket, key="k", value="7")
    assert server("kv_get", bucket=bucket, key="k")["value"] == 7
    assert server("kv_get", bucket=bucket, key="k", encoding="utf-8")["value"] == "7"
    server("kv_put", bucket=bucket, key="k", value="7", encoding="json")
    assert server("kv_get", bucket=bucket, key="k")["value"] == "7"


@cases("bucket, key", [("no such!", "k"), ("b.c", "k"), ("", "k")])
def test_a_name_that_no_bucket_can_have_is_refused(nats_url: str, bucket: str, key: str) -> None:
    failure = Server(nats_url, Path()).fails("kv_get", bucket=bucket, key=key)
    assert failure.kind == "parameters"


def test_a_key_that_cannot_be_one_is_refused(server: Server) -> None:
    assert server.fails("kv_put", bucket=server.bucket(), key="a b", value=1).kind == "parameters"


# ---- messages


def test_a_message_reaches_who_listens(server: Server) -> None:
    subject = f"t.{uuid.uuid4().hex}"

    async def listen(client: Client, _: JetStreamContext) -> Any:
        subscription = await client.subscribe(subject)
        await client.flush()
        call = make_call(server.folder)
        params = {
            "url": server.url,
            "operation": "publish",
            "subject": subject,
            "data": {"n": 1},
            "headers": {"A": "b"},
        }
        outcome = await run_async(NatsTool(), params, call)
        message = await subscription.next_msg(timeout=10)
        await call.resources.close()  # type: ignore[attr-defined]
        return outcome.result, message.data, message.headers

    assert server.beside(listen) == ({"status": "success", "subject": subject}, b'{"n":1}', {"A": "b"})


def test_a_request_gives_the_reply(server: Server) -> None:
    subject = f"t.{uuid.uuid4().hex}"

    async def answer(client: Client, _: JetStreamContext) -> Any:
        async def reply(message: Any) -> None:
            await message.respond(b'{"sum": %d}' % sum(json.loads(message.data)))

        await client.subscribe(subject, cb=reply)
        await client.flush()
        call = make_call(server.folder)
        params = {"url": server.url, "operation": "request", "subject": subject, "data": [1, 2]}
        outcome = await run_async(NatsTool(), params, call)
        await call.resources.close()  # type: ignore[attr-defined]
        return outcome.result

    assert server.beside(answer) == {"status": "success", "subject": subject, "data": {"sum": 3}, "headers": {}}


def test_a_request_that_nobody_answers_fails_at_once_and_may_be_tried_again(server: Server) -> None:
    failure = server.fails("request", subject="nobody.listens")
    assert (failure.kind, failure.retryable) == ("no_responders", True)


def test_a_request_that_is_not_answered_in_time_is_a_time_out(server: Server) -> None:
    subject = f"t.{uuid.uuid4().hex}"

    async def ignore(client: Client, _: JetStreamContext) -> Any:
        await client.subscribe(subject)
        await client.flush()
        call = make_call(server.folder)
        params = {"url": server.url, "operation": "request", "subject": subject, "timeout": 0.2}
        with pytest.raises(ToolFailure) as caught:
            await run_async(NatsTool(), params, call)
        await call.resources.close()  # type: ignore[attr-defined]
        return caught.value

    failure = server.beside(ignore)
    assert (failure.kind, failure.retryable) == ("timeout", True)


def test_a_stream_acknowledges_a_message_and_stores_one_of_a_task_once(server: Server) -> None:
    stream = server.stream()
    key = {"idempotency_key": f"run/{uuid.uuid4().hex}"}
    first = server("js_publish", subject=f"{stream}.a", data={"n": 1}, stream=stream, call=key)
    assert first == {"status": "success", "subject": f"{stream}.a", "stream": stream, "seq": 1, "duplicate": False}
    again = server("js_publish", subject=f"{stream}.a", data={"n": 1}, call=key)
    assert (again["seq"], again["duplicate"]) == (1, True)
    assert server("js_publish", subject=f"{stream}.a", data=1, msg_id=False, call=key)["seq"] == 2
    assert server("js_publish", subject=f"{stream}.a", data=1, msg_id="mine", call=key)["seq"] == 3
    found = server("js_get_msg", stream=stream, seq=1)
    assert found["headers"] == {"Nats-Msg-Id": key["idempotency_key"], "Nats-Expected-Stream": stream}
    assert server("js_stream_info", stream=stream)["state"]["messages"] == 3


def test_a_subject_that_no_stream_takes_is_not_found(server: Server) -> None:
    failure = server.fails("js_publish", subject="no.stream", data=1)
    assert (failure.kind, failure.message) == ("not_found", "no stream takes messages for `no.stream`")


def test_a_message_is_read_by_its_number_by_its_subject_or_as_the_last(server: Server) -> None:
    stream = server.stream()
    for subject, data in (("a", {"n": 1}), ("a", {"n": 2}), ("b", "three")):
        server("js_publish", subject=f"{stream}.{subject}", data=data, msg_id=False, headers={"h": "1"})
    found = server("js_get_msg", stream=stream, seq=1)
    assert found.pop("time").startswith("20")
    assert found == {
        "status": "success",
        "stream": stream,
        "subject": f"{stream}.a",
        "seq": 1,
        "data": {"n": 1},
        "headers": {"h": "1"},
    }
    assert server("js_get_msg", stream=stream, subject=f"{stream}.a")["data"] == {"n": 2}
    assert server("js_get_msg", stream=stream, last=True)["data"] == "three"
    assert server.fails("js_get_msg", stream=stream, seq=9).kind == "not_found"
    assert server.fails("js_get_msg", stream="none", last=True).kind == "not_found"
    info = server("js_stream_info", stream=stream)
    assert (info["config"]["subjects"], info["config"]["retention"]) == ([f"{stream}.>"], "limits")
    assert info["state"]["last_seq"] == 3


def filled(server: Server, count: int, **consumer: Any) -> str:
    """A stream with a durable consumer `c`."""
    stream = server.stream()

    async def fill(_: Client, js: JetStreamContext) -> None:
        for number in range(count):
            await js.publish(f"{stream}.n", b"%d" % number)
        await js.add_consumer(stream, durable_name="c", ack_policy=api.AckPolicy.EXPLICIT, **consumer)

    server.beside(fill)
    return stream


def unacknowledged(server: Server, stream: str) -> int | None:
    info = server.beside(lambda _, js: js.consumer_info(stream, "c"))
    return info.num_ack_pending


@cases("batch", [1, 2, 3])
def test_a_pull_takes_no_more_than_asked_for_and_goes_on_where_it_was(nats_url: str, batch: int) -> None:
    server = Server(nats_url, Path())
    stream = filled(server, 3)
    first = server("pull", stream=stream, consumer="c", batch=batch)
    assert [one["data"] for one in first["messages"]] == list(range(batch))
    assert (first["count"], first["consumer"], first["messages"][0]["deliveries"]) == (batch, "c", 1)
    assert unacknowledged(server, stream) == 0
    if batch < 3:
        rest = server("pull", stream=stream, consumer="c")
        assert [one["seq"] for one in rest["messages"]] == list(range(batch + 1, 4))


def test_a_pull_that_finds_nothing_is_no_error(server: Server) -> None:
    stream = filled(server, 0)
    for batch in (1, 5):
        found = server("pull", stream=stream, consumer="c", batch=batch, timeout=0.2)
        assert (found["status"], found["count"], found["messages"], found["ack_ids"]) == ("success", 0, [], [])


def test_a_pull_waits_for_a_first_message(server: Server) -> None:
    stream = filled(server, 0)

    async def feed(_: Client, js: JetStreamContext) -> Any:
        call = make_call(server.folder)
        params = {"url": server.url, "operation": "pull", "stream": stream, "consumer": "c", "timeout": 30}
        pulling = asyncio.ensure_future(run_async(NatsTool(), params, call))
        while not (await js.consumer_info(stream, "c")).num_waiting:
            await asyncio.sleep(0.01)
        await js.publish(f"{stream}.n", b"late")
        outcome = await pulling
        await call.resources.close()  # type: ignore[attr-defined]
        return outcome.result["messages"][0]["data"]

    assert server.beside(feed) == "late"


def test_without_ack_messages_come_again_until_their_ids_are_acknowledged(server: Server) -> None:
    stream = filled(server, 2, ack_wait=0.3)
    first = server("pull", stream=stream, consumer="c", ack="none")
    assert first["count"] == 2
    again = server("pull", stream=stream, consumer="c", ack="none", timeout=30)
    assert again["messages"][0]["deliveries"] > 1
    while again["count"] < 2:
        again = server("pull", stream=stream, consumer="c", ack="none", timeout=30)
    assert server("ack", ack_ids=again["ack_ids"]) == {"status": "success", "count": 2}
    assert unacknowledged(server, stream) == 0


def test_a_consumer_that_is_not_there_is_named_and_can_be_made(server: Server) -> None:
    stream = server.stream()
    for subject in ("a", "b"):
        server("js_publish", subject=f"{stream}.{subject}", data=subject, msg_id=False)
    failure = server.fails("pull", stream=stream, consumer="new")
    assert (failure.kind, failure.message) == (
        "not_found",
        f"there is no consumer `new` of a stream `{stream}`; hint: `create: true` makes it",
    )
    made = server("pull", stream=stream, consumer="new", subject=f"{stream}.b", create=True)
    assert [one["data"] for one in made["messages"]] == ["b"]
    assert server.fails("pull", stream="nowhere", consumer="new", create=True).kind == "not_found"


def test_a_consumer_that_messages_are_pushed_to_cannot_be_pulled_from(server: Server) -> None:
    stream = filled(server, 1, deliver_subject="somewhere")
    assert server.fails("pull", stream=stream, consumer="c").kind == "parameters"


def test_only_the_ids_of_messages_can_be_acknowledged(server: Server) -> None:
    failure = server.fails("ack", ack_ids=["orders.new"])
    assert (failure.kind, failure.message) == ("parameters", "`orders.new` is not the `ack_id` of a message")


def test_a_cancelled_pull_leaves_its_messages_to_the_next_one(server: Server) -> None:
    stream = filled(server, 0)

    async def cancel(_: Client, js: JetStreamContext) -> Any:
        call = make_call(server.folder)
        params = {"url": server.url, "operation": "pull", "stream": stream, "consumer": "c", "timeout": 60}
        pulling = asyncio.ensure_future(run_async(NatsTool(), params, call))
        while not (await js.consumer_info(stream, "c")).num_waiting:
            await asyncio.sleep(0.01)
        pulling.cancel()
        await asyncio.wait([pulling])
        assert pulling.cancelled()
        while (await js.consumer_info(stream, "c")).num_waiting:
            await asyncio.sleep(0.01)
        await js.publish(f"{stream}.n", b"1")
        outcome = await run_async(NatsTool(), params, call)
        await call.resources.close()  # type: ignore[attr-defined]
        return [(one["data"], one["deliveries"]) for one in outcome.result["messages"]]

    assert server.beside(cancel) == [(1, 1)]


@cases("headers", [{"a\nb": "c"}, {"a": "b\r\nc"}, {"": "x"}])
def test_a_header_that_would_smuggle_another_is_refused(nats_url: str, headers: dict[str, str]) -> None:
    failure = Server(nats_url, Path()).fails("publish", subject="s", data=1, headers=headers)
    assert (failure.kind, "cannot be sent" in failure.message) == ("parameters", True)


@cases("subject", ["a b", "a\r\nPUB x 1", ""])
def test_a_subject_that_cannot_be_one_is_refused(nats_url: str, subject: str) -> None:
    for operation in ("publish", "request", "js_publish"):
        assert Server(nats_url, Path()).fails(operation, subject=subject, data=1).kind == "parameters"


# ---- objects


def test_an_object_is_put_got_listed_and_deleted(server: Server) -> None:
    name = f"o{uuid.uuid4().hex[:10]}"
    assert server.fails("object_list", bucket=name).kind == "not_found"
    put = server("object_put", bucket=name, object="a/b.json", data={"a": 1}, create=True)
    assert (put["bucket"], put["name"], put["size"]) == (name, "a/b.json", 7)
    server("object_put", bucket=name, object="empty", data="")
    got = server("object_get", bucket=name, object="a/b.json")
    assert (got["data"], got["size"], got["digest"]) == ('{"a":1}', 7, put["digest"])
    assert server("object_get", bucket=name, object="a/b.json", encoding="json")["data"] == {"a": 1}
    assert server("object_get", bucket=name, object="empty")["data"] == ""
    assert server("object_info", bucket=name, object="a/b.json")["size"] == 7
    listed = server("object_list", bucket=name)
    assert ([one["name"] for one in listed["objects"]], listed["count"]) == (["a/b.json", "empty"], 2)
    assert server("object_delete", bucket=name, object="empty")["status"] == "success"
    assert server("object_list", bucket=name)["count"] == 1
    for operation in ("object_get", "object_info", "object_delete"):
        failure = server.fails(operation, bucket=name, object="empty")
        assert (failure.kind, failure.message) == ("not_found", f"the bucket `{name}` has no object `empty`")


def test_a_large_object_goes_from_and_to_the_result_store(server: Server) -> None:
    name, blobs = f"o{uuid.uuid4().hex[:10]}", MemoryBlobs()
    content = bytes(range(256)) * 4096
    ref = blobs.put([content], "application/octet-stream")
    call = {"blobs": blobs}
    server("object_put", bucket=name, object="big", data=ref.as_json(), create=True, call=call)
    got = server("object_get", bucket=name, object="big", encoding="binary", call=call)
    assert got["size"] == len(content)
    assert blobs.get(ResultRef.from_json(got["data"])) == content


# ---- parameters


def test_every_operation_says_what_it_takes() -> None:
    known = set(Operation.__args__)  # type: ignore[attr-defined]
    assert set(NEEDS) == known
    assert set(TAKES) <= known
    names = {name for names in (*NEEDS.values(), *TAKES.values()) for name in names}
    assert names <= set(NatsParams.__struct_fields__)


@cases(
    "params, words",
    [
        ({"operation": "kv_put", "bucket": "b"}, "`operation: kv_put` needs `key`, `value`"),
        ({"operation": "kv_get", "bucket": "b", "key": "k", "value": 1}, "`operation: kv_get` takes no `value`"),
        ({"operation": "publish", "subject": "s", "stream": "x"}, "`operation: publish` takes no `stream`"),
        ({"operation": "ack"}, "`operation: ack` needs `ack_ids`"),
        (
            {"operation": "js_get_msg", "stream": "s"},
            "`operation: js_get_msg` needs one of `seq`, `last` and `subject`",
        ),
        (
            {"operation": "js_get_msg", "stream": "s", "seq": 1, "last": True},
            "`operation: js_get_msg` needs one of `seq`, `last` and `subject`",
        ),
        (
            {"operation": "kv_keys", "bucket": "b", "auth": {}},
            "no server is named; hint: `auth: <name of a keychain entry with `url`>`, or `url: nats://HOST`",
        ),
        (
            {"operation": "kv_keys", "bucket": "b", "auth": "http://host"},
            "`url` is not the address of a NATS server, such as `nats://HOST:4222` or `tls://HOST`",
        ),
        (
            {"operation": "kv_keys", "bucket": "b", "url": "nats://u:pass/word@host"},
            "`url` is not the address of a NATS server, such as `nats://HOST:4222` or `tls://HOST`",
        ),
        (
            {"operation": "kv_keys", "bucket": "b", "auth": {"url": "nats://h", "nkey": "SUnonsense"}},
            "the seed of the nkey is not that of a user; it begins with `SU`",
        ),
        (
            {"operation": "kv_keys", "bucket": "b", "auth": {"url": "nats://127.0.0.1", "creds": "no sections"}},
            "`creds` is the text of a `.creds` file; it has no section `NATS USER JWT`",
        ),
    ],
)
def test_a_wrong_parameter_is_named(params: dict[str, Any], words: str) -> None:
    failure = Server("nats://127.0.0.1:1", Path()).fails(**params)
    assert (failure.kind, failure.message) == ("parameters", words)


# ---- in a playbook


def test_a_playbook_keeps_its_place_and_its_secrets(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", "authorization { token: hunter2-hunter2 }") as started:
        played = play(
            f"""
            keychain:
              - {{ name: token, kind: env, var: T }}
            workflow:
              - step: start
                loop: {{ in: [1, 2, 3], iterator: n, spec: {{ mode: parallel }} }}
                tool:
                  kind: nats
                  url: {started.url}
                  token: "{{{{ keychain.token }}}}"
                  operation: kv_put
                  bucket: places
                  key: "orders.{{{{ iter.n }}}}"
                  value: {{ at: "{{{{ iter.n * 10 }}}}" }}
                  create: true
                next: {{ arcs: [{{ step: read }}] }}
              - step: read
                tool:
                  - name: keys
                    kind: nats
                    auth: {{ url: {started.url}, token: "{{{{ keychain.token }}}}" }}
                    operation: kv_keys
                    bucket: places
                  - name: last
                    kind: nats
                    auth: {{ url: {started.url}, token: "{{{{ keychain.token }}}}" }}
                    operation: kv_get
                    bucket: places
                    key: "{{{{ keys.keys | last }}}}"
                  - {{ name: told, kind: noop, value: ["{{{{ keys.count }}}}", "{{{{ last.value.at }}}}"] }}
            """,
            tmp_path,
            environ={"T": "hunter2-hunter2"},
        )
    assert (played.status, played.error) == ("completed", None)
    assert played.result == [3, 30]
    assert "hunter2" not in str(played.events)


# ---- the connection


def test_the_tasks_of_a_run_share_one_connection(server: Server) -> None:
    bucket = server.bucket()

    async def several(client: Client, _: JetStreamContext) -> Any:
        call = make_call(server.folder)
        base = {"url": server.url, "bucket": bucket, "operation": "kv_put", "value": 1}
        await asyncio.gather(*(run_async(NatsTool(), {**base, "key": f"k{n}"}, call) for n in range(10)))
        links = list(call.resources._made)  # type: ignore[attr-defined]
        await call.resources.close()  # type: ignore[attr-defined]
        return len(links)

    assert server.beside(several) == 1
    assert server("kv_keys", bucket=bucket)["count"] == 10


def test_a_connection_that_ends_fails_who_waits_and_the_next_task_connects_anew(tmp_path: Path) -> None:
    async def whole(started: Any) -> Any:
        call = make_call(tmp_path)
        listener = await nats.connect(started.url, allow_reconnect=False)
        got = asyncio.Event()

        async def seen(_: Any) -> None:
            got.set()

        await listener.subscribe("s", cb=seen)
        await listener.flush()
        params = {"url": started.url, "operation": "request", "subject": "s", "timeout": 60}
        asking = asyncio.ensure_future(run_async(NatsTool(), params, call))
        await got.wait()
        await asyncio.to_thread(started.kill)
        with pytest.raises(ToolFailure) as caught:
            await asking
        await listener.close()
        with pytest.raises(ToolFailure) as refused:
            await run_async(NatsTool(), params, call)
        await asyncio.to_thread(started.start)
        outcome = await run_async(NatsTool(), {"url": started.url, "operation": "publish", "subject": "s"}, call)
        await call.resources.close()  # type: ignore[attr-defined]
        return caught.value, refused.value, outcome.result["status"]

    with nats_server(tmp_path / "nats") as started:
        ended, refused, status = asyncio.run(whole(started))
    assert (ended.kind, ended.retryable) == ("connect", True)
    assert (refused.kind, refused.retryable, "connection refused" in refused.message) == ("connect", True, True)
    assert status == "success"


def test_of_several_servers_one_that_is_there_is_enough(server: Server) -> None:
    bucket = server.bucket()
    assert server("kv_keys", bucket=bucket, url=f"nats://127.0.0.1:1,{server.url}")["status"] == "success"


def test_an_address_that_the_operator_has_not_opened_is_refused(server: Server) -> None:
    closed = {"settings": Settings(addresses=PUBLIC_ONLY)}
    failure = server.fails("kv_keys", bucket="b", call=closed)
    assert (failure.kind, failure.retryable) == ("address_refused", False)
    bucket = server.bucket()
    opened = {"settings": Settings(addresses=Addresses.parsed(["loopback"]))}
    assert server("kv_keys", bucket=bucket, call=opened)["status"] == "success"


def test_a_host_without_an_address_is_a_failure_of_dns(server: Server) -> None:
    assert server.fails("kv_keys", bucket="b", url="nats://no-such-host.invalid").kind == "dns"


def test_without_jetstream_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", has_jetstream=False) as started:
        failure = Server(started.url, tmp_path).fails("kv_keys", bucket="b")
    assert (failure.kind, failure.retryable) == ("unavailable", True)


def test_a_message_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", "max_payload: 1024") as started:
        assert Server(started.url, tmp_path).fails("publish", subject="s", data="x" * 2000).kind == "too_large"


USERS = """
authorization { users: [
  { user: ann, password: right }
  { user: bob, password: right, permissions: { publish: "allowed.>", subscribe: "_INBOX.>" } }
] }
"""


def test_a_user_and_a_password_are_asked_for(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", USERS) as started:
        server = Server(started.url, tmp_path)
        assert server("publish", subject="s", user="ann", password="right")["status"] == "success"
        entry = {"nats_url": started.url, "nats_user": "ann", "nats_password": "right"}
        assert server("publish", subject="s", auth=entry)["status"] == "success"
        inside = started.url.replace("//", "//ann:right@")
        assert server("publish", subject="s", auth=inside)["status"] == "success"
        for wrong in ({"user": "ann", "password": "wrong-pw"}, {}):
            failure = server.fails("publish", subject="s", **wrong)
            assert (failure.kind, failure.retryable, "wrong-pw" in failure.message) == ("auth", False, False)


def test_what_the_user_may_not_do_is_said(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", USERS) as started:
        server = Server(started.url, tmp_path)
        known = {"user": "bob", "password": "right"}
        assert server("publish", subject="allowed.s", **known)["status"] == "success"
        for operation in ("publish", "request"):
            failure = server.fails(operation, subject="denied.s", timeout=1, **known)
            assert (failure.kind, failure.retryable) == ("permission", False)
            assert 'publish to "denied.s"' in failure.message.lower()


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", "authorization { token: s3cret }") as started:
        server = Server(started.url, tmp_path)
        assert server("publish", subject="s", token="s3cret")["status"] == "success"
        assert server.fails("publish", subject="s", token="other").kind == "auth"


def key_of(prefix: int) -> tuple[str, str, Ed25519PrivateKey]:
    """A new nkey: its seed, its public name, and the key to sign with."""
    key = Ed25519PrivateKey.generate()

    def name(head: bytes, body: bytes) -> str:
        import binascii

        raw = head + body
        return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode().rstrip("=")

    seed = name(bytes([18 << 3 | prefix >> 5, (prefix & 31) << 3]), key.private_bytes_raw())
    return seed, name(bytes([prefix]), key.public_key().public_bytes_raw()), key


USER, ACCOUNT, OPERATOR = 20 << 3, 0, 14 << 3


def test_an_nkey_signs(tmp_path: Path) -> None:
    seed, public, _ = key_of(USER)
    assert signer(seed)[0] == public
    with nats_server(tmp_path / "nats", f"authorization {{ users: [ {{ nkey: {public} }} ] }}") as started:
        server = Server(started.url, tmp_path)
        assert server("publish", subject="s", auth={"url": started.url, "nkey_seed": seed})["status"] == "success"
        other = {"url": started.url, "nkey": key_of(USER)[0]}
        assert server.fails("publish", subject="s", auth=other).kind == "auth"


@cases("seed", [key_of(ACCOUNT)[0], key_of(USER)[0][:-1], "", "S" * 58])
def test_a_seed_that_is_not_that_of_a_user_is_refused_and_not_shown(seed: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        signer(seed)
    assert caught.value.kind == "parameters"
    assert not seed or seed not in caught.value.message


def web_token(subject: str, issuer: str, key: Ed25519PrivateKey, **claims: Any) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head = part({"typ": "JWT", "alg": "ed25519-nkey"})
    body = part({"jti": uuid.uuid4().hex, "iat": 1, "iss": issuer, "sub": subject, "name": "n", "nats": claims})
    signature = base64.urlsafe_b64encode(key.sign(f"{head}.{body}".encode())).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


def test_a_creds_file_says_who_it_is(tmp_path: Path) -> None:
    _, operator, operator_key = key_of(OPERATOR)
    _, account, account_key = key_of(ACCOUNT)
    seed, user, _ = key_of(USER)
    limits = {"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1}
    account_token = web_token(account, operator, operator_key, type="account", version=2, limits=limits)
    config = f"""
operator: {web_token(operator, operator, operator_key, type="operator", version=2)}
resolver: MEMORY
resolver_preload: {{ {account}: {account_token} }}
"""
    user_token = web_token(user, account, account_key, type="user", version=2, subs=-1, data=-1, payload=-1)
    creds = (
        f"-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\nIMPORTANT\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
    with nats_server(tmp_path / "nats", config, has_jetstream=False) as started:
        server = Server(started.url, tmp_path)
        assert server("publish", subject="s", auth={"url": started.url, "creds": creds})["status"] == "success"
        forged = creds.replace(seed, key_of(USER)[0])
        assert server.fails("publish", subject="s", auth={"url": started.url, "creds": forged}).kind == "auth"


def test_tls_is_verified_and_what_is_asked_for_is_had(tmp_path: Path, server: Server) -> None:
    trusted, _ = issue(tmp_path, "localhost")
    config = f'tls {{ cert_file: "{trusted}", key_file: "{tmp_path / "private.pem"}" }}'
    with nats_server(tmp_path / "nats", config) as started:
        secure = Server(f"tls://localhost:{started.port}", tmp_path)
        assert secure("publish", subject="s", verify=str(trusted))["status"] == "success"
        assert secure("publish", subject="s", verify=False)["status"] == "success"
        assert secure.fails("publish", subject="s").kind == "tls"
    plain = server.fails("publish", subject="s", url=server.url.replace("nats://", "tls://"))
    assert (plain.kind, "does not speak TLS" in plain.message) == ("tls", True)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for name in [
        one for one in sys.modules if one.partition(".")[0] == "nats" or one.startswith("penstock.tools.nats.o")
    ]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "nats":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    failure = Server("nats://127.0.0.1:1", tmp_path).fails("kv_keys", bucket="b")
    assert failure.kind == "not_installed"
    assert failure.message == (
        "`nats` needs the package `nats-py`, which is not installed; hint: `pip install 'penstock[nats]'`"
    )
