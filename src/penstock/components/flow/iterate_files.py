"""`iterate_files`: the body once for each file of a folder."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from penstock.components.base import Call, Elements, Iterator, IteratorParams
from penstock.components.files.listing import Exclude, Order, Patterns, Recursive, Sort, What, find
from penstock.components.flow.tool_calls import file_failures, place_of


class IterateFilesParams(IteratorParams, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The folder, relative to the document's own.")]
    pattern: Patterns = "*"
    exclude: Exclude = None
    recursive: Recursive = False
    what: Annotated[What, Meta(description="What to look for.")] = "files"
    sort: Annotated[Sort, Meta(description="By what they are ordered.")] = "name"
    order: Annotated[Order, Meta(description="The direction of that order.")] = "ascending"
    missing_ok: Annotated[bool, Meta(description="A folder that is not there has no files and is no error.")] = False


class IterateFiles(Iterator[IterateFilesParams]):
    """Run the body once for each file of a folder.

    The element is a mapping: `path` (absolute), `name`, `stem`, `extension` (without its dot), `folder`, `size` in bytes and
    `modified` (UTC, ISO text). The list is made when the iterator starts; files that come later are left for the next run.
    Names that begin with a dot are found only by a pattern that begins with one. Files of equal size or time are in the order
    of their paths.
    """

    type: ClassVar[str] = "iterate_files"
    Params = IterateFilesParams
    example: ClassVar[str] = """\
components:
  - name: drop
    type: shell
    params: {command: "mkdir -p drop && echo 1 > drop/a.csv && echo 2 > drop/b.csv"}
  - name: files
    type: iterate_files
    params: {path: drop, pattern: "*.csv"}
  - name: archive
    type: file_move
    params: {path: "{{ iteration.item.path }}", to: "done/{{ iteration.item.name }}"}
connections:
  control: |
    drop (ok) files
    files (iterate) archive
"""

    def elements(self, params: IterateFilesParams, call: Call) -> Elements:
        folder = place_of(params.path, call)
        if params.missing_ok and not folder.exists():
            return Elements([], 0)
        with file_failures(folder):
            found = find(
                folder,
                params.pattern,
                recursive=params.recursive,
                what=params.what,
                exclude=params.exclude,
                sort=params.sort,
                order=params.order,
            )
        return Elements([each.as_json() for each in found], len(found))
