"""All reference pages together, and how they are put on disk."""

from __future__ import annotations

from pathlib import Path

from docs.generator.api_page import api_page
from docs.generator.command_pages import command_line_page, exit_codes_page
from docs.generator.component_pages import component_pages
from docs.generator.diagnostics_page import diagnostics_page
from docs.generator.document_pages import job_page, playbook_page, public_words_page
from docs.generator.events_page import events_page
from docs.generator.expressions_page import expressions_page
from docs.generator.keychain_page import keychain_page
from docs.generator.markdown import page
from docs.generator.python_page import python_page
from docs.generator.tool_pages import collections_page, tool_pages

TITLES = {
    "playbook.md": "Keys of a playbook",
    "other-words.md": "Words of other engines",
    "job.md": "Keys of a job and a joblet",
    "collections.md": "Collections that a loop can run over",
    "tools/index.md": "Tools and their parameters",
    "components/index.md": "Components and their parameters",
    "expressions.md": "Expressions: filters, tests, functions",
    "keychain.md": "Keychain entries",
    "command-line.md": "Command line",
    "exit-codes.md": "Exit codes",
    "api.md": "HTTP API",
    "python.md": "Python",
    "diagnostics.md": "Diagnostics",
    "events.md": "Events",
}


def reference() -> dict[str, str]:
    """Every page by its path below the reference folder."""
    return {
        "index.md": page("Reference", "\n".join(f"- [{title}]({path})" for path, title in TITLES.items())),
        "playbook.md": playbook_page(),
        "other-words.md": public_words_page(),
        "job.md": job_page(),
        "collections.md": collections_page(),
        **tool_pages(),
        **component_pages(),
        "expressions.md": expressions_page(),
        "keychain.md": keychain_page(),
        "command-line.md": command_line_page(),
        "exit-codes.md": exit_codes_page(),
        "api.md": api_page(),
        "python.md": python_page(),
        "diagnostics.md": diagnostics_page(),
        "events.md": events_page(),
    }


def write(pages: dict[str, str], folder: Path) -> int:
    """Make the folder hold these pages and no others. Returns how many files changed."""
    changed = 0
    for path, text in pages.items():
        target = folder / path
        if target.is_file() and target.read_text(encoding="utf-8") == text:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        changed += 1
    for path in stray(pages, folder):
        (folder / path).unlink()
        changed += 1
    return changed


def stray(pages: dict[str, str], folder: Path) -> list[str]:
    """Pages on disk that the generator does not produce."""
    present = (str(path.relative_to(folder)) for path in folder.rglob("*.md"))
    return sorted(path for path in present if path not in pages)
