"""A job as it goes: what is folded, what is said line by line, and the tree on a real terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.cli.show.live import Lines, pace
from penstock.cli.show.progress import Progress
from penstock.kernel.net import Net
from tests.cli.jobs import LOOP, ORDERS, WAITS, write_job
from tests.cli.test_terminal import Terminal
from tests.views.jobs import Outcome, job, play

Capture = pytest.CaptureFixture[str]


def folded(net: Net, outcomes: dict[str, Outcome] | None = None) -> Progress:
    progress = Progress(net)
    watch = progress.observer()
    for entry in play(net, outcomes).entries:
        watch(entry)
    progress.fold(0.0)
    return progress


def test_components_have_their_states_and_rows_and_sub_jobs_theirs() -> None:
    progress = folded(job("a.main -> b.input", "a (ok) b", "a (error) c", "b (subjob_ok) d"), {"a": {"main": 3}})
    parts = progress.parts()
    assert {name: part.status for name, part in parts.items()} == {"a": "ok", "b": "ok", "c": "skipped", "d": "ok"}
    assert progress.root is not None
    assert (parts["a"].rows_out, progress.root.runs["b"].rows_in) == ({"main": 3}, {"input": 3})
    assert {group.name: group.status for group in progress.root.groups.values()} == {"a": "ok", "d": "ok"}
    assert progress.rate(parts["a"], "main", parts) == 1500.0


def test_of_iterations_only_counts_are_kept() -> None:
    net = job("it (iterate) x", "x.main -> y.input", inside={"it": ["x", "y"]}, halts=False)
    progress = folded(net, {"it": list(range(50)), "it[#7].x": ValueError("no"), "it[#].x": {"main": 2}})
    parts = progress.parts()
    assert set(parts) == {"it", "x", "y"}
    fan = parts["it"].fan
    assert fan is not None
    assert (fan.total, fan.ok, fan.failed) == (50, 49, 1)
    assert parts["x"].rows_out == {"main": 98}
    assert progress.root is not None
    assert len(progress.root.runs) < 5
    assert [news.name for news in progress.news if news.what == "iteration"] == ["it[#7]"]


def test_rows_that_are_told_of_while_a_component_works_give_a_rate() -> None:
    net = job("a.main -> b.input")
    progress = Progress(net)
    watch, rows = progress.observer(), progress.rows_observer()
    for entry in play(net).entries[:3]:
        watch(entry)
    progress.fold(1000.0)
    rows("a", "main", 100)
    progress.fold(1001.0)
    rows("a", "main", 300)
    progress.fold(1002.0)
    parts = progress.parts()
    assert parts["a"].rows_out == {"main": 300}
    assert progress.rate(parts["a"], "main", parts) == pytest.approx(150.0, rel=0.1)


def test_what_a_resume_keeps_is_marked_as_kept() -> None:
    net = job("a (subjob_ok) b")
    played = play(net, {"b": ValueError("no")})
    before = len(played.entries)
    played.resume(b=None)
    progress = Progress(net)
    progress.catch_up(played.entries[:before])
    for entry in played.entries[before:]:
        progress.observer()(entry)
    progress.fold(0.0)
    parts = progress.parts()
    assert (parts["a"].kept, parts["b"].status) == (True, "ok")
    assert progress.root is not None
    assert {one.name: (one.status, one.kept) for one in progress.root.groups.values()} == {
        "a": ("ok", True),
        "b": ("ok", False),
    }
    assert [news.name for news in progress.news if news.what == "started"] == ["b"]


def test_what_runs_inside_a_component_is_not_taken_for_a_component_of_the_job() -> None:
    net = job("a (ok) b")
    progress = Progress(net)
    for entry in play(net).entries:
        progress.observer()(entry._replace(scope=f"b/{entry.scope}"))
    progress.fold(0.0)
    assert {part.status for part in progress.parts().values()} == {"waiting"}


def test_plain_lines_name_starts_ends_skips_failures_and_what_was_said(capsys: Capture) -> None:
    net = job("a.main -> b.input", "a (ok) b", "b (error) c", "it (iterate) x", inside={"it": ["x"]}, halts=False)
    progress = Progress(net)
    watch = progress.observer()
    for entry in play(net, {"a": {"main": 3}, "it": [1, 2], "it[#1].x": ValueError("two\nlines")}).entries:
        watch(entry)
    progress.line_observer()("a", None, "hello \x1b[31mred")
    progress.fold(0.0)
    Lines("job.yaml").close(progress)
    said = re.sub(r"\d\d:\d\d:\d\d ", "", capsys.readouterr().err).splitlines()
    assert said[0] == "job.yaml"
    assert "a: started (t_a)" in said
    assert "a: OK in 2 ms, rows out 3" in said
    assert "b: started (t_b), rows in 3" in said
    assert "c: SKIPPED: `b` ended OK, so its `error` link did not fire" in said
    assert "it[#1]: ERROR: two lines" in said
    assert any(re.fullmatch(r"it: OK in \d+ ms, 2 of 2 iterations, 1 failed", line) for line in said)
    assert "sub-job a: OK" in said
    assert "a | hello red" in said


@pytest.mark.parametrize(
    ("rate", "words"),
    [(3.0, "3 rows/s"), (1500.0, "1.5 k rows/s"), (2_340_000.0, "2.34 M rows/s"), (6.5e9, "6.5 G rows/s")],
)
def test_a_pace_has_three_figures(rate: float, words: str) -> None:
    assert pace(rate) == words


# ---- a real terminal


@pytest.mark.usefixtures("folder")
def test_the_tree_shows_sub_jobs_states_rows_and_rates_and_makes_way_for_the_table() -> None:
    nap = "  - {name: nap, type: sleep, params: {seconds: 0.5}}\nconnections:"
    text = ORDERS.replace("connections:", nap).replace("  control: |\n", "  control: |\n    totals (ok) nap\n")
    terminal = Terminal("run", write_job("orders.yaml", text))
    assert terminal.end() == 0
    shown = terminal.text
    assert "sub-job orders" in shown
    assert re.search(r"⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏", shown)
    assert re.search(r"✓ large filter", shown)
    assert re.search(r"main → totals\.input  3 rows  \S+( \w)? rows/s", shown)
    assert "small | | ben" in shown
    assert b"\x1b[?25h" in terminal.shown
    last = shown[shown.rindex("COMPONENT") :]
    assert "completed after" in last
    assert "⠋" not in last


@pytest.mark.usefixtures("folder")
def test_iterations_have_a_bar_and_failures_are_counted() -> None:
    terminal = Terminal("run", write_job("loop.yaml", LOOP.replace("[a, b, c]", str(list(range(30))))))
    assert terminal.end() == 0
    assert re.search(r"each iterate_list\s+━*─* +\d+/30", terminal.text)


@pytest.mark.usefixtures("folder")
def test_ctrl_c_stops_a_job_so_that_it_can_be_resumed() -> None:
    terminal = Terminal("run", write_job("waits.yaml", WAITS), "--grace", "0")
    terminal.until_there(Path("waiting"))
    terminal.type(b"\x03")
    assert terminal.end() == 3
    assert "SIGINT: stopping" in terminal.text
    Path("gate").touch()
    resumed = Terminal("resume", "@last")
    assert resumed.end() == 0
    assert "OK (kept)" in resumed.text
