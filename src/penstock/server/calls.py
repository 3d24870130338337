"""The documents that a document calls by literal paths, and those that they call in turn: checked before the first step.

Law: whatever is certain to stop a call is an error of the calling document: a called document that is not valid, an input
that it does not have, a missing secret. A path that is a template is only known at run time, and is not checked here.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.dialects.calls import DocumentCall, Named
from penstock.dialects.problems import Findings, Position, Problem, Severity
from penstock.dialects.reader import did_you_mean, listed
from penstock.expr.check import inspect
from penstock.expr.lexer import is_template
from penstock.kernel.errors import Refused
from penstock.kernel.net import Net
from penstock.kernel.values import Json, JsonMap, merge_deeply
from penstock.keychain.errors import KeychainError, KeychainProblem
from penstock.keychain.resolution import Inputs, read_in
from penstock.ports.folders import address_of, is_address
from penstock.ports.leases import Keys
from penstock.server.child_execution import context_group
from penstock.server.documents import DocumentInvalid, Documents, Pinned
from penstock.server.inputs import UnknownInput, needed, require_known

if TYPE_CHECKING:
    from penstock.dialects.job.compile import CompiledJob
    from penstock.dialects.playbook import Compiled

MOST = 200
"""Maximum number of documents examined; in a project that calls more of them, the rest is not checked."""
ARROW = " → "


@dataclass(frozen=True, slots=True)
class Called:
    """A called document, or the one that is to run. `unknown`: inputs that get their values at run time."""

    document: Pinned
    net: Net
    positions: Mapping[str, Position]
    """Keychain entry -> its position in the document."""
    trail: str
    workload: JsonMap
    unknown: frozenset[str] = frozenset()

    def entries(self) -> list[JsonMap]:
        """The keychain entries that can be looked up now: those that read no unknown input, nor an entry that does."""
        found = [entry for entry in self.net.keychain if not self._waits(entry)]
        while True:
            waiting = {entry.get("name") for entry in self.net.keychain} - {entry.get("name") for entry in found}
            known = [entry for entry in found if not _reads_any(entry, waiting)]
            if len(known) == len(found):
                return found
            found = known

    def _waits(self, value: Json) -> bool:
        if isinstance(value, dict):
            return any(self._waits(inner) for inner in value.values())
        if isinstance(value, list):
            return any(self._waits(inner) for inner in value)
        if not self.unknown or not isinstance(value, str) or not is_template(value):
            return False
        read = {
            use.path[1] if use.path[0] in _SPACES and len(use.path) > 1 else use.path[0] for use in inspect(value).uses
        }
        return "*" in self.unknown or bool(read & (self.unknown | _SPACES))


_SPACES = frozenset({"workload", "context"})


def _reads_any(entry: JsonMap, names: Set[Json]) -> bool:
    read = read_in(entry) if names else frozenset()
    return read is None or not names.isdisjoint(read)


@dataclass(slots=True)
class Calls:
    """What was found in the documents that one document calls."""

    problems: Findings = field(default_factory=Findings)
    called: list[Called] = field(default_factory=list)
    """The document itself comes first."""
    texts: dict[str, str] = field(default_factory=dict)
    """File, as problems name it -> its text."""

    @property
    def errors(self) -> list[Problem]:
        return [one for one in self.problems if one.severity is Severity.ERROR]


Look = Callable[[Sequence[JsonMap], Inputs, Pinned], Awaitable[list[KeychainProblem]]]
"""Which of these entries of a document are missing; asks nothing outside this machine."""


async def missing_secrets(called: Iterable[Called], look: Look) -> list[tuple[Called, KeychainProblem]]:
    """Each missing secret once, however often its document is called."""
    found: dict[tuple[str, str, str], tuple[Called, KeychainProblem]] = {}
    for one in called:
        entries = one.entries()
        for problem in await look(entries, Inputs(one.workload, one.net.kind), one.document) if entries else ():
            placed = replace(problem, where=_where(one, problem))
            found.setdefault((one.document.file, problem.entry, problem.message), (one, placed))
    return list(found.values())


def _where(called: Called, problem: KeychainProblem) -> str:
    position = called.positions.get(problem.declared or problem.entry)
    line = f"{position.file}:{position.line}" if position is not None else called.document.file
    return f"{line}; {called.trail}" if called.trail else line


def secret_problems(missing: Iterable[tuple[Called, KeychainProblem]]) -> Iterator[Problem]:
    """The missing secrets as problems of the documents, for a check without a run: the secret is missing here, but perhaps
    not elsewhere."""
    for called, one in missing:
        position = called.positions.get(one.declared or one.entry) or Position.whole(called.document.file)
        message = f"keychain entry `{one.entry}`: {one.message}; a run here would be refused"
        label = did_you_mean(one.entry, [name for name in called.positions if name != one.entry])
        yield Problem("Y0505", Severity.WARNING, message, position, label, one.hint, calls=called.trail)


async def check_calls(
    documents: Documents, document: Pinned, net: Net, compiled: Compiled | CompiledJob, workload: JsonMap
) -> list[Called]:
    """The calls of the document that is to run, the document itself first. Raises DocumentInvalid with everything that is
    certain to stop a call."""
    if not compiled.calls:
        return [Called(document, net, compiled.positions.keychain, "", workload)]
    found = await documents.aside(lambda: calls_of(documents, document, compiled, workload, net=net, is_run=True))
    if found.errors:
        raise DocumentInvalid(compiled.file, found.errors, compiled.text)
    return found.called


async def unlocked(
    called: Sequence[Called], look: Look | None, resolve_keychain: Callable[[], Awaitable[Keys]]
) -> Keys:
    """The keys of a run that can start. Raises KeychainError with every missing secret, including those of called documents."""
    own: list[KeychainProblem] = []
    keys: Keys | None = None
    try:
        keys = await resolve_keychain()
    except KeychainError as error:
        own = [replace(one, where=_where(called[0], one)) for one in error.problems]
    more = await missing_secrets(called[1:], look) if look is not None else []
    if own or more or keys is None:
        raise KeychainError([*own, *(problem for _, problem in more)])
    return keys


def input_problems(net: Net, file: str, payload: Mapping[str, Any], context: str | None) -> Iterator[Problem]:
    """Why a run with these inputs would be refused."""
    for check, code in (
        (partial(require_known, net, payload), "Y0502"),
        (partial(context_group, net, context), "Y0504"),
    ):
        try:
            check()
        except Refused as error:
            yield Problem(code, Severity.ERROR, error.message, Position.whole(file), hint=error.hint or "")


def calls_of(
    documents: Documents,
    document: Pinned,
    compiled: Compiled | CompiledJob,
    workload: JsonMap | None = None,
    *,
    net: Net | None = None,
    is_run: bool = False,
) -> Calls:
    """`net`: the part of the document that is to run, if not all of it. `is_run`: it runs on this machine, so a document
    that is not found does not exist; otherwise a catalog may have it."""
    return _Walk(documents, document, compiled, is_run).walked(net or compiled.net, workload)


class _Walk:
    def __init__(self, documents: Documents, document: Pinned, compiled: Compiled | CompiledJob, is_run: bool) -> None:
        self._documents = documents
        self._root = document
        self._compiled = compiled
        self._is_run = is_run
        self._found = Calls()
        self._seen: set[str] = set()
        self._sent = dict(document.sources)

    def walked(self, net: Net | None, workload: JsonMap | None) -> Calls:
        if net is not None:
            positions = self._compiled.positions.keychain
            given = net.workload if workload is None else workload
            self._found.called.append(Called(self._root, net, positions, "", given))
        self._seen.add(self._root.file)
        self._calls(self._root, net, self._compiled, self._compiled.file)
        return self._found

    def _calls(self, document: Pinned, net: Net | None, compiled: Compiled | CompiledJob, trail: str) -> None:
        for call in compiled.calls:
            if len(self._seen) < MOST and (net is None or call.caller in net.nodes):
                self._call(document, call, trail)

    def _call(self, caller: Pinned, call: DocumentCall, trail: str) -> None:
        folder = Path(address_of(call.folder or caller.folder))
        add = _Adding(self._found.problems, call, trail, self._shown_position)
        try:
            document = self._documents.find(call.path, folder, self._sent, caller.project)
            net, compiled = self._documents.compile(document)
        except DocumentInvalid as error:
            self._invalid(error, f"{trail}{ARROW}{call.caller}{ARROW}{self._shown(error.file)}")
            return
        except (Refused, OSError, ValueError) as error:
            add.missing(error, is_certain=self._is_run and not call.may_be_absent)
            return
        shown = self._shown(document.file)
        here = f"{trail}{ARROW}{call.caller}{ARROW}{shown}"
        add.check(net, shown)
        for file, text in ((document.file, document.text), *document.sources):
            self._found.texts[self._shown(file)] = text
        positions = {name: self._shown_position(position) for name, position in compiled.positions.keychain.items()}
        self._found.called.append(Called(document, net, positions, here, *_inputs(net, call)))
        if document.file not in self._seen:
            self._seen.add(document.file)
            self._calls(document, net, compiled, here)

    def _invalid(self, error: DocumentInvalid, trail: str) -> None:
        """Problems of a called document are reported at their place in it."""
        self._found.texts[self._shown(error.file)] = error.text
        for one in error.problems:
            if one.severity is Severity.ERROR:
                self._found.problems.add(replace(one, position=self._shown_position(one.position), calls=trail))

    def _shown_position(self, position: Position) -> Position:
        return replace(position, file=self._shown(position.file))

    def _shown(self, file: str) -> str:
        """The path as seen from where the first document was named."""
        named = self._compiled.file
        if is_address(file) or named == self._root.file or not os.path.isabs(file):
            return file
        beside = os.path.relpath(file, os.path.dirname(self._root.file))
        return os.path.normpath(os.path.join(os.path.dirname(named), beside))


@dataclass(frozen=True, slots=True)
class _Adding:
    """Collects the problems of one call, at its place in the calling document."""

    findings: Findings
    call: DocumentCall
    trail: str
    shown: Callable[[Position], Position]

    def missing(self, error: Exception, *, is_certain: bool) -> None:
        message = error.message if isinstance(error, Refused) else f"`{self.call.path}` cannot be read: {error}"
        hints = [error.hint or ""] if isinstance(error, Refused) else []
        if not is_certain:
            hints.append("it runs only if the file is there by then, or a server's catalog knows the name")
        self._add("Y0501", message, self.call.position, hint="; ".join(filter(None, hints)), is_error=is_certain)

    def check(self, net: Net, file: str) -> None:
        call = self.call
        if net.kind == "job":
            self._part(call.group, "context group", list(net.contexts), file)
        else:
            self._part(call.return_step, "step", list(net.nodes), file)
        if call.given is None:
            return
        for name, value in call.given.items():
            try:
                require_known(net, {name: value})
            except UnknownInput as error:
                position = call.positions.get(name, call.position)
                self._add("Y0502", f"`{file}`: {error.message}", position, hint=error.hint or "")
        known = {*call.given, *_group(net, call)}
        for name in needed(net):
            if name not in known:
                message = f"`{file}` reads `{name}` and has no default for it, and this call does not give it"
                self._add("Y0503", message, call.position, hint=f"give `{name}`", is_error=False)

    def _part(self, named: Named | None, what: str, known: list[str], file: str) -> None:
        if named is not None and named.name not in known:
            label = did_you_mean(named.name, known)
            hint = f"it has {listed(known)}" if known else f"it has no {what}s"
            self._add("Y0504", f"`{file}` has no {what} `{named.name}`", named.position, label=label, hint=hint)

    def _add(
        self, code: str, message: str, position: Position, *, label: str = "", hint: str = "", is_error: bool = True
    ) -> None:
        severity = Severity.ERROR if is_error else Severity.WARNING
        calls = self.trail if ARROW in self.trail else ""
        self.findings.add(Problem(code, severity, message, self.shown(position), label, hint, calls=calls))


def _group(net: Net, call: DocumentCall) -> JsonMap:
    return {} if call.group is None else net.contexts.get(call.group.name, {})


def _inputs(net: Net, call: DocumentCall) -> tuple[JsonMap, frozenset[str]]:
    """The known inputs of a called document, and the names of the others."""
    base = merge_deeply(net.workload, _group(net, call))
    if call.given is None:
        return base, frozenset("*")
    unknown = frozenset(name for name, value in call.given.items() if _has_template(value))
    return merge_deeply(base, {name: value for name, value in call.given.items() if name not in unknown}), unknown


def _has_template(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    if isinstance(value, list):
        return any(map(_has_template, value))
    return isinstance(value, str) and is_template(value)
