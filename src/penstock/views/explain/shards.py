"""What became of one element of a fanned-out loop: in which ranges it was handed out, to whom, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel.errors import Refused
from penstock.kernel.values import Json
from penstock.ports.collections import elements as elements_of
from penstock.ports.log import Entry
from penstock.ports.results import decode
from penstock.views.explain.explanation import Explanation, Inquiry
from penstock.views.explain.work import fan_line
from penstock.views.fanouts import FanoutSeen, is_late
from penstock.views.wording import counted, elements, error_line

_SAID = {
    "done": "is done",
    "failed": "failed",
    "waiting": "waits for a worker",
    "running": "is being worked on",
    "reported": "was run, and waits for the fan-in to compare what it wrote to ctx",
    "interrupted": "was handed out when the run stopped",
}


@dataclass(slots=True)
class _Range:
    number: int
    lo: int
    hi: int | None
    attempt: int
    worker: str | None = None

    def has(self, index: int) -> bool:
        return self.hi is not None and self.lo <= index < self.hi

    def shown(self) -> str:
        return f"range {self.number} ({elements(self.lo, self.hi)})"


@dataclass(slots=True)
class _Element:
    """The story of one element, as far as it is known."""

    index: int
    lines: list[str] = field(default_factory=list)
    status: str | None = None
    error: Json = None
    key: str | None = None
    item: Json = None
    ranges: dict[int, _Range] = field(default_factory=dict)

    def add(self, entry: Entry, data: Any) -> None:
        match entry.type:
            case "loop.fanout.started":
                self.ranges.clear()
                self.item = _item(data["collection"], self.index)
            case "loop.shard.enqueued":
                self._enqueued(_Range(data["range"], data["lo"], data["hi"], data["attempt"]))
            case "loop.shard.started":
                self._started(self.ranges[data["range"]], data, entry.worker)
            case "loop.shard.reported":
                self._reported(self.ranges[data["range"]], data, entry.worker)
            case "loop.shard.done" if data.get("at_fanin"):
                if data["lo"] <= self.index < data["hi"] and self.status == "reported":
                    self.status = "done"
                    self.lines.append("what it wrote to ctx could stand, when all elements had come in")
            case "loop.shard.done":
                self._done(self.ranges[data["range"]], data, entry.worker)
            case "loop.shard.failed":
                self._failed(data)
            case "loop.shard.returned":
                self._returned(self.ranges.pop(data["range"], None), data)

    def _enqueued(self, held: _Range) -> None:
        if held.number in self.ranges:  # Told once for each of its elements.
            return
        self.ranges[held.number] = held
        if held.has(self.index):
            again = f", for the {_nth(held.attempt + 1)} time" if held.attempt else ""
            self.lines.append(f"it was handed out in {held.shown()}{again}")
            self.status = "waiting"

    def _started(self, held: _Range, data: Any, worker: str | None) -> None:
        if held.worker is not None and held.hi is not None:
            return
        held.worker = worker
        is_new = held.hi is None
        if data["hi"] is not None:
            held.hi = data["hi"]
        if held.has(self.index):
            read = f"it was read on the page of {held.shown()}, by worker `{worker}`"
            self.lines.append(read if is_new else f"worker `{worker}` took that range")
            self.status = "running"

    def _done(self, held: _Range, data: Any, worker: str | None) -> None:
        if data["lo"] <= self.index < data["hi"] and self.status not in ("failed", "again"):
            self.status = "done"
            self.lines.append(f"it was done in {held.shown()}, on worker `{worker}`")
        if data["hi"] >= (held.hi or 0):
            self.ranges.pop(held.number, None)

    def _reported(self, held: _Range, data: Any, worker: str | None) -> None:
        is_open = self.index not in data["failed"]
        if is_open and data["lo"] <= self.index < data["hi"]:
            self.status = "reported"
            self.lines.append(f"it was run in {held.shown()}, on worker `{worker}`")
        if data["hi"] >= (held.hi or 0):
            self.ranges.pop(held.number, None)

    def _failed(self, data: Any) -> None:
        if data["iter_index"] != self.index:
            return
        self.key = data["iter_key"]
        if is_late(data):
            self.lines.append("what it wrote to ctx could not stand beside what an earlier element wrote")
        elif data["again"]:
            self.lines.append(f"it failed, and is tried again: {error_line(data['error'])}")
            self.status = "again"
            return
        else:
            tries = counted(data["attempt"] + 1, "try", "tries")
            self.lines.append(f"it failed for good, after {tries}")
        self.status, self.error = "failed", data["error"]

    def _returned(self, held: _Range | None, data: Any) -> None:
        if held is None or not (data["hi"] is not None and data["lo"] <= self.index < data["hi"]):
            return
        worker = data["worker"] or held.worker
        whose = f" `{worker}`" if worker else ""
        said = {
            "lost": f"worker{whose} was lost, and with it what it had done of {held.shown()} since it last told",
            "returned": f"worker{whose} gave back what was left of {held.shown()}",
            "stale": f"nobody took {held.shown()} in time",
            "stopped": f"{held.shown()} was called back before it came to this element",
        }
        self.lines.append(said[data["reason"]])
        self.status = "waiting" if data["reason"] != "stopped" else None


def explain_shard(ask: Inquiry, fanout: FanoutSeen, index: int) -> Explanation:
    run = ask.run
    if fanout.total is not None and index >= fanout.total:
        raise Refused(f"`{run.id}` has {counted(fanout.total, 'element')}, numbered from 0")
    story = _Element(index)
    for entry, data in _of_loop(ask):
        story.add(entry, data)
    shard = f"{fanout.loop_id}[{index}]"
    status = story.status
    if status in ("waiting", "running", "again") and not ask.is_open:
        status = "interrupted" if run.ended_at is None else None
    if status is None:
        return _untried(ask, fanout, shard, story)
    said = _SAID.get(status, "waits for another try")
    answer = Explanation(shard, "running" if status == "again" else status, f"element `{shard}` {said}{ask.where()}")
    answer.add("why it ran", [*ask.chain(), f"`{run.id}` fans out a loop over {_size(fanout)}"])
    element = fan_line(ask.node, story.item)
    key = f"its key: {story.key}" if story.key is not None and story.key != str(index) else ""
    answer.add("what it worked on", [line for line in (element, key) if line])
    answer.add("what became of it", story.lines)
    answer.add("why it failed", [error_line(story.error)] if story.error is not None else [])
    return answer


def _untried(ask: Inquiry, fanout: FanoutSeen, shard: str, story: _Element) -> Explanation:
    answer = Explanation(shard, "not started", f"element `{shard}` was never tried{ask.where()}")
    answer.add("what became of it", story.lines)
    why = []
    if fanout.failures and ask.run.ended_at is not None:
        first = fanout.failures[0]
        why = [
            f"element [{first.index}] failed and the loop is fail_fast, so no more were tried",
            error_line(first.error),
        ]
    elif ask.is_open:
        why = [f"elements have been handed out up to [{fanout.next - 1}]" if fanout.next else "none was handed out yet"]
    elif ask.run.error is not None:
        why = [error_line(ask.run.error)]
    answer.add("why not", why or ["the run stopped before the loop came to it"])
    return answer


def _size(fanout: FanoutSeen) -> str:
    return counted(fanout.total, "element") if fanout.total is not None else "elements that nobody has counted yet"


def _of_loop(ask: Inquiry) -> Iterator[tuple[Entry, Any]]:
    """The events of the loop, in all the runs that a resume gave it."""
    scopes, run = {ask.run.id}, ask.run
    while run.continues is not None and run.continues in ask.seen.runs:
        run = ask.seen.runs[run.continues]
        scopes.add(run.id)
    for entry in ask.log.entries():
        if not entry.type.startswith(("loop.shard.", "loop.fanout.")):
            continue
        if entry.scope in scopes or entry.scope[: max(0, entry.scope.rfind("["))] in scopes:
            yield entry, decode(entry.payload)


def _item(collection: Any, index: int) -> Json:
    """The element itself, where the log has it and it is no reference."""
    if collection["kind"] == "range" or isinstance(collection.get("items"), list):
        items = elements_of(collection, _unread)
        found: Json = items[index] if index < len(items) else None
        return found
    return None


def _unread(ref: object) -> Json:
    raise AssertionError("what lies behind a reference is not read for this")


def _nth(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
