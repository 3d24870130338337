"""`engine`: what runs the rows of the job, or of the sub-job that a component lies in.

Texts in it may be templates over the context, which are rendered when the run starts; before that, with the context as far as
it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.dialects.connections import CONNECTIONS
from penstock.dialects.job.context import Context
from penstock.dialects.job.drafts import JobDraft
from penstock.dialects.job.expand import Expanded
from penstock.dialects.job.reader import Reading
from penstock.dialects.source.node import SourceNode
from penstock.kernel.errors import Refused
from penstock.kernel.values import JsonMap
from penstock.ports.components import UNKNOWN
from penstock.ports.rows import EngineChoice


class SubjobEngines:
    """The engine of each component: what one in its sub-job says, else what holds where the sub-job is opened, else the job's."""

    def __init__(self, reading: Reading, draft: JobDraft, expanded: Expanded, context: Context) -> None:
        self._reading = reading
        self._draft = draft
        self._expanded = expanded
        self._context = context
        self.words: dict[str, JsonMap] = {}
        """Component -> the words of its engine, where they are not the job's."""
        self._choices: dict[str, EngineChoice | None] = {}
        asked = draft.config.engine
        self._whole = self._chosen(asked.as_json(), asked.node or SourceNode("scalar", draft.position))
        for scope in expanded.scopes.values():
            for subjob in scope.subjobs:
                self._subjob(scope.key, subjob.members)

    def of(self, component: str) -> EngineChoice | None:
        """None where only the run will tell."""
        return self._choices.get(component, self._whole)

    def _subjob(self, opener: str, members: list[str]) -> None:
        asking = [
            (name, draft)
            for name in members
            if (draft := self._expanded.units[name].member.draft).engine and draft.calls is None
        ]
        if not asking:
            self._as_opened(opener, members)
            return
        (first, draft), *others = asking
        for name, other in others:
            if other.engine != draft.engine:
                message = f"`{first}` and `{name}` lie in one sub-job and ask for different engines"
                hint = (
                    "one sub-job runs on one engine; rows go to another through a joblet, or in a sub-job that follows"
                )
                assert other.engine_node is not None
                self._reading.report("BAD_ENGINE", message, other.engine_node.position, hint=hint)
        assert draft.engine_node is not None
        self._put(members, draft.engine, self._chosen(self._with_limits(draft.engine), draft.engine_node))

    def _as_opened(self, opener: str, members: list[str]) -> None:
        """What is inside a call runs on the engine that the call asks for; else on that of the sub-job it is opened in."""
        unit = self._expanded.units.get(opener)
        draft = None if unit is None else unit.member.draft
        if draft is not None and draft.calls is not None and draft.engine and draft.engine_node is not None:
            self._put(members, draft.engine, self._chosen(self._with_limits(draft.engine), draft.engine_node))
        elif opener in self.words:
            self._put(members, self.words[opener], self._choices[opener])

    def _put(self, members: list[str], words: JsonMap, choice: EngineChoice | None) -> None:
        for name in members:
            self.words[name], self._choices[name] = words, choice

    def _with_limits(self, words: JsonMap) -> JsonMap:
        return {**self._draft.config.engine.limits(), **words}

    def _chosen(self, words: JsonMap, node: SourceNode) -> EngineChoice | None:
        rendered = {
            # What a connection is made of, only the run may know; which one it is, the document says.
            name: value if name == CONNECTIONS else _rendered(value, self._context.text)
            for name, value in words.items()
        }
        if _is_open({name: value for name, value in rendered.items() if name != CONNECTIONS}):
            return None
        try:
            return EngineChoice.of(rendered)
        except Refused as refused:
            self._reading.report("BAD_ENGINE", refused.message, node.position, hint=refused.hint or "")
            return None


def _rendered(value: Any, text: Callable[[str], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _rendered(inner, text) for key, inner in value.items()}
    return text(value) if isinstance(value, str) else value


def _is_open(value: Any) -> bool:
    return value is UNKNOWN or (isinstance(value, Mapping) and any(map(_is_open, value.values())))
