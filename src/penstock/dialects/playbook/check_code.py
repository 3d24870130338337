"""Code inside a task, before it runs: Python that cannot be compiled, and shell commands with templates that are not quoted."""

from __future__ import annotations

import warnings

from penstock.dialects.expressions import QUOTE_HINT, UNQUOTED, unquoted
from penstock.dialects.playbook.drafts import TaskDraft
from penstock.dialects.playbook.reading import Reading, is_template
from penstock.dialects.source import SourceNode, place_in_text
from penstock.tools.python_code import syntax_hint


def check_code(reading: Reading, task: TaskDraft, source: str) -> None:
    """`source` is the text of the document."""
    if task.kind == "python" and (code := task.params.get("code")) is not None:
        _check_python(reading, code.node, source)
    if task.kind == "shell" and (command := task.params.get("command")) is not None:
        _check_shell(reading, command.node, source)


def _check_python(reading: Reading, node: SourceNode, source: str) -> None:
    text = node.text()
    if text is None or is_template(node):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: (error.lineno or 1) - 1])) + max((error.offset or 1) - 1, 0)
        at = min(at, len(text.rstrip()))
        place = place_in_text(node, at, at + 1, source)
        message = f"this Python cannot be compiled: {error.msg}"
        reading.findings.error("P0618", message, place, hint=syntax_hint(error.msg))
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        message = f"this Python cannot be compiled: {str(error) or 'it is too complex'}"
        reading.findings.error("P0618", message, node.place)


def _check_shell(reading: Reading, node: SourceNode, source: str) -> None:
    text = node.text()
    if text is None or not is_template(node):
        return
    for start, end in unquoted(text):
        reading.findings.warning("P0619", UNQUOTED, place_in_text(node, start, end, source), hint=QUOTE_HINT)
