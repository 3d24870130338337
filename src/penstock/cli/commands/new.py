"""`penstock new NAME`: a small playbook to start from. It runs as it is."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from penstock.cli.arguments import CommandLineError
from penstock.cli.output import say

TEMPLATE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: {name}

# Defaults of the input. Other values come from `--set who=you` or `--payload '{{"who": "you"}}'`.
workload:
  who: world
  numbers: [3, 1, 2]

workflow:
  # The run begins with the step named `start`. A step runs its tasks one after another.
  - step: start
    tool:
      - name: greet
        kind: python
        args:
          who: "{{{{ workload.who }}}}"
        code: |
          print("about to greet", who)
          result = {{"text": f"Hello, {{who}}!"}}
    # Where to go next. An arc with `when` is taken when that is true; the first one that matches wins.
    next:
      arcs:
        - step: squares

  # A loop runs its tasks once for each element, here two at a time.
  - step: squares
    loop:
      in: "{{{{ workload.numbers }}}}"
      iterator: number
      spec:
        mode: parallel
        max_in_flight: 2
    tool:
      - name: square
        kind: python
        args:
          number: "{{{{ iter.number }}}}"
        code: |
          result = number * number
    next:
      arcs:
        - step: finish

  # The result of a step can be read by its name: `start`, `squares`.
  - step: finish
    tool:
      - name: report
        kind: python
        args:
          text: "{{{{ start.text }}}}"
          squares: "{{{{ squares.results }}}}"
        code: |
          result = {{"text": text, "squares": squares, "sum": sum(squares)}}
"""


def main(options: Namespace) -> int:
    name = options.name.removesuffix(".yaml").removesuffix(".yml")
    path = Path(name).with_name(f"{Path(name).name}.yaml") if Path(name).name else Path(".yaml")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", Path(name).name):
        raise CommandLineError(
            f"`{options.name}` is no name for a playbook",
            "use letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
        )
    try:
        with path.open("w" if options.force else "x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=Path(name).name))
    except FileExistsError as error:
        raise CommandLineError(f"`{path}` is there already", "`--force` replaces it") from error
    except OSError as error:
        raise CommandLineError(f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}") from error
    say(f"wrote {path}; to run it: penstock run {path}")
    return 0
