"""What holds in every place of files: on this machine, in a bucket, on an SFTP server, and for reading on a web server."""

from __future__ import annotations

import gc
import io
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest

from penstock.tools.addresses import LOOPBACK, OPEN, PUBLIC_ONLY, Addresses
from penstock.tools.base import ToolFailure
from penstock.tools.places import base, opened
from penstock.tools.places.base import Entry, Location, Place, fetch, matching, required, translated
from penstock.tools.places.local import LocalPlace
from tests.cases import cases
from tests.components.files.ftp_server import ftp_server
from tests.components.files.sftp_server import sftp_server
from tests.contracts.blobs_servers import ACCESS_KEY, BUCKET, S3, s3
from tests.tools.web_site import WebSite, web_site

__all__ = ["s3"]

BIG = os.urandom(1 << 20) * 20
FILES = {"a.txt": b"hello", "empty": b"", "in/b.csv": b"n\n1\n", "in/c.csv": b"n\n2\n", "in/deep/d.csv": b"n\n3\n"}


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "FIRST_PAUSE", 0.001)


@dataclass
class Site:
    """A place with the same files in each, and a way to look at it from outside."""

    place: Place
    at: Callable[[str], str]
    """A name -> its path in the place."""
    names: Callable[[], set[str]]


def _folder_names(folder: Path) -> Callable[[], set[str]]:
    return lambda: {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _fill(folder: Path) -> Path:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(params=["local", "s3", "sftp", "ftp"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        if request.param == "local":
            folder = _fill(tmp_path)
            yield Site(LocalPlace(), lambda name: str(folder / name), _folder_names(folder))
        elif request.param == "s3":
            server: S3 = request.getfixturevalue("s3")
            prefix = f"places-{request.node.name.replace('[', '-').replace(']', '')}"
            for name, data in FILES.items():
                obstore.put(server.bucket(), f"{prefix}/{name}", data)

            def names() -> set[str]:
                found = [one["path"] for page in obstore.list(server.bucket(), prefix) for one in page]
                return {path.removeprefix(f"{prefix}/") for path in found}

            place = opened(Location.parsed(f"s3://{BUCKET}"), server.options())
            yield Site(place, lambda name: f"{prefix}/{name}", names)
        else:
            folder = _fill(tmp_path)
            made = sftp_server if request.param == "sftp" else ftp_server
            running = stack.enter_context(made(folder))
            login = {"username": "ann", "password": "right", "verify": False}
            place = opened(Location.parsed(running.url("/")), login)
            yield Site(place, lambda name: f"/{name}", _folder_names(folder))
            place.close()


def content(site: Site, name: str) -> bytes:
    return b"".join(site.place.read(required(site.place, site.at(name))))


def test_a_file_is_found_with_its_size_and_read_from_any_byte_on(site: Site) -> None:
    found = required(site.place, site.at("a.txt"))
    assert (found.size, found.is_folder, found.modified is not None) == (5, False, True)
    assert content(site, "a.txt") == b"hello"
    assert b"".join(site.place.read(found, 2)) == b"llo"
    assert content(site, "empty") == b""
    if site.place.has_parts(found):
        assert site.place.part(found, 1, 3) == b"ell"
        assert site.place.part(found, 3, 100) == b"lo"


def test_what_is_not_there_is_none_and_a_folder_is_no_file(site: Site) -> None:
    assert site.place.look(site.at("nix")) is None
    for name in ("in", "in/"):
        folder = site.place.look(site.at(name))
        assert folder is not None
        assert folder.is_folder
    with pytest.raises(ToolFailure, match="there is no") as failure:
        required(site.place, site.at("nix"))
    assert failure.value.kind == "not_found"
    with pytest.raises(ToolFailure) as failure:
        required(site.place, site.at("in"))
    assert failure.value.kind == "is_directory"


def test_patterns_find_files_by_their_paths(site: Site) -> None:
    def found(pattern: str) -> list[str]:
        start = len(site.at("x")) - 1
        return [each.path[start:] for each in matching(site.place, site.at(pattern))]

    assert found("in/*.csv") == ["in/b.csv", "in/c.csv"]
    assert found("in/[!b].csv") == ["in/c.csv"]
    assert found("*/*/?.csv") == ["in/deep/d.csv"]
    assert found("**/*.csv") == ["in/b.csv", "in/c.csv", "in/deep/d.csv"]
    assert found("nowhere/*.csv") == []


def test_a_file_is_written_copied_moved_and_deleted(site: Site) -> None:
    assert site.place.write(site.at("new/x.bin"), [b"ab", b"c"]) == 3
    assert content(site, "new/x.bin") == b"abc"
    site.place.copy(required(site.place, site.at("new/x.bin")), site.at("new/y.bin"))
    site.place.move(required(site.place, site.at("new/y.bin")), site.at("other/z.bin"))
    assert {*FILES, "new/x.bin", "other/z.bin"} == site.names()
    site.place.delete(site.at("new/x.bin"))
    assert site.place.look(site.at("new/x.bin")) is None
    with pytest.raises(ToolFailure) as failure:
        site.place.write(site.at("a.txt"), [b"no"], overwrite=False)
    assert failure.value.kind == "exists"
    assert content(site, "a.txt") == b"hello"


def test_a_large_file_comes_back_as_it_was_written(site: Site) -> None:
    assert site.place.write(
        site.at("big"), [BIG[start : start + 700_000] for start in range(0, len(BIG), 700_000)]
    ) == len(BIG)
    copy = io.BytesIO()
    fetch(site.place, required(site.place, site.at("big")), copy)
    assert copy.getvalue() == BIG


def test_a_write_that_fails_in_the_middle_leaves_what_was_there(site: Site) -> None:
    def breaking() -> Iterator[bytes]:
        yield BIG
        raise ToolFailure("broken", "the source broke")

    for name in ("a.txt", "new.bin"):
        with pytest.raises(ToolFailure):
            site.place.write(site.at(name), breaking())
    assert site.names() == set(FILES)
    assert content(site, "a.txt") == b"hello"


def test_a_process_that_is_killed_while_it_writes_leaves_no_object(s3: S3) -> None:
    script = textwrap.dedent("""
        import os, sys
        from penstock.tools.places import opened
        from penstock.tools.places.base import Location
        place = opened(Location.parsed("s3://tests"), eval(sys.argv[1]))
        def chunks():
            while True:
                print("sent", flush=True)
                yield os.urandom(1 << 20)
        place.write("killed/x.bin", chunks())
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script, repr(s3.options())], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout is not None
    for _ in range(40):
        assert process.stdout.readline() == "sent\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert list(obstore.list(s3.bucket(), "killed")) in ([], [[]])


# ---- URLs


@cases(
    "url, root, path, shown",
    [
        ("s3://b/a b/%41?x#y.csv", "s3://b", "a b/%41?x#y.csv", "s3://b/a b/%41?x#y.csv"),
        ("gs://b", "gs://b", "", "gs://b/"),
        ("https://u:p@h:8443/a%20b.csv?sig=x", "https://h:8443", "/a%20b.csv", "https://h:8443/a%20b.csv"),
        ("sftp://ann@h/in/a%20b", "sftp://h", "/in/a b", "sftp://h/in/a b"),
        ("sftp://[::1]:2222/~/in", "sftp://[::1]:2222", "in", "sftp://[::1]:2222/~/in"),
    ],
)
def test_a_url_is_taken_apart_and_shown_without_its_secrets(url: str, root: str, path: str, shown: str) -> None:
    location = Location.parsed(url)
    assert (location.root, location.path, location.url()) == (root, path, shown)


@cases("url", ["hdfs://x/y", "s3:///x", "https:///x", "sftp://h:no/x"])
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(ToolFailure):
        Location.parsed(url)


@cases(
    "pattern, yes, no",
    [
        ("*.csv", "a.csv", "in/a.csv"),
        ("*.csv", "a.csv", ".a.csv"),
        ("**/*.csv", "x/y/a.csv", "x/.y/a.csv"),
        ("in/**", "in/x/y", ".in/x"),
        ("a[0-9]?.txt", "a1b.txt", "ab1.txt"),
        ("a[.txt", "a[.txt", "ab.txt"),
    ],
)
def test_a_pattern_is_read_as_a_shell_reads_it(pattern: str, yes: str, no: str) -> None:
    assert translated(pattern).fullmatch(yes)
    assert not translated(pattern).fullmatch(no)


# ---- object stores on bad days


def s3_failure(server: S3, url: str, allowed: Addresses = OPEN, **options: str) -> ToolFailure:
    location = Location.parsed(url)
    with pytest.raises(ToolFailure) as failure:
        required(opened(location, {**server.options(), **options}, allowed), location.path)
    return failure.value


def test_what_is_wrong_with_a_bucket_is_said_in_a_sentence(s3: S3) -> None:
    missing = s3_failure(s3, f"s3://{BUCKET}/nix.csv")
    assert (missing.kind, missing.message) == ("not_found", f"there is no file `s3://{BUCKET}/nix.csv`")
    bucket = s3_failure(s3, "s3://no-such-bucket/x.csv")
    assert (bucket.kind, bucket.retryable) == ("not_found", False)
    denied = s3_failure(s3, f"s3://{BUCKET}/first", secret_access_key="wr0ng")
    assert (denied.kind, denied.retryable) == ("permission", False)
    assert "keychain" in denied.message
    assert "wr0ng" not in denied.message
    assert ACCESS_KEY not in denied.message
    wrong = s3_failure(s3, f"s3://{BUCKET}/first", acess_key="x")
    assert wrong.kind == "parameters"
    assert "acess_key" in wrong.message


def test_an_endpoint_is_used_only_where_the_operator_opened_it(s3: S3) -> None:
    assert s3_failure(s3, f"s3://{BUCKET}/first", PUBLIC_ONLY).kind == "address_refused"
    location = Location.parsed(f"s3://{BUCKET}/first")
    assert opened(location, s3.options(), LOOPBACK).look("first") is not None


# ---- the web on bad days


def web_place(
    site: WebSite, name: str, allowed: Addresses = OPEN, query: str = "", **credential: object
) -> tuple[Place, Entry]:
    location = Location.parsed(site.url(name) + query)
    place = opened(location, credential, allowed)
    CLOSING.callback(place.close)
    return place, required(place, location.path)


CLOSING = ExitStack()


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Whatever a test opened on the web is closed after it."""
    with CLOSING:
        yield


def fetched(place: Place, entry: Entry) -> bytes:
    copy = io.BytesIO()
    fetch(place, entry, copy)
    return copy.getvalue()


@pytest.mark.parametrize("faults", ["", " reset", " short reset 500", "500 503", " 503 reset"])
@pytest.mark.parametrize("has_parts", [True, False])
def test_a_file_of_the_web_comes_whole_whatever_happens_on_the_way(faults: str, has_parts: bool) -> None:
    with web_site({"big.csv": BIG}, has_parts=has_parts, faults=faults.split(" ")) as site:
        place, entry = web_place(site, "big.csv")
        assert (entry.size, place.has_parts(entry)) == (len(BIG), has_parts)
        assert fetched(place, entry) == BIG
        assert not site.faults


def test_what_has_come_is_not_sent_again(tmp_path: Path) -> None:
    with web_site({"big.csv": BIG}, faults=["", "reset"]) as site:
        assert fetched(*web_place(site, "big.csv")) == BIG
        assert site.sent < len(BIG) + 2 * (1 << 20)


def test_a_server_that_never_sends_it_all_is_a_failure_that_may_pass() -> None:
    with web_site({"big.csv": BIG}, has_parts=False, faults=["", *["short"] * 50]) as site:
        place, entry = web_place(site, "big.csv")
        with pytest.raises(ToolFailure) as failure:
            fetched(place, entry)
        assert (failure.value.kind, failure.value.retryable) == ("connection", True)


def test_parts_are_read_again_when_they_come_short() -> None:
    with web_site({"big.csv": BIG}, faults=["", "short", "500", "reset"]) as site:
        place, entry = web_place(site, "big.csv")
        assert place.part(entry, 100, 5_000) == BIG[100:5_100]
        assert site.asked[-1] == ("/big.csv", "bytes=100-5099")


def test_a_slow_link_is_no_failure() -> None:
    with web_site({"x.csv": BIG[:400_000]}, pause=0.05) as site:
        assert fetched(*web_place(site, "x.csv")) == BIG[:400_000]


def test_a_file_that_changes_while_it_is_read_is_not_sewn_together() -> None:
    with web_site({"x.csv": BIG}, faults=["", "reset"]) as site:
        place, entry = web_place(site, "x.csv")
        copy = io.BytesIO()
        chunks = place.read(entry)
        copy.write(next(chunks))
        site.files["x.csv"] = BIG[::-1]
        with pytest.raises(ToolFailure) as failure:
            fetch(place, entry, copy)
        assert failure.value.kind == "changed"


def test_a_server_that_packs_what_it_sends_gives_the_file_itself() -> None:
    with web_site({"x.csv": b"n\n" * 1_000}, packs=True) as site:
        place, entry = web_place(site, "x.csv")
        assert (entry.size, place.has_parts(entry)) == (None, False)
        assert fetched(place, entry) == b"n\n" * 1_000


def test_a_login_a_token_and_a_signature_open_a_file_and_show_nowhere() -> None:
    files = {"x.csv": b"n\n1\n"}
    with web_site(files, needs="Basic YW5uOnJpZ2h0") as site:
        assert fetched(*web_place(site, "x.csv", username="ann", password="right")) == b"n\n1\n"
    with web_site(files, needs="Bearer t0ken") as site:
        assert fetched(*web_place(site, "x.csv", token="t0ken")) == b"n\n1\n"
        with pytest.raises(ToolFailure, match="hint: name a keychain entry") as failure:
            web_place(site, "x.csv", token="other")
        assert (failure.value.kind, "other" in failure.value.message) == ("permission", False)
    with web_site(files, signed="sig=s3cret") as site:
        place, entry = web_place(site, "x.csv", query="?sig=s3cret")
        assert "s3cret" not in place.location.url()
        assert fetched(place, entry) == b"n\n1\n"


def test_a_token_does_not_follow_a_redirect_to_another_host() -> None:
    with (
        web_site({"x.csv": b"n\n"}) as target,
        web_site({}, leads_to=target.url("x.csv").replace("127.0.0.1", "localhost")) as site,
    ):
        assert fetched(*web_place(site, "x.csv", token="t0ken")) == b"n\n"
        assert set(target.authorizations) == {None}
        assert set(site.authorizations) == {"Bearer t0ken"}


def test_addresses_are_judged_on_the_web_and_behind_redirects() -> None:
    with web_site({"x.csv": b"n\n"}) as site:
        with pytest.raises(ToolFailure) as failure:
            web_place(site, "x.csv", PUBLIC_ONLY)
        assert failure.value.kind == "address_refused"
        assert fetched(*web_place(site, "x.csv", LOOPBACK)) == b"n\n"
        assert len(site.asked) == 2
    with web_site({}, leads_to="http://169.254.169.254/latest/meta-data") as site:
        with pytest.raises(ToolFailure) as failure:
            web_place(site, "x.csv", LOOPBACK)
        assert failure.value.kind == "address_refused"


def test_what_is_wrong_with_the_web_is_said_in_a_sentence() -> None:
    with web_site({}, faults=["418"]) as site:
        with pytest.raises(ToolFailure, match="the server says 418") as failure:
            web_place(site, "x.csv")
        assert (failure.value.kind, failure.value.retryable) == ("http_status", False)
        with pytest.raises(ToolFailure, match="there is no file") as failure:
            web_place(site, "x.csv")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # Held, so that no other test listens there; nobody listens.
        place = opened(Location.parsed(f"http://127.0.0.1:{silent.getsockname()[1]}"), {})
        with pytest.raises(ToolFailure, match="connection refused") as failure:
            place.look("/x.csv")
        place.close()
    assert (failure.value.kind, failure.value.retryable) == ("connection", True)
    place = opened(Location.parsed("https://no-such-host.invalid"), {})
    with pytest.raises(ToolFailure, match=r"`no-such-host\.invalid` cannot be resolved") as failure:
        place.look("/x.csv")
    assert failure.value.kind == "dns"
    with pytest.raises(ToolFailure, match="cannot be written to") as failure:
        place.write("/x", [b""])
    assert failure.value.kind == "unsupported"
    place.close()


def test_a_stopped_run_stops_fetching() -> None:
    with web_site({"x.csv": BIG}, pause=0.01) as site:
        place, entry = web_place(site, "x.csv")
        began = time.monotonic()

        def check() -> None:
            if site.sent:
                raise ToolFailure("interrupted", "interrupted")

        with pytest.raises(ToolFailure, match="interrupted"):
            fetch(place, entry, io.BytesIO(), check)
        assert site.sent < len(BIG), time.monotonic() - began


def test_what_is_still_being_read_ends_with_its_place() -> None:
    with web_site({"x.csv": BIG}) as site:
        location = Location.parsed(site.url("x.csv"))
        place = opened(location, {})
        reading = place.read(required(place, location.path))
        assert next(reading)
        place.close()
        del reading
        gc.collect()  # A connection that nobody closed would say so now.
