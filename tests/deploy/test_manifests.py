"""What `deploy/` says is true: the manifests fit the schemas, and every command, option, variable, port and path is there."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from compose_spec import PyCompose

from penstock.api.operations import server_routes
from penstock.cli.arguments import COMMANDS, parser_for
from tests.cases import cases

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
VERSIONS = ("1.31.0", "1.37.0")
OWN_SCHEMA = {"ScaledObject", "Kustomization"}
"""Not part of Kubernetes itself."""
PORT = 8470
STATE = "/var/lib/penstock"
USER = 10001


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(KUBERNETES.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield path.name, one
    for path in sorted(KUBERNETES.glob("*.json")):
        yield path.name, json.loads(path.read_text(encoding="utf-8"))


DOCUMENTS = list(documents())
PODS = [
    (name, one["spec"]["template"]["spec"] if one["kind"] == "Deployment" else one["spec"])
    for name, one in DOCUMENTS
    if one["kind"] in ("Deployment", "Pod")
]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def instruction(name: str) -> str:
    """The last instruction of this name, which is the one that counts."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)[-1]


def found(kind: str, name: str) -> dict[str, Any]:
    return next(one for _, one in DOCUMENTS if one["kind"] == kind and one["metadata"]["name"] == name)


# ---- the schemas


@cases("version", VERSIONS)
@cases("file, one", [(file, one) for file, one in DOCUMENTS if one["kind"] not in OWN_SCHEMA])
def test_a_manifest_fits_the_schema_of_kubernetes(file: str, one: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(one, version, strict=True)


def test_a_manifest_with_a_slip_would_be_found() -> None:
    wrong = json.loads(json.dumps(found("Deployment", "penstock-server")))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_compose_file_fits_the_compose_specification() -> None:
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert sorted(PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(text))).service_names()) == [
        "postgres",
        "server",
        "worker",
    ]
    with pytest.raises(ValueError):
        PyCompose.from_yaml(yaml.safe_dump({"services": {"a": {"imagee": "x"}}}))


def test_the_kustomization_names_files_that_are_there_and_the_image_that_the_pods_run() -> None:
    (kustomization,) = (one for _, one in DOCUMENTS if one["kind"] == "Kustomization")
    assert all((KUBERNETES / name).is_file() for name in kustomization["resources"])
    used = {container["image"] for _, pod in PODS for container in pod["containers"]}
    assert used == {f"{one['newName']}:{one['newTag']}" for one in kustomization["images"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert used == {f"penstock:{project['version']}"}


# ---- against the program itself


def command_lines() -> Iterator[tuple[str, list[str]]]:
    for name, pod in PODS:
        for container in pod["containers"]:
            yield name, [word.replace("$(POD_NAME)", "pod-1") for word in container["args"]]
    for name, service in COMPOSE["services"].items():
        if service["image"] == "penstock":
            yield f"compose.yaml: {name}", service["command"]
    yield "Dockerfile", json.loads(instruction("CMD"))
    for file in ("deploy/compose.yaml", "deploy/Dockerfile", "docs/operations/containers.md"):
        text = (ROOT / file).read_text(encoding="utf-8")
        for line in re.findall(r"run --rm server ([^#\n]*)", text) + re.findall(
            r"docker run (?:--rm )?penstock\S* (.*)", text
        ):
            yield file, shlex.split(line)


LINES = list(command_lines())


@cases("where, words", LINES)
def test_every_command_and_option_is_one_of_penstock(where: str, words: list[str]) -> None:
    name, *rest = words
    assert name in COMMANDS
    parser_for(name, COMMANDS[name]).parsed(rest)


def test_every_variable_is_one_that_penstock_reads() -> None:
    known = set(
        re.findall(r"`(PENSTOCK_[A-Z_]+)`", (ROOT / "docs/operations/installing.md").read_text(encoding="utf-8"))
    )
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/penstock").rglob("*.py"))
    used = set()
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            used |= set(re.findall(r"\bPENSTOCK_[A-Z_]+", path.read_text(encoding="utf-8")))
    assert {"PENSTOCK_DATABASE", "PENSTOCK_HOME", "PENSTOCK_POOL", "PENSTOCK_SECRET_KEY"} <= used
    assert used <= known
    assert all(f'"{name}"' in source for name in used)


def test_probes_and_the_health_check_ask_paths_that_a_server_has() -> None:
    paths = {getattr(route, "path", "") for route in server_routes.routes}
    for _, pod in PODS:
        for container in pod["containers"]:
            ports = {one["name"]: one["containerPort"] for one in container.get("ports", [])}
            for name in ("startupProbe", "livenessProbe", "readinessProbe"):
                if name in container:
                    asked = container[name]["httpGet"]
                    assert asked["path"] in paths
                    assert ports[asked["port"]] == PORT
    asked_here = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", instruction("HEALTHCHECK"))
    assert asked_here is not None
    assert (int(asked_here[1]), asked_here[2] in paths) == (PORT, True)
    server = found("Deployment", "penstock-server")["spec"]["template"]["spec"]["containers"][0]
    assert server["livenessProbe"]["httpGet"]["path"] == "/health"
    assert server["readinessProbe"]["httpGet"]["path"] == "/ready"


def test_metrics_that_workers_are_scaled_by_are_metrics_of_the_server() -> None:
    source = (ROOT / "src/penstock/api/operations.py").read_text(encoding="utf-8")
    texts = [(KUBERNETES / "keda.yaml").read_text(), (ROOT / "docs/operations/containers.md").read_text()]
    used = {name for text in texts for name in re.findall(r"penstock_leases_\w+", text)}
    assert used == {"penstock_leases_waiting", "penstock_leases_held"}
    assert all(f'"{name}"' in source for name in used)
    external = found("HorizontalPodAutoscaler", "penstock-worker")["spec"]["metrics"][0]["external"]["metric"]
    assert f"as: {external['name']}" in texts[1]
    worker = found("Deployment", "penstock-worker")["spec"]["template"]["spec"]["containers"][0]
    pool = next(one["value"] for one in worker["env"] if one["name"] == "PENSTOCK_POOL")
    assert external["selector"]["matchLabels"] == {"pool": pool}


def test_ports_are_the_one_that_the_server_listens_at() -> None:
    (listened,) = {line[line.index("--listen") + 1] for _, line in LINES if "--listen" in line}
    assert listened == f"0.0.0.0:{PORT}"
    service = found("Service", "penstock")["spec"]["ports"][0]
    assert (service["port"], service["targetPort"]) == (PORT, "http")
    assert instruction("EXPOSE") == str(PORT)
    assert COMPOSE["services"]["server"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    ingress = found("NetworkPolicy", "penstock-server")["spec"]["ingress"][0]
    assert ingress["ports"] == [{"protocol": "TCP", "port": PORT}]


# ---- what would hurt


def grace(words: list[str]) -> float:
    return float(parser_for(words[0], COMMANDS[words[0]]).parsed(words[1:]).grace)


def test_processes_get_more_time_to_stop_than_their_grace() -> None:
    for _, one in DOCUMENTS:
        if one["kind"] == "Deployment":
            pod = one["spec"]["template"]["spec"]
            words = [word.replace("$(POD_NAME)", "pod-1") for word in pod["containers"][0]["args"]]
            assert pod["terminationGracePeriodSeconds"] > grace(words) + 10
    for name in ("server", "worker"):
        service = COMPOSE["services"][name]
        assert float(service["stop_grace_period"].removesuffix("s")) > grace(service["command"]) + 10


@pytest.mark.parametrize(("name", "pod"), PODS, ids=[name for name, _ in PODS])
def test_pods_run_without_rights(name: str, pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == USER
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        rights = container["securityContext"]
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]})


def test_the_image_runs_as_the_same_user_with_the_state_folder_that_is_mounted() -> None:
    assert instruction("USER") == f"{USER}:{USER}"
    assert f"PENSTOCK_HOME={STATE}" in instruction("ENV")
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert json.loads(instruction("ENTRYPOINT")) == ["penstock"]
    for _, one in DOCUMENTS:
        if one["kind"] == "Deployment":
            container = one["spec"]["template"]["spec"]["containers"][0]
            assert {"name": "state", "mountPath": STATE} in container["volumeMounts"]
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for path in " ".join(copied).split():
        assert (ROOT / path).exists()
        assert f"!{path}" in kept
    extras = re.search(r"'\.\[(.*)\]'", DOCKERFILE)
    assert extras is not None
    for extra in extras[1].split(","):
        assert f"{extra} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_secrets_come_from_the_secret_and_stand_in_no_file() -> None:
    keys = set(found("Secret", "penstock")["stringData"])
    for _, pod in PODS:
        for container in pod["containers"]:
            for one in container["env"]:
                if "secretKeyRef" in one.get("valueFrom", {}):
                    reference = one["valueFrom"]["secretKeyRef"]
                    assert (reference["name"], reference["key"] in keys) == ("penstock", True)
                else:
                    assert one["name"] in ("POD_NAME", "PENSTOCK_POOL")
    assert all(
        not line.partition("=")[2] for line in (DEPLOY / "example.env").read_text().splitlines() if line[:1] != "#"
    )


def test_selectors_select_the_pods_they_mean() -> None:
    labels = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
        for _, one in DOCUMENTS
        if one["kind"] == "Deployment"
    }
    for _, one in DOCUMENTS:
        if one["kind"] in ("PodDisruptionBudget", "NetworkPolicy"):
            chosen = one["spec"].get("selector") or one["spec"]["podSelector"]
            assert chosen["matchLabels"].items() <= labels[one["metadata"]["name"]].items()
        if one["kind"] in ("HorizontalPodAutoscaler", "ScaledObject"):
            assert one["spec"]["scaleTargetRef"]["name"] in labels
    assert found("Service", "penstock")["spec"]["selector"].items() <= labels["penstock-server"].items()
