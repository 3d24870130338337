"""The page that a server has at `/`: what it is made of, how long browsers keep it, and nothing else of the machine."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response

from penstock.api.page_files import NOT_BUILT, POLICY, PageFiles
from tests.api.service import Api, Running, serving
from tests.cases import cases

SCRIPT = "console.log('x');\n" * 200


@pytest.fixture
def files(tmp_path: Path) -> PageFiles:
    built = tmp_path / "web"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>the page</title>")
    (built / "assets" / "main-Ab3_x9Zq.js").write_text(SCRIPT)
    (built / "favicon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("a secret")
    (built / "assets" / "link.txt").symlink_to(tmp_path / "secret.txt")
    return PageFiles(built)


def asked(files: PageFiles, path: str, **headers: str) -> Response:
    return files.answer(path, Headers({name.replace("_", "-"): value for name, value in headers.items()}))


@cases("path", ["/", "/runs", "/runs/abc", "/documents/file/a/b.yaml", "/nothing", "/index.html"])
def test_every_view_of_the_page_is_the_same_file_which_browsers_ask_for_again(files: PageFiles, path: str) -> None:
    answer = asked(files, path)
    assert answer.status_code == 200
    assert b"the page" in answer.body
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"] == POLICY
    assert "script-src 'self';" in POLICY
    assert asked(files, path, if_none_match=answer.headers["etag"]).status_code == 304


def test_a_file_with_a_hash_in_its_name_is_kept_for_ever_and_comes_compressed(files: PageFiles) -> None:
    plain = asked(files, "/assets/main-Ab3_x9Zq.js")
    assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    packed = asked(files, "/assets/main-Ab3_x9Zq.js", accept_encoding="gzip, deflate, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert gzip.decompress(bytes(packed.body)).decode() == SCRIPT
    assert asked(files, "/assets/main-Ab3_x9Zq.js", accept_encoding="gzip;q=0").body == plain.body


def test_a_file_without_one_is_asked_for_again(files: PageFiles) -> None:
    answer = asked(files, "/favicon.svg")
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == ("image/svg+xml", "no-cache")


def test_an_asset_of_another_build_is_not_there(files: PageFiles) -> None:
    assert asked(files, "/assets/main-00000000.js").status_code == 404


@cases(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/assets/link.txt",
        "//etc/passwd",
        "/assets/%2e%2e/%2e%2e/secret.txt",
    ],
)
def test_nothing_else_of_the_machine_is_served(files: PageFiles, path: str) -> None:
    assert b"secret" not in bytes(asked(files, path).body)


def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    answer = asked(PageFiles(tmp_path / "nothing"), "/")
    assert answer.body == NOT_BUILT
    assert b"make web" in answer.body
    assert b"<script" not in answer.body


def test_a_page_that_is_built_while_the_server_runs_is_served(tmp_path: Path) -> None:
    files = PageFiles(tmp_path)
    assert asked(files, "/").body == NOT_BUILT
    (tmp_path / "index.html").write_text("<!doctype html>new")
    assert asked(files, "/").body == b"<!doctype html>new"


# ---- at a server


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_a_server_has_the_page_without_asking_who_looks(running: Running) -> None:
    api = Api(running.url)
    for path in ("/", "/runs/abc"):
        answer = api.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert (answer.headers["x-frame-options"], answer.headers["x-content-type-options"]) == ("DENY", "nosniff")
    assert api.http.head("/").status_code == 200
    assert api.post("/").status_code == 404
    api.close()


@cases("path", ["/../pyproject.toml", "/%2e%2e/%2e%2e/pyproject.toml", "/assets/..%2f..%2f..%2fpyproject.toml"])
def test_a_path_that_climbs_leads_nowhere(running: Running, path: str) -> None:
    place = urlsplit(running.url)
    with socket.create_connection((place.hostname, place.port), 30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while data := connection.recv(65536):
            answer += data
    assert b"[project]" not in answer


def test_a_page_that_is_built_anew_is_served_without_a_restart(files: PageFiles) -> None:
    before = asked(files, "/").body
    index = files._folder / "index.html"
    index.write_text("<!doctype html><title>newer</title>", encoding="utf-8")
    os.utime(index, ns=(1, 1))
    assert before != asked(files, "/").body == index.read_bytes()
