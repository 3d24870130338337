"""What the http tool makes of a body: by its type, within bounds, or streamed into the result store."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import zlib
from pathlib import Path

import pytest

from penstock.ports.blobs import ResultRef, is_ref
from penstock.ports.results import loader, materialised, thawed
from penstock.tools.http.tool import HttpTool

from .fetching import body_of, failed, fetch, speaks
from .support import Reply, make_call, run, serve

# ---- the body of the answer


def test_auto_goes_by_the_content_type(tmp_path: Path) -> None:
    typed = lambda body, media: body_of(tmp_path, Reply(200, body, {"content-type": media}))  # noqa: E731
    assert typed(b'{"a": 1}', "application/problem+json; charset=utf-8") == {"a": 1}
    assert typed(b'{"a": 1}', "text/html") == '{"a": 1}'
    assert typed("<ä/>".encode("latin-1"), "application/xml; charset=iso-8859-1") == "<ä/>"
    assert typed(b"\x00\xff", "image/png") == base64.b64encode(b"\x00\xff").decode()
    assert typed(b"ok", "text/plain; charset=no-such-thing") == "ok"
    assert typed(b"\\ud800", "text/plain; charset=unicode_escape") == "\\ud800"


def test_a_body_without_a_content_type_is_text_if_it_can_be(tmp_path: Path) -> None:
    assert body_of(tmp_path, Reply(200, b"plain")) == "plain"
    assert body_of(tmp_path, Reply(200, b"\xff\xfe\x00")) == base64.b64encode(b"\xff\xfe\x00").decode()


def test_the_author_can_choose_the_form_of_the_body(tmp_path: Path) -> None:
    assert body_of(tmp_path, Reply(200, "[1]"), response="json") == [1]
    assert body_of(tmp_path, Reply(200, [1]), response="text") == "[1]"
    assert body_of(tmp_path, Reply(200, [1]), response="bytes") == base64.b64encode(b"[1]").decode()


def test_no_body_is_null(tmp_path: Path) -> None:
    assert body_of(tmp_path, Reply(204)) is None
    assert body_of(tmp_path, Reply(204), response="json") is None
    assert body_of(tmp_path, Reply(200, b"", {"content-type": "application/json"})) is None
    assert body_of(tmp_path, Reply(200, {"a": 1}), method="HEAD") is None


@pytest.mark.parametrize("body", [b"{'a': 1}", b"", b"[" * 200_000, b"\xff"])
def test_a_body_that_is_not_json_is_a_decode_failure(tmp_path: Path, body: bytes) -> None:
    with serve(lambda request: Reply(200, body, {"content-type": "application/json"})) as server:
        failure = failed(tmp_path, {"url": server.url, "response": "json"})
    assert (failure.kind, failure.retryable) == ("decode", False)
    assert failure.helpers["http"]["status"] == 200


def test_a_large_json_body_is_decoded_off_the_loop(tmp_path: Path) -> None:
    value = ["x" * 100] * 20_000
    assert body_of(tmp_path, Reply(200, value)) == value


def test_a_gzipped_body_is_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"a": 1}')
    reply = Reply(200, packed, {"content-type": "application/json", "content-encoding": "gzip"})
    assert body_of(tmp_path, reply) == {"a": 1}


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("form", ["auto", "stream"])
def test_a_body_that_is_not_what_its_encoding_says_is_a_decode_failure(
    tmp_path: Path, form: str, encoding: str
) -> None:
    damaged = gzip.compress(bytes(range(256)) * 4000)[:-8] + b"\xff" * 8
    for body in (b"no gzip", damaged, iter([damaged])):
        with serve(lambda request: Reply(200, body, {"content-encoding": encoding})) as server:
            failure = failed(tmp_path, {"url": server.url, "response": form})
        assert (failure.kind, failure.retryable) == ("decode", False)
        assert f"not in the encoding its headers say: Can not decode content-encoding: {encoding}" in failure.message
    assert list((tmp_path / ".blobs").iterdir()) == []


def test_a_packed_body_much_larger_than_a_buffer_is_unpacked_whole(tmp_path: Path) -> None:
    value = {"rows": ["0" * 1000] * 5_000}
    for packed in (gzip.compress(json.dumps(value).encode()), zlib.compress(json.dumps(value).encode())):
        encoding = "gzip" if packed[:2] == b"\x1f\x8b" else "deflate"
        reply = Reply(200, packed, {"content-type": "application/json", "content-encoding": encoding})
        assert body_of(tmp_path, reply) == value


@pytest.mark.parametrize("form", ["auto", "stream"])
def test_a_small_answer_that_unpacks_to_a_large_one_is_refused(tmp_path: Path, form: str) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    with serve(lambda request: Reply(200, bomb, {"content-encoding": "gzip"})) as server:
        failure = failed(tmp_path, {"url": server.url, "response": form, "max_response_bytes": 1_000_000})
    assert (failure.kind, failure.retryable) == ("too_large", False)
    assert list((tmp_path / ".blobs").iterdir()) == []


def test_a_body_that_announces_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with serve(lambda request: Reply(200, "x" * 101)) as server:
        failure = failed(tmp_path, {"url": server.url, "max_response_bytes": 100})
        assert fetch(tmp_path, {"url": server.url, "max_response_bytes": 101}).result["data"] == "x" * 101
    assert failure.kind == "too_large"
    assert "100 bytes" in failure.message


def test_a_streamed_body_goes_to_the_result_store_and_only_its_reference_comes_back(tmp_path: Path) -> None:
    chunks = [bytes([number]) * 100_000 for number in range(20)]
    call = make_call(tmp_path)
    with serve(lambda request: Reply(200, iter(chunks), {"content-type": "image/tiff"})) as server:
        data = run(HttpTool(), {"url": server.url, "response": "stream"}, call).result["data"]
    assert is_ref(data)
    ref = ResultRef.from_json(data)
    assert (ref.size, ref.media) == (2_000_000, "image/tiff")
    assert call.blobs.get(ref) == b"".join(chunks)


def test_a_stream_that_breaks_off_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 500_000)

    with speaks(script) as port:
        failure = failed(tmp_path, {"url": f"http://127.0.0.1:{port}", "response": "stream"})
    assert (failure.kind, failure.retryable) == ("protocol", True)
    assert list((tmp_path / ".blobs").iterdir()) == []


def test_templates_look_inside_a_streamed_json_body(tmp_path: Path) -> None:
    call = make_call(tmp_path)
    with serve(lambda request: Reply(200, b' {"items": [1, 2]}', {"content-type": "application/json"})) as server:
        data = run(HttpTool(), {"url": server.url, "response": "stream"}, call).result["data"]
    assert thawed(data, loader(call.blobs))["items"] == [1, 2]


@pytest.mark.parametrize("body", [b"{not json", b"[not json", b"nor this", b"{\xff}"])
def test_a_streamed_body_that_only_claims_to_be_json_is_its_text(tmp_path: Path, body: bytes) -> None:
    call = make_call(tmp_path)
    with serve(lambda request: Reply(200, body, {"content-type": "application/json"})) as server:
        data = run(HttpTool(), {"url": server.url, "response": "stream"}, call).result["data"]
    seen = thawed(data, loader(call.blobs))
    assert not hasattr(seen, "__len__") or len(seen) == 0
    assert materialised(seen) == body.decode(errors="replace")
