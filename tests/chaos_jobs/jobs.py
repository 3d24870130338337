"""The job that is killed, cut and stopped everywhere: a little of everything there is, in a small number of events.

Its components leave a line in the file `marks` each time they run, in the working folder, and so do iterations: what ran twice
can be counted. Files of the folder `drop` go to `done` one by one.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from tests.spec_jobs.support import job, python

MARK = "with open('marks', 'a') as traces:\n    traces.write({} + '\\n')\n"


def marking(name: str, code: str = "", **more: Any) -> dict[str, Any]:
    return python(MARK.format(repr(name)) + code, **more)


JOBLET = """
kind: Joblet
inputs: {rows: counted.input}
outputs: {counted: counted.main}
components:
  - name: counted
    type: python
    params:
      code: |
        with open('marks', 'a') as traces:
            traces.write('inner\\n')
        output = inputs['input']
        globals['N'] = len(output)
  - {name: told, type: set_global, params: {values: {TOLD: yes it was}}}
connections:
  control: counted (ok) told
"""

# It looks where the file is: an iteration that was cut off may have moved it already.
LOAD = """
import os, pathlib
with open('marks', 'a') as traces:
    traces.write(f"load {iteration['item']['name']}\\n")
path = iteration['item']['path']
if not os.path.exists(path):
    path = path.replace('/drop/', '/done/')
text = pathlib.Path(path).read_text()
if 'bad' in text:
    raise ValueError('not a number')
output = [{'n': int(line)} for line in text.split()]
globals['loaded'] = [iteration['item']['name']]
"""

# As a move does that accepts to have been done already; but what it says of itself is the same both times.
ARCHIVE = """
import os
path = iteration['item']['path']
if os.path.exists(path):
    os.replace(path, path.replace('/drop/', '/done/'))
"""


def rich(durability: str = "grouped") -> str:
    return job(
        "first (ok) risky",
        "risky (error) mend",
        "first (subjob_ok) fork",
        "fork (parallelise) left, right",
        "left, right (synchronise) met",
        "met (subjob_ok) files",
        "files (iterate) load",
        "load (ok) archive",
        "load (error) aside",
        "files (iterator_complete) shut",
        "files (subjob_ok) last",
        data=(
            "source.main -> sift.input",
            "sift.main -> total.input",
            "total.main -> first.input",
            "left.main -> met.input_a",
            "right.main -> met.input_b",
            "met.main -> call.rows",
            "load.main -> sum.input",
            "call.counted -> out.input",
        ),
        source={"type": "generate_rows", "params": {"count": 20, "columns": {"id": "i", "v": "i * 2"}}},
        sift={"type": "filter", "params": {"where": "id % 2 = 0"}},
        total={"type": "aggregate", "params": {"by": [], "measures": {"total": "sum(v)"}}},
        first=marking("first", "globals['total'] = inputs['input'][0]['total']"),
        risky=marking("risky", "globals['tried'] = 1\n1 / 0"),
        mend=marking("mend", "globals['mended'] = globals['tried'] + 1"),
        fork=marking("fork"),
        left=marking("left", "output = [{'id': 1}, {'id': 2}]\nglobals['who'] = 'left'"),
        right=marking("right", "output = [{'id': 3}]\nglobals['who'] = 'right'"),
        met={"type": "union"},
        files={"type": "iterate_files", "params": {"path": "{{ context.drop }}", "pattern": "*.txt"}},
        load=python(LOAD),
        sum={"type": "aggregate", "params": {"by": [], "measures": {"n": "sum(n)"}}},
        archive=python(ARCHIVE),
        aside={"type": "set_global", "params": {"values": {"aside": ["{{ iteration.item.name }}"]}}},
        call={"type": "@tally"},
        out={"type": "write_csv", "params": {"path": "{{ context.out }}"}},
        shut=marking("shut"),
        last=marking("last", "globals['sum'] = globals['total'] + globals['mended']"),
        config={"durability": durability},
        context={"drop": "drop", "out": "out.csv"},
    )


GLOBALS = {"who": "right", "loaded": ["a.txt", "c.txt"], "aside": ["b.txt"], "mended": 2, "tried": 1}
MARKS = {"first", "risky", "mend", "fork", "left", "right", "inner", "shut", "last"}
MARKS |= {"load a.txt", "load b.txt", "load c.txt"}
OPENERS = ("call", "files")
SUBJOB_OF = {
    "first": "<source>",
    "risky": "<source>",
    "mend": "<source>",
    "fork": "<fork>",
    "left": "<left>",
    "right": "<right>",
}


def furnish(folder: Path) -> None:
    """The files that the job iterates over, as they are before its first run."""
    for path in (folder / "done", folder / "drop"):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    for name, text in {"a": "1 2", "b": "bad", "c": "3"}.items():
        path = folder / "drop" / f"{name}.txt"
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))  # An iterator's elements say when a file was changed.


def write_rich(folder: Path, durability: str = "grouped") -> Path:
    (folder / "tally.yaml").write_text(JOBLET)
    path = folder / "job.yaml"
    path.write_text(rich(durability))
    return path


def marks(folder: Path) -> Counter[str]:
    path = folder / "marks"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def files(folder: Path) -> dict[str, str]:
    """What the job leaves behind, and what it leaves alone."""
    places = [*(folder / "drop").iterdir(), *(folder / "done").iterdir(), folder / "out.csv"]
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(places)}
