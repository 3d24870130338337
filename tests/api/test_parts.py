"""What a server is put together from, each for itself: its clock, its log with listeners, TLS."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx2
import pytest

from penstock.adapters.memory.log import MemoryLog, MemoryStore
from penstock.adapters.watched_log import WatchedLog
from penstock.app.stores import FleetClock, StoreLocations
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.log import Entry, Header
from penstock.ports.meters import Histogram
from tests.api.service import QUICK, Api, serving
from tests.tools.certificates import issue


def header(name: str) -> Header:
    return Header(name, "playbook", "p", "p.yaml", "d", "running", 1.0)


def entry(seq: int) -> Entry:
    return Entry(seq, 1.0, "x", "", None, "[0]", None, "server", None, b"{}")


def test_the_clock_of_the_fleet_is_that_of_the_store() -> None:
    async def scene() -> None:
        async def store() -> float:
            return 5_000_000_000.0

        clock = FleetClock(store)
        assert clock.now() < 4_000_000_000
        await clock.look()
        assert 5_000_000_000 <= clock.now() < 5_000_000_010

    asyncio.run(scene())


def test_a_store_that_does_not_answer_leaves_the_clock_as_it_is() -> None:
    async def scene() -> None:
        answers = iter([5_000_000_000.0])

        async def store() -> float:
            for answer in answers:
                return answer
            raise Unavailable("the store is away")

        clock = FleetClock(store, every_s=0.0)
        await clock.look()
        following = asyncio.ensure_future(clock.follow())
        await asyncio.sleep(0.05)
        assert not following.done()
        assert clock.now() >= 5_000_000_000
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(scene())


def test_listeners_hear_of_what_is_durable_and_of_nothing_before() -> None:
    async def scene() -> None:
        heard: list[str] = []
        log = WatchedLog(MemoryLog())
        log.listeners.append(heard.append)
        await log.create(header("a"), b"{}")
        assert heard == ["a"]
        epoch = await log.claim("a", "me")
        first = log.append("a", epoch, [entry(1)])
        second = log.append("a", epoch, [entry(2), entry(3)])
        assert heard == ["a"]
        await log.durable(second)
        assert (heard, log.appended, log.latency.count) == (["a", "a"], 3, 2)
        await log.durable(first)
        assert (heard, log.latency.count) == (["a", "a"], 2)
        log.append("a", epoch, [entry(9)])
        refused = log.append("a", epoch, [entry(10)])
        with pytest.raises(Refused):
            await log.durable(refused)
        await log.release("a")
        assert not log._waiting
        assert not log._owner_of
        await log.close()

    asyncio.run(scene())


def test_a_server_does_not_take_up_what_another_process_works_on_beside_it() -> None:
    async def scene() -> None:
        store = MemoryStore()
        server, other = WatchedLog(MemoryLog(store), is_shared=True), MemoryLog(store)
        await other.create(header("theirs"), b"{}")
        epoch = await other.claim("theirs", "somebody")
        assert server.unfinished() == []
        await other.durable(other.append("theirs", epoch, [entry(1)]))
        await other.release("theirs")
        assert server.unfinished() == ["theirs"]
        await server.claim("theirs", "me")
        assert server.unfinished() == ["theirs"]
        await other.create(header("never-begun"), b'{"file":"p.yaml","text":""}')
        await other.create(header("submitted"), b'{"file":"p.yaml","text":"","inputs":{}}')
        assert server.unfinished() == ["theirs", "submitted"]
        for log in (server, other):
            await log.close()

    asyncio.run(scene())


def test_a_histogram_counts_each_value_once() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 3.0):
        histogram.add(value)
    assert (histogram.counts, histogram.total, histogram.count) == ([2, 1, 1], 6.0, 4)


def test_tls_is_spoken_when_there_is_a_certificate(tmp_path: Path) -> None:
    trusted, _ = issue(tmp_path, "127.0.0.1")
    with serving(tmp_path / "home", tls_cert=trusted, tls_key=tmp_path / "private.pem") as running:
        assert running.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(trusted))
        with httpx2.Client(base_url=running.url, verify=context) as client:
            answer = client.get("/health")
        assert answer.status_code == 200
        assert "strict-transport-security" in answer.headers


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    trusted, _ = issue(tmp_path, "127.0.0.1")
    with pytest.raises(Refused, match="certificate"), serving(tmp_path / "home", tls_cert=trusted):
        pass


def test_the_command_line_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"PENSTOCK_DATABASE": "postgresql://env/x", "PENSTOCK_RESULTS": "file:/env"}
    assert StoreLocations.from_options(tmp_path, None, environ=environ).database == "postgresql://env/x"
    said = StoreLocations.from_options(tmp_path, "postgresql://said/x", "file:/said", environ=environ)
    assert (said.database, said.results) == ("postgresql://said/x", "file:/said")
    assert StoreLocations.from_options(tmp_path, None, environ={}).database is None


def test_a_url_that_is_no_database_is_refused_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        StoreLocations(tmp_path, "mysql://me:hidden@host/x")
    assert "hidden" not in refused.value.message


def test_a_run_that_was_under_way_goes_on_after_a_restart(tmp_path: Path) -> None:
    text = QUICK.replace('print("greeting")', "import time; time.sleep(0.3)")
    with serving(tmp_path) as first:
        api = Api(first.url)
        runs = [api.submit(text) for _ in range(3)]
        api.close()
    with serving(tmp_path) as second:
        api = Api(second.url)
        assert [api.ended(run) for run in runs] == ["completed"] * 3
        api.close()
