"""`python -m docs.generator FOLDER`: write the reference pages. `--check` only compares, and fails when they are out of date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.generator.check import dead_links, differences, unknown_codes
from docs.generator.examples import record, stale, steady
from docs.generator.reference import reference, write


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the reference pages, such as `docs/reference`")
    parser.add_argument("--check", action="store_true", help="compare instead of writing, and look for dead links")
    parser.add_argument(
        "--run-all", action="store_true", help="run every example of a component again, not only the changed ones"
    )
    options = parser.parse_args(argv)
    if not options.check:
        if ran := record(steady() if options.run_all else stale()):
            print(f"{ran} examples of components were run")
        pages = reference()
        changed = write(pages, options.folder)
        print(f"{len(pages)} pages, {changed} changed")
        return 0
    pages = reference()
    project = options.folder.resolve().parent.parent
    wrong = [
        *(f"{line}; `make docs` writes it" for line in differences(pages, options.folder)),
        *(f"the example of `{type_}` was changed and not run since; `make docs` does it" for type_ in stale()),
        *unknown_codes(),
        *dead_links(project),
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
