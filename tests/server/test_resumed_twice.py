"""What is asked for twice at once is done once, and nobody is told of a mistake."""

from __future__ import annotations

import time
from pathlib import Path

from tests.api.service import FAILS, PATIENCE_S, Api, Running, serving


def resumed(running: Running, run: str) -> None:
    """As one look for requests does that another one has overtaken."""
    assert running.service is not None
    assert running.service.server is not None
    hosting = running.service.server.hosting
    running.call(lambda: hosting._host(run, is_resumed=True))
    running.call(lambda: None)
    deadline = time.monotonic() + PATIENCE_S
    while run in hosting.hosted:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_run_that_was_resumed_to_its_end_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        run = api.done()
        before = api.events(run)
        resumed(running, run)
        assert api.events(run) == before
        assert api.ended(run) == "completed"
        assert running.service is not None
        assert running.service.server is not None
        assert running.service.server.problems == []
        api.close()


def test_two_who_resume_at_once_resume_once(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        api = Api(running.url)
        run = api.done(FAILS)
        answers = [api.post(f"/api/executions/{run}/resume").status_code for _ in range(2)]
        assert answers[0] == 202
        assert api.ended(run) == "failed"
        assert running.service is not None
        assert running.service.server is not None
        assert running.service.server.problems == []
        api.close()
