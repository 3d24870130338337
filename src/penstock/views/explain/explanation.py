"""What an explanation is made of, and what it is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from penstock.kernel.net import Net, Node
from penstock.kernel.values import JsonMap
from penstock.ports.log import Entry
from penstock.ports.results import Load
from penstock.views.explain.book import Book
from penstock.views.explain.chain import chain
from penstock.views.explain.target import Target
from penstock.views.explain.values import Saw
from penstock.views.history import History, StepRun
from penstock.views.steps import standing


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
        """Nothing is said about nothing."""
        if lines:
            self.sections.append(Section(title, lines))

    def as_json(self) -> JsonMap:
        return {
            "node": self.node,
            "status": self.status,
            "headline": self.headline,
            "because": [{"title": section.title, "lines": list(section.lines)} for section in self.sections],
        }


@dataclass(frozen=True, slots=True)
class Log:
    """The log, read as often as needed, and what lies behind references. `is_live`: somebody works on the run now."""

    entries: Callable[[], Iterable[Entry]]
    load: Load
    is_live: bool


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question about one step run, with all that is needed to answer it."""

    target: Target
    run: StepRun
    seen: History
    book: Book
    saw: Saw
    log: Log

    @property
    def net(self) -> Net | None:
        return self.book.net(self.target.execution)

    @property
    def node(self) -> Node | None:
        return self.net.nodes.get(self.run.step) if self.net is not None else None

    @property
    def is_open(self) -> bool:
        return self.log.is_live and self.run.ended_at is None

    @property
    def status(self) -> str:
        return standing(self.run.status, self.log.is_live)

    def where(self, task: str | None = None) -> str:
        place = self.book.where(self.target.execution, self.target.step, task=task)
        return f"  ({place})" if place else ""

    def chain(self) -> list[str]:
        links = chain(self.run, self.seen, self.book, self.saw)
        return [f"{link.text}{f'  ({link.where})' if link.where else ''}" for link in links]
