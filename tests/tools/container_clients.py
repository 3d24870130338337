"""Programs that stand in for `docker` and `kubectl`: they take the words that the tool says, and run the command of an image as a process
of this machine that outlives its client, as a container does.

    clients = Clients(folder)                       # a folder with the programs, to be put on the path
    clients.add("docker")
    clients.calls()                                 # what each was called with, and which variables it saw
    clients.set(pull="denied")                      # how the engine or cluster behaves from now on
    clients.running()                               # the names of the containers that are there
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMON = r'''
import json, os, signal, subprocess, sys, time
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
STATE = HOME / "state"
CALLED = sys.argv[1:]
IMAGE = "/usr/bin:/bin"


def behaviour():
    file = HOME / "behaviour.json"
    return json.loads(file.read_text()) if file.exists() else {}


def record(**more):
    with (HOME / "calls.jsonl").open("a") as file:
        file.write(json.dumps({"program": Path(__file__).name, "arguments": CALLED, "pid": os.getpid(), **more}) + "\n")


def option(name, *, of=CALLED):
    found = [one.partition("=")[2] for one in of if one.startswith(f"--{name}=")]
    return found[-1] if found else None


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def launch(name, command, env, folder, stdin=None):
    """Start the command as a process of the engine's: a keeper, which outlives the client, writes down how it ended. A client that is
    told to end does so before or after this, as an engine does all of it or nothing."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    place = STATE / name
    place.mkdir(parents=True)
    (place / "input").write_text(stdin or "")
    spec = {"command": command, "env": env, "cwd": folder}
    (place / "spec").write_text(json.dumps(spec))
    keeper = (
        "import json,os,subprocess,sys\n"
        "place=sys.argv[1]; s=json.load(open(place+'/spec'))\n"
        "p=subprocess.Popen(s['command'],env=s['env'],cwd=s['cwd'],stdin=open(place+'/input'),"
        "stdout=open(place+'/stdout','wb'),stderr=open(place+'/stderr','wb'),start_new_session=True)\n"
        "open(place+'/pid.new','w').write(str(p.pid)); os.rename(place+'/pid.new',place+'/pid')\n"
        "code=p.wait(); code=128-code if code<0 else code\n"
        "open(place+'/code.new','w').write(str(code)); os.rename(place+'/code.new',place+'/code')\n"
    )
    subprocess.Popen([sys.executable, "-c", keeper, str(place)], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (place / "pid").exists():
        time.sleep(0.002)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    return place


def follow(files, ended):
    """Copy what is written to the files, until the process has ended."""
    seen = [0 for _ in files]
    while True:
        is_last = ended()
        for at, (file, out) in enumerate(files):
            data = file.read_bytes()[seen[at]:] if file.exists() else b""
            seen[at] += len(data)
            out.write(data)
            out.flush()
        if is_last:
            return
        time.sleep(0.005)


def end(place):
    pid = int((place / "pid").read_text())
    while alive(pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        time.sleep(0.002)
    import shutil
    while not (place / "code").exists():
        time.sleep(0.002)
    shutil.rmtree(place)
'''

DOCKER = r"""
def main():
    visible = {name: os.environ.get(name) for name in ("S", "SECRET", "DOCKER_HOST", "PATH", "HOME")}
    file = option("env-file")
    record(visible=visible, env_file=Path(file).read_text() if file else None,
           mode=oct(os.stat(file).st_mode & 0o777) if file else None)
    if behaviour().get("daemon") == "down":
        print("Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?", file=sys.stderr)
        return 125 if CALLED[0] == "run" else 1
    if CALLED[0] == "rm":
        place = STATE / CALLED[-1]
        if behaviour().get("rm") == "fails":
            print("Error response from daemon: removal is stuck", file=sys.stderr)
            return 1
        if not place.exists():
            print(f"Error: No such container: {CALLED[-1]}", file=sys.stderr)
            return 1
        end(place)
        print(CALLED[-1])
        return 0
    assert CALLED[0] == "run", CALLED
    at = next(number for number, one in enumerate(CALLED[1:], start=1) if not one.startswith("-"))
    options, image, command = CALLED[1:at], CALLED[at], CALLED[at + 1:]
    if behaviour().get("pull") == "denied":
        print(f"Unable to find image '{image}' locally\ndocker: Error response from daemon: pull access denied for {image}", file=sys.stderr)
        return 125
    name = option("name", of=options)
    if (STATE / name).exists():
        print(f'docker: Error response from daemon: Conflict. The container name "/{name}" is already in use', file=sys.stderr)
        return 125
    entry = option("entrypoint", of=options)
    command = [*([entry] if entry else ["/bin/echo"]), *command]
    env = {"PATH": IMAGE}
    for line in Path(file).read_text().splitlines() if file else []:
        env[line.partition("=")[0]] = line.partition("=")[2]
    for one in options:
        if one.startswith("--env="):
            env[one[6:]] = os.environ[one[6:]]
    place = launch(name, command, env, str(HOME), sys.stdin.read() if "--interactive" in options else None)
    follow([(place / "stdout", sys.stdout.buffer), (place / "stderr", sys.stderr.buffer)], lambda: (place / "code").exists())
    code = int((place / "code").read_text())
    if "--rm" in options:
        end(place)
    return code


sys.exit(main())
"""

KUBECTL = r"""
def state_of(place):
    if (place / "code").exists():
        code = int((place / "code").read_text())
        reason = behaviour().get("reason") or ("Completed" if code == 0 else "Error")
        return {"terminated": {"exitCode": code, "reason": reason}}
    return {"running": {}}


def pods(name):
    place = STATE / name
    said = behaviour()
    if not place.exists():
        return []
    if said.get("pod") == "late" and not (place / "asked").exists():
        (place / "asked").touch()
        return []
    status = {"phase": "Running", "containerStatuses": [{"name": "job", "state": state_of(place)}]}
    if said.get("waiting"):
        state = {"waiting": {"reason": said["waiting"], "message": "the registry says no"}}
        status = {"phase": "Pending", "containerStatuses": [{"name": "job", "state": state}]}
    if said.get("phase"):
        status = {"phase": said["phase"], "reason": "Evicted", "message": "the node was low on memory"}
    return [{"metadata": {"name": f"{name}-abcde"}, "status": status}]


def main():
    given = sys.stdin.read() if CALLED[0] == "create" else None
    record(stdin=given)
    if behaviour().get("cluster") == "down":
        print("Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout", file=sys.stderr)
        return 1
    if CALLED[0] == "delete":
        place = STATE / CALLED[2]
        if place.exists():
            end(place)
        return 0
    if CALLED[0] == "create":
        job = json.loads(given)
        if behaviour().get("create") == "forbidden":
            print('Error from server (Forbidden): jobs.batch is forbidden: User "w" cannot create', file=sys.stderr)
            return 1
        container = job["spec"]["template"]["spec"]["containers"][0]
        name = job["metadata"]["name"]
        if (STATE / name).exists():
            print(f'Error from server (AlreadyExists): jobs.batch "{name}" already exists', file=sys.stderr)
            return 1
        env = {"PATH": IMAGE, **{one["name"]: one["value"] for one in container["env"]}}
        launch(name, [*(container.get("command") or ["/bin/echo"]), *container.get("args", [])], env, str(HOME))
        return 0
    if CALLED[0] == "get":
        name = option("selector").removeprefix("job-name=")
        if behaviour().get("gone") and (STATE / name).exists() and (STATE / name / "followed").exists():
            end(STATE / name)
        print(json.dumps({"items": pods(name)}))
        return 0
    assert CALLED[0] == "logs", CALLED
    pod = next(one for one in CALLED[1:] if not one.startswith("-"))
    place = STATE / pod.removesuffix("-abcde")
    (place / "followed").touch()
    breaks = behaviour().get("breaks_after")
    if breaks is not None and not (place / "broken").exists():
        while len((place / "stdout").read_bytes()) < breaks:
            time.sleep(0.005)
        (place / "broken").touch()
        sys.stdout.buffer.write((place / "stdout").read_bytes()[:breaks])
        sys.stdout.flush()
        print("error: unexpected EOF", file=sys.stderr)
        return 1
    follow([(place / "stdout", sys.stdout.buffer)], lambda: (place / "code").exists())
    return 0


sys.exit(main())
"""


@dataclass(frozen=True)
class Called:
    program: str
    arguments: list[str]
    more: dict[str, Any]

    def option(self, name: str) -> str | None:
        found = [one.partition("=")[2] for one in self.arguments if one.startswith(f"--{name}=")]
        return found[-1] if found else None


class Clients:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "bin"
        self.path.mkdir(parents=True)
        (folder / "state").mkdir()

    def add(self, *programs: str) -> None:
        for program in programs:
            body = KUBECTL if program == "kubectl" else DOCKER
            file = self.path / program
            file.write_text(f"#!{sys.executable}\n{COMMON}\n{body}", encoding="utf-8")
            file.chmod(0o755)

    def set(self, **behaviour: Any) -> None:
        (self.folder / "behaviour.json").write_text(json.dumps(behaviour))

    def calls(self, verb: str | None = None) -> list[Called]:
        file = self.folder / "calls.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        every = [json.loads(line) for line in lines]
        made = [Called(one.pop("program"), one.pop("arguments"), one) for one in every]
        return [one for one in made if verb is None or one.arguments[0] == verb]

    def running(self) -> list[str]:
        return sorted(os.listdir(self.folder / "state"))

    def pid(self, name: str) -> int:
        return int((self.folder / "state" / name / "pid").read_text())

    def end(self) -> None:
        """Nothing that was started for a test outlives it."""
        for name in self.running():
            with suppress(OSError, ValueError):
                os.killpg(self.pid(name), signal.SIGKILL)
