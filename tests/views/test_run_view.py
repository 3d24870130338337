"""A view of a run: the same however it came about, bounded in memory, and there for any entry of the log."""

from __future__ import annotations

import hashlib
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.adapters.memory.log import MemoryLog
from penstock.app.embedded import Embedded
from penstock.kernel.net import Net
from penstock.ports.log import Entry
from penstock.server.documents import DocumentInvalid, Documents, Pinned
from penstock.views import run_view, steps
from penstock.views.answers import fanins, job_standing, step_runs
from penstock.views.contexts import globals_of
from penstock.views.links import links_of
from penstock.views.run_view import FORMAT, RunView, view_at
from tests.chaos.engines import RUN, MemoryHome, Told, resumed, started, virtually
from tests.chaos.random_playbooks import workshop, write_random
from tests.chaos_jobs.homes import DecisionLog
from tests.chaos_jobs.homes import started as job_started
from tests.depth import some, times
from tests.fleet.random_jobs import random_document
from tests.histories.test_histories import ENDS, HISTORIES
from tests.histories.test_histories import entries as recorded
from tests.replay.corpus import CORPUS
from tests.views.jobs import job as job_net
from tests.views.jobs import play as played

Log = tuple[MemoryHome, Told, list[int]]
"""A run in memory, what became of it, and after which entries its log may have ended."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def playbook(folder: Path, seed: int) -> Log:
    home = MemoryHome.at(folder / f"playbook-{seed}", workshop(seed))
    home.folder.mkdir(exist_ok=True)
    file = write_random(home.folder, seed)

    async def body(engine: Embedded) -> Told:
        return await started(engine, file)

    return _played(home, body)


def job(folder: Path, seed: int) -> Log:
    """Links drawn at random may lead in a circle: such jobs are passed over."""
    home = MemoryHome.at(folder / f"job-{seed}")
    home.folder.mkdir(exist_ok=True)
    for again in range(50):
        file = home.folder / f"job-{again}.yaml"
        file.write_text(random_document(seed + 1_000 * again), encoding="utf-8")

        async def body(engine: Embedded, file: Path = file) -> Told:
            return await job_started(engine, file)

        try:
            return _played(home, body)
        except DocumentInvalid:
            continue
    raise AssertionError("nothing but circles")


def _played(home: MemoryHome, body: Any) -> Log:
    log = DecisionLog(MemoryLog(home.store))
    told: Told = virtually(lambda: home.open(log), body)
    return home, told, sorted(log.appended)


def cut_and_resumed(log: Log, seed: int) -> Log:
    """The process died after one of its appends, and another took the run up."""
    home, _, boundaries = log
    home = home.cut(random.Random(seed).choice(boundaries[len(boundaries) // 3 : -1] or boundaries[:1]))

    async def body(engine: Embedded) -> Told:
        return await resumed(engine)

    return home, virtually(home.open, body), []


@cache
def logs(folder: Path, kind: str, seed: int) -> Log:
    make = playbook if kind == "playbook" else job
    log = make(folder, seed // 2)
    return cut_and_resumed(log, seed) if seed % 2 else log


def net_of(home: MemoryHome) -> Net:
    engine = home.open()
    document = Pinned.from_bytes(home.store.executions[RUN].document)
    return Documents(engine.tools, engine.components).compile(document)[0]


EVERY = [(kind, seed) for kind in ("playbook", "job") for seed in range(times(6))]


STOPS = 10
"""At about so many entries of a long log the fold stops: a snapshot holds all that is known by then."""


def agree(entries: list[Entry], seed: int) -> None:
    """Folded at once, and folded with stops at snapshots, each of which is taken up again."""
    chance = random.Random(seed)
    often = min(0.2, STOPS / len(entries))
    for more in ({}, {"whole": True, "listed": [""]}):
        whole = RunView.of(entries, **more)  # type: ignore[arg-type]
        view = RunView.of((), **more)  # type: ignore[arg-type]
        for entry in entries:
            view.apply(entry)
            if chance.random() < often:
                view = RunView.restore(view.snapshot())
        assert view == whole


@pytest.mark.parametrize(("kind", "seed"), EVERY)
def test_a_view_that_stopped_at_snapshots_is_the_view_that_never_stopped(folder: Path, kind: str, seed: int) -> None:
    agree(logs(folder, kind, seed)[0].entries(), seed)


@pytest.mark.parametrize("name", some(sorted(CORPUS), 25))
def test_so_it_is_with_runs_of_every_sort(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agree(CORPUS[name](tmp_path).entries(), len(name))


@pytest.mark.parametrize("history", HISTORIES)
def test_logs_of_every_release_are_understood(history: str) -> None:
    agree(list(recorded(history)), 1)
    root = RunView.of(recorded(history)).root
    assert root is not None
    status, ctx, result = ENDS[Path(history).stem]
    assert (root.status, root.ctx.values) == (status, ctx)
    assert ({key: root.result[key] for key in result} if isinstance(result, dict) else root.result) == result
    assert not [run for run in root.runs.values() if run.status in ("waiting", "running")]


@pytest.mark.parametrize(("kind", "seed"), EVERY)
def test_the_view_at_an_entry_is_that_of_the_entries_up_to_it(folder: Path, kind: str, seed: int) -> None:
    home, _, _ = logs(folder, kind, seed)
    entries, log = home.entries(), MemoryLog(home.store)
    chance = random.Random(seed)
    for _ in range(5):
        seq = chance.randint(0, len(entries))
        assert view_at(log, RUN, seq, every=13) == RunView.of(entries[:seq])
    assert view_at(log, RUN, every=13) == RunView.of(entries)


@pytest.mark.parametrize(("kind", "seed"), EVERY)
def test_a_view_ends_with_the_variables_that_the_run_ended_with(folder: Path, kind: str, seed: int) -> None:
    home, told, _ = logs(folder, kind, seed)
    root = RunView.of(home.entries()).root
    assert root is not None
    summary = told.summary
    assert (root.status, root.error) == (summary.status, summary.error)
    if kind == "job":
        assert globals_of(root) == summary.ctx
    else:
        assert (root.ctx.values, root.result) == (summary.ctx, summary.result)


@pytest.mark.parametrize("seed", range(times(6)))
def test_a_view_that_let_nothing_go_answers_as_one_that_keeps_everything(folder: Path, seed: int) -> None:
    entries = logs(folder, "playbook", seed)[0].entries()
    view, whole = RunView.of(entries), RunView.of(entries, whole=True)
    assert view.is_complete
    for is_live in (True, False):
        assert step_runs(view, is_live=is_live) == step_runs(whole, is_live=is_live)
        assert fanins(view, is_live=is_live) == fanins(whole, is_live=is_live)


@pytest.mark.parametrize("seed", range(0, times(6), 2))
def test_what_iterations_did_is_counted_when_they_are_let_go(folder: Path, seed: int) -> None:
    home, _, _ = logs(folder, "job", seed)
    net, entries = net_of(home), home.entries()
    light, listed = (job_standing(RunView.of(entries, listed=one), net) for one in ([], [""]))
    assert light.edges == listed.edges
    counts: Any = [one.metrics.pop("global_writes") for one in (light, listed)]
    assert light.metrics == listed.metrics
    assert len({sum(one.values()) for one in counts}) == 1
    assert not [name for name in counts[0] if "[#" in name]


def test_a_snapshot_that_cannot_be_read_is_passed_over(folder: Path) -> None:
    home, _, _ = logs(folder, "job", 0)
    log, entries = MemoryLog(home.store), home.entries()
    log.keep_snapshot(RUN, FORMAT, len(entries) - 1, b"not one")
    log.keep_snapshot(RUN, FORMAT + 1, len(entries) - 2, RunView().snapshot())
    assert view_at(log, RUN) == RunView.of(entries)


def test_an_event_of_a_newer_release_is_passed_over() -> None:
    known = list(recorded(HISTORIES[0]))
    odd = known[5]._replace(type="step.teleported", payload=b'{"where":1}')
    other = known[5]._replace(type="task.done", payload=b'{"task":{"name":"t"}}')
    later = RunView.of([*known[:5], odd, other, *known[5:]])
    expected = RunView.of(known)
    assert later.root is not None
    assert expected.root is not None
    assert (later.root.status, later.root.ctx, later.root.result) == (
        expected.root.status,
        expected.root.ctx,
        expected.root.result,
    )


# ---- memory


def chain_of(visits: int) -> list[Entry]:
    """The entries of a step that visits itself so often."""
    found: list[Any] = [("playbook.started", "", b'{"name":"c","entry":"a","workload":{}}')]
    for number in range(visits):
        run = f"a@{number}"
        parent = b"null" if not number else b'"a@%d"' % (number - 1)
        found += [
            ("token.created", run, b'{"step":"a","parent_step_run_id":%s,"arc":0}' % parent),
            ("step.scheduled", run, b'{"step":"a","visit":%d}' % (number + 1)),
            ("step.done", run, b'{"step":"a","status":"done","result":%d}' % number),
            ("next.selected", run, b'{"on":"step.done","arcs":[0],"steps":["a"]}'),
        ]
    return [
        Entry(seq, float(seq), kind, scope, None, f"[[{seq}],0]", None, "server", None, payload)
        for seq, (kind, scope, payload) in enumerate(found, 1)
    ]


def test_of_thousands_of_step_runs_the_latest_are_kept_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "KEPT_RUNS", 50)
    root = RunView.of(chain_of(1_000)).root
    assert root is not None
    assert 50 <= len(root.runs) <= 101
    assert list(root.runs)[-1] == "a@999"
    assert (root.totals()["a"].runs, root.arcs["a"], root.result) == (1_000, {0: 1_000}, 999)
    assert not RunView.of(chain_of(1_000)).is_complete
    assert RunView.of(chain_of(1_000), whole=True).is_complete


def test_executions_inside_are_let_go_but_for_the_latest_and_failed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_view, "KEPT_CHILDREN", 10)
    found: list[tuple[str, str, bytes]] = [("playbook.started", "", b'{"name":"c","entry":"a"}')]
    for number in range(100):
        scope, end = f"a@0/call#{number}/", "failed" if number == 3 else "completed"
        found += [
            ("job.started", scope, b'{"name":"inner"}'),
            (f"job.{end}", scope, b'{"status":"%s"}' % end.encode()),
        ]
    known = [
        Entry(seq, 0.0, kind, scope, None, "[[0],0]", None, "server", None, payload)
        for seq, (kind, scope, payload) in enumerate(found, 1)
    ]
    view = RunView.of(known)
    assert 10 <= len(view.executions) <= 22
    assert "a@0/call#3/" in view.executions
    assert sum(view.gone.values()) + len(view.executions) == 101


# ---- links


def test_arcs_and_links_are_fired_dead_or_unsettled(folder: Path) -> None:
    for kind in ("playbook", "job"):
        home, _, _ = logs(folder, kind, 0)
        net, entries = net_of(home), home.entries()
        root = RunView.of(entries).root
        assert root is not None
        states = {link.state for link in links_of(root, net)}
        assert states <= {"fired", "dead"}
        assert all((link.fired > 0) == (link.state == "fired") for link in links_of(root, net))
        early = RunView.of(entries[:2]).root
        assert early is not None
        assert {link.state for link in links_of(early, net)} == {"unsettled"}


def test_nothing_is_left_of_iterations_that_ended_well() -> None:
    net = job_net("it (iterate) x", "it (iteration_ok) h", "x.main -> y.input", inside={"it": ["x", "y", "h"]})
    entries = played(net, {"it": list(range(40))}).entries
    view = RunView.of(entries).root
    listed = RunView.of(entries, listed=[""]).root
    assert view is not None
    assert listed is not None
    assert set(view.runs) == {"it"}
    assert not view.inside
    assert not view.fires
    assert [one.scope for one in view.groups.values()] == ["<it>"]
    assert links_of(view, net) == links_of(listed, net)


FORMATS = {1: "6386318cfcfea3d6", 2: "77e075b701519f4a", 3: "18503018cc8d73a9", 4: "960976ec675b0cee"}
"""Format of snapshots -> what the types of a view looked like then."""


def test_a_change_of_the_types_is_a_new_format() -> None:
    """A snapshot of before would be read with what is new in it missing: count `FORMAT` up, and add a line above."""

    def bare(schema: Any) -> Any:
        if isinstance(schema, dict):
            return {key: bare(value) for key, value in schema.items() if key != "description"}
        return [bare(one) for one in schema] if isinstance(schema, list) else schema

    text = json.dumps(bare(msgspec.json.schema(RunView)), sort_keys=True)
    assert FORMATS[FORMAT] == hashlib.sha256(text.encode()).hexdigest()[:16]
