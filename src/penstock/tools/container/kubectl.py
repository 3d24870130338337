"""A container as a Kubernetes job, through `kubectl`: made, followed, and deleted again.

Law: whether the container has ended, and how, is what the pod's status says. A stream of the log that breaks off is followed
again from the byte that it broke off at, and means nothing else.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from typing import Any

from penstock.kernel.values import Json, JsonMap
from penstock.tools.base import ToolFailure
from penstock.tools.container.job import TERM_SECONDS, Amount, Ended, Runtime
from penstock.tools.process import start

CONTAINER = "job"
POLL_SECONDS = 1.0
START_SECONDS = 600.0
"""How long a pod may take until its container runs: its image has to be pulled, and a machine to be found or made."""
KEPT_SECONDS = 3600
"""How long a job stays that nobody is there to delete."""
_HOPELESS = (
    "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
)  # fmt: skip
_PULL = {"always": "Always", "missing": "IfNotPresent", "never": "Never"}


class Kubectl(Runtime):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._taken = 0
        """Bytes of the log so far."""

    async def run(self) -> Ended:
        await self._delete(wait=True)
        manifest = json.dumps(self.manifest()).encode()
        answer = await self.ask(*self._within("create", "--filename=-"), stdin=manifest)
        if answer.code:
            raise answer.failure(f"the job `{self.job.name}` cannot be made")
        pod = await self._begun()
        while True:
            await self._follow(pod)
            ended = _end_of(await self._pod())
            if ended is not None:
                await self._follow(pod)  # What came after the stream had broken off; usually nothing.
                return ended
            await self.call.clock.sleep(POLL_SECONDS)

    async def remove(self) -> None:
        await self._delete(wait=False)

    async def _delete(self, *, wait: bool) -> None:
        options = ("--ignore-not-found", f"--wait={str(wait).lower()}", "--cascade=foreground")
        answer = await self.ask(*self._within("delete", "job", self.job.name, *options))
        if answer.code:
            raise answer.failure(f"the job `{self.job.name}` cannot be deleted", "io")

    async def _begun(self) -> str:
        """The name of the pod, once its container runs or has run."""
        until = self.call.clock.now() + START_SECONDS
        while True:
            pod = await self._pod(is_awaited=True)
            state = _state_of(pod)
            if "running" in state or "terminated" in state:
                return str(pod["metadata"]["name"])
            waiting = state.get("waiting") or {}
            if waiting.get("reason") in _HOPELESS:
                words = waiting.get("message") or "no reason given"
                raise ToolFailure("cannot_start", f"`{self.job.image}` cannot be run: {waiting['reason']}: {words}")
            if self.call.clock.now() >= until:
                raise ToolFailure("cannot_start", f"no machine runs `{self.job.name}`: {_why(pod)}", retryable=True)
            await self.call.clock.sleep(POLL_SECONDS)

    async def _pod(self, *, is_awaited: bool = False) -> dict[str, Any]:
        """The job's pod; empty while there is none yet."""
        selector = f"--selector=job-name={self.job.name}"
        answer = await self.ask(*self._within("get", "pods", selector, "--output=json"))
        if answer.code:
            raise answer.failure(f"the pod of `{self.job.name}` cannot be looked at", "io")
        pods: list[dict[str, Any]] = json.loads(answer.text)["items"]
        if not pods and not is_awaited:
            raise ToolFailure("lost", f"the pod of `{self.job.name}` has been deleted", retryable=True)
        pod = pods[0] if pods else {}
        if pod.get("status", {}).get("phase") == "Failed" and "terminated" not in _state_of(pod):
            raise ToolFailure("lost", f"the pod of `{self.job.name}` has failed: {_why(pod)}", retryable=True)
        return pod

    async def _follow(self, pod: str) -> None:
        """Take the log, from where it was left, until the stream ends."""
        left = self._taken

        def take(data: bytes) -> None:
            nonlocal left
            new = data[left:]
            left = max(0, left - len(data))
            self._taken += len(new)
            if new:
                self.take("stdout", new)

        child = start(
            [self.program, *self._within("logs", "--follow", f"--container={CONTAINER}", pod)],
            env=os.environ,
            cwd=None,
            stdin=None,
            stdout=take,
            stderr=lambda data: None,
        )
        try:
            await child.ended()
        except asyncio.CancelledError:
            await child.terminate(TERM_SECONDS)
            raise
        finally:
            child.close()

    def _within(self, *arguments: str) -> list[str]:
        """The arguments, and which namespace they are about."""
        return [*arguments, *(() if self.job.namespace is None else (f"--namespace={self.job.namespace}",))]

    def manifest(self) -> JsonMap:
        job = self.job
        container: dict[str, Any] = {
            "name": CONTAINER,
            "image": job.image,
            "command": job.entry_point,
            "args": job.arguments or None,
            "env": [{"name": name, "value": value} for name, value in job.env.items()],
            "workingDir": job.workdir,
            "imagePullPolicy": None if job.pull is None else _PULL[job.pull],
            "resources": {
                name: said
                for name, amount in (("limits", job.most), ("requests", job.least))
                if (said := _amount(amount))
            },
            "volumeMounts": [
                {"name": f"volume-{at}", "mountPath": one.target, "readOnly": one.read_only}
                for at, one in enumerate(job.mounts)
            ],
        }
        pod = {
            "restartPolicy": "Never",
            "serviceAccountName": job.service_account,
            "containers": [_without_none(container)],
            "volumes": [
                {"name": f"volume-{at}", "persistentVolumeClaim": {"claimName": one.source}}
                for at, one in enumerate(job.mounts)
            ],
        }
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": job.name, "labels": dict[str, Json](job.labels)},
            "spec": _without_none(
                {
                    "backoffLimit": 0,
                    "ttlSecondsAfterFinished": KEPT_SECONDS,
                    # Later than our own limit: it is for a job whose worker is gone.
                    "activeDeadlineSeconds": None if job.limit is None else math.ceil(job.limit) + int(START_SECONDS),
                    "template": {"metadata": {"labels": job.labels}, "spec": _without_none(pod)},
                }
            ),
        }


def _without_none(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _amount(amount: Amount) -> dict[str, Any]:
    cpu = None if amount.cpu is None else f"{round(amount.cpu * 1000)}m"
    return _without_none({"cpu": cpu, "memory": None if amount.memory is None else str(amount.memory)})


def _state_of(pod: dict[str, Any]) -> dict[str, Any]:
    found = pod.get("status", {}).get("containerStatuses") or [{}]
    state: dict[str, Any] = found[0].get("state") or {}
    return state


def _end_of(pod: dict[str, Any]) -> Ended | None:
    terminated = _state_of(pod).get("terminated")
    if terminated is None:
        return None
    reason = terminated.get("reason") or ""
    return Ended(int(terminated["exitCode"]), "" if reason in ("Completed", "Error") else reason)


def _why(pod: dict[str, Any]) -> str:
    """Why a pod does not run, in the cluster's words."""
    status = pod.get("status", {})
    conditions = [one for one in status.get("conditions") or [] if one.get("status") == "False"]
    told = [status, *conditions, _state_of(pod).get("waiting") or {}]
    words = next((one["message"] for one in told if one.get("message")), None)
    return str(words or next((one["reason"] for one in told if one.get("reason")), "no reason given"))
