"""The readers of both languages, with the words and the codes of playbooks."""

from __future__ import annotations

from penstock.dialects.playbook.refused import SYNONYMS, refusal
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.problems import Findings, Position
from penstock.dialects.reader import NAME_HINT, Language, Reader, listed, template_keys_in
from penstock.dialects.source.node import SourceNode
from penstock.dialects.words import Strictness
from penstock.kernel.errors import PenstockError
from penstock.kernel.values import Condition
from penstock.ports.plugins import ToolCatalog, ToolDescription

# Names that every expression already has a meaning for.
TAKEN_NAMES = frozenset(
    ("args", "ctx", "event", "execution", "execution_id", "fanin", "iter", "keychain", "outcome", "output", "workload")
)

_LANGUAGE = Language(
    SCOPES,
    SYNONYMS,
    roots=frozenset(("root",)),
    unknown_section="P0002",
    unknown_word="P0102",
    missing_word="P0105",
    wrong_shape="P0101",
    not_a_choice="P0106",
    out_of_bounds="P0107",
    unrendered="P0109",
)


class Reading(Reader[ToolDescription]):
    language = _LANGUAGE

    def __init__(self, findings: Findings, catalog: ToolCatalog) -> None:
        super().__init__(findings, catalog)
        self.catalog = catalog
        self.state: frozenset[str] | None = None
        """What the document keeps between runs; None when it declares nothing."""

    def unknown_word(self, node: SourceNode, key: str, scope_name: str) -> None:
        """Words of other days are refused with what replaces them; in an open scope a near miss is still worth a warning."""
        scope = SCOPES[scope_name]
        position = node.keys[key]
        refused = refusal(scope_name, key, node)
        if refused is not None:
            self.findings.error(
                refused.code, refused.message, position, label=refused.label, hint=refused.hint, rewrite=refused.rewrite
            )
        elif scope.strictness is Strictness.CLOSED:
            super().unknown_word(node, key, scope_name)
        elif meant := self.meant_word(key, scope_name):
            message = f"`{key}` looks like a misspelt word of {scope.title}"
            self.findings.warning("P0103", message, position, label=f"did you mean `{meant}`?")
        elif scope.strictness is Strictness.HINTS:
            hint = f"{scope.title} takes {listed(scope.words)}"
            self.findings.warning("P0104", f"`{key}` means nothing in {scope.title}", position, hint=hint)

    def name(self, node: SourceNode, what: str) -> str | None:
        text = super().name(node, what)
        if text in TAKEN_NAMES:
            self.findings.warning(
                "P0303", f"{what} is `{text}`, which expressions already have a meaning for", node.position,
                hint=f"`{{{{ {text} }}}}` will never read its result; choose another name",
            )  # fmt: skip
        return text

    def bad_name(self, text: str, what: str, position: Position, hint: str = NAME_HINT) -> None:
        self.findings.error("P0301", f"`{text}` cannot be {what}", position, hint=hint)

    def condition(self, node: SourceNode | None, what: str) -> Condition | None:
        """A condition is text; the two constants may also be written as YAML booleans."""
        if node is None:
            return None
        if isinstance(node.value, bool):
            return "{{ true }}" if node.value else "{{ false }}"
        return self.text(node, what)

    def refuse_template_keys(self, node: SourceNode) -> None:
        for key, position in template_keys_in(node):
            hint = 'write it out, or give the whole mapping as one template: `"{{ {name: value} }}"`'
            self.findings.error(
                "P0110", f"the key `{key}` is a template, and keys are not rendered", position, hint=hint
            )

    def cannot_load(self, name: str, error: PenstockError, position: Position) -> None:
        message = f"the tool `{name}` cannot be loaded: {error.message}"
        self.findings.error("P0514", message, position, hint=error.hint or "")
