"""What is known of parameters before the run: literals, and templates that read nothing but the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.dialects.source.loader import SourceNode
from penstock.expr.budget import MAX_STEPS, Frame
from penstock.expr.errors import ExpressionError
from penstock.expr.lexer import is_template
from penstock.expr.scope import Names
from penstock.expr.template import render_within, roots
from penstock.kernel.values import JsonMap, merge_deeply
from penstock.ports.components import UNKNOWN
from penstock.ports.results import materialised

PLAN_STEPS: Final = 4 * MAX_STEPS
"""So much may be evaluated of a document before the run, all its templates together; the rest is left to the run."""


class Context:
    """The context as far as it is known, and what can be rendered with it."""

    def __init__(self, values: JsonMap) -> None:
        self._scope = Names({**values, "context": values})
        self._steps = PLAN_STEPS

    def value(self, node: SourceNode) -> Any:
        """The value with its templates filled in; `UNKNOWN` for each that depends on the run."""
        if node.kind == "mapping":
            return {key: self.value(inner) for key, inner in node.entries.items()}
        if node.kind == "sequence":
            return [self.value(item) for item in node.items]
        text = node.value
        if not isinstance(text, str) or not is_template(text):
            return text
        return self.text(text)

    def text(self, text: str) -> Any:
        frame = Frame(self._scope)
        frame.steps = allowed = min(self._steps, MAX_STEPS)
        try:
            if not roots(text) <= self._scope.keys():
                return UNKNOWN
            return materialised(render_within(text, frame))
        except ExpressionError:
            return UNKNOWN
        finally:
            self._steps -= allowed - max(frame.steps, 0)


def effective(defaults: JsonMap, given: Mapping[str, Any] | None) -> JsonMap:
    """As the run will have it: mappings merge, everything else is replaced."""
    return merge_deeply(defaults, given or {})
