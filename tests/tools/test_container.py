"""The container tool, with programs on the path that stand in for docker and kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.tools.base import Settings
from penstock.tools.container import kubectl as kubectl_module
from tests.cases import cases
from tests.engine import play
from tests.tools.container_clients import Clients
from tests.tools.running import PATIENCE, Ended, Runner, is_gone, waits_for


class Containers(Runner):
    def __init__(self, folder: Path, clients: Clients) -> None:
        super().__init__("container", folder, image="busybox:1")
        self.clients = clients

    def failed(self, params: dict[str, Any], **overrides: Any) -> Ended:
        ended = self(params, **overrides)
        assert ended.failure is not None
        return ended


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clients]:
    made = Clients(tmp_path / "clients")
    monkeypatch.setenv("PATH", str(made.path))
    monkeypatch.delenv("PENSTOCK_ALLOW_VOLUME", raising=False)
    yield made
    made.end()


@pytest.fixture
def run(tmp_path: Path, clients: Clients) -> Containers:
    folder = tmp_path / "document"
    folder.mkdir()
    return Containers(folder, clients)


@pytest.fixture
def docker(run: Containers) -> Containers:
    run.clients.add("docker")
    return run


@pytest.fixture
def kubectl(run: Containers, monkeypatch: pytest.MonkeyPatch) -> Containers:
    run.clients.add("kubectl")
    monkeypatch.setattr(kubectl_module, "POLL_SECONDS", 0.01)
    return run


# ---- docker


def test_a_command_runs_and_its_lines_go_to_the_log(docker: Containers) -> None:
    ended = docker({"command": "echo one; echo two >&2; echo three"})
    assert ended.result.pop("name").startswith("penstock-task-")
    assert ended.result == {
        "exit_code": 0,
        "stdout": "one\nthree\n",
        "stderr": "two\n",
        "data": "one\nthree",
        "runtime": "docker",
    }
    assert sorted(ended.said) == ["one", "three", "two"]
    assert docker.clients.running() == []


@cases(
    "given, arguments",
    [
        ({}, ["busybox:1"]),
        ({"args": ["a", "b c"]}, ["busybox:1", "a", "b c"]),
        ({"args": "a b"}, ["busybox:1", "a b"]),
        ({"args": {"for": "templates"}}, ["busybox:1"]),
        ({"command": ["echo", "x"], "args": ["y"]}, ["--entrypoint=echo", "busybox:1", "x", "y"]),
        ({"command": "echo $1", "args": ["y"]}, ["--entrypoint=/bin/sh", "busybox:1", "-c", "echo $1", "sh", "y"]),
    ],
)
def test_a_command_takes_the_place_of_the_entry_point_and_arguments_follow(
    docker: Containers, given: dict[str, Any], arguments: list[str]
) -> None:
    assert docker(given).kind is None
    made = docker.clients.calls("run")[-1].arguments
    start = next(at for at, one in enumerate(made) if one == arguments[0])
    assert made[start:] == arguments


def test_options_are_said_in_the_words_of_the_client(docker: Containers) -> None:
    (docker.folder / "in").mkdir()
    ended = docker(
        {
            "args": ["x"],
            "workdir": "/work",
            "network": "none",
            "pull": "never",
            "resources": {"cpu": "500m", "memory": "64Mi"},
            "volumes": ["in:/in:ro", {"source": ".", "target": "/all"}, {"name": "cache", "target": "/cache"}],
        }
    )
    assert ended.kind is None
    made = docker.clients.calls("run")[0]
    folder = docker.folder.resolve()
    assert made.arguments[:2] == ["run", "--rm"]
    options = {"workdir": "/work", "network": "none", "pull": "never", "cpus": "0.5", "memory": f"{64 * 1024**2}b"}
    assert {name: made.option(name) for name in options} == options
    assert made.option("label") == "penstock.execution=run-1"
    assert [one for one in made.arguments if one.startswith("--mount=")] == [
        f"--mount=type=bind,source={folder / 'in'},target=/in,readonly",
        f"--mount=type=bind,source={folder},target=/all",
        "--mount=type=volume,source=cache,target=/cache",
    ]


def test_variables_reach_the_container_and_no_command_line(docker: Containers) -> None:
    env = {"S": "s3cret", "DOCKER_HOST": "tcp://inside:1", "HOME": "/root/of/image", "A_PROXY": "http://inside:2"}
    ended = docker({"command": "echo $S $DOCKER_HOST $HOME $A_PROXY", "env": env})
    assert ended.result["data"] == "s3cret tcp://inside:1 /root/of/image http://inside:2"
    made = docker.clients.calls("run")[0]
    shown = " ".join(made.arguments)
    assert all(value not in shown for value in env.values())
    assert made.more["visible"]["S"] == "s3cret"
    # What the client reads itself it must not see: it would talk to another engine.
    assert (made.more["visible"]["DOCKER_HOST"], made.more["visible"]["HOME"]) == (
        os.environ.get("DOCKER_HOST"),
        os.environ.get("HOME"),
    )
    assert made.more["mode"] == "0o600"
    file = made.option("env-file")
    assert file is not None
    assert not Path(file).exists()


def test_a_variable_of_several_lines_that_the_client_would_read_is_refused(docker: Containers) -> None:
    assert docker({"command": 'printf %s "$TWO"', "env": {"TWO": "a\nb"}}).result["stdout"] == "a\nb"
    ended = docker.failed({"env": {"DOCKER_X": "a\nb"}})
    assert (ended.kind, "give it another name" in ended.message) == ("parameters", True)


def test_text_is_given_to_the_command(docker: Containers) -> None:
    assert docker({"command": "cat", "stdin": "hello"}).result["stdout"] == "hello"


def test_output_can_be_json_or_lines(docker: Containers) -> None:
    assert docker({"command": "echo '[1, 2]'", "output": "json"}).result["data"] == [1, 2]
    assert docker({"command": "echo a; echo b", "output": "lines"}).result["data"] == ["a", "b"]
    assert docker.failed({"command": "echo no", "output": "json"}).kind == "output"


def test_of_much_output_the_beginning_and_the_end_are_kept(docker: Containers) -> None:
    ended = docker({"command": "seq 1 100000"}, settings=Settings(max_output_bytes=1000))
    assert ended.result["stdout"].startswith("1\n2\n")
    assert ended.result["stdout"].endswith("99999\n100000\n")
    assert "bytes left out" in ended.result["stdout"]


def test_an_exit_code_is_judged_as_in_shell(docker: Containers) -> None:
    ended = docker.failed({"command": "echo out; echo why >&2; exit 3"})
    assert (ended.kind, ended.message) == ("exit_code", "the container failed: exit code 3, expected `0`: why")
    assert ended.detail == {"exit_code": 3, "stdout": "out\n", "stderr": "why\n"}
    assert docker({"command": "exit 3", "ok_codes": [0, 3]}).result["exit_code"] == 3


def test_an_image_that_cannot_be_had_is_no_exit_code(docker: Containers) -> None:
    docker.clients.set(pull="denied")
    ended = docker.failed({})
    assert (ended.kind, ended.failure and ended.failure.retryable) == ("cannot_start", False)
    assert ended.message == (
        "`busybox:1` cannot be run: docker: Error response from daemon: pull access denied for busybox:1"
    )


def test_an_engine_that_is_away_may_come_back(docker: Containers) -> None:
    docker.clients.set(daemon="down")
    ended = docker.failed({})
    assert ended.failure is not None
    assert (ended.kind, ended.failure.retryable) == ("unavailable", True)


def test_a_container_that_runs_out_of_time_is_removed(docker: Containers) -> None:
    ended = docker.failed({"command": "echo begun; exec sleep 1000", "timeout_seconds": 1, "timeout": 50})
    assert ended.failure is not None
    assert (ended.kind, ended.failure.retryable) == ("timeout", True)
    assert ended.message == "the container was still running after 1 s"
    assert ended.detail["stdout"] in ("", "begun\n")  # A slow machine had no time for a word.
    assert docker.clients.running() == []


def test_spec_timeout_holds_as_well(docker: Containers) -> None:
    ended = docker.failed({"command": "exec sleep 1000", "timeout": 50}, spec={"timeout": 0.5})
    assert ended.kind == "timeout"
    assert docker.clients.running() == []


def test_a_container_whose_task_is_cancelled_is_removed(docker: Containers) -> None:
    said = docker.cancelled({"command": "echo $$; exec sleep 1000"})
    assert is_gone(int(said[0]))
    assert docker.clients.running() == []


def test_that_a_container_cannot_be_removed_is_told_and_hides_nothing(docker: Containers) -> None:
    docker.clients.set(rm="fails")
    ended = docker.failed({"command": "exec sleep 1000", "timeout": 0.5})
    assert ended.kind == "timeout"
    assert "cannot be removed: Error response from daemon: removal is stuck" in ended.said[-1]


def left_over(run: Containers, params: dict[str, Any]) -> tuple[str, int]:
    """A container whose worker died: its name and process."""
    said: list[str] = []

    async def die() -> None:
        task = asyncio.ensure_future(run.start(said, params))
        async with asyncio.timeout(PATIENCE):
            while not said:
                await asyncio.sleep(0.005)
        names = run.clients.running()
        client = run.clients.calls("run" if run.clients.calls("run") else "logs")[-1].more["pid"]
        run.clients.set(daemon="down", cluster="down")  # Nobody is there any more to remove it.
        os.kill(client, signal.SIGKILL)
        task.cancel()
        await asyncio.wait([task])
        run.clients.set()
        assert run.clients.running() == names

    asyncio.run(die())
    (name,) = run.clients.running()
    return name, run.clients.pid(name)


def test_a_retry_first_removes_what_an_attempt_left_that_died(docker: Containers) -> None:
    name, pid = left_over(docker, {"command": "echo here; exec sleep 1000"})
    assert not is_gone(pid)
    ended = docker({"command": "echo again"}, attempt=2)
    assert (ended.result["data"], ended.result["name"]) == ("again", name)
    assert is_gone(pid)
    assert docker.clients.running() == []


def test_each_task_run_has_a_container_of_its_own(docker: Containers) -> None:
    names = {
        docker({}, idempotency_key=key, task=task).result["name"]
        for key in ("run-1/1", "run-1/2", "run-2/1")
        for task in ("one", "Große Last!")
    }
    assert len(names) == 6
    named = docker({"job_name": "Nightly Load"}).result["name"]
    assert named.startswith("nightly-load-")
    assert all(len(name) <= 63 and name == name.lower() and name.isascii() for name in [*names, named])


def test_podman_and_nerdctl_take_the_same_words(run: Containers) -> None:
    run.clients.add("podman", "nerdctl")
    assert run({"command": "echo hi"}).result["runtime"] == "podman"
    assert run({"command": "echo hi", "runtime": "nerdctl"}).result["runtime"] == "nerdctl"
    assert [one.program for one in run.clients.calls("run")] == ["podman", "nerdctl"]


def test_without_a_runtime_the_remedy_is_named(run: Containers) -> None:
    ended = run.failed({})
    assert (ended.kind, ended.message) == (
        "not_found",
        "nothing here runs containers: `docker`, `podman`, `nerdctl`, `kubectl` is not on the path; hint: install one where "
        "this runs, or let the task run on a worker that has one (`spec.pool`)",
    )
    run.clients.add("docker")
    assert run.failed({"runtime": "podman"}).message.startswith(
        "nothing here runs containers: `podman` is not on the path"
    )


# ---- volumes


def test_a_volume_lies_below_the_document_unless_the_operator_allows_more(
    docker: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (docker.folder / "way_out").symlink_to(outside)
    for source in (str(outside), "..", "way_out", "/"):
        ended = docker.failed({"volumes": [f"{source}:/v"]})
        assert (ended.kind, "PENSTOCK_ALLOW_VOLUME" in ended.message) == ("permission", True)
    assert docker.clients.calls() == []
    monkeypatch.setenv("PENSTOCK_ALLOW_VOLUME", f"/nowhere:{outside}")
    assert docker({"volumes": [f"{outside}:/v", "way_out:/w"]}).kind is None
    assert docker.failed({"volumes": ["/:/v"]}).kind == "permission"


@cases(
    "volume, kind, words",
    [
        ("missing:/v", "not_found", "the volume `missing:/v`: there is no such file or folder"),
        ("no_target", "parameters", "the volume `no_target`: it is not `SOURCE:TARGET` or `SOURCE:TARGET:ro`"),
        ("a:/b:rx", "parameters", "the volume `a:/b:rx`: it is not `SOURCE:TARGET`"),
        (".:relative", "parameters", "the volume `.:relative`: what the container sees it as is a path with `/` first"),
        (".:/a,readonly", "parameters", "without commas and quotes"),
        ({"target": "/v"}, "parameters", "the volume `/v`: it needs either `source` or `name`"),
        ({"target": "/v", "name": "a,b"}, "parameters", "its `name` cannot be that of a volume"),
    ],
)
def test_a_volume_that_cannot_be_one_is_refused(docker: Containers, volume: Any, kind: str, words: str) -> None:
    ended = docker.failed({"volumes": [volume]})
    assert ended.kind == kind
    assert words in ended.message


@cases(
    "params, words",
    [
        ({"image": " "}, "`image` is not the name of an image"),
        ({"image": "--privileged"}, "`image` is not the name of an image"),
        ({"env": {"A=B": "c"}}, "`A=B` in `env` cannot be the name of a variable"),
        ({"env": {"A": "b\0c"}}, "a command, an argument or a variable has a NUL character in it"),
        ({"cwd": "/a", "workdir": "/b"}, "`cwd` and `workdir` are the same, and both are given"),
        ({"resources": {"cpu": "much"}}, "`cpu: much` is no number of processors, such as `0.5` or `500m`"),
        ({"resources": {"cpu": "-1"}}, "`cpu: -1` is no number of processors"),
        ({"resources": {"limits": {"memory": "0"}}}, "`memory: 0` is no amount of memory, such as `512Mi` or `1G`"),
    ],
)
def test_a_wrong_parameter_is_named(docker: Containers, params: dict[str, Any], words: str) -> None:
    ended = docker.failed(params)
    assert ended.kind == "parameters"
    assert words in ended.message


@cases(
    "memory, size",
    [
        ("1024", 1024),
        (2048, 2048),
        ("1k", 1024),
        ("1.5 GiB", 1536 * 1024**2),
        ("2G", 2 * 1024**3),
        ("3Mi", 3 * 1024**2),
    ],
)
def test_memory_has_units(docker: Containers, memory: Any, size: int) -> None:
    assert docker({"resources": {"limits": {"memory": memory}}}).kind is None
    assert docker.clients.calls("run")[-1].option("memory") == f"{size}b"


# ---- kubectl


def test_a_job_is_made_followed_and_deleted(kubectl: Containers) -> None:
    kubectl.clients.set(pod="late")
    ended = kubectl({"command": "echo one; echo two", "namespace": "loads"})
    assert ended.kind is None, ended.message
    assert (ended.result["stdout"], ended.result["runtime"]) == ("one\ntwo\n", "kubectl")
    assert ended.said == ["one", "two"]
    verbs = [one.arguments[0] for one in kubectl.clients.calls()]
    assert list(dict.fromkeys(verbs)) == ["delete", "create", "get", "logs"]
    assert verbs[-1] == "delete"
    assert all("--namespace=loads" in one.arguments for one in kubectl.clients.calls())
    assert kubectl.clients.running() == []


def test_the_manifest_says_what_was_asked_for(kubectl: Containers) -> None:
    ended = kubectl(
        {
            "command": ["sh", "-c", "echo $S"],
            "env": {"S": "s3cret"},
            "workdir": "/",
            "pull": "always",
            "service_account": "loader",
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "250m"}},
            "volumes": [{"name": "claim", "target": "/data", "read_only": True}],
            "timeout": 90,
        }
    )
    assert ended.result["data"] == "s3cret"
    (made,) = kubectl.clients.calls("create")
    assert all("s3cret" not in " ".join(one.arguments) for one in kubectl.clients.calls())
    job = json.loads(made.more["stdin"])
    assert (job["apiVersion"], job["kind"], job["metadata"]["name"]) == ("batch/v1", "Job", ended.result["name"])
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 690)
    pod = job["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "loader")
    assert pod["volumes"] == [{"name": "volume-0", "persistentVolumeClaim": {"claimName": "claim"}}]
    assert pod["containers"] == [
        {
            "name": "job",
            "image": "busybox:1",
            "command": ["sh", "-c", "echo $S"],
            "env": [{"name": "S", "value": "s3cret"}],
            "workingDir": "/",
            "imagePullPolicy": "Always",
            "resources": {"limits": {"cpu": "2000m", "memory": str(1024**3)}, "requests": {"cpu": "250m"}},
            "volumeMounts": [{"name": "volume-0", "mountPath": "/data", "readOnly": True}],
        }
    ]


def test_the_manifest_is_one_that_a_cluster_takes(kubectl: Containers) -> None:
    import kubernetes_validate

    assert kubectl({"args": ["x"], "env": {"A": "b"}, "resources": {"cpu": 1}}).kind is None
    for made in kubectl.clients.calls("create"):
        kubernetes_validate.validate(json.loads(made.more["stdin"]), "1.31", strict=True)


def test_a_stream_of_the_log_that_breaks_off_is_followed_from_there(kubectl: Containers) -> None:
    kubectl.clients.set(breaks_after=6)
    ended = kubectl({"command": "echo one; echo two; sleep 0.2; echo three"})
    assert ended.result["stdout"] == "one\ntwo\nthree\n"
    assert ended.said == ["one", "two", "three"]


def test_the_exit_code_is_what_the_pod_says(kubectl: Containers) -> None:
    ended = kubectl.failed({"command": "echo why >&2; exit 4"})
    assert (ended.kind, ended.detail["exit_code"]) == ("exit_code", 4)
    kubectl.clients.set(reason="OOMKilled")
    ended = kubectl.failed({"command": "exit 137"})
    assert ended.message == "the container (OOMKilled) failed: exit code 137, expected `0`"
    assert kubectl.clients.running() == []


@cases(
    "behaviour, kind, retryable, words",
    [
        (
            {"waiting": "ImagePullBackOff"},
            "cannot_start",
            False,
            "`busybox:1` cannot be run: ImagePullBackOff: the registry says no",
        ),
        ({"create": "forbidden"}, "cannot_start", False, "cannot be made: Error from server (Forbidden)"),
        ({"cluster": "down"}, "unavailable", True, "Unable to connect to the server"),
        ({"phase": "Failed"}, "lost", True, "has failed: the node was low on memory"),
        ({"gone": True}, "lost", True, "has been deleted"),
    ],
)
def test_a_job_that_does_not_run_to_its_end_says_why(
    kubectl: Containers, behaviour: dict[str, Any], kind: str, retryable: bool, words: str
) -> None:
    kubectl.clients.set(**behaviour)
    ended = kubectl.failed({"command": "echo x"})
    assert ended.failure is not None
    assert (ended.kind, ended.failure.retryable) == (kind, retryable)
    assert words in ended.message
    kubectl.clients.set()
    assert kubectl.clients.running() == []


def test_a_pod_that_nobody_runs_is_given_up(kubectl: Containers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_module, "START_SECONDS", 0.0)
    kubectl.clients.set(waiting="ContainerCreating")
    ended = kubectl.failed({"command": "echo x"})
    assert ended.failure is not None
    assert (ended.kind, ended.failure.retryable) == ("cannot_start", True)
    assert "the registry says no" in ended.message


def test_a_job_that_runs_out_of_time_is_deleted(kubectl: Containers) -> None:
    ended = kubectl.failed({"command": "echo begun; exec sleep 1000", "timeout": 2})
    assert ended.kind == "timeout"
    assert kubectl.clients.running() == []


def test_a_job_whose_task_is_cancelled_is_deleted(kubectl: Containers) -> None:
    said = kubectl.cancelled({"command": "echo $$; exec sleep 1000"})
    assert waits_for(lambda: is_gone(int(said[0])))
    assert kubectl.clients.running() == []


def test_a_job_that_an_attempt_left_is_deleted_first(kubectl: Containers) -> None:
    name, pid = left_over(kubectl, {"command": "echo here; exec sleep 1000"})
    ended = kubectl({"command": "echo again"}, attempt=2)
    assert (ended.result["data"], ended.result["name"]) == ("again", name)
    assert is_gone(pid)


@cases(
    "params, words",
    [
        ({"network": "none"}, "a job of a cluster has no `network`; hint: `runtime: docker` has"),
        ({"stdin": "x"}, "a job of a cluster has no `stdin`"),
        ({"volumes": [".:/v"]}, "a job of a cluster does not see the files of this machine"),
    ],
)
def test_what_a_cluster_does_not_have_is_refused(kubectl: Containers, params: dict[str, Any], words: str) -> None:
    ended = kubectl.failed(params)
    assert ended.kind == "parameters"
    assert words in ended.message


# ---- in a playbook


def test_a_playbook_runs_containers_and_keeps_secrets(tmp_path: Path, clients: Clients) -> None:
    clients.add("docker")
    played = play(
        """
        keychain: [{ name: k, kind: env, var: K }]
        workload: { names: [a, b] }
        workflow:
          - step: start
            tool:
              - name: list
                kind: container
                image: "busybox:{{ workload.names | length }}"
                command: [sh, -c, 'printf "%s\\n" "$S" "$@"', sh]
                args: ["{{ workload.names[0] }}", "x y"]
                env: { S: "{{ keychain.k }}" }
                output: lines
        """,
        tmp_path,
        environ={"K": "hunter2-hunter2"},
    )
    assert (played.status, played.error) == ("completed", None)
    assert played.result["data"][1:] == ["a", "x y"]
    assert "hunter2" not in str(played.events)
    (made,) = clients.calls("run")
    assert "busybox:2" in made.arguments
    assert "hunter2" not in str(made.arguments)
