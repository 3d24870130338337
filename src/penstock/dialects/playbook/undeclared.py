"""Names in `auth` that `keychain` does not declare: each is declared by its use, so that it is looked up before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.playbook.drafts import PlaybookDraft, TaskDraft
from penstock.dialects.playbook.reading import Reading, did_you_mean, is_template
from penstock.dialects.source import SourceNode

# What the name stands for, where the tool says so; elsewhere it is whatever is kept under it.
_KINDS = {"postgres": "postgres_credential", "mysql": "mysql_credential"}
_SIDES = ("source", "target", "from", "to")


def declare_auth(reading: Reading, draft: PlaybookDraft, tasks: list[TaskDraft]) -> None:
    known = {str(entry.get("name")) for entry in draft.keychain}
    for task in tasks:
        for kind, node in _names(task):
            name = node.text()
            if not name or is_template(node) or name in known:
                continue
            message = f"`auth` names `{name}`, which `keychain` does not declare"
            hint = "it is looked up in the keychain store (`penstock keychain`), then in the environment; declare it to be sure"
            reading.findings.warning("P0708", message, node.place, label=did_you_mean(name, known), hint=hint)
            draft.keychain.append({"name": name, "kind": _KINDS.get(kind, "secret_manager")})
            known.add(name)


def _names(task: TaskDraft) -> Iterator[tuple[str, SourceNode]]:
    """The tool that would use it, and the text that names it."""
    auth = task.params.get("auth")
    if auth is not None:
        yield task.kind, auth.node
    for side in _SIDES:
        param = task.params.get(side)
        inner = param.node.get("auth") if param is not None else None
        kind = param.node.get("kind") if param is not None else None
        if inner is not None:
            yield str(kind.value) if kind is not None else "", inner
