"""Streams: nothing is missed, nothing comes twice, and nobody is waited for."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from penstock.api.backend import Limits
from tests.api.service import QUICK, SLOW, Api, asking, serving
from tests.engine import document

GATED = """
- step: start
  tool:
    - name: wait
      kind: python
      code: |
        import time
        from pathlib import Path
        print("waiting")
        while not Path({gate!r}).exists():
            time.sleep(0.01)
  next: {{arcs: [{{step: fin}}]}}
- step: fin
  tool: [{{name: n, kind: noop, value: done}}]
"""


class Sse:
    """Messages of a stream as a browser's EventSource would give them."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._pieces = response.iter_bytes()
        self._rest = b""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for piece in self._pieces:
            *whole, self._rest = (self._rest + piece).split(b"\n\n")
            for block in whole:
                fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if ": " in line)
                if "data" in fields:
                    yield {**fields, "data": json.loads(fields["data"])}


@contextmanager
def stream(api: Api, last_id: str | None = None, **params: Any) -> Iterator[Sse]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with api.http.stream("GET", "/api/stream", params=params, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Sse(response)


def upto_the_end(messages: Sse, run: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        yield message
        data = message["data"]
        if message["event"] == "status" and data["execution_id"] == run and data["status"] != "running":
            return


def test_the_events_are_those_of_the_log_and_can_be_had_from_a_place_on(api: Api) -> None:
    run = api.done()
    events = api.events(run)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event_type"], events[-1]["event_type"]) == ("playbook.started", "playbook.completed")
    assert api.events(run, after=3) == events[3:]
    assert api.events(run, after=10_000) == []
    assert api.events(run, follow="true") == events


def test_events_are_followed_until_the_run_is_over(api: Api, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = api.submit(document(GATED.format(gate=str(gate))))
    seen = []
    with api.http.stream("GET", f"/api/executions/{run}/events", params={"follow": "true"}) as response:
        rest = b""
        for piece in response.iter_bytes():
            *whole, rest = (rest + piece).split(b"\n")
            seen += [json.loads(line) for line in whole if line]
            if any(event["event_type"] == "task.started" for event in seen):
                gate.touch()
    assert seen == api.events(run)


def test_one_stream_carries_several_executions_and_what_their_tools_say(api: Api) -> None:
    runs = [api.submit(QUICK), api.submit(QUICK)]
    ended: set[str] = set()
    entries: dict[str, list[Any]] = {run: [] for run in runs}
    lines = []
    with stream(api, execution=runs, lines="true") as messages:
        for message in messages:
            data = message["data"]
            if message["event"] == "entry":
                entries[data["execution_id"]].append(data)
            elif message["event"] == "line":
                lines.append(data["line"])
            elif message["event"] == "status" and data["status"] != "running":
                ended.add(data["execution_id"])
            if len(ended) == 2 and len(lines) == 2:
                break
    assert {run: api.events(run) for run in runs} == entries
    assert lines == ["greeting", "greeting"]


def test_a_stream_that_broke_off_goes_on_after_the_last_message(api: Api) -> None:
    runs = [api.done(), api.done()]
    with stream(api, execution=runs) as messages:
        whole = []
        for message in messages:
            whole.append(message)
            if sum(one["event"] == "status" for one in whole) == 2:
                break
    entries = [message for message in whole if message["event"] == "entry"]
    assert len(entries) == sum(len(api.events(run)) for run in runs)
    for cut in range(0, len(entries), 5):
        with stream(api, entries[cut]["id"], execution=runs) as messages:
            rest = []
            for message in messages:
                rest.append(message)
                if sum(one["event"] == "status" for one in rest) == 2:
                    break
        again = [message for message in rest if message["event"] == "entry"]
        assert [one["data"] for one in again] == [one["data"] for one in entries[cut + 1 :]]


def test_a_stream_may_begin_after_a_place_of_each_execution(api: Api) -> None:
    run = api.done()
    with stream(api, execution=f"{run}@5") as messages:
        seqs = [message["data"]["seq"] for message in upto_the_end(messages, run) if message["event"] == "entry"]
    assert seqs == list(range(6, len(api.events(run)) + 1))


@pytest.mark.parametrize("last_id", ["x", "1.2", "1-", "-1", "99999999999999999999"])
def test_a_last_id_that_does_not_fit_is_refused(api: Api, last_id: str) -> None:
    run = api.done()
    answer = api.http.get("/api/stream", params={"execution": run}, headers={"Last-Event-ID": last_id})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


def test_a_stream_about_nothing_or_nobody_is_refused(api: Api) -> None:
    assert api.get("/api/stream").status_code == 422
    assert api.get("/api/stream", execution="nobody").status_code == 404
    assert api.get("/api/stream", execution=[f"run-{number}" for number in range(101)]).status_code == 422


def test_changes_in_the_list_of_runs_are_told(api: Api) -> None:
    api.done()
    with stream(api, runs="true") as messages:
        run = api.submit(QUICK)
        first = next(iter(messages))
        assert (first["event"], set(first["data"])) == ("start", {"server", "version"})
        for message in messages:
            assert message["event"] == "run"
            if message["data"]["execution_id"] == run and message["data"]["status"] == "completed":
                break


def test_each_change_in_the_list_of_runs_is_told_once(api: Api) -> None:
    with stream(api, runs="true") as messages:
        run, seen = api.submit(QUICK), []
        for message in messages:
            if message["event"] == "run" and message["data"]["execution_id"] == run:
                seen.append(message["data"])
                if message["data"]["status"] == "completed":
                    break
    assert all(one != other for one, other in pairwise(seen))
    assert [one["events"] for one in seen] == sorted(one["events"] for one in seen)


MANY = document("""
- step: start
  loop: {in: "{{ range(400) }}", iterator: n}
  tool: [{name: n, kind: noop, value: "{{ iter.n }}"}]
""")


def test_ticks_tell_how_far_a_run_is_however_many_events_it_has(api: Api) -> None:
    run = api.submit(MANY)
    with stream(api, execution=run, ticks="true") as messages:
        found = list(upto_the_end(messages, run))
    ticks = [message["data"] for message in found if message["event"] == "tick"]
    assert {message["event"] for message in found} == {"start", "tick", "status"}
    assert ticks[-1] == {"execution_id": run, "seq": len(api.events(run)), "status": "completed", "lines": 0}
    assert all(one["seq"] < other["seq"] for one, other in pairwise(ticks))
    assert len(ticks) < ticks[-1]["seq"] / 10


def test_ticks_count_the_lines_that_tools_printed(api: Api) -> None:
    run = api.done()
    with stream(api, execution=run, ticks="true") as messages:
        ticks = [message["data"]["lines"] for message in upto_the_end(messages, run) if message["event"] == "tick"]
    assert ticks[-1:] == [1]


def test_ticks_that_were_cut_off_go_on_without_gap_or_repetition(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        run = api.submit(MANY)
        seqs: list[int] = []
        last_id: str | None = None
        is_over = False
        while not is_over:  # Every connection is cut after its first tick.
            with stream(api, last_id, execution=run, ticks="true") as messages:
                for message in messages:
                    last_id = message.get("id", last_id)
                    if message["event"] == "tick":
                        seqs.append(message["data"]["seq"])
                        is_over = message["data"]["status"] != "running"
                        break
                    if message["event"] == "status" and message["data"]["status"] != "running":
                        is_over = True
                        break
        assert seqs == sorted(set(seqs))
        assert seqs[-1] == len(api.events(run))
        with stream(api, last_id, execution=run, ticks="true") as messages:
            assert [one["event"] for one in upto_the_end(messages, run)] == ["start", "status"]


def test_events_that_were_cut_off_while_a_run_goes_are_all_seen_and_none_twice(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        run = api.submit(MANY)
        seqs: list[int] = []
        last_id: str | None = None
        is_over = False
        while not is_over:  # Every connection is cut after some events.
            with stream(api, last_id, execution=run) as messages:
                for number, message in enumerate(messages):
                    last_id = message.get("id", last_id)
                    if message["event"] == "entry":
                        seqs.append(message["data"]["seq"])
                    is_over = message["event"] == "status" and message["data"]["status"] != "running"
                    if is_over or number > 150:
                        break
        assert seqs == list(range(1, len(api.events(run)) + 1))


def test_a_resumed_stream_sees_a_run_that_was_deleted_as_deleted(tmp_path: Path) -> None:
    with asking(tmp_path) as api:
        run = api.done()
        with stream(api, execution=run) as messages:
            for message in messages:
                if message["event"] == "status" and message["data"]["status"] == "completed":
                    api.pruned(1)
                elif message["event"] == "status":
                    assert message["data"]["status"] == "deleted"
                    break


def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        run = api.submit(SLOW)
        over = threading.Event()

        def watch() -> None:
            with stream(api, execution=run) as messages:
                for _ in messages:
                    begun.set()
            over.set()

        begun = threading.Event()
        watcher = threading.Thread(target=watch)
        watcher.start()
        assert begun.wait(10)
    assert over.wait(10)
    watcher.join()
    api.close()


def test_no_more_streams_are_opened_than_there_is_room_for(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        app_limits(running, Limits(streams=2))
        run = api.submit(SLOW)
        with stream(api, execution=run) as first, stream(api, execution=run) as second:
            next(iter(first)), next(iter(second))
            answer = api.get("/api/stream", execution=run)
            assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many")
        api.close()


def test_who_takes_nothing_is_cut_off_and_the_others_go_on(tmp_path: Path) -> None:
    """The slow one asks for megabytes and never reads; its connection ends, and no one else notices."""
    big = document("""
- step: start
  loop: {in: {range: 40}, iterator: i}
  tool: [{name: n, kind: python, code: "result = 'x' * 200_000"}]
""")
    with serving(tmp_path) as running:
        app_limits(running, Limits(stall_s=0.5))
        api = Api(running.url)
        run = api.done(big)
        host, port = running.url.removeprefix("http://").split(":")
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((host, int(port)))
            slow.sendall(f"GET /api/stream?execution={run} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            with stream(api, execution=run) as messages:
                entries = [one for one in upto_the_end(messages, run) if one["event"] == "entry"]
            assert len(entries) == len(api.events(run))
            while "penstock_streams 0\n" not in api.get("/metrics").text:
                time.sleep(0.05)
            slow.settimeout(20)
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while piece := slow.recv(65536):  # What was in the pipes still comes; then it is over, and not whole.
                    received += len(piece)
        assert received < 40 * 200_000
        api.close()


def test_a_heartbeat_comes_while_nothing_happens(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        app_limits(running, Limits(heartbeat_s=0.1))
        api = Api(running.url)
        run = api.submit(SLOW)
        with api.http.stream("GET", "/api/stream", params={"execution": run}) as response:
            text = b""
            for piece in response.iter_bytes():
                text += piece
                if text.count(b": still here\n\n") >= 2:
                    break
        with api.http.stream("GET", f"/api/executions/{run}/events", params={"follow": "true"}) as response:
            text = b""
            for piece in response.iter_bytes():
                text += piece
                if b"\n\n" in text:
                    break
        api.close()


def app_limits(running: Any, limits: Limits) -> None:
    """Other limits than a server has by itself."""
    backend = running.service.backend
    backend.limits = limits
    running.service.app.state.tail.most = limits.streams
