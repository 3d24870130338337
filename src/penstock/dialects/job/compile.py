"""Compilation: read, build, expand, check, lower. All problems are reported at once; a net results only without errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.dialects.calls import DocumentCall
from penstock.dialects.job.checks.lint import lint
from penstock.dialects.job.checks.literals import Found, Literals
from penstock.dialects.job.checks.names import Names
from penstock.dialects.job.checks.params import check_keys, check_params
from penstock.dialects.job.context import Context, Folders, effective, find_bases, written_files
from penstock.dialects.job.document import read_document
from penstock.dialects.job.drafts import JobDraft
from penstock.dialects.job.engines import SubjobEngines
from penstock.dialects.job.expand import Expanded, expand
from penstock.dialects.job.infer import Columns, Origin, infer
from penstock.dialects.job.joblets import Joblets, Read, Whole
from penstock.dialects.job.lower import lowered, source_map
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.transactions import share_transactions
from penstock.dialects.problems import Findings, Position, Problem
from penstock.dialects.secrets import warn_literals
from penstock.dialects.source.loader import Loaded, load_file, load_text
from penstock.dialects.source.node import lines_of
from penstock.dialects.source.positions import SourceMap
from penstock.kernel.kept import STATE
from penstock.kernel.net import Net
from penstock.kernel.values import JsonMap
from penstock.ports.components import ComponentCatalog
from penstock.ports.folders import Base, whole_folder
from penstock.ports.rows import Schema


@dataclass(frozen=True, slots=True)
class CompiledJob:
    net: Net | None
    """None when there are errors."""
    problems: tuple[Problem, ...]
    positions: SourceMap = field(default_factory=SourceMap)
    text: str = ""
    file: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    """Whole path of a joblet -> its text: a run is pinned to these, and a resume reads them again through `read`."""
    texts: dict[str, str] = field(default_factory=dict)
    """File as problems name it -> its text, the job's own included."""
    schemas: dict[tuple[str, str], Schema | None] = field(default_factory=dict)
    """(component, output port) -> its columns, None where they cannot be known before the run."""
    lineage: dict[tuple[str, str], dict[str, tuple[Origin, ...]]] = field(default_factory=dict)
    """(component, output port) -> column -> the (component, output port, column) it is made of, one component back."""
    is_joblet: bool = False
    """The document is a joblet: it can be looked at, not run."""
    bases: dict[str, Base] = field(default_factory=dict)
    """Component -> where its relative paths begin, when that is not the folder of `file`."""
    gives_out: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    """Joblet call -> its output -> the (component, output port) inside it, including unread outputs."""
    calls: tuple[DocumentCall, ...] = ()
    """The documents that it calls by literal paths."""


def compile_text(
    text: str,
    file: str,
    catalog: ComponentCatalog,
    *,
    strict: bool = False,
    read: Read | None = None,
    whole: Whole = whole_folder,
    context: Mapping[str, Any] | None = None,
) -> CompiledJob:
    """`strict` turns every warning into an error. `read` gives the text of joblets by their whole path; without it they are read
    from disk. `whole` makes that path, and looks at the disk unless it is `normpath`. `context` is laid over the defaults of the
    document wherever a parameter is looked at before the run."""
    return _compiled(load_text(text, file), catalog, strict, read, context, whole)


def compile_file(
    path: Path,
    catalog: ComponentCatalog,
    *,
    strict: bool = False,
    read: Read | None = None,
    context: Mapping[str, Any] | None = None,
    looks: bool = True,
) -> CompiledJob:
    """`looks`: the job runs here, so that the files it names are looked for."""
    return _compiled(load_file(path), catalog, strict, read, context, looks=looks)


def _compiled(
    loaded: Loaded,
    catalog: ComponentCatalog,
    strict: bool,
    read: Read | None,
    context: Mapping[str, Any] | None,
    whole: Whole = whole_folder,
    looks: bool = False,
) -> CompiledJob:
    findings = Findings(_told_of_links(problem, loaded.text) for problem in loaded.problems)
    reading = Reading(findings, catalog)
    joblets = Joblets(reading, loaded.file, read, whole)
    joblets.loaded[loaded.file] = loaded
    found = _Found()
    if loaded.root is not None:
        draft = read_document(reading, loaded.root, loaded.file, loaded.text)
        if draft is not None:
            found = _built_and_checked(reading, draft, loaded, joblets, context, whole, looks)
        for each in joblets.loaded.values():
            if each.root is not None:
                warn_literals(findings, each.root)
    if strict:
        findings = findings.strict()
    problems = tuple(_with_path(problem, joblets) for problem in findings)
    return CompiledJob(
        net=None if findings.has_errors else found.net,
        problems=problems,
        positions=found.positions or SourceMap(loaded.file),
        text=loaded.text,
        file=loaded.file,
        sources=joblets.sources,
        texts={name: each.text for name, each in joblets.loaded.items()},
        schemas=found.columns.schemas,
        lineage=found.columns.lineage,
        is_joblet=found.is_joblet,
        bases=found.bases,
        gives_out=found.gives_out,
        calls=tuple(found.literals.calls),
    )


@dataclass(slots=True)
class _Found:
    net: Net | None = None
    positions: SourceMap | None = None
    columns: Columns = field(default_factory=Columns)
    is_joblet: bool = False
    bases: dict[str, Base] = field(default_factory=dict)
    gives_out: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    literals: Found = field(default_factory=Found)


def _built_and_checked(
    reading: Reading,
    draft: JobDraft,
    loaded: Loaded,
    joblets: Joblets,
    context: Mapping[str, Any] | None,
    whole: Whole,
    looks: bool,
) -> _Found:
    joblets.names = _names(draft, context)
    level = joblets.level(draft, loaded.text)
    expanded = expand(reading, level)
    wrong = {name: check_params(reading, unit) for name, unit in expanded.units.items()}
    for unit in expanded.units.values():
        check_keys(reading, unit)
    defaults: JsonMap = {key: value for each in (*joblets.drafts(), draft) for key, value in each.context.items()}
    found = _Found(positions=source_map(draft, expanded), is_joblet=draft.is_joblet)
    found.bases = find_bases(expanded, loaded.file, whole)
    found.gives_out = {
        name: unit.gives_out() for name, unit in expanded.units.items() if unit.member.joblet is not None
    }
    texts = {name: each.text for name, each in joblets.loaded.items()}
    seen = Context(effective(defaults, context))
    folders = Folders(Path(loaded.file).parent, found.bases)
    keychain = _keychain(draft, joblets)
    named = Literals(
        reading,
        expanded,
        declared=frozenset(str(entry.get("name")) for entry in keychain),
        folders={name: folders.of(name, seen.text) for name in expanded.units},
        texts=texts,
        written=written_files(expanded, seen, folders),
        looks=looks,
        is_joblet=draft.is_joblet,
        context=(joblets.names.context or frozenset()) - {STATE},
    ).check()
    found.literals = named
    secrets = {**_keychain_positions(draft, joblets), **named.positions}
    if not _is_whole(expanded):
        return found
    share_transactions(reading, expanded)
    engines = SubjobEngines(reading, draft, expanded, seen)
    found.columns = infer(reading, expanded, seen, folders, texts, wrong, engines)
    lint(reading, expanded, starts_whole=draft.config.starts_whole)
    if not reading.findings.has_errors:
        found.net, found.positions = lowered(draft, expanded, defaults, [*keychain, *named.entries], engines.words)
        found.positions.keychain.update(secrets)
    return found


def _keychain_positions(draft: JobDraft, joblets: Joblets) -> dict[str, Position]:
    nodes = [node for each in (*joblets.drafts(), draft) for node in each.keychain_nodes]
    return {str(node.entries["name"].value): node.position for node in nodes if "name" in node.entries}


def _is_whole(expanded: Expanded) -> bool:
    """Whether every unit is in the order, so that there is no cycle and nothing is missing."""
    return bool(expanded.units) and len(expanded.order) == len(expanded.units)


def _names(draft: JobDraft, context: Mapping[str, Any] | None) -> Names:
    keychain = frozenset(str(entry.get("name")) for entry in draft.keychain)
    if draft.is_joblet:
        return Names(None, keychain)
    groups = (name for group in draft.contexts.values() for name in group)
    state = None if draft.state is None else frozenset(draft.state)
    kept = () if state is None else (STATE,)
    return Names(frozenset((*draft.context, *groups, *(context or ()), *kept)), keychain, state)


def _keychain(draft: JobDraft, joblets: Joblets) -> list[JsonMap]:
    """The job's own entries, and those of its joblets that it does not declare itself."""
    found = {str(entry.get("name")): entry for joblet in joblets.drafts() for entry in joblet.keychain}
    found.update({str(entry.get("name")): entry for entry in draft.keychain})
    return list(found.values())


def _with_path(problem: Problem, joblets: Joblets) -> Problem:
    loaded = joblets.loaded.get(problem.position.file)
    return problem if problem.path or loaded is None else replace(problem, path=loaded.path_at(problem.position))


_IF_LINK = re.compile(r"\(\s*if\b[^)]*:")


def _told_of_links(problem: Problem, text: str) -> Problem:
    """Explains a YAML error at the colon of an unquoted `if` link."""
    lines = lines_of(text)
    line = problem.position.line
    if problem.hint or problem.rewrite or not 0 < line <= len(lines) or not _IF_LINK.search(lines[line - 1]):
        return problem
    return replace(problem, hint="put quotes around the whole link, or write the links as a block: `control: |`")
