"""What all command lines have in common: the parser, the kinds of arguments, their types, and the wording of mistakes.

Nothing but the standard library is imported here, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from typing import Any, NoReturn, Protocol

OTHER_OPTIONS = {
    "--port": "--listen", "--host": "--listen", "--bind": "--listen", "--address": "--listen", "--db": "--database",
    "--var": "--set", "--param": "--set", "--input": "--set", "--env": "--context", "--label": "--name", "--url": "--server",
}  # fmt: skip
"""What other programs call an option of ours."""


Adding = argparse._ActionsContainer


class CommandLineError(Exception):
    """The command line is wrong: exit 2."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, and says what was probably meant."""

    def parsed(self, arguments: list[str]) -> argparse.Namespace:
        """Also accepts an optional positional argument after the options, which `parse_args` alone does not."""
        may_be_left_out = any(action.nargs == "?" and not action.option_strings for action in self._actions)
        if may_be_left_out and "--" not in arguments:
            return self.parse_intermixed_args(arguments)
        return self.parse_args(arguments)

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows what it takes"
        word = message.rpartition(": ")[2].split(" ")[0]
        if message.startswith("unrecognized arguments") and word.startswith("-"):
            known = [option for action in self._actions for option in action.option_strings]
            if word.partition("=")[0] in known:
                raise CommandLineError(f"`{word}` stands after `--`, where options end", "put the options before `--`")
            option = word.partition("=")[0]
            other = OTHER_OPTIONS.get(option)
            close = f"; did you mean `{other}`?" if other in known else meant(option, known)
            message = f"`{self.prog}` has no option `{option}`{close}"
        elif message.startswith("the following arguments are required"):
            message = f"`{self.prog}` needs {message.rpartition(': ')[2]}"
            if "FILE" in message:
                hint += "; a name that begins with `-` is written as `./-name`"
        elif message.startswith("unrecognized arguments"):
            message = f"`{self.prog}` does not take `{word}`"
        elif message.startswith("argument "):
            message = self._about_one(message)
        raise CommandLineError(message, hint)

    def _about_one(self, message: str) -> str:
        """What is wrong with one argument, in words of our own."""
        name, _, reason = message.removeprefix("argument ").partition(": ")
        name = name.split("/")[0]
        if reason.startswith("expected"):
            return f"`{name}` needs a value"
        if reason.startswith("invalid choice: "):
            text, _, rest = reason.removeprefix("invalid choice: ").partition(" (choose from ")
            word, known = text.strip("'"), [one.strip("' ") for one in rest.rstrip(")").split(",")]
            listed = ", ".join(f"`{one}`" for one in known)
            return f"`{name}` is one of {listed}, not `{word}`{meant(word, known)}"
        return f"`{name}`: {reason}"


def seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds from 0 on")


def count(text: str) -> int:
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 on")


def label(text: str) -> str:
    if not text.strip() or text.startswith("@"):
        raise argparse.ArgumentTypeError("a label is a word of your own, and does not begin with `@`")
    return text


def duration(text: str) -> float:
    """Seconds, from texts such as `90s`, `12h`, `30d`."""
    from penstock.ports.moments import seconds_in  # `--help` starts without it.

    found = seconds_in(text)
    if found is not None:
        return found
    raise argparse.ArgumentTypeError(f"`{text}` is not a time such as `45s`, `90m`, `12h`, `30d` or `8w`")


def since(text: str) -> float:
    """Seconds since the epoch, from a duration ago or a date; a date without a time zone is in that of this machine."""
    from penstock.ports.moments import moment_of  # `--help` starts without it.

    found = moment_of(text, time.time(), zone=None)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a time such as `90m`, `2h`, `3d`, `2026-01-31` or `2026-01-31T06:00`"
        )
    return found


def meant(word: str, known: list[str]) -> str:
    from difflib import get_close_matches  # `--help` starts without it.

    bare = {each.lstrip("-"): each for each in known}  # The dashes alone would make all options look alike.
    close = [bare[each] for each in get_close_matches(word.lstrip("-"), bare, 1, 0.5)]
    return f"; did you mean `{close[0]}`?" if close else ""


NUMBERS = {"N": count, "BYTES": count, "SECONDS": seconds}


class Argument(Protocol):
    def add_to(self, parser: Adding) -> None: ...


class Option:
    """One argument in the words of its usage: `--set KEY=VALUE …` takes a value and may be repeated, `--quiet -q` takes none,
    `file FILE` is positional. A value that is called N or SECONDS is a number. `more` is as `add_argument` takes it."""

    def __init__(self, usage: str, help: str | None = None, **more: Any) -> None:
        words = usage.split()
        self.names = [word for word in words if word.startswith("-")] or words[:1]
        value = [word for word in words if word not in self.names]
        self.more = {"help": help, **more}
        if value:
            self.more = {"metavar": value[0], "type": NUMBERS.get(value[0]), **self.more}
        elif "choices" not in more and "action" not in more and self.names[0].startswith("-"):
            self.more["action"] = "store_true"
        if value[1:] == ["…"]:
            self.more |= {"action": "append", "default": []}

    def add_to(self, parser: Adding) -> None:
        parser.add_argument(*self.names, **self.more)


class OneOf:
    """Options that exclude each other."""

    def __init__(self, *options: Option, required: bool = False) -> None:
        self.options = options
        self.required = required

    def add_to(self, parser: Adding) -> None:
        group = parser.add_mutually_exclusive_group(required=self.required)
        for option in self.options:
            option.add_to(group)


class Actions:
    """The actions of a command, each with its summary and arguments, and with those that `all` of them take."""

    def __init__(self, *all: Argument, **each: tuple[str, *tuple[Argument, ...]]) -> None:
        self.all = all
        self.each = each

    def add_to(self, parser: Adding) -> None:
        assert isinstance(parser, Parser)
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
        for name, (summary, *arguments) in self.each.items():
            one: Parser = actions.add_parser(name, help=summary, description=sentence(summary), allow_abbrev=False)
            for argument in (*arguments, *self.all):
                argument.add_to(one)


class Command:
    """`module` of `penstock.cli.commands` has the function with the command's name; `more` stands below its help."""

    def __init__(self, summary: str, module: str, *arguments: Argument, more: str = "") -> None:
        self.summary = summary
        self.module = module
        self.arguments = arguments
        self.more = more


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
