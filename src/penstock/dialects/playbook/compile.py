"""Compilation: read, expand, check, lower. All problems of the file are reported at once; a net results only without errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.dialects.calls import DocumentCall
from penstock.dialects.playbook.checks.flow import Flow, check_flow, check_pipeline, check_targets
from penstock.dialects.playbook.checks.names import check_names
from penstock.dialects.playbook.checks.tasks import Folders, Literals, check_tool, check_uncalled
from penstock.dialects.playbook.document import read_document
from penstock.dialects.playbook.drafts import PlaybookDraft
from penstock.dialects.playbook.loops import check_fanout
from penstock.dialects.playbook.lower import Pipelines, entry_of, lowered, source_map
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.sugar import expand
from penstock.dialects.playbook.workbook import Workbook, inlined, report_uncalled
from penstock.dialects.playbook.writes import check_shared
from penstock.dialects.problems import Findings, Problem
from penstock.dialects.reader import did_you_mean
from penstock.dialects.secrets import warn_literals
from penstock.dialects.source.loader import Loaded, load_file, load_text
from penstock.dialects.source.positions import SourceMap
from penstock.kernel.net import Net
from penstock.ports.plugins import ToolCatalog


@dataclass(frozen=True, slots=True)
class Compiled:
    net: Net | None
    """None when there are errors."""
    problems: tuple[Problem, ...]
    positions: SourceMap = field(default_factory=SourceMap)
    text: str = ""
    file: str = ""
    calls: tuple[DocumentCall, ...] = ()
    """The documents that it calls by paths that are written out."""


def compile_text(
    text: str, file: str, catalog: ToolCatalog, *, strict: bool = False, folder: Path | None = None
) -> Compiled:
    """`strict` turns every warning into an error. `file` is only a name: nothing is looked for beside it. With a `folder`, the
    files that the document names are looked for there."""
    return _compiled(load_text(text, file), catalog, None if folder is None else Folders(folder), strict)


def compile_file(
    path: Path, catalog: ToolCatalog, *, strict: bool = False, looks: bool = True, caller: Path | None = None
) -> Compiled:
    """`looks`: the document runs here, so that the files it names are looked for. `caller`: the working folder of whoever
    runs it."""
    return _compiled(load_file(path), catalog, Folders(path.parent, caller) if looks else None, strict)


def _compiled(loaded: Loaded, catalog: ToolCatalog, folders: Folders | None, strict: bool) -> Compiled:
    findings = Findings(loaded.problems)
    net: Net | None = None
    positions = SourceMap(loaded.file)
    literals: Literals | None = None
    if loaded.root is not None:
        warn_literals(findings, loaded.root)
        net, positions, literals = _read(loaded, Reading(findings, catalog), folders)
    if strict:
        findings = findings.strict()
    problems = tuple(_with_path(problem, loaded) for problem in findings)
    return Compiled(
        None if findings.has_errors else net,
        problems,
        positions,
        loaded.text,
        loaded.file,
        () if literals is None else tuple(literals.calls),
    )


def _with_path(problem: Problem, loaded: Loaded) -> Problem:
    return problem if problem.path else replace(problem, path=loaded.path_at(problem.position))


def _read(
    loaded: Loaded, reading: Reading, folders: Folders | None
) -> tuple[Net | None, SourceMap, Literals | None]:
    assert loaded.root is not None
    read = read_document(reading, loaded.root, loaded.file)
    if read is None:
        return None, SourceMap(loaded.file), None
    draft, book = read
    literals: Literals | None = None
    pipelines = _expanded(reading, draft, book)
    uncalled = [task for name, task in book.tasks.items() if name not in book.called]
    check_uncalled(reading, uncalled, loaded.text)
    check_names(reading, draft, pipelines, loaded.text, uncalled)
    if draft.steps:
        flow = _check_steps(reading, draft, pipelines)
        literals = Literals(reading, draft, pipelines, flow, folders, loaded.text).check()
    positions = source_map(draft, pipelines, loaded.file)
    if reading.findings.has_errors:
        return None, positions, literals
    return lowered(draft, pipelines, entry_of(draft), reading.describe), positions, literals


def _expanded(reading: Reading, draft: PlaybookDraft, book: Workbook) -> Pipelines:
    pipelines: Pipelines = {}
    for step in draft.steps:
        pipelines[step.name] = expand(reading, step.tasks, lambda call: inlined(reading, book, call))
    report_uncalled(reading, book)
    return pipelines


def _check_steps(reading: Reading, draft: PlaybookDraft, pipelines: Pipelines) -> Flow:
    entry = draft.executor.entry
    names = [step.name for step in draft.steps]
    if entry is not None and entry[0] not in names:
        reading.findings.error(
            "P0305", f"there is no step `{entry[0]}` to begin with", entry[1], label=did_you_mean(entry[0], names)
        )
    check_targets(reading, draft.steps)
    flow = Flow(draft.steps, entry_of(draft))
    check_flow(reading, flow)
    for step in draft.steps:
        tasks = pipelines[step.name]
        check_pipeline(reading, step, tasks)
        check_shared(reading, step, tasks, draft.executor)
        check_fanout(reading, step, tasks, draft.executor)
        for task in tasks:
            check_tool(reading, task)
    return flow
