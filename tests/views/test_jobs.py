"""Where a job stands, read from its log: the kernel makes the facts, nothing else is needed."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.kernel.judge import Ended
from penstock.kernel.net import Net
from penstock.ports.log import Header
from penstock.views.answers import JobStanding, job_json
from penstock.views.names import is_of_component, node_of, subjob_name
from tests.views.jobs import Outcome, Played, job, play
from tests.views.support import standing as job_standing


def standing(net: Net, outcomes: dict[str, Outcome] | None = None, **more: Any) -> JobStanding:
    return job_standing(play(net, outcomes, **more).entries, net)


def states(found: JobStanding) -> dict[str, str]:
    return {name: str(one["state"]) for name, one in found.components.items()}


def fired(found: JobStanding) -> dict[tuple[str, str, str], int]:
    return {(str(one["from"]), str(one["to"]), str(one["on"])): int(str(one["fired"])) for one in found.edges}


# ---- components


def test_a_component_has_its_state_what_started_it_its_rows_and_its_time() -> None:
    net = job("a.main -> b.input", "a (ok) b")
    found = standing(net, {"a": {"main": 10}})
    assert found.components == {
        "a": {
            "state": "OK",
            "cause": "the job started",
            "rows_in": {},
            "rows_out": {"main": 10},
            "ms": 2.0,
            "type": "t_a",
        },
        "b": {
            "state": "OK",
            "cause": "the `ok` link from `a` fired",
            "rows_in": {"input": 10},
            "rows_out": {},
            "ms": 2.0,
            "type": "t_b",
        },
    }


def test_the_cause_of_an_error_is_its_message_and_that_of_a_skip_its_reason() -> None:
    found = standing(job("a (ok) b", "a (error) c"), {"a": ValueError("no luck")})
    assert states(found) == {"a": "ERROR", "b": "SKIPPED", "c": "OK"}
    assert found.components["a"]["cause"] == "no luck"
    assert found.components["a"]["error"] == {"kind": "exception", "message": "no luck"}
    assert found.components["b"]["cause"] == "`a` ended in ERROR, so its `ok` link did not fire"
    assert found.components["b"]["type"] == "t_b"
    assert found.components["c"]["cause"] == "the `error` link from `a` fired"


def test_a_component_without_control_links_was_started_by_its_data() -> None:
    found = standing(job("a.main -> b.input"))
    assert found.components["b"]["cause"] == "its data came from `a`"


def test_what_has_not_begun_waits_and_says_for_what() -> None:
    net = job("a (ok) b", "b (subjob_ok) c")
    played = Played(net).run(until=lambda played: True)
    found = job_standing(played.entries, net)
    assert states(found) == {"a": "RUNNING", "b": "WAIT", "c": "WAIT"}
    assert found.components["a"]["ms"] is None
    assert found.components["b"]["cause"] == "it waits for `a`"
    assert [(one["name"], one["state"], one["members"]) for one in found.subjobs] == [
        ("a", "RUNNING", ["a", "b"]),
        ("c", "PENDING", ["c"]),
    ]


def test_without_the_net_only_what_the_log_knows_is_listed() -> None:
    played = Played(job("a (ok) b")).run(until=lambda played: True)
    found = job_standing(played.entries, None)
    assert states(found) == {"a": "RUNNING"}
    assert found.edges == []


def test_components_stand_in_the_order_of_the_document_whatever_ended_first() -> None:
    net = job("a (parallelise) b, c", "b, c (synchronise) d")
    played = Played(net)
    played.run(until=lambda one: len(one.ready) == 2)
    for component in sorted(played.ready, key=lambda one: one.place.id, reverse=True):
        played.ready.remove(component)
        played.work(component)
    played.go_on()
    assert list(job_standing(played.entries, net).components) == ["a", "b", "c", "d"]


# ---- sub-jobs and links


def test_sub_jobs_are_named_by_their_first_component_and_have_their_members() -> None:
    found = standing(job("a (ok) b", "a (subjob_error) c"), {"b": ValueError("no")})
    assert [(one["name"], one["state"], one["members"]) for one in found.subjobs] == [
        ("a", "ERROR", ["a", "b"]),
        ("c", "OK", ["c"]),
    ]
    assert found.subjobs[0]["error"] == {"kind": "exception", "message": "no", "component": "b"}


def test_every_link_is_there_with_the_number_of_times_it_fired() -> None:
    net = job("a.main -> b.input", "a (ok) b", 'b (if 1: "yes") c', 'b (if 2: "no") d', "a (error) e")
    found = standing(net, {"a": {"main": 7}}, true=frozenset({"yes"}))
    assert found.edges == [
        {"from": "a", "to": "b", "on": "data", "port": "main", "to_port": "input", "fired": 1, "rows": 7},
        {"from": "a", "to": "b", "on": "ok", "fired": 1},
        {"from": "b", "to": "c", "on": "if", "order": 1, "when": "yes", "fired": 1},
        {"from": "b", "to": "d", "on": "if", "order": 2, "when": "no", "fired": 0},
        {"from": "a", "to": "e", "on": "error", "fired": 0},
    ]


def test_a_data_link_of_a_component_that_failed_did_not_fire() -> None:
    found = standing(job("a.main -> b.input"), {"a": ValueError("no")})
    assert fired(found) == {("a", "b", "data"): 0}


def test_a_join_fires_the_links_of_all_its_branches() -> None:
    found = standing(job("a (parallelise) b, c", "b, c (synchronise) d"))
    assert fired(found) == {
        ("a", "b", "parallelise"): 1,
        ("a", "c", "parallelise"): 1,
        ("b", "d", "synchronise"): 1,
        ("c", "d", "synchronise"): 1,
    }
    assert found.components["d"]["cause"] == "the `synchronise` links from `b` and `c` fired"


# ---- iterations

BODY = ("it (iterate) x", "x.main -> y.input", "x (ok) y", "it (iterator_complete) z")


def test_members_of_iterations_are_named_and_their_links_counted_over_all_iterations() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]})
    found = standing(net, {"it": ["p", "q", "r"], "it[#].x": {"main": 2}})
    assert list(found.components)[:5] == ["it", "it[#0].x", "it[#0].y", "it[#1].x", "it[#1].y"]
    assert found.components["it[#2].x"]["cause"] == "iteration `it[#2]` began"
    assert found.components["it[#2].y"]["rows_in"] == {"input": 2}
    assert fired(found) == {
        ("it", "x", "iterate"): 3,
        ("x", "y", "data"): 3,
        ("x", "y", "ok"): 3,
        ("it", "z", "iterator_complete"): 1,
    }
    assert next(edge for edge in found.edges if edge["on"] == "data")["rows"] == 6
    assert [one["name"] for one in found.subjobs] == ["it", "it[#0]", "it[#1]", "it[#2]"]
    assert found.subjobs[2]["members"] == ["it[#1].x", "it[#1].y"]
    assert found.iterations == {
        "total": 3,
        "ok": 3,
        "failed": 0,
        "running": 0,
        "failures": [],
        "iterators": {"it": {"total": 3, "ok": 3, "failed": 0, "running": 0}},
    }


@pytest.mark.clause("J12.5")
def test_iterations_that_failed_under_continue_are_counted_in_the_result() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]}, halts=False)
    played = play(net, {"it": [1, 2, 3], "it[#1].x": ValueError("two")})
    found = job_standing(played.entries, net)
    assert states(found)["it"] == "OK"
    assert found.iterations["failures"] == ["it[#1]"]
    assert found.result == {"iterations": 3, "failed_iterations": 1}
    assert found.counts["failed_iterations"] == 1
    assert found.execution.status == "completed"


def test_an_iteration_whose_handler_fails_has_failed() -> None:
    net = job("it (iterate) x", "it (iteration_ok) h", inside={"it": ["x", "h"]}, halts=False)
    found = standing(net, {"it": [1, 2], "it[#1].h": ValueError("no")})
    assert [(one["name"], one["state"]) for one in found.subjobs if str(one["name"]).endswith("]")] == [
        ("it[#0]", "OK"),
        ("it[#1]", "ERROR"),
    ]
    assert (found.iterations["ok"], found.iterations["failed"]) == (1, 1)
    assert found.components["it[#0].h"]["cause"] == "the `iteration_ok` link from `it` fired"


def test_iterations_that_are_only_counted_give_the_same_counts_and_list_only_those_that_failed() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]}, halts=False)
    played = play(net, {"it": [1, 2, 3], "it[#1].x": ValueError("two")})
    whole = job_standing(played.entries, net)
    light = job_standing(played.entries, net, with_iterations=False)
    assert list(light.components) == ["it", "z"]
    assert [one["name"] for one in light.subjobs] == ["it", "it[#1]"]
    assert light.iterations == whole.iterations
    assert light.globals == whole.globals


# ---- joblets


def test_the_inside_of_a_joblet_is_listed_under_its_caller_and_its_ports_carry_rows() -> None:
    net = job(
        "a.main -> j.rows", "j.rows -> j.__x.input", "j.__x.main -> j.__y.input", "j.__y.main -> j.out", "j.out -> b.input",
        inside={"j": ["j.__x", "j.__y"]},
    )  # fmt: skip
    found = standing(net, {"a": {"main": 4}, "j.__x": {"main": 3}, "j.__y": {"main": 2}})
    assert states(found) == {"a": "OK", "j": "OK", "j.__x": "OK", "j.__y": "OK", "b": "OK"}
    assert found.components["j"]["type"] == "joblet"
    assert found.components["j.__x"]["cause"] == "`j` was called"
    assert [(one["name"], one["members"]) for one in found.subjobs] == [
        ("a", ["a", "j", "b"]),
        ("j.__x", ["j.__x", "j.__y"]),
    ]
    assert [(edge["from"], edge["to"], edge["fired"], edge["rows"]) for edge in found.edges] == [
        ("a", "j", 1, 4),
        ("j", "j.__x", 1, 4),
        ("j.__x", "j.__y", 1, 3),
        ("j.__y", "j", 1, 2),
        ("j", "b", 1, 2),
    ]


# ---- globals


def test_globals_are_joined_by_the_rules_of_the_kernel() -> None:
    """`b` may not overwrite for everyone what another sub-job made; its value stays in its own."""
    net = job("b (ok) c", "a (subjob_ok) b", alone=("b", "a"))
    outcomes: dict[str, Outcome] = {
        "a": Ended(writes={"x": 1, "kept": True}),
        "b": Ended(writes={"x": 2}),
        "c": Ended(writes={"y": [1]}),
    }
    found = standing(net, outcomes)
    assert found.globals == {"kept": True, "x": 1, "y": [1]}
    assert found.metrics["global_writes"] == {"a": 2, "b": 2}


def test_globals_of_iterations_are_those_that_the_iterator_commits() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]}, halts=False)
    outcomes: dict[str, Outcome] = {
        "it": [1, 2, 3],
        "it[#0].y": Ended(writes={"all": [1]}),
        "it[#1].y": Ended("ERROR", error={"message": "no"}, writes={"all": [2]}),
        "it[#2].y": Ended(writes={"all": [3]}),
    }
    found = standing(net, outcomes)
    assert found.globals == {"all": [1, 3]}


# ---- resume


def test_what_a_resume_keeps_shows_its_state_and_what_it_does_not_starts_anew() -> None:
    net = job("a (ok) b", "b (subjob_ok) c", "c (ok) d")
    played = play(net, {"d": ValueError("no")})
    assert job_standing(played.entries, net).execution.status == "failed"
    played.resume(d=None)
    found = job_standing(played.entries, net)
    assert {name: (one["state"], one.get("kept")) for name, one in found.components.items()} == {
        "a": ("OK", True),
        "b": ("OK", True),
        "c": ("OK", None),
        "d": ("OK", None),
    }
    assert [(one["name"], one["state"], one.get("kept")) for one in found.subjobs] == [
        ("a", "OK", True),
        ("c", "OK", None),
    ]
    assert fired(found) == {("a", "b", "ok"): 1, ("b", "c", "subjob_ok"): 1, ("c", "d", "ok"): 1}
    assert found.metrics["resumes"] == 1


def test_iterations_that_ended_ok_are_kept_and_the_failed_one_runs_again() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]})
    played = play(net, {"it": [1, 2, 3], "it[#1].x": ValueError("no")})
    played.resume(**{"it[#1].x": None})
    found = job_standing(played.entries, net)
    assert {name: one.get("kept", False) for name, one in found.components.items() if "[#" in name} == {
        "it[#0].x": True,
        "it[#0].y": True,
        "it[#1].x": False,
        "it[#1].y": False,
        "it[#2].x": False,
        "it[#2].y": False,
    }
    assert fired(found)["x", "y", "ok"] == 3
    assert (found.iterations["ok"], found.iterations["failed"]) == (3, 0)
    light = job_standing(played.entries, net, with_iterations=False)
    assert light.iterations == found.iterations


def test_a_joblet_whose_first_half_is_kept_shows_that() -> None:
    net = job(
        "a (ok) j", "j.__x (subjob_ok) j.__y", alone=("a", "j"), inside={"j": ["j.__x", "j.__y"]},
    )  # fmt: skip
    played = play(net, {"j.__y": ValueError("no")})
    played.resume(**{"j.__y": None})
    found = job_standing(played.entries, net)
    assert {name: one.get("kept", False) for name, one in found.components.items()} == {
        "a": False,
        "j": False,
        "j.__x": True,
        "j.__y": False,
    }
    assert set(states(found).values()) == {"OK"}


def test_a_kept_join_is_counted_once() -> None:
    net = job("a (parallelise) b, c", "b, c (synchronise) d", "d (subjob_ok) e")
    played = play(net, {"e": ValueError("no")})
    played.resume(e=None)
    found = job_standing(played.entries, net)
    assert set(fired(found).values()) == {1}


# ---- figures


@pytest.mark.clause("J9.1")
def test_after_a_run_there_are_run_times_fires_global_writes_checkpoint_sizes_and_the_time_to_resume() -> None:
    net = job("a.main -> b.input", "a (ok) b", "b (subjob_ok) c")
    played = play(net, {"a": Ended(writes={"x": 1, "y": 2}), "c": ValueError("no")})
    assert job_standing(played.entries, net).metrics["time_to_resume_ms"] is None
    played.resume(c=None)
    metrics: Any = job_standing(played.entries, net).metrics
    assert metrics["component_ms"] == {
        "a": {"runs": 1, "total": 2.0, "max": 2.0},
        "c": {"runs": 1, "total": 2.0, "max": 2.0},
    }
    assert metrics["edge_fires"] == {"a.main -> b.input": 0, "a (ok) b": 1, "b (subjob_ok) c": 1}
    assert metrics["global_writes"] == {"a": 2}
    assert metrics["checkpoints"]["count"] == 3
    assert metrics["checkpoints"]["bytes"] >= metrics["checkpoints"]["largest_bytes"] > 0
    assert metrics["time_to_resume_ms"] == pytest.approx(2.0)


@pytest.mark.clause("J9.1")
def test_run_times_in_a_body_are_added_up_over_its_iterations() -> None:
    net = job(*BODY, inside={"it": ["x", "y"]})
    metrics: Any = standing(net, {"it": [1, 2, 3]}).metrics
    assert metrics["component_ms"]["x"] == {"runs": 3, "total": 6.0, "max": 2.0}
    assert metrics["edge_fires"]["x (ok) y"] == 3


# ---- the whole


def test_the_json_has_the_keys_of_a_run_and_the_inside_of_a_job() -> None:
    net = job("a (ok) b")
    found = standing(net)
    header = Header("run-1", "job", "orders", "orders.yaml", "", "completed", 0.0)

    class Summary:
        status, exit_code, error, result, duration_ms = "completed", 0, None, None, 5.0

    shown = job_json(header, found, Summary())
    assert list(shown) == [
        "execution_id", "kind", "name", "status", "exit_code", "error", "globals", "components", "subjobs", "edges",
        "iterations", "metrics", "failed_iterations", "result", "counts", "duration_ms",
    ]  # fmt: skip
    assert (shown["kind"], shown["name"]) == ("job", "orders")
    assert shown["counts"] == {
        "components": 2,
        "subjobs": 1,
        "iterations": 0,
        "failed_iterations": 0,
        "events": len(play(net).entries),
    }


def test_a_job_inside_another_execution_is_read_by_its_scope_alone() -> None:
    net = job("a (ok) b")
    inner = [
        entry._replace(
            scope=f"load@1/call#1/{entry.scope}",
            payload=entry.payload.replace(b'"subjob":"<a>"', b'"subjob":"load@1/call#1/<a>"')
            .replace(b'"container":""', b'"container":"load@1/call#1/"')
            .replace(b'"from":"', b'"from":"load@1/call#1/')
            .replace(b'"to":"', b'"to":"load@1/call#1/')
            .replace(b'"sees":["', b'"sees":["load@1/call#1/'),
        )
        for entry in play(net).entries
    ]
    found = job_standing(inner, net, execution="load@1/call#1/")
    assert states(found) == {"a": "OK", "b": "OK"}
    assert fired(found) == {("a", "b", "ok"): 1}
    assert set(states(job_standing(inner, net)).values()) == {"WAIT"}


@pytest.mark.parametrize(
    ("scope", "node"),
    [
        ("a", "a"),
        ("j.__a", "j.__a"),
        ("it[#3].x", "x"),
        ("it[#3].__a", "it.__a"),
        ("it[#3].c.__a", "c.__a"),
        ("it[#0].inner[#12].__a.__b", "inner.__a.__b"),
        ("j.__it[#0].j.__x", "j.__x"),
    ],
)
def test_a_scope_leads_back_to_the_name_in_the_document(scope: str, node: str) -> None:
    assert node_of(scope) == node


def test_sub_jobs_go_without_their_brackets() -> None:
    assert [subjob_name(scope) for scope in ("<a>", "it[#3]", "it[#3].<x>", "it[#3].<it.__a>", "<j.__a>")] == [
        "a", "it[#3]", "it[#3].x", "it[#3].__a", "j.__a",
    ]  # fmt: skip


def test_a_name_covers_its_runs_its_iterations_and_its_inside() -> None:
    covered = ["it", "it[#3]", "it[#3].x"]
    assert all(is_of_component(scope, "it") for scope in covered)
    assert is_of_component("it[#3].x", "x")
    assert is_of_component("it[#3].x/start@0", "x")
    assert not is_of_component("item", "it")
