"""What can be typed. Nothing but the standard library is imported here, so that `--help` is there at once.

Only the parser of the command that was typed is built; the commands' own code is imported after it has accepted the line.
"""

from __future__ import annotations

from penstock.cli.fleet_arguments import FLEET_COMMANDS
from penstock.cli.parser import (
    BESIDE,
    RUN,
    Command,
    CommandLineError,
    Parser,
    as_json,
    count,
    database,
    label,
    meant,
    one_run,
    results,
    seconds,
    server,
    since,
    store,
)

DOCUMENT = "a playbook or a job"
STATUSES = ("running", "completed", "failed", "cancelled", "interrupted")


def _running(parser: Parser) -> None:
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=seconds,
        default=1.0,
        help="when interrupted, how long tasks may go on to their end (default 1)",
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress, only the result or the error")


def _values(parser: Parser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a value of the workload or context; the key may be dotted, the value is read as YAML; may be repeated",
    )
    parser.add_argument(
        "--payload", metavar="JSON|@FILE", help="values of the workload or context as a JSON object, or a file with one"
    )
    parser.add_argument("--context", metavar="NAME", help="of a job: a group of its context, laid over the defaults")


def _run(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help=DOCUMENT)
    _values(parser)
    parser.add_argument(
        "--name", metavar="LABEL", type=label, help="a label for this run, by which it can be called later"
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument(
        "--keep",
        metavar="COMPONENT[.PORT]",
        action="append",
        default=[],
        help="of a job: store the rows of this port, for `penstock.rows` in Python; may be repeated",
    )
    _running(parser)
    parser.add_argument(
        "--detach", "-d", action="store_true", help="with a server: start the run, print its id and leave it"
    )
    store(parser, BESIDE)
    server(parser)
    _patience(parser)
    as_json(parser)


def _patience(parser: Parser) -> None:
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="with a server: how long to look for one that answers, when none does while the run goes (default 60)",
    )


def _watch(parser: Parser) -> None:
    one_run(parser)
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress, only the result or the error")
    _patience(parser)
    as_json(parser)


def _resume(parser: Parser) -> None:
    one_run(parser)
    parser.add_argument(
        "--failed",
        action="store_true",
        help="of a job that completed with failed iterations: run these again, and what follows from them",
    )
    _running(parser)
    _patience(parser)
    as_json(parser)


def _files(parser: Parser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a playbook, a job or a joblet")
    _values(parser)
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    store(parser, BESIDE)
    server(parser)
    as_json(parser)


def _validate(parser: Parser) -> None:
    _files(parser)
    parser.add_argument("--quiet", "-q", action="store_true", help="errors only, no warnings")


def _plan(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help=DOCUMENT)
    server(parser)
    as_json(parser)


def _graph(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help=DOCUMENT)
    parser.add_argument(
        "--format", choices=("mermaid", "dot", "svg", "json"), default=None, help="default: mermaid, or what -o ends in"
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="write to a file instead of stdout")
    server(parser)


def _runs(parser: Parser) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--status", choices=STATUSES, help="only runs with this status")
    chosen.add_argument(
        "--failed", action="store_const", const="failed", dest="status", help="the same as `--status failed`"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="only runs of the playbook or job of this name, or with this label"
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=since,
        help="only runs that started then or later: `2h`, `3d`, `2026-01-31`, `2026-01-31T06:00`",
    )
    parser.add_argument("--limit", metavar="N", type=count, default=20, help="the newest N of them (default 20)")
    store(parser)
    server(parser)
    database(parser)
    as_json(parser, "print one JSON object with a list of runs")


def _show(parser: Parser) -> None:
    one_run(parser)
    as_json(parser)


def _events(parser: Parser) -> None:
    one_run(parser)
    parser.add_argument("--json", action="store_true", help="one event envelope a line")
    parser.add_argument(
        "--canonical",
        action="store_true",
        help="in the order of the logical clock and without wall-clock fields, as JSON lines: equal runs print the same",
    )
    parser.add_argument("--hash", action="store_true", help="with --canonical: only one hash of it all")
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the run is over")


def _logs(parser: Parser) -> None:
    one_run(parser)
    parser.add_argument("--follow", "-f", action="store_true", help="go on until the run is over")
    parser.add_argument(
        "--step", "--component", metavar="NAME", dest="step", help="only lines of this step, step run or component"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def _explain(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "node",
        metavar="NODE",
        help="a step, step run, task or iteration: fetch, fetch@2, fetch/save, fetch[5]; of a job a component, iteration "
        "or sub-job: load, each[#5], each[#5].load, '<load>'",
    )
    store(parser)
    server(parser)
    as_json(parser)


def _cancel(parser: Parser) -> None:
    one_run(parser)
    database(parser)
    results(parser)
    parser.add_argument("--reason", metavar="TEXT", default="cancelled on request", help="kept in the log")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="how long to wait for its end (default 30)"
    )
    as_json(parser)


def _tools(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", nargs="?", help="one kind of tool, with its parameters and an example")
    as_json(parser)


def _components(parser: Parser) -> None:
    parser.add_argument(
        "type", metavar="NAME", nargs="?", help="one type of component, with its ports, parameters and an example"
    )
    as_json(parser)


def _lineage(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a job")
    parser.add_argument(
        "column", metavar="COMPONENT[.COLUMN]", nargs="?", help="only what this component, or column of it, is made of"
    )
    as_json(parser)
    parser.add_argument("--mermaid", action="store_true", help="as a Mermaid graph")


def _preview(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a job")
    parser.add_argument(
        "component",
        metavar="COMPONENT[.PORT]",
        help="whose rows to show: orders, orders.reject, in a joblet call.__member; without a port, its main one",
    )
    parser.add_argument("--rows", metavar="N", type=count, default=20, help="how many rows (default 20)")
    _values(parser)
    store(parser, BESIDE)
    as_json(parser)


KINDS = ("playbook", "job", "joblet")
KIND = "playbook, job or joblet (default: playbook)"


def _schema(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=KINDS, nargs="?", default="playbook", help=KIND)


def _init(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", help="a folder, which is made if it is not there")


def _new(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=KINDS, nargs="?", default=None, help=KIND)
    parser.add_argument("name", metavar="NAME", help="its name; the file is NAME.yaml")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _keychain(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    put = actions.add_parser(
        "set", help="store a secret; the value is asked for, or read from stdin", allow_abbrev=False
    )
    put.add_argument("name", metavar="NAME")
    put.add_argument("--mapping", action="store_true", help="the value is a JSON or YAML mapping, such as a credential")
    every = actions.add_parser("list", help="names and dates, never values", allow_abbrev=False)
    remove = actions.add_parser("remove", help="forget a secret", allow_abbrev=False)
    remove.add_argument("name", metavar="NAME")
    for one in (put, every, remove):
        store(one)
        as_json(one)


def _doctor(parser: Parser) -> None:
    parser.add_argument(
        "--log", action="store_true", help="read every event and result of the store, and say what is damaged"
    )
    database(parser)
    store(parser)
    as_json(parser)


COMMANDS: dict[str, Command] = {
    "run": Command("run a playbook or a job", "run", _run),
    "validate": Command("report every error and warning in a file", "check", _validate),
    "lint": Command("report errors, warnings and notes", "check", _files),
    "plan": Command("print the lowered form: what will really run", "plan", _plan),
    "graph": Command("draw steps and arcs, or components and links (Mermaid, DOT, SVG)", "plan", _graph),
    "preview": Command("run just what is needed of a job and show the rows of a port", "preview", _preview),
    "lineage": Command("where the columns of a job come from (text, JSON, Mermaid)", "lineage", _lineage),
    "init": Command("write a small project to start from: a playbook, a job, tests", "new", _init),
    "new": Command("write a small playbook, job or joblet to start from", "new", _new),
    "runs": Command("list runs, newest first", "runs", _runs),
    "show": Command("what a run came to, step by step or component by component", "show", _show),
    "events": Command("the events of a run", "events", _events),
    "logs": Command("what the tools and components of a run printed", "events", _logs),
    "explain": Command("why a step or component ran, waits, was skipped, failed or was retried", "show", _explain),
    "watch": Command("show a run that another process or a server works on, until it ends", "run", _watch),
    "resume": Command("go on after a crash, an interruption or a failure", "run", _resume),
    "replay": Command("decide a run again from its recorded outcomes and compare", "run", _show),
    "cancel": Command("stop a run for good", "cancel", _cancel),
    "tools": Command("the kinds of tools of playbooks, and their parameters", "plugins", _tools),
    "components": Command("the types of components of jobs, and their parameters", "plugins", _components),
    "schema": Command("the JSON Schema of a playbook, job or joblet, for editors", "plugins", _schema),
    "keychain": Command("store, list and remove secrets of this machine", "keychain", _keychain),
    "doctor": Command("check this machine and the state folder", "doctor", _doctor),
    **FLEET_COMMANDS,
}


def parser_for(name: str, command: Command) -> Parser:
    parser = Parser(
        prog=f"penstock {name}", description=_sentence(command.summary), epilog=command.more, allow_abbrev=False
    )
    command.add(parser)
    return parser


def top_help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: penstock COMMAND …",
            "",
            "One event-sourced engine that runs playbooks and jobs, with a log that can always say why.",
            "",
            *lines,
            "",
            "`penstock COMMAND --help` shows what a command takes; `penstock --version` the version.",
            "",
        ]
    )


def unknown_command(name: str) -> CommandLineError:
    if name.startswith("-"):
        return CommandLineError(f"`penstock` has no option `{name}`", "`penstock --help` lists the commands")
    close = meant(name, list(COMMANDS))
    if not close and name.endswith((".yaml", ".yml")):
        close = f"; to run that file, write `penstock run {name}`"
    return CommandLineError(f"there is no command `{name}`{close}", "`penstock --help` lists the commands")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


__all__ = ["COMMANDS", "Command", "CommandLineError", "Parser", "parser_for", "top_help", "unknown_command"]
