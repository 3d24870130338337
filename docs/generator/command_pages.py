"""The command line, from the parsers themselves, and what its exit codes mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from docs.generator.markdown import code, page, table
from penstock.cli.arguments import COMMANDS, parser_for
from penstock.kernel.errors import Bug
from penstock.server.runs import EXIT_CODES

CODES: dict[int, tuple[str, str]] = {
    0: ("completed", "The run completed; the file is valid; the command did what it was asked."),
    1: ("failed", "The run failed or was cancelled. `penstock explain` says why, `penstock resume` tries again."),
    2: ("refused", "The document or the command line is wrong, or what was asked cannot be done. Nothing was started."),
    3: ("interrupted", "The run was stopped by a signal and can be resumed with `penstock resume`."),
    4: ("unavailable", "The engine itself failed: a full disk, a locked or damaged database, a mistake in Penstock."),
}


def command_line_page() -> str:
    parts = []
    for name, command in COMMANDS.items():
        parts += [
            f"## {name}",
            f"{_sentence(command.summary)} {command.more}".strip(),
            *_parser(parser_for(name, command)),
        ]
    return page(
        "Command line",
        "Data goes to stdout, words go to stderr. `--json` prints JSON and nothing else. `RUN` is the id of a run, a unique "
        "beginning of it, its label, or `@last`. What the exit codes mean is on [a page of its own](exit-codes.md).",
        "\n".join(f"- [`{name}`](#{name}): {command.summary}" for name, command in COMMANDS.items()),
        *parts,
        "## Environment",
        table(
            ("variable", "what it does"),
            [
                (
                    "`PENSTOCK_HOME`",
                    "The state folder, unless `--store` names one. Otherwise `.penstock/` beside the file.",
                ),
                ("`PENSTOCK_SERVER`", "The server that commands ask, unless `--server` or `--store` says otherwise."),
                ("`PENSTOCK_TOKEN`", "The token that they show it. On the command line others could see it."),
                (
                    "`PENSTOCK_DATABASE`",
                    "The PostgreSQL that servers and workers share, unless `--database` names one.",
                ),
                ("`PENSTOCK_RESULTS`", "Where large results go, unless `--results` says."),
                (
                    "`PENSTOCK_BASE`",
                    "Where documents of the catalog read and write by relative paths, unless `--base` says.",
                ),
                (
                    "`PENSTOCK_DISPATCH`",
                    "The NATS server over which servers and workers speak, unless `--dispatch` names one.",
                ),
                ("`PENSTOCK_POOL`, `PENSTOCK_SLOTS`", "The pool of a worker, and how much it does at a time."),
                ("`PENSTOCK_KEY`", "The passphrase of the local keychain. Otherwise its key lies in the state folder."),
                ("`PENSTOCK_DEBUG`", "When set, a mistake in Penstock prints its traceback as well."),
                ("`NO_COLOR`", "When set, nothing is printed in colour."),
            ],
        ),
    )


def exit_codes_page() -> str:
    for status, number in EXIT_CODES.items():
        if number not in CODES:
            raise Bug(f"the exit code {number} of `{status}` has no words in docs.generator.command_pages")
    rows = [
        (f"`{number}`", name, ", ".join(f"`{status}`" for status, one in EXIT_CODES.items() if one == number), about)
        for number, (name, about) in CODES.items()
    ]
    return page(
        "Exit codes",
        table(("code", "", "status of the run", "what it means"), rows),
        "A job that its `die` component ended exits with the code it was given there, 1 to 255.",
        "With `--json` the object on stdout has the same number in `exit_code`.",
    )


def _parser(parser: argparse.ArgumentParser) -> list[str]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [code("console", f"$ {' '.join([parser.prog, *_usage(parser)])}"), _arguments(parser)]
    for action in inner:
        summaries = {one.dest: one.help or "" for one in action._choices_actions}
        for name, below in action.choices.items():
            parts += [
                f"### {parser.prog.removeprefix('penstock ')} {name}",
                _sentence(summaries[name]),
                *_parser(below),
            ]
    return parts


def _shown(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Help is not worth a line, and actions with parsers of their own get sections."""
    for action in parser._actions:
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            yield action


def _usage(parser: argparse.ArgumentParser) -> Iterator[str]:
    options = any(action.option_strings for action in _shown(parser))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield "ACTION"
        elif not action.option_strings:
            name = str(action.metavar or action.dest)
            yield {"+": f"{name} [{name} …]", "?": f"[{name}]", "*": f"[{name} …]"}.get(str(action.nargs), name)
    if options:
        yield "[options]"


def _arguments(parser: argparse.ArgumentParser) -> str:
    return table(
        ("argument", "what it is"),
        [(_named(action), (action.help or "").replace("%%", "%")) for action in _shown(parser)],
    )


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    value = "" if action.nargs == 0 else f" {action.metavar or _choices(action) or action.dest.upper()}"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def _choices(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices)) if action.choices else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
