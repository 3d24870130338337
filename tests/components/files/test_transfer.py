"""file_transfer against real FTP and SFTP servers on loopback."""

from __future__ import annotations

import asyncio
import datetime
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.addresses import PUBLIC_ONLY
from penstock.tools.base import Settings
from penstock.tools.places.base import Server
from penstock.tools.places.ftp import Ftp
from tests.components.flow.support import Ran, failed, run
from tests.components.harness import REGISTRY, make_call, mistakes
from tests.tools.certificates import issue

from .ftp_server import FtpSite, ftp_server
from .sftp_server import SftpSite, new_key, sftp_server

Site = FtpSite | SftpSite
LOGIN = {"account": {"username": "ann", "password": "right"}}


@pytest.fixture(params=["ftp", "sftp"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    server: Any = ftp_server if request.param == "ftp" else sftp_server
    with server(tmp_path / "server") as site:
        yield site


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def transfer(site: Site, here: Path, action: str, **params: Any) -> Ran:
    return run("file_transfer", whole(site, action, params), folder=here, credentials=LOGIN)


def refused(site: Site, here: Path, action: str, **params: Any) -> Any:
    return failed("file_transfer", whole(site, action, params), folder=here, credentials=LOGIN)


def whole(site: Site, action: str, params: dict[str, Any]) -> dict[str, Any]:
    known = {"host_key": site.host_key.get_base64()} if isinstance(site, SftpSite) else {}
    return {"action": action, "url": site.url(), "auth": "account", **known, **params}


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


# ---- both protocols


def test_a_file_is_sent_and_fetched(site: Site, here: Path) -> None:
    (here / "a.csv").write_text("1,2\n")
    sent = transfer(site, here, "put", path="a.csv", remote="in/may/a.csv")
    assert tree(site.root) == {"in/may/a.csv": "1,2\n"}
    assert (sent.after, sent.result["files"]) == (
        {"COUNT": 1, "BYTES": 4},
        [{"remote": "in/may/a.csv", "path": str(here / "a.csv"), "size": 4}],
    )
    fetched = transfer(site, here, "get", remote="in/may/a.csv", path="back/")
    assert tree(here / "back") == {"a.csv": "1,2\n"}
    assert fetched.main[0]["path"] == str(here / "back" / "a.csv")


def test_a_large_file_comes_over_whole(site: Site, here: Path) -> None:
    content = os.urandom(3_000_001)
    (here / "big").write_bytes(content)
    transfer(site, here, "put", path="big", remote="big")
    transfer(site, here, "get", remote="big", path="copy")
    assert (here / "copy").read_bytes() == content


def test_the_files_of_a_pattern_are_sent_and_can_be_sent_again(site: Site, here: Path) -> None:
    (here / "sub").mkdir()
    for name in ("a.csv", "b.csv", "c.txt", "sub/d.csv"):
        (here / name).write_text(name)
    for _ in range(2):
        ran = transfer(site, here, "put", path=".", pattern="*.csv", recursive=True, remote="inbox")
    assert tree(site.root) == {"inbox/a.csv": "a.csv", "inbox/b.csv": "b.csv", "inbox/sub/d.csv": "sub/d.csv"}
    assert ran.after["COUNT"] == 3


def test_the_files_of_a_pattern_are_fetched_and_removed_there(site: Site, here: Path) -> None:
    (site.root / "out" / "sub").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "c.txt", "sub/d.csv"):
        (site.root / "out" / name).write_text(name)
    ran = transfer(
        site, here, "get", remote="out", pattern="*.csv",
        recursive=True, path="fetched", remove_source=True,
    )  # fmt: skip
    assert tree(here / "fetched") == {"a.csv": "a.csv", "b.csv": "b.csv", "sub/d.csv": "sub/d.csv"}
    assert tree(site.root) == {"out/c.txt": "c.txt"}
    assert [row["remote"] for row in ran.main] == ["out/a.csv", "out/b.csv", "out/sub/d.csv"]


def test_what_was_sent_can_be_removed_here(site: Site, here: Path) -> None:
    (here / "a.csv").write_text("1")
    transfer(site, here, "put", path="a.csv", remote="a.csv", remove_source=True)
    assert (tree(here), tree(site.root)) == ({}, {"a.csv": "1"})


def test_a_folder_on_the_server_is_listed(site: Site, here: Path) -> None:
    (site.root / "out").mkdir()
    (site.root / "out" / "a.csv").write_text("123")
    os.utime(site.root / "out" / "a.csv", (1_700_000_000, 1_700_000_000))
    ran = transfer(site, here, "list", url=site.url("/out"))
    assert ran.main == [
        {
            "remote": "/out/a.csv",
            "path": None,
            "name": "a.csv",
            "size": 3,
            "modified": datetime.datetime(2023, 11, 14, 22, 13, 20),
        }
    ]
    assert transfer(site, here, "list", remote="out", pattern="*.txt").main == []
    assert refused(site, here, "list", remote="nix").kind == "missing_file"
    assert transfer(site, here, "list", remote="nix", missing_ok=True).main == []


def test_files_on_the_server_are_moved_and_deleted(site: Site, here: Path) -> None:
    (site.root / "a.csv").write_text("1")
    transfer(site, here, "move", remote="a.csv", to="done/b.csv")
    assert tree(site.root) == {"done/b.csv": "1"}
    assert transfer(site, here, "delete", remote="done", pattern="*").after["COUNT"] == 1
    assert tree(site.root) == {}
    assert refused(site, here, "delete", remote="done/b.csv").kind == "missing_file"
    assert transfer(site, here, "delete", remote="done/b.csv", missing_ok=True).after["COUNT"] == 0


def test_what_is_there_is_replaced_only_when_that_is_allowed(site: Site, here: Path) -> None:
    (here / "a").write_text("new")
    (site.root / "a").write_text("old")
    assert refused(site, here, "put", path="a", remote="a", overwrite=False).kind == "file_exists"
    assert refused(site, here, "get", path="a", remote="a", overwrite=False).kind == "file_exists"
    assert (tree(here), tree(site.root)) == ({"a": "new"}, {"a": "old"})
    transfer(site, here, "put", path="a", remote="a")
    assert tree(site.root) == {"a": "new"}


def test_nothing_to_work_on_is_a_failure_unless_it_may_be(site: Site, here: Path) -> None:
    assert refused(site, here, "get", remote="nix", path="x").kind == "missing_file"
    assert refused(site, here, "put", path="nix", remote="x").kind == "missing_file"
    assert transfer(site, here, "get", remote="nix", path="x", missing_ok=True).after["COUNT"] == 0
    assert transfer(site, here, "put", path="nix", remote="x", missing_ok=True).after["COUNT"] == 0
    (site.root / "folder").mkdir()
    assert "say which files with `pattern`" in refused(site, here, "get", remote="folder", path="x").message
    (here / "folder").mkdir()
    assert "say which of its files with `pattern`" in refused(site, here, "put", remote="x", path="folder").message


def test_a_wrong_password_is_said_and_not_shown(site: Site, here: Path) -> None:
    auth = {"username": "ann", "password": "wr0ng"}
    failure = refused(site, here, "list", auth=auth)
    assert (failure.kind, "wr0ng" in failure.message) == ("auth", False)


def test_a_server_that_is_not_there_is_said(site: Site, here: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    scheme = "ftp" if isinstance(site, FtpSite) else "sftp"
    failure = refused(site, here, "list", url=f"{scheme}://127.0.0.1:{port}")
    assert (failure.kind, failure.retryable) == ("connection", True)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(site: Site, here: Path) -> None:
    scheme = "ftp" if isinstance(site, FtpSite) else "sftp"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        failure = refused(site, here, "list", url=f"{scheme}://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)
    assert failure.kind in ("timeout", "connection")
    assert failure.retryable


def test_a_closed_private_network_stays_closed(site: Site, here: Path) -> None:
    failure = failed(
        "file_transfer",
        whole(site, "list", {}),
        folder=here,
        credentials=LOGIN,
        settings=Settings(PUBLIC_ONLY),
    )
    assert failure.kind == "address_refused"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"action": "get", "remote": "a"}, "`action: get` needs `path`"),
        ({"action": "get", "path": "a"}, "needs `remote`, or a `pattern`"),
        ({"action": "list", "path": "a"}, "`path` is for `get` and `put`, not for `list`"),
        ({"action": "move", "remote": "a"}, "`action: move` needs `to`"),
        ({"action": "move", "remote": "a", "to": "b", "pattern": "*"}, "`move` is for one file"),
    ],
)
def test_parameters_that_do_not_fit_are_found_before_the_run(params: dict[str, Any], words: str) -> None:
    assert any(words in each.message for each in mistakes("file_transfer", {"url": "ftp://h", **params}))


@pytest.mark.parametrize("url", ["http://host/x", "sftp://", "ftp://host:port"])
def test_a_url_of_something_else_is_refused(here: Path, url: str) -> None:
    failure = failed("file_transfer", {"action": "list", "url": url}, folder=here)
    assert (failure.kind, "write `sftp://host`" in failure.message) == ("parameters", True)


# ---- FTP


def test_an_old_ftp_server_without_mlsd_is_listed_too(tmp_path: Path, here: Path) -> None:
    with ftp_server(tmp_path / "server", answers={"MLSD": "500 what?"}) as site:
        (site.root / "out" / "sub").mkdir(parents=True)
        (site.root / "out" / "a.csv").write_text("123")
        (site.root / "out" / "sub" / "b.csv").write_text("1")
        ran = transfer(site, here, "list", remote="out", recursive=True)
    assert [(row["remote"], row["size"]) for row in ran.main] == [("out/a.csv", 3), ("out/sub/b.csv", 1)]


def test_an_ftp_server_that_does_not_rename_over_a_file_gets_it_replaced(tmp_path: Path, here: Path) -> None:
    (here / "a").write_text("new")
    with ftp_server(tmp_path / "server", renames_over=False) as site:
        (site.root / "a").write_text("old")
        transfer(site, here, "put", path="a", remote="a")
        assert tree(site.root) == {"a": "new"}


def test_a_file_that_was_cut_off_is_not_taken_for_whole(tmp_path: Path, here: Path) -> None:
    with ftp_server(tmp_path / "server", cut=10) as site:
        (site.root / "a").write_text("x" * 100)
        failure = refused(site, here, "get", remote="a", path="a", remove_source=True)
        assert (failure.kind, failure.retryable, tree(here)) == ("connection", True, {})
        assert (site.root / "a").exists()


def test_a_file_that_cannot_be_written_leaves_nothing_on_the_server(tmp_path: Path, here: Path) -> None:
    (here / "a").write_text("new")
    with ftp_server(tmp_path / "server", answers={"RNTO": "553 not allowed"}) as site:
        assert refused(site, here, "put", path="a", remote="a").kind == "permission"
        assert tree(site.root) == {}


@pytest.mark.parametrize("name", ["../evil", "a/b", "..\\evil"])
def test_a_server_cannot_choose_where_a_file_goes_here(tmp_path: Path, here: Path, name: str) -> None:
    with ftp_server(tmp_path / "server", extra_names=[name]) as site:
        (site.root / "ok").write_text("1")
        failure = refused(site, here, "get", remote="", pattern="*", path="in")
    assert (failure.kind, tree(tmp_path / "here")) == ("unsafe_name", {})


def test_ftp_over_tls_is_verified_and_keeps_the_data_secret(tmp_path: Path, here: Path) -> None:
    trusted, tls = issue(tmp_path, "127.0.0.1")
    (here / "a").write_text("secret")
    with ftp_server(tmp_path / "server", tls=tls) as site:
        params = {"url": site.url(scheme="ftps"), "path": "a", "remote": "a"}
        assert refused(site, here, "put", **params).kind == "tls"
        ran = transfer(site, here, "put", **params, verify=str(trusted))
        transfer(site, here, "get", url=site.url(scheme="ftps"), remote="a", path="b", verify=False)
        assert site.encrypted_data == [True, True]
    assert (ran.said, (here / "b").read_text()) == ([], "secret")


def test_ftp_with_tls_from_the_first_byte_on_is_understood(tmp_path: Path) -> None:
    trusted, tls = issue(tmp_path, "127.0.0.1")
    with ftp_server(tmp_path / "server", tls=tls, implicit_tls=True) as site:
        (site.root / "a").write_text("1")
        server = Server(
            "ftps", "127.0.0.1", site.port, ["127.0.0.1"], verify=str(trusted), timeout=5, implicit_tls=True
        )
        client = Ftp(server)
        client.connect()
        assert b"".join(client.read("a")) == b"1"
        client.close()
    assert not any(command.startswith("AUTH") for command in site.commands)


def test_plain_ftp_warns_of_the_password_and_knows_the_anonymous(tmp_path: Path, here: Path) -> None:
    with ftp_server(tmp_path / "server") as site:
        assert "without encryption" in transfer(site, here, "list").said[0]
        assert run("file_transfer", {"action": "list", "url": site.url()}, folder=here).said == []
        assert site.commands.count("USER anonymous") == 1


def test_a_name_with_a_line_end_is_not_said_to_a_server(tmp_path: Path, here: Path) -> None:
    with ftp_server(tmp_path / "server") as site:
        failure = refused(site, here, "delete", remote="a\r\nDELE b")
    assert failure.kind == "parameters"


def test_a_transfer_that_is_cancelled_ends_at_once(tmp_path: Path, here: Path) -> None:
    with ftp_server(tmp_path / "server", answers={"RETR": "hang"}) as site:
        (site.root / "a").write_text("1")

        async def cancelled() -> None:
            params = REGISTRY.convert("file_transfer", whole(site, "get", {"remote": "a", "path": "b"}))
            call = make_call(None, here, credentials=LOGIN)  # type: ignore[arg-type]
            running = asyncio.create_task(REGISTRY.get("file_transfer").run(params, call))  # type: ignore[attr-defined]
            await asyncio.to_thread(site.hanging.wait, 10)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancelled())
    assert tree(here) == {}


# ---- SFTP


def test_an_unknown_host_key_is_refused_with_the_key_to_trust(tmp_path: Path, here: Path) -> None:
    with sftp_server(tmp_path / "server") as site:
        params = {"action": "list", "url": site.url(), "auth": "account"}
        (here / "known").write_text("")
        failure = failed("file_transfer", {**params, "verify": "known"}, folder=here, credentials=LOGIN)
        assert (failure.kind, site.logins) == ("host_key", [])
        shown = failure.message.split("`SHA256:")[1].split("`")[0]
        run("file_transfer", {**params, "host_key": f"SHA256:{shown}"}, folder=here, credentials=LOGIN)
        other = failed("file_transfer", {**params, "host_key": "SHA256:AAAA"}, folder=here, credentials=LOGIN)
        assert other.kind == "host_key"
        (here / "known").write_text(site.known_hosts_line)
        run("file_transfer", {**params, "verify": "known"}, folder=here, credentials=LOGIN)
        run("file_transfer", {**params, "verify": False}, folder=here, credentials=LOGIN)
        missing = failed("file_transfer", {**params, "verify": "nowhere"}, folder=here, credentials=LOGIN)
        assert missing.kind == "host_key"


@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_a_private_key_logs_in(tmp_path: Path, here: Path, passphrase: str | None) -> None:
    text, key = new_key(passphrase)
    with sftp_server(tmp_path / "server", accepted=key) as site:
        auth = {"username": "ann", "private_key": text, "passphrase": passphrase}
        transfer(site, here, "list", auth=auth)
        assert site.logins[0] == "publickey"
        assert refused(site, here, "list", auth={**auth, "private_key": new_key()[0]}).kind == "auth"
        assert "cannot be read" in refused(site, here, "list", auth={**auth, "private_key": "nonsense"}).message
        if passphrase:
            assert "has a passphrase" in refused(site, here, "list", auth={**auth, "passphrase": None}).message


def test_an_sftp_server_without_posix_rename_gets_the_file_replaced(tmp_path: Path, here: Path) -> None:
    (here / "a").write_text("new")
    with sftp_server(tmp_path / "server", posix_rename=False) as site:
        (site.root / "a").write_text("old")
        transfer(site, here, "put", path="a", remote="a")
        assert tree(site.root) == {"a": "new"}


def test_without_paramiko_sftp_says_what_to_install(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    failure = failed("file_transfer", {"action": "list", "url": "sftp://127.0.0.1"}, folder=here)
    assert (failure.kind, "pip install 'penstock[sftp]'" in failure.message) == ("not_installed", True)


@pytest.mark.parametrize("scheme", ["ftp", "ftps", "sftp"])
def test_a_closed_port_is_told_with_its_host_and_number(scheme: str, here: Path) -> None:
    with socket.socket() as closed:  # Bound, and nobody listens.
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        asked = {"action": "list", "url": f"{scheme}://127.0.0.1:{port}/", "auth": "account", "verify": False}
        failure = failed("file_transfer", asked, folder=here, credentials=LOGIN)
    assert (failure.kind, failure.retryable) == ("connection", True)
    assert f"connection refused by `127.0.0.1:{port}`" in failure.message
