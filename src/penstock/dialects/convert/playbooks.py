"""Playbooks with words of other engines and of other days, in today's words.

    words of other engines     the edits of the door, which reads them anyhow
    words that are refused     the rewrite that the diagnostic shows, one after the other, until none is left
    what remains               named: what needs a decision of the author, and what has no counterpart here

Law: a rewrite never changes what a document means that was valid before; where both are, their nets are compared.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path as File
from typing import Any

import yaml
from ruamel.yaml.error import YAMLError

from penstock.dialects.convert.frame import Became, Converted, Remark
from penstock.dialects.convert.layout import LaidOut
from penstock.dialects.kind import document_kind
from penstock.dialects.playbook import Compiled, compile_text
from penstock.dialects.playbook.public import Door, Treatment
from penstock.dialects.playbook.public.steps import as_writes, task_paths
from penstock.dialects.playbook.public.texts import names_replaced, texts_below
from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.problems import Problem, Severity
from penstock.dialects.source.edits import Drop, Edit, Path, Put, at
from penstock.dialects.source.loader import load_text
from penstock.dialects.source.node import SourceNode, to_json
from penstock.expr.rules import Use
from penstock.kernel.errors import Refused
from penstock.kernel.values import Json, JsonMap
from penstock.ports.plugins import ToolCatalog

MECHANICAL = frozenset(
    {
        "P0101", "P0201", "P0202", "P0203", "P0204", "P0205", "P0206", "P0207", "P0208", "P0210", "P0211", "P0212", "P0213",
        "P0216", "P0217", "P0401", "P0407", "P0501", "P0502", "P0906",
    }
)  # fmt: skip
"""Diagnostics whose rewrite says all that is to be done."""
TO_DECIDE = frozenset({"P0418", "P0623", "P0810", "P0811", "P0812"})
"""What is valid, and means something else here than elsewhere."""
LOST = frozenset({"P0504"})
MOST = 1_000


class PlaybookConverter:
    name = "NoETL playbooks"

    def __init__(self, catalog: ToolCatalog | None = None) -> None:
        self._given = catalog

    def recognises(self, path: File, text: str) -> bool:
        return document_kind(text) == "playbook"

    def convert(self, path: File, text: str) -> Converted:
        if "\r\n" in text and text.count("\n") == text.count(
            "\r\n"
        ):  # The parser that keeps comments writes line feeds.
            found = self.convert(path, text.replace("\r\n", "\n"))
            return replace(found, text=found.text.replace("\n", "\r\n"))
        return _Conversion(str(path), text, self._given or _tools()).converted()


@cache
def _tools() -> ToolCatalog:
    from penstock.tools.registry import Registry  # All tools, which a catalog that is given need not have.

    return Registry()


class _Conversion:
    def __init__(self, file: str, text: str, catalog: ToolCatalog) -> None:
        self.file = file
        self.original = text
        self.text = text
        self.catalog = catalog
        self.remarks: list[Remark] = []
        self.has_other_code = False

    def converted(self) -> Converted:
        loaded = load_text(self.text, self.file)
        if loaded.root is None or loaded.root.kind != "mapping":
            return Converted(self.text, tuple(self._left(loaded.problems)))
        before = self._compiled(self.text)
        for edits in (self._expressions, self._code, self._public):
            self._apply(list(edits()))
        self._refused()
        self._apply(list(self._public()))  # What stood in an older form could not be read before.
        after = self._compiled(self.text)
        if (
            before.net is not None
            and not self.has_other_code
            and (after.net is None or after.net.digest != before.net.digest)
        ):
            raise Refused(
                f"`{self.file}` would mean something else in today's words, so it was left as it is",
                "this is a fault of `penstock convert`; the document runs as it is",
            )
        self.remarks += [*self._left(after.problems), *self._comments()]
        return Converted(self.text, tuple(sorted(self.remarks, key=lambda one: one.line)))

    def _compiled(self, text: str) -> Compiled:
        return compile_text(text, self.file, self.catalog)

    def _root(self) -> SourceNode:
        root = load_text(self.text, self.file).root
        assert root is not None
        return root

    def _apply(self, edits: list[Edit]) -> None:
        if edits:
            laid_out = self._laid_out()
            for edit in edits:
                try:
                    laid_out.edit(edit)
                except KeyError as error:  # The parser that keeps comments cannot edit a mapping that others merge.
                    raise Refused(
                        f"`{self.file}` merges a mapping with `<<` in which words are to be rewritten",
                        "write the mapping out where it is merged",
                    ) from error
            text = laid_out.result()
            if load_text(text, self.file).root is None:
                raise Refused(
                    f"`{self.file}` cannot be written in today's words, so it was left as it is",
                    "this is a fault of `penstock convert`; `penstock validate` shows each rewrite",
                )
            self.text = text

    def _laid_out(self) -> LaidOut:
        try:
            return LaidOut(self.text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = "" if mark is None else f", line {mark.line + 1}"
            raise Refused(
                f"`{self.file}`{place} is not YAML that can be rewritten: {getattr(error, 'problem', None) or error}",
                "`penstock validate` shows what is wrong",
            ) from error

    def _rewritten(self, line: int, message: str) -> None:
        self.remarks.append(Remark(Became.REWRITTEN, self._line(line), message))

    def _line(self, line: int) -> int:
        """The line of the file as it was, for one of the text as it is now."""
        if self.text == self.original:
            return line
        old, new = self.original.splitlines(), self.text.splitlines()
        for tag, first, _, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if start < line <= stop:
                return first + (line - start if tag == "equal" else 1)
        return min(line, len(old))

    # ---- expressions and code

    def _expressions(self) -> Iterator[Edit]:
        """`vars` of a step are ctx today, those of the document its workload; braces of other languages are let alone."""
        root = self._root()
        steps = [
            ("workflow", index)
            for index in range(len(root.entries["workflow"].items if "workflow" in root.entries else []))
        ]
        has_vars = [path for path in steps if at(root, (*path, "vars")) is not None]
        target = "ctx" if has_vars else "workload" if "vars" in root.entries else None
        for path, node in texts_below(root, ()):
            text = node.text() or ""
            is_condition = path[-1] in ("when", "expr", "if", "condition") if path else False
            new = text
            if target is not None:
                new = names_replaced(new, _root_of("vars", target), condition=is_condition)
            if any(path[: len(step) + 1] == (*step, "vars") for step in has_vars):
                new = names_replaced(new, _root_of("result", "output"))
            if path and {"command", "cmds"} & set(path[-2:]):
                new = _FOREIGN.sub(r"{% raw %}\g<0>{% endraw %}", new)
            if new != text:
                self._rewritten(node.position.line, f"`{_shortened(text)}` is `{_shortened(new)}`")
                yield Put(path, new)
        for step in has_vars:
            given = at(root, (*step, "vars"))
            if given is not None and given.kind == "mapping":
                self._rewritten(given.position.line, "`vars` of a step is now `set`")
                yield from as_writes(root, step, "vars")

    def _code(self) -> Iterator[Edit]:
        """Modules that another engine puts into the names of Python code are imported."""
        root = self._root()
        workflow = root.get("workflow")
        for index, step in enumerate(workflow.items if workflow is not None else ()):
            for path in task_paths(step.get("tool"), ("workflow", index, "tool")):
                task = at(root, path)
                code = None if task is None else task.get("code")
                if task is None or code is None or not code.text() or _text(task.get("kind")) != "python":
                    continue
                given = {
                    key
                    for name in ("args", "input", "libs")
                    if (one := task.get(name)) is not None
                    for key in one.entries
                }
                given |= set(step.entries["input"].entries) if "input" in step.entries else set()
                names = [name for name in _unbound(str(code.value)) if name in _PRESENT and name not in given]
                if names:
                    self.has_other_code = True
                    self._rewritten(code.position.line, f"the code imports {', '.join(f'`{name}`' for name in names)}")
                    imports = "".join(f"import {name}\n" for name in names)
                    yield Put((*path, "code"), imports + str(code.value))

    # ---- words

    def _public(self) -> Iterator[Edit]:
        door = Door(self._root(), lambda kind, _: self.catalog.describe(kind), self.text).walk()
        for rewrite in door.rewrites:
            if not rewrite.edits:
                continue
            word = f"`{rewrite.alias.word if rewrite.alias.scope == 'expression' else rewrite.alias.key}`"
            became = (
                "left out: it has no effect"
                if rewrite.treatment is Treatment.IGNORED
                else f"now {rewrite.alias.instead}"
            )
            self._rewritten(rewrite.position.line, f"{word} is {became}")
            yield from rewrite.edits

    def _refused(self) -> None:
        for _ in range(MOST):
            problem = next(filter(None, map(self._step, self._mechanical())), None)
            if problem is None:
                return
            self._rewritten(problem.position.line, f"{problem.message}: {problem.hint or problem.label}")

    def _mechanical(self) -> Iterable[Problem]:
        return [one for one in self._compiled(self.text).problems if one.rewrite and one.code in MECHANICAL]

    def _step(self, problem: Problem) -> Problem | None:
        """Make one rewrite; None when it cannot be made or changes nothing."""
        path = _parsed(problem.path)
        rewrite = yaml.safe_load(problem.rewrite + "\n")  # A block of text ends with its line break.
        before = self.text
        laid_out = self._laid_out()
        if not _placed(laid_out, self._root(), path, rewrite):
            return None
        text = laid_out.result()
        if text == before or load_text(text, self.file).root is None:
            return None
        if problem.code in {
            one.code
            for one in self._compiled(text).problems
            if one.path == problem.path and one.message == problem.message
        }:
            return None
        self.text = text
        return problem

    # ---- what remains

    def _comments(self) -> Iterator[Remark]:
        """Comments within what was written anew."""
        for number, line in enumerate(self.original.splitlines(), 1):
            comment = _COMMENT.search(line)
            if comment is not None and comment[1].rstrip() not in self.text:
                yield Remark(Became.LOST, number, f"the comment `{_shortened(comment[1])}` stood in what was rewritten")

    def _left(self, problems: Iterable[Problem]) -> Iterator[Remark]:
        for one in problems:
            if one.severity is Severity.ERROR or one.code in TO_DECIDE:
                became = Became.LOST if one.code in LOST else Became.DECIDE
                hint = "; ".join(filter(None, (one.label, one.hint)))
                yield Remark(became, self._line(one.position.line), one.message, hint)


def _text(node: SourceNode | None) -> str | None:
    return None if node is None else node.text()


def _root_of(old: str, new: str) -> Any:
    def new_name(use: Use) -> tuple[str, str] | None:
        return (f"{old}.", f"{new}.") if use.path[0] == old and len(use.path) > 1 else None

    return new_name


_COMMENT = re.compile(r"(?:^|\s)(#.*)$")
_FOREIGN = re.compile(r"(?<!\{% raw %\})\{\{-?\s*(?:\.|range |end\b|json )[^{}]*\}\}")
_PRESENT = ("json", "os", "datetime", "uuid", "sys")
"""Modules that an engine gives to code without being asked."""


def _unbound(code: str) -> list[str]:
    """The names that Python code reads and nowhere binds."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []
    read: dict[str, None] = {}
    bound: set[str] = set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read[name] = None
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
    return [name for name in read if name not in bound]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


_STEP = re.compile(r'\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]')


def _parsed(path: str) -> Path:
    """The path that a problem shows."""
    found: list[str | int] = []
    for name, index, quoted in _STEP.findall(path):
        found.append(int(index) if index else name or quoted.replace('\\"', '"').replace("\\\\", "\\"))
    return tuple(found)


def _placed(laid_out: LaidOut, root: SourceNode, path: Path, rewrite: Json) -> bool:
    """Put a rewrite where the diagnostic means it: a list stands for the entry of a list, a mapping for keys of the mapping in
    which the word stood, or for that mapping itself if the key is its name."""
    if isinstance(rewrite, list):
        return _as_items(laid_out, root, path, rewrite)
    if not isinstance(rewrite, dict) or not path:
        return False
    for length in (len(path), len(path) - 1):
        if length > 0 and list(rewrite) == [path[length - 1]]:
            laid_out.replace(path[:length], rewrite[str(path[length - 1])])
            return True
    around, word = path[:-1], path[-1]
    node = at(root, around)
    if node is None or node.kind != "mapping":
        return False
    for key in {word, *_carried_along(node, rewrite)} - rewrite.keys():
        laid_out.edit(Drop((*around, key)))
    for key, value in rewrite.items():
        _merged(laid_out, node.get(key), (*around, key), value)
    return True


def _carried_along(node: SourceNode, rewrite: JsonMap) -> set[str]:
    """Parameters of a tool that stood beside it in a step, and stand below `tool` now."""
    tool = rewrite.get("tool")
    return (
        {key for key in tool if key in node.entries and key not in SCOPES["step"].words}
        if isinstance(tool, dict)
        else set()
    )


def _merged(laid_out: LaidOut, old: SourceNode | None, path: Path, value: Json) -> None:
    """Write only what is not there yet, so that what is there keeps its comments."""
    if old is not None and old.kind == "mapping" and isinstance(value, dict):
        for key, inner in value.items():
            _merged(laid_out, old.get(key), (*path, key), inner)
    elif old is None or to_json(old) != value:
        laid_out.edit(Put(path, value))


def _as_items(laid_out: LaidOut, root: SourceNode, path: Path, items: list[Json]) -> bool:
    for length in (len(path), len(path) - 1):
        if length > 0 and isinstance(path[length - 1], int):
            parent = at(root, path[: length - 1])
            if parent is None or parent.kind != "sequence":
                return False
            index = path[length - 1]
            assert isinstance(index, int)
            if len(items) == 1:
                laid_out.replace(path[:length], items[0])
            else:
                whole = [to_json(item) for item in parent.items]
                laid_out.replace(path[: length - 1], [*whole[:index], *items, *whole[index + 1 :]])
            return True
    if len(path) > 1 and path[-2] == "tool":
        laid_out.replace(path[:-1], list(items))
        return True
    return False
