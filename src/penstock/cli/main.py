"""The entry point of the command line. Whatever happens, a person gets a message and a script an exit code; never a traceback.

Exit codes (D24): 0 completed · 1 the run failed · 2 the document or the command line is wrong · 3 interrupted and resumable ·
4 the engine itself failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from penstock.cli.arguments import COMMANDS, CommandLineError, parser_for, top_help, unknown_command
from penstock.cli.output import open_streams, silence

DEBUG = "PENSTOCK_DEBUG"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    open_streams()
    try:
        return _flushed(_dispatched(arguments))
    except SystemExit as stop:  # argparse, after it has printed a help text
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    except BrokenPipeError:
        return _flushed(0)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return 3
    except Exception as error:  # The last resort: see the docstring.
        if os.environ.get(DEBUG):
            import traceback  # `--help` starts without it.

            traceback.print_exc()
        return _reported(error, as_json=as_json)


def _reported(error: Exception, *, as_json: bool) -> int:
    from penstock.cli.errors import report  # `--help` starts without it.

    try:
        return report(error, as_json=as_json)
    except OSError:  # Nothing can be written to stdout, which may be the very error.
        silence(sys.stdout)
        return report(error, as_json=False)


def _dispatched(arguments: list[str]) -> int:
    for argument in arguments:
        if not argument.isascii() and argument.encode("utf-8", "replace").decode() != argument:
            shown = argument.encode("utf-8", "replace").decode()
            raise CommandLineError(f"`{shown}` is not UTF-8", "rename the file, or write the argument in UTF-8")
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        if len(arguments) > 1 and arguments[0] == "help":
            return _dispatched([arguments[1], "--help"])
        sys.stdout.write(top_help())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        from penstock import __version__  # `--help` starts without it.

        sys.stdout.write(f"penstock {__version__}\n")
        return 0
    name, *rest = arguments
    command = COMMANDS.get(name)
    if command is None:
        raise unknown_command(name)
    options = parser_for(name, command).parsed(rest)
    module = import_module(f"penstock.cli.commands.{command.module}")
    code: int = getattr(module, name)(options)
    return code


def _flushed(code: int) -> int:
    """A reader that leaves early, such as `head`, does not change the exit code; a failed write does."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            silence(stream)
        except OSError as error:
            silence(stream)
            if stream is sys.stdout:
                code = _reported(error, as_json=False)
    return code


__all__ = ["CommandLineError", "main"]
