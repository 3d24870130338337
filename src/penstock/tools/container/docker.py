"""Containers of this machine, or of the one that `DOCKER_HOST` names: docker, podman and nerdctl, which take the same words.

Law: no value of a variable stands on the command line, which others can see. A variable that the client itself would read is
given to the container through a file that nobody else can read, so that the client sees only the variables of this process.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.tools.base import ToolFailure
from penstock.tools.container.job import TERM_SECONDS, Ended, Mount, Runtime, failure
from penstock.tools.process import start

OWN_FAILURE = 125
"""The exit code with which the client says that there was no container."""
_READ_BY_CLIENTS = ("DOCKER_", "CONTAINER", "CONTAINERS_", "PODMAN_", "NERDCTL_", "REGISTRY_", "LD_", "SSH_", "XDG_")


class Docker(Runtime):
    async def run(self) -> Ended:
        # That there is none is the usual answer. If it cannot be removed, its name is taken, which the next command says.
        await self.ask("rm", "--force", self.job.name)
        words: list[bytes] = []

        def error(data: bytes) -> None:
            words[:] = [b"".join([*words, data])[-4096:]]
            self.take("stderr", data)

        passed, filed = self._variables()
        with _env_file(filed) as file:
            child = start(
                [self.program, *self._arguments(passed, file)],
                env={**os.environ, **passed},
                cwd=self.call.folder,
                stdin=None if self.job.stdin is None else self.job.stdin.encode(),
                stdout=lambda data: self.take("stdout", data),
                stderr=error,
            )
            try:
                code = await child.ended()
            except asyncio.CancelledError:
                await child.terminate(TERM_SECONDS)
                raise
            finally:
                child.close()
        if code == OWN_FAILURE:
            raise failure(f"`{self.job.image}` cannot be run", b"".join(words).decode("utf-8", "replace"))
        return Ended(code)

    async def remove(self) -> None:
        answer = await self.ask("rm", "--force", self.job.name)
        if answer.code and "no such container" not in answer.error.lower():
            raise answer.failure(f"the container `{self.job.name}` cannot be removed", "io")

    def _arguments(self, passed: dict[str, str], file: Path | None) -> list[str]:
        job = self.job
        options = {
            "workdir": job.workdir,
            "network": job.network,
            "pull": job.pull,
            "cpus": None if job.most.cpu is None else f"{job.most.cpu:g}",
            "memory": None if job.most.memory is None else f"{job.most.memory}b",
            "entrypoint": job.entry_point[0] if job.entry_point else None,
            "env-file": None if file is None else str(file),
        }
        return [
            *("run", "--rm", f"--name={job.name}"),
            *(f"--label={name}={value}" for name, value in job.labels.items()),
            *(f"--{name}={value}" for name, value in options.items() if value is not None),
            *(f"--env={name}" for name in passed),
            *(f"--mount={_mount(one)}" for one in job.mounts),
            *(() if job.stdin is None else ("--interactive",)),
            job.image,
            *(job.entry_point or [])[1:],
            *job.arguments,
        ]

    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """Those that the client's environment can carry, and those that it would read itself."""
        filed = {
            name: value
            for name, value in self.job.env.items()
            if name in os.environ or name.upper().startswith(_READ_BY_CLIENTS) or name.upper().endswith("_PROXY")
        }
        for name, value in filed.items():
            if "\n" in value or "\r" in value:
                words = "has several lines, which only a variable that the client does not read itself can have"
                raise ToolFailure("parameters", f"the variable `{name}` in `env` {words}; hint: give it another name")
        return {name: value for name, value in self.job.env.items() if name not in filed}, filed


@contextmanager
def _env_file(variables: dict[str, str]) -> Iterator[Path | None]:
    if not variables:
        yield None
        return
    descriptor, name = tempfile.mkstemp(prefix="penstock-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in variables.items())
        yield Path(name)
    finally:
        os.unlink(name)


def _mount(mount: Mount) -> str:
    kind = "volume" if mount.is_named else "bind"
    return f"type={kind},source={mount.source},target={mount.target}{',readonly' if mount.read_only else ''}"
