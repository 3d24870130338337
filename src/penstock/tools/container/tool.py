"""The `container` tool: its parameters, which runtime takes them, and what became of the job."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from penstock.tools.base import Call, Tool, ToolFailure
from penstock.tools.container.docker import Docker
from penstock.tools.container.job import Amount, Ended, Job, Mount, Runtime, name_of
from penstock.tools.container.kubectl import Kubectl
from penstock.tools.output import Kept, Lines
from penstock.tools.parameters import Positive, about
from penstock.tools.process import Form, bad_exit, data_of, shorter, tails

VARIABLE = "PENSTOCK_ALLOW_VOLUME"
RUNTIMES: dict[str, type[Runtime]] = {"docker": Docker, "podman": Docker, "nerdctl": Docker, "kubectl": Kubectl}
"""In the order in which they are looked for."""


class Volume(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Something from outside that the container sees."""

    target: Annotated[str, about("Where the container sees it.")]
    source: Annotated[str | None, about("A folder or file of this machine, relative to the document's folder.")] = None
    name: Annotated[
        str | None, about("Instead of `source`: a volume of the runtime; with `kubectl` a persistent volume claim.")
    ] = None
    read_only: Annotated[bool, about("The container may not write there.")] = False


class Quantity(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Processors and memory."""

    cpu: Annotated[str | float | None, about("Processors: `0.5`, or `500m`.")] = None
    memory: Annotated[
        str | int | None, about("Memory: `512Mi`, `512m`, `1G`, or bytes; a unit is 1024 of the next.")
    ] = None


class Resources(Quantity):
    """How much the container may take."""

    limits: Annotated[Quantity | None, about("The most it may take; the same as `cpu` and `memory` beside it.")] = None
    requests: Annotated[Quantity | None, about("`kubectl`: what has to be free where it runs.")] = None


class ContainerParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    image: Annotated[str, about("The image, as the runtime names it.")]
    command: Annotated[
        str | list[str] | None,
        about("What to run in place of the image's entry point: a program with its arguments, or text for `sh -c`."),
    ] = None
    args: Annotated[
        str | list[str] | dict[str, Any] | None,
        about(
            "Arguments of the command; text is one. A mapping is, as for other tools, values for the other parameters."
        ),
    ] = None
    env: Annotated[dict[str, str], about("Variables of the container.")] = {}
    workdir: Annotated[str | None, about("Working folder in the container.")] = None
    cwd: Annotated[str | None, about("The same as `workdir`.")] = None
    stdin: Annotated[str | None, about("Text for the command's input; not with `kubectl`.")] = None
    volumes: Annotated[list[str | Volume], about("`SOURCE:TARGET`, `SOURCE:TARGET:ro`, or a mapping.")] = []
    resources: Annotated[Resources | None, about("How much the container may take.")] = None
    network: Annotated[str | None, about("The network of the container, such as `none`; not with `kubectl`.")] = None
    pull: Annotated[
        Literal["missing", "always", "never"] | None, about("When to pull the image; otherwise as the runtime has it.")
    ] = None
    runtime: Annotated[
        Literal["auto", "docker", "podman", "nerdctl", "kubectl"],
        about("What runs it; `auto` is the first of these that is on the path."),
    ] = "auto"
    namespace: Annotated[str | None, about("`kubectl`: the namespace of the job.")] = None
    service_account: Annotated[str | None, about("`kubectl`: the account that the job runs as.")] = None
    job_name: Annotated[str | None, about("What the name of the container or job begins with.")] = None
    timeout: Annotated[Positive | None, about("Seconds the job may take; `spec.timeout` holds as well.")] = None
    timeout_seconds: Annotated[Positive | None, about("The same as `timeout`.")] = None
    ok_codes: Annotated[list[int], about("Exit codes that count as success; `[0]` by default.")] = msgspec.field(
        default_factory=lambda: [0]
    )
    output: Annotated[Form, about("What `data` of the result is made of from the output.")] = "text"


class ContainerTool(Tool[ContainerParams]):
    """Run an image as one job, with docker, podman, nerdctl or kubectl.

    The result is `{exit_code, stdout, stderr, data, runtime, name}`, the first four as those of `shell`. Every line goes to the
    run's log as it comes. What runs containers is found on the path and asked as it is set up there: `DOCKER_HOST`, contexts and
    `KUBECONFIG` are its own. With `kubectl` the image runs as a job of the cluster, which is deleted afterwards; its log is in
    `stdout`, with what it wrote to standard error.

    When the task ends, is cancelled or runs out of time, the container or job is removed. Its name comes from the task run, so
    a retry, or whoever takes the task over, first removes one that an attempt left which died. That needs the same engine or
    cluster: a container on another machine, whose worker is gone, runs on there until its end.

    The values in `env` do not stand on a command line. With `kubectl` they are part of the job, where everybody sees them who
    may read jobs in its namespace. `volumes` may be folders and files below the document's folder, and below those that the
    operator names in `PENSTOCK_ALLOW_VOLUME` (several with colons). What the container may reach is not judged, as for `shell`.

    An exit code that is not in `ok_codes` is an error of kind `exit_code`; further kinds are `not_found` (no runtime, no such
    file), `cannot_start`, `unavailable` (the engine or cluster cannot be reached), `timeout`, `lost` (the pod is gone),
    `permission`, `output` and `parameters`.

    The tests of this tool run it against programs that stand in for docker and kubectl, not against an engine or a cluster.
    """

    kind: ClassVar[str] = "container"

    async def run(self, params: ContainerParams, call: Call) -> object:
        runtime, program = _found(params.runtime)
        limit = shorter(shorter(params.timeout, params.timeout_seconds), call.timeout())
        output = _Output(call)
        job = _job(params, call, runtime, limit)
        running = RUNTIMES[runtime](program, job, call, output.take)
        ended = await self._ended(running, output, limit)
        if ended.code not in params.ok_codes:
            what = f"the container ({ended.reason})" if ended.reason else "the container"
            raise bad_exit(what, ended.code, params.ok_codes, output.kept, call.holds_secret)
        texts = {name: kept.text() for name, kept in output.kept.items()}
        data = data_of(output.kept, params.output, call.holds_secret)
        return {"exit_code": ended.code, **texts, "data": data, "runtime": runtime, "name": job.name}

    async def _ended(self, running: Runtime, output: _Output, limit: float | None) -> Ended:
        is_gone = False
        try:
            async with asyncio.timeout(limit):
                ended = await running.run()
            is_gone = isinstance(running, Docker)
            return ended
        except TimeoutError:
            message = f"the container was still running after {limit:g} s"
            raise ToolFailure("timeout", message, retryable=True, **tails(output.kept, output.holds_secret)) from None
        finally:
            output.flush()
            if not is_gone:
                # It goes on if this task is cancelled once more.
                await asyncio.shield(asyncio.ensure_future(_remove(running)))


async def _remove(running: Runtime) -> None:
    """What becomes of the task is known already, so a failure to clear up is only told."""
    try:
        await running.remove()
    except ToolFailure as failure:
        running.call.say(failure.message)


class _Output:
    def __init__(self, call: Call) -> None:
        limit = call.settings.max_output_bytes
        self.holds_secret = call.holds_secret
        self.kept = {"stdout": Kept(limit), "stderr": Kept(limit)}
        self._lines = {"stdout": Lines(call.say, limit), "stderr": Lines(call.say, limit)}

    def take(self, name: str, data: bytes) -> None:
        self.kept[name].feed(data)
        self._lines[name].feed(data)

    def flush(self) -> None:
        for lines in self._lines.values():
            lines.close()


def _found(wanted: str) -> tuple[str, str]:
    """The runtime and its program."""
    names = [*RUNTIMES] if wanted == "auto" else [wanted]
    for name in names:
        if (program := shutil.which(name)) is not None:
            return name, program
    listed = ", ".join(f"`{name}`" for name in names)
    hint = "install one where this runs, or let the task run on a worker that has one (`spec.pool`)"
    raise ToolFailure("not_found", f"nothing here runs containers: {listed} is not on the path; hint: {hint}")


# ---- from parameters to a job

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _job(params: ContainerParams, call: Call, runtime: str, limit: float | None) -> Job:
    _check(params, runtime)
    entry_point = ["/bin/sh", "-c", params.command] if isinstance(params.command, str) else params.command
    given = params.args
    arguments = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    if isinstance(params.command, str) and arguments:
        arguments = ["sh", *arguments]  # What a script calls `$0`.
    resources = params.resources or Resources()
    return Job(
        name=name_of(call, params.job_name),
        image=params.image.strip(),
        entry_point=entry_point or None,
        arguments=arguments,
        env=params.env,
        labels={"penstock.execution": re.sub(r"[^A-Za-z0-9_.-]", "-", call.execution_id)[:63].strip("-_.")},
        mounts=[_mount(one, call, runtime) for one in params.volumes],
        most=_amount(resources.limits or resources),
        least=_amount(resources.requests or Quantity()),
        workdir=params.workdir or params.cwd,
        network=params.network,
        pull=params.pull,
        namespace=params.namespace,
        service_account=params.service_account,
        stdin=params.stdin,
        limit=limit,
    )


def _check(params: ContainerParams, runtime: str) -> None:
    image = params.image.strip()
    if not image or image.startswith("-"):
        raise ToolFailure("parameters", "`image` is not the name of an image")
    bad = next((name for name in params.env if not _NAME.fullmatch(name)), None)
    if bad is not None:
        raise ToolFailure("parameters", f"`{bad}` in `env` cannot be the name of a variable")
    if any("\0" in text for text in (*params.env.values(), *(params.command or ()), *(params.args or ()))):
        raise ToolFailure("parameters", "a command, an argument or a variable has a NUL character in it")
    if params.workdir and params.cwd and params.workdir != params.cwd:
        raise ToolFailure("parameters", "`cwd` and `workdir` are the same, and both are given")
    if runtime == "kubectl":
        for name in ("network", "stdin"):
            if getattr(params, name) is not None:
                raise ToolFailure("parameters", f"a job of a cluster has no `{name}`; hint: `runtime: docker` has")


def _mount(given: str | Volume, call: Call, runtime: str) -> Mount:
    # A text is shown as a whole: a part of it may be a part of a secret, which nothing would find and hide.
    volume, shown = (_volume(given), given) if isinstance(given, str) else (given, given.target)
    if not volume.target.startswith("/") or any(mark in volume.target for mark in ',"\n'):
        raise _refused(shown, "what the container sees it as is a path with `/` first, without commas and quotes")
    if (volume.source is None) == (volume.name is None):
        raise _refused(shown, "it needs either `source` or `name`")
    if volume.name is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", volume.name):
            raise _refused(shown, "its `name` cannot be that of a volume")
        return Mount(volume.name, volume.target, volume.read_only, is_named=True)
    if runtime == "kubectl":
        words = "a job of a cluster does not see the files of this machine; hint: `name` is a persistent volume claim"
        raise _refused(shown, words)
    path = _allowed(str(volume.source), shown, call)
    if any(mark in str(path) for mark in ',"\n'):
        raise _refused(shown, "a path with a comma, a quote or a line end in it cannot be one")
    return Mount(str(path), volume.target, volume.read_only, is_named=False)


def _volume(text: str) -> Volume:
    parts = text.split(":")
    if len(parts) not in (2, 3) or not all(parts) or parts[2:] not in ([], ["ro"], ["rw"]):
        raise _refused(text, "it is not `SOURCE:TARGET` or `SOURCE:TARGET:ro`")
    return Volume(source=parts[0], target=parts[1], read_only=parts[2:] == ["ro"])


def _allowed(source: str, shown: str, call: Call) -> Path:
    """The real path, which links cannot lead out of the folders that are allowed."""
    try:
        path = call.resolve(source).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise _refused(shown, "there is no such file or folder", "not_found") from None
    beside = [Path(one) for one in os.environ.get(VARIABLE, "").split(":") if one.startswith("/")]
    folders = [call.folder.resolve(), *(folder.resolve() for folder in beside)]
    if not any(path.is_relative_to(folder) for folder in folders):
        hint = f"who runs this worker or server allows more with `{VARIABLE}`"
        raise _refused(shown, f"it is not below the document's folder; hint: {hint}", "permission")
    return path


def _refused(shown: str, words: str, kind: str = "parameters") -> ToolFailure:
    return ToolFailure(kind, f"the volume `{shown}`: {words}")


def _amount(given: Quantity) -> Amount:
    return Amount(_cpu(given.cpu), _memory(given.memory))


def _cpu(given: str | float | None) -> float | None:
    if given is None:
        return None
    text = str(given).strip()
    try:
        found = float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise ToolFailure("parameters", f"`cpu: {text}` is no number of processors, such as `0.5` or `500m`")
    return found


def _memory(given: str | int | None) -> int | None:
    if given is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", str(given).strip().lower())
    if found is None or not float(found[1]):
        raise ToolFailure("parameters", f"`memory: {given}` is no amount of memory, such as `512Mi` or `1G`")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " "))
