"""The scopes of a document as sections of a page: every key with its type, its default and what it is."""

from __future__ import annotations

from collections.abc import Mapping

from docs.generator.markdown import table
from docs.generator.schemas import default_of, kind_of
from penstock.dialects.word import Scope, Strictness

_FURTHER = {
    Strictness.CLOSED: "Any other key is an error.",
    Strictness.HINTS: "Any other key does nothing, and is warned about.",
    Strictness.OPEN: "Further keys are allowed.",
}
_FURTHER_SAID = "urther key"


def section(name: str, scope: Scope, titles: Mapping[str, str]) -> list[str]:
    rows = [
        (f"`{key}`", kind_of(word.schema, titles), "yes" if word.required else "", default_of(word.schema), word.about)
        for key, word in scope.words.items()
    ]
    one_of = " or ".join(f"`{key}`" for key in scope.need_one_of)
    about = [scope.about]
    if one_of:
        about.append(f"It needs {one_of}.")
    if _FURTHER_SAID not in scope.about:
        about.append(_FURTHER[scope.strictness])
    return [
        f'<a id="{name}"></a>\n\n## {scope.title}',
        " ".join(about),
        table(("key", "type", "required", "default", "what it is"), rows),
    ]
