"""Places and the logical clock.

Every scope of an execution has a place: an id that says where it is and a clock prefix that says when, both derived from the
document and never from the order in which things happened to run (D21, D22).

    fetch@2                 the run of step `fetch` at hop 2
    fetch@2[5]              its iteration 5
    fetch@2[5]/save#1       the first run of task `save` in that iteration
    fetch@2/call#1/start@0  step `start` of the playbook that task `call` runs

    load                    component `load` of a job
    each[#3].load           the same in iteration 3 of iterator `each`
    call.__load             component `load` of the joblet that `call` calls
    <load>                  the sub-job `load`

A run's path counts hops; a fork adds one more pair of numbers for all branches except the last, which continues the count. So a
straight chain of any length has one number, a run always sorts after the runs that led to it, and no two runs share a path.
"""

from __future__ import annotations

from typing import TypeAlias

from penstock.kernel.values import frozen

Path: TypeAlias = "tuple[int, ...]"

# Frames alternate between a run's path and counters. Clocks of one execution compare as tuples.
LogicalClock: TypeAlias = "tuple[Path | int, ...]"


@frozen
class Place:
    id: str
    clock: LogicalClock


ROOT = Place("", ())
ENTRY_PATH: Path = (0,)


def run_place(execution: Place, step: str, path: Path) -> Place:
    return Place(f"{execution.id}{step}@{'.'.join(map(str, path))}", (*execution.clock, path))


def iteration_place(run: Place, opened_at: int, index: int) -> Place:
    return Place(f"{run.id}[{index}]", (*run.clock, opened_at, index))


def child_place(task_run_id: str, started: LogicalClock) -> Place:
    """The place of an execution that a task runs: all its clocks lie between that task's start and its end."""
    return Place(f"{task_run_id}/", started)


def next_paths(path: Path, fired: int) -> list[Path]:
    """The paths of the tokens that a run at `path` sends, in the order of the arcs that fired."""
    following = (*path[:-1], path[-1] + 1)
    return [(*path, branch, 0) for branch in range(fired - 1)] + [following] * min(fired, 1)


def event_name(scope: str, counter: int) -> str:
    """The name of an event within its execution, as `cause` refers to it."""
    return f"{scope}:{counter}"
