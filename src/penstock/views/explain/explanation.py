"""What an explanation is made of, and what it is made from: a view of the run, its documents, and its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.views.explain.wiring import Wiring
from penstock.views.model import Execution, Run
from penstock.views.run_view import RunView

Saw = dict[tuple[str, str, int], list[tuple[str, str]]]
"""(step run id, `arc` or `admit`, index) -> the variables of that condition and their values, shown."""


class Sentence(str):
    """A line of an explanation that says where it comes from: the event that says so, and what of the document it is about."""

    seq: int | None = None
    execution: str = ""
    """The scope of the execution that `node` belongs to."""
    node: str | None = None
    arc: int | None = None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    lines: list[str]


@dataclass(slots=True)
class Explanation:
    node: str
    status: str
    headline: str
    sections: list[Section] = field(default_factory=list)

    def add(self, title: str, lines: list[str]) -> None:
        """Empty sections are left out."""
        if lines:
            self.sections.append(Section(title, lines))

    def as_json(self) -> JsonMap:
        return {
            "node": self.node,
            "status": self.status,
            "headline": str(self.headline),
            "because": [{"title": one.title, "lines": [str(line) for line in one.lines]} for one in self.sections],
        }


@dataclass(frozen=True, slots=True)
class Log:
    """The log, read as often as needed, and the loader of stored results. `is_live`: a process works on the run now."""

    entries: Callable[[], Iterable[Entry]]
    load: Load
    is_live: bool
    whole: Callable[[], RunView] | None = None
    """The view with every step run, where there is a shorter way to it than all entries."""

    part: Callable[[int, int | None], Iterable[Entry]] | None = None
    """`part(after, upto)`: some of the entries, where they can be read without those before."""
    before: Callable[[int], RunView] | None = None
    """The view right after an entry, of a log that is too long to be folded for one answer: what was let go stays so."""

    def between(self, after: int, upto: int | None) -> Iterable[Entry]:
        """The entries behind `after` up to and with `upto`, or to the end."""
        if self.part is not None:
            return self.part(after, upto)
        return (one for one in self.entries() if one.seq > after and (upto is None or one.seq <= upto))

    def view(self) -> RunView:
        return self.whole() if self.whole is not None else RunView.of(self.entries(), whole=True)


class Book(Protocol):
    """The documents behind a log, as far as an explanation needs them."""

    def net(self, execution: Execution) -> Net | None:
        """The graph an execution runs; None when its document can no longer be read."""
        ...

    def where(self, execution: Execution, step: str, arc: int | None = None, task: str | None = None) -> str:
        """`file:line` of a step, of one of its arcs or of one of its tasks; empty when that is not known."""
        ...


@dataclass
class Inquiry:
    """A question about something in one execution, with all that is needed to answer it."""

    view: RunView
    execution: Execution
    book: Book
    log: Log
    saw: Saw = field(default_factory=dict)

    @cached_property
    def net(self) -> Net | None:
        return self.book.net(self.execution)

    @cached_property
    def wiring(self) -> Wiring:
        """Of a job: its links, and what became of them."""
        return Wiring(self.execution, self.net, is_live=self.log.is_live)

    def about(self, execution: Execution) -> Inquiry:
        """The same about an execution inside or around this one."""
        if execution is self.execution:
            return self
        return Inquiry(self.view, execution, self.book, self.log, self.saw)

    def say(
        self, text: str, seq: int | None, node: str | None, *, arc: int | None = None, task: str | None = None
    ) -> str:
        """`text` as a sentence about a node of this execution; `seq` is the event that says so."""
        said = Sentence(text)
        said.seq, said.execution, said.node, said.arc, said.task = seq or None, self.execution.scope, node, arc, task
        return said

    def of(self, run: Run, text: str) -> str:
        """About a run, as its latest event says."""
        return self.say(text, run.end_seq or run.scheduled_seq or run.created_seq, run.node)

    def position(self, node: str, arc: int | None = None, task: str | None = None) -> str:
        """`  (file:line)`, or nothing."""
        found = self.book.where(self.execution, node, arc, task)
        return f"  ({found})" if found else ""
