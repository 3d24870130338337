"""The command line, from the parsers themselves, and what its exit codes mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from docs.generator.markdown import code, page, table, words
from penstock.cli.arguments import COMMANDS, parser_for
from penstock.kernel.errors import Bug
from penstock.server.runs import EXIT_CODES


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
        table(("variable", "what it does"), words("commands")["environment"].items()),
    )


def exit_codes_page() -> str:
    codes = words("commands")["exit_codes"]
    for status, number in EXIT_CODES.items():
        if number not in codes:
            raise Bug(f"the exit code {number} of `{status}` has no words in words/commands.yaml")
    rows = [
        (
            f"`{number}`",
            one["name"],
            ", ".join(f"`{status}`" for status, code in EXIT_CODES.items() if code == number),
            one["about"],
        )
        for number, one in codes.items()
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
    """Help is left out, and so are actions with parsers of their own, which get sections."""
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
