"""The commands and their arguments. Nothing but the standard library is imported here, so that `--help` answers at once.

Only the parser of the command that was typed is built; the commands' own code is imported after it has accepted the line.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from penstock.cli.parser import (
    Actions,
    Command,
    CommandLineError,
    OneOf,
    Option,
    Parser,
    duration,
    label,
    meant,
    seconds,
    sentence,
    since,
)

STATUSES = ("running", "completed", "failed", "cancelled", "interrupted", "crashed")
KINDS = ("playbook", "job", "joblet")
LISTEN = "127.0.0.1:8470"


def _lease(text: str) -> float:
    value = seconds(text)
    if value < 1:
        raise ArgumentTypeError(f"`{text}` is too short: 1 second at the least")
    return value


# ---- Arguments that several commands take


def _store(otherwise: str) -> Option:
    return Option("--store PATH", f"the state folder (default: PENSTOCK_HOME, else {otherwise})")


STORE = _store("`.penstock/` here, else the one used last below this folder")
STORE_BESIDE = _store("`.penstock/` beside the file")
JSON = Option("--json", "print exactly one JSON object")
SERVER = Option(
    "--server URL",
    "ask this server instead, or the first that answers of several with commas between them (default: "
    "PENSTOCK_SERVER; its token: PENSTOCK_TOKEN)",
)
DATABASE = Option("--database URL", "the PostgreSQL that servers and workers share (default: PENSTOCK_DATABASE)")
RESULTS = Option(
    "--results PLACE",
    "where large results go: `file:FOLDER`, `postgresql://…`, `nats://…`, `s3://…` (default: PENSTOCK_RESULTS, "
    "else the database, else the state folder)",
)
DISPATCH = Option(
    "--dispatch URL",
    "a NATS server, as `nats://HOST:4222` or `nats://HOST:4222/PREFIX`, over which servers and workers speak, so "
    "that workers need no database (default: PENSTOCK_DISPATCH, else the database does it)",
)
BASE = Option(
    "--base DIR",
    "where documents of the catalog read and write by relative paths what is no file of their project "
    "(default: PENSTOCK_BASE, else such paths are refused)",
)
STORES = (STORE, SERVER, DATABASE)
RUN_STORES = (STORE, DATABASE, RESULTS, SERVER)
DOCUMENT = Option("file FILE", "a playbook or a job")
JOB = Option("file FILE", "a job")
RUN = Option("run RUN", "the id of a run, a unique beginning of it, its label, or `@last`")
ONE_RUN = (RUN, STORE, SERVER)
STRICT = Option("--strict", "warnings are errors")
QUIET = Option("--quiet -q", "no progress, only the result or the error")
FOLLOW = Option("--follow -f", "go on until the run is over")
RUNNING = (
    Option("--grace SECONDS", "when interrupted, how long tasks may go on to their end (default 1)", default=1.0),
    QUIET,
)
PATIENCE = Option(
    "--patience SECONDS",
    "with a server: how long to look for one that answers, when none does while the run goes (default 60)",
    default=60.0,
)
VALUES = (
    Option(
        "--set KEY=VALUE …",
        "a value of the workload or context; the key may be dotted, the value is read as YAML; may be repeated",
    ),
    Option("--payload JSON|@FILE", "values of the workload or context as a JSON object, or a file with one"),
    Option("--context NAME", "of a job: a group of its context, laid over the defaults"),
)
FILES = (Option("files FILE", "a playbook, a job or a joblet", nargs="+"), *VALUES, STRICT, STORE_BESIDE, SERVER, JSON)
KIND = "playbook, job or joblet (default: playbook)"


PAGE = (Option("--no-open", "do not open a browser, only print the address"),)


# ---- Arguments of a fleet


SHARED = (DATABASE, RESULTS, DISPATCH, BASE)
KEPT = (STORE, DATABASE, SERVER, JSON)
"""Where to look for what a server keeps."""
LISTENING = Option("--listen HOST:PORT", f"where to listen (default {LISTEN})", default=LISTEN)
GRACE = Option("--grace SECONDS", "when stopped, how long tasks may go on to their end (default 10)", default=10.0)
SERVED = (
    Option("--tls-cert PATH", "a certificate in PEM form: serve HTTPS"),
    Option("--tls-key PATH", "its key"),
    Option("--no-auth", "everybody who can reach the server may do everything; think twice"),
    Option(
        "--allow-host NAME …",
        "a name by which it may be asked without a token, beside `localhost`, the name of this machine and addresses; "
        "may be repeated (default: PENSTOCK_ALLOW_HOST)",
    ),
    Option(
        "--lease SECONDS",
        "a server or worker that is not heard of for so long has lost its work (default 10)",
        type=_lease,
        default=10.0,
    ),
    Option("--max-body BYTES", "the largest request (default 10485760)"),
    Option("--slots N", "how much a worker does at a time (default: PENSTOCK_SLOTS, else 4)"),
    GRACE,
)


def _addresses(otherwise: str) -> Option:
    return Option(
        "--allow-address WHAT …",
        "what tasks and alerts may reach beside public addresses: `loopback`, `private`, `link-local`, a network such as "
        f"10.1.0.0/16, a host name, or `any`; may be repeated (default: PENSTOCK_ALLOW_ADDRESS, else {otherwise})",
    )


NAME = Option("name NAME")
PATH = Option("path PATH")
STATE_DOCUMENT = Option("document DOCUMENT", "a file, or a path in the catalog")
WHAT_RUNS = (
    Option("path PATH", "a document of the catalog"),
    Option("--version N", "always this version, not the newest"),
    Option("--set KEY=VALUE …", "a value of the workload; repeatable"),
    Option("--payload JSON|@FILE", "values of the workload as a JSON object"),
    Option("--context NAME", "of a job: a group of its context"),
)


# ---- The commands


COMMANDS: dict[str, Command] = {
    "run": Command(
        "run a playbook or a job",
        "run",
        DOCUMENT,
        *VALUES,
        Option("--name LABEL", "a label for this run, by which it can be called later", type=label),
        STRICT,
        Option(
            "--keep COMPONENT[.PORT] …",
            "of a job: store the rows of this port, for `penstock.rows` in Python; may be repeated",
        ),
        *RUNNING,
        Option("--ui", "show the run on the web page, which stays open until Ctrl-C"),
        *PAGE,
        Option("--detach -d", "with a server: start the run, print its id and leave it"),
        STORE_BESIDE,
        SERVER,
        PATIENCE,
        JSON,
    ),
    "ui": Command(
        "open the web page on the runs and documents of this folder",
        "page",
        *PAGE,
        Option("--project DIR", "the folder whose documents can be looked at, edited and run (default: this one)"),
        Option("--listen HOST:PORT", "where to listen: on this machine only (default: any free port)"),
        Option("--slots N", "how much it does at a time (default: PENSTOCK_SLOTS, else 4)"),
        Option("--grace SECONDS", "when stopped, how long tasks may go on to their end (default 1)", default=1.0),
        _store("`.penstock/` in the project, else the one used last below this folder"),
        more="Only you can reach it: it listens on this machine, and the address that it opens has a token in it. Runs of other "
        "processes are only shown. Ctrl-C stops it; what it is running then can be resumed.",
    ),
    "validate": Command(
        "report every error and warning in a file",
        "documents",
        *FILES,
        Option("--quiet -q", "errors only, no warnings"),
    ),
    "lint": Command("report errors, warnings and notes", "documents", *FILES),
    "convert": Command(
        "rewrite documents in today's words, keeping comments and layout",
        "convert",
        Option("file FILE|DIR", "a document, or a folder with documents"),
        Option("--to DIR", "write there (default: in place)"),
        Option("--check", "write nothing; exit 1 if something would be written"),
        JSON,
        more="Words of other engines and of older versions become those of today; what needs a decision and what cannot be "
        "carried over is listed with its line. Packages can bring converters for other tools.",
    ),
    "plan": Command("print the lowered form: what will really run", "documents", DOCUMENT, SERVER, JSON),
    "graph": Command(
        "draw steps and arcs, or components and links (Mermaid, DOT, SVG)",
        "documents",
        DOCUMENT,
        Option("--format", "default: mermaid, or what -o ends in", choices=("mermaid", "dot", "svg", "json")),
        Option("-o --output PATH", "write to a file instead of stdout"),
        SERVER,
    ),
    "preview": Command(
        "run just what is needed of a job and show the rows of a port",
        "preview",
        JOB,
        Option(
            "component COMPONENT[.PORT]",
            "whose rows to show: orders, orders.reject, in a joblet call.__member; without a port, its main one",
        ),
        Option("--rows N", "how many rows (default 20)", default=20),
        *VALUES,
        STORE_BESIDE,
        JSON,
    ),
    "lineage": Command(
        "where the columns of a job come from (text, JSON, Mermaid)",
        "lineage",
        JOB,
        Option("column COMPONENT[.COLUMN]", "only what this component, or column of it, is made of", nargs="?"),
        JSON,
        Option("--mermaid", "as a Mermaid graph"),
    ),
    "init": Command(
        "write a small project to start from: a playbook, a job, tests",
        "new",
        Option("folder DIR", "a folder, which is made if it is not there"),
    ),
    "new": Command(
        "write a small playbook, job or joblet to start from",
        "new",
        Option("kind KIND", KIND, choices=KINDS, nargs="?"),
        Option("name NAME", "its name; the file is NAME.yaml"),
        Option("--force", "replace a file that is there"),
    ),
    "runs": Command(
        "list runs, newest first",
        "runs",
        OneOf(
            Option(
                "--status",
                "only runs with this status; `crashed` is that of a run whose process is gone, and `interrupted` includes it",
                choices=STATUSES,
            ),
            Option("--failed", "the same as `--status failed`", action="store_const", const="failed", dest="status"),
        ),
        Option("--name NAME", "only runs of the playbook or job of this name, or with this label"),
        Option("--label LABEL", "only runs with this label"),
        Option("--kind", "only runs of playbooks, or of jobs", choices=("playbook", "job")),
        Option("--text TEXT", "only runs with this text in their name, label, id or file, in capitals or not"),
        Option(
            "--since TIME",
            "only runs that started then or later: `2h`, `3d`, `2026-01-31`, `2026-01-31T06:00`",
            type=since,
        ),
        Option("--until TIME", "only runs that started then or earlier; as `--since`", type=since),
        Option("--limit N", "the newest N of them (default 20)", default=20),
        *STORES,
        Option("--json", "print one JSON object with a list of runs"),
    ),
    "show": Command("what a run came to, step by step or component by component", "show", *ONE_RUN, JSON),
    "events": Command(
        "the events of a run",
        "events",
        *ONE_RUN,
        Option("--json", "one event envelope a line"),
        Option(
            "--canonical",
            "in the order of the logical clock and without wall-clock fields, as JSON lines: equal runs print the same",
        ),
        Option("--hash", "with --canonical: only one hash of it all"),
        FOLLOW,
    ),
    "logs": Command(
        "what the tools and components of a run printed",
        "events",
        *ONE_RUN,
        FOLLOW,
        Option("--step --component NAME", "only lines of this step, step run or component"),
        Option("--json", "one JSON object a line"),
    ),
    "explain": Command(
        "why a step or component ran, waits, was skipped, failed or was retried",
        "show",
        RUN,
        Option(
            "node NODE",
            "a step, step run, task or iteration: fetch, fetch@2, fetch/save, fetch[5]; of a job a component, iteration "
            "or sub-job: load, each[#5], each[#5].load, '<load>'",
        ),
        STORE,
        SERVER,
        JSON,
    ),
    "watch": Command(
        "show a run that another process or a server works on, until it ends", "run", *ONE_RUN, QUIET, PATIENCE, JSON
    ),
    "resume": Command(
        "go on after a crash, an interruption or a failure",
        "run",
        *ONE_RUN,
        Option(
            "--failed", "of a job that completed with failed iterations: run these again, and what follows from them"
        ),
        *RUNNING,
        PATIENCE,
        JSON,
    ),
    "replay": Command("decide a run again from its recorded outcomes and compare", "run", *ONE_RUN, JSON),
    "cancel": Command(
        "stop a run for good",
        "cancel",
        *ONE_RUN,
        DATABASE,
        RESULTS,
        Option("--reason TEXT", "kept in the log", default="cancelled on request"),
        Option("--timeout SECONDS", "how long to wait for its end (default 30)", default=30.0),
        JSON,
    ),
    "tools": Command(
        "the kinds of tools of playbooks, and their parameters",
        "plugins",
        Option("kind KIND", "one kind of tool, with its parameters and an example", nargs="?"),
        JSON,
    ),
    "components": Command(
        "the types of components of jobs, and their parameters",
        "plugins",
        Option("type NAME", "one type of component, with its ports, parameters and an example", nargs="?"),
        JSON,
    ),
    "schema": Command(
        "the JSON Schema of a playbook, job or joblet, for editors",
        "plugins",
        Option("kind KIND", KIND, choices=KINDS, nargs="?", default="playbook"),
    ),
    "keychain": Command(
        "store, list and remove secrets of this machine",
        "keychain",
        Actions(
            STORE,
            JSON,
            set=(
                "store a secret; the value is asked for, or read from stdin",
                NAME,
                Option("--mapping", "the value is a JSON or YAML mapping, such as a credential"),
            ),
            list=("names and dates, never values",),
            remove=("forget a secret", NAME),
        ),
    ),
    "doctor": Command(
        "check this machine and the state folder",
        "doctor",
        Option("--log", "read every event and result of the store, and say what is damaged"),
        DATABASE,
        STORE,
        JSON,
    ),
    "up": Command(
        "start a server and workers on this machine",
        "processes",
        Option("--workers N", "how many workers (default 2)", default=2),
        Option("--pool NAME", "the pool they work in (default: PENSTOCK_POOL, else `default`)"),
        LISTENING,
        *SHARED,
        *SERVED,
        _addresses("`loopback`"),
        Option("--verbose", "also say which database it uses, as `--database` takes it"),
        STORE,
        more="Without `--database` it has a PostgreSQL of its own in the state folder.",
    ),
    "serve": Command(
        "start a server: the API, and the executions it looks after",
        "processes",
        LISTENING,
        *SHARED,
        *SERVED,
        _addresses("nothing"),
        Option("--name NAME", "what others see of this server (default: host and process id)"),
        STORE,
        more="Without a database it is a fleet in one process. SIGTERM lets go of everything; another server goes on.",
    ),
    "worker": Command(
        "start a worker, which runs what servers hand out",
        "processes",
        *SHARED,
        Option("--pool NAME", "the pool it works in (default: PENSTOCK_POOL, else `default`)"),
        Option("--slots N", "how much it does at a time (default: PENSTOCK_SLOTS, else 4)"),
        Option("--label WORD …", "something it has, such as `gpu`, for steps that need it; may be repeated"),
        _addresses("nothing"),
        Option("--name NAME", "what others see of it (default: host and process id)"),
        Option("--lease SECONDS", "as the servers have it (default 10)", type=_lease, default=10.0),
        GRACE,
        STORE,
        more="SIGTERM drains it: it takes nothing more, ends what it can within the grace, and gives the rest back.",
    ),
    "workers": Command(
        "who works, and on what", "administration", Option("--leases", "also what waits and what is held"), *KEPT
    ),
    "catalog": Command(
        "documents and projects that a server keeps by path and version",
        "catalog",
        Actions(
            *KEPT,
            put=(
                "keep a document, or a folder as a project; other content than before is a new version",
                Option(
                    "path PATH", "the name it goes by, such as `sales/orders`; or just a folder, whose name it gets"
                ),
                Option("file FILE|DIR", "a playbook or a job; or a project, as a folder", nargs="?"),
            ),
            list=(
                "the documents and projects, each in its newest version",
                Option("prefix PREFIX", "only those whose path begins so", nargs="?", default=""),
            ),
            show=(
                "the text of a document, or the files of a project",
                PATH,
                Option("--version N", "this version, not the newest"),
            ),
            diff=(
                "what differs between two versions",
                PATH,
                Option("--from N", "(default: the one before)", dest="since"),
                Option("--to N", "(default: the newest)"),
            ),
            versions=("all versions of a document or project", PATH),
            remove=("take a document or project out of the catalog", PATH),
        ),
    ),
    "schedule": Command(
        "runs that start by the clock",
        "triggers",
        Actions(
            *KEPT,
            add=(
                "make or change a schedule",
                NAME,
                Option("cron CRON", "such as '0 6 * * 1-5' or '@daily'"),
                *WHAT_RUNS,
                Option("--zone ZONE", "the time zone it is read in (default UTC)", default="UTC"),
                Option(
                    "--missed",
                    "what becomes of slots that passed while nobody was there (default last)",
                    choices=("all", "last", "none"),
                    default="last",
                ),
                Option(
                    "--overlap",
                    "what becomes of a slot while an earlier run of the schedule is still going: both run, the slot is "
                    "skipped, it waits, or the earlier run is cancelled (default allow)",
                    choices=("allow", "skip", "queue", "cancel"),
                    default="allow",
                ),
                Option(
                    "--deadline TIME",
                    "a run that has not ended so long after its slot is late, such as `30m`",
                    type=duration,
                ),
            ),
            list=("the schedules, and when each fires next",),
            show=(
                "a schedule, and what became of its slots",
                NAME,
                Option("--limit N", "of its newest slots (default 20)", default=20),
            ),
            on=("let a schedule fire", NAME),
            off=("keep a schedule from firing", NAME),
            remove=("delete a schedule", NAME),
        ),
    ),
    "backfill": Command(
        "run slots of a schedule that are in the past",
        "triggers",
        Option("name SCHEDULE"),
        Option("--from TIME", "the first slot: a date or a time, in the zone of the schedule", dest="since"),
        Option("--to TIME", "the last slot; of a date, the whole day", dest="until"),
        OneOf(
            Option("--missing", "only slots that never had a run"),
            Option("--failed", "only slots whose last run did not complete"),
        ),
        Option("--dry-run", "only say which slots would run"),
        Option(
            "--at-once N",
            "so many of its runs may be going at a time, if the schedule has `--overlap allow` (default 1)",
            default=1,
        ),
        Option("--name NAME", "the same name again runs no slot twice (default: the period)", dest="label"),
        Option("--detach", "do not wait for the runs"),
        Option("--stop", "let the slots of its backfills wait no more; runs go on"),
        *KEPT,
        more="The slots run in order on the server, each with its own time in `workload.event.slot`.",
    ),
    "alert": Command(
        "tell people what went wrong, by mail or webhook",
        "triggers",
        Actions(
            *KEPT,
            add=(
                "make or change an alert",
                NAME,
                Option(
                    "--on",
                    "a run that failed, a slot past its deadline, a slot that nobody ran; repeatable",
                    action="append",
                    required=True,
                    choices=("failed", "late", "missed"),
                ),
                Option("--schedule NAME", "only of this schedule"),
                Option("--document PATH", "only of this document of the catalog"),
                Option("--label WORD", "only of runs with this label"),
                OneOf(
                    Option("--mail TO", "by mail; several addresses with commas"),
                    Option("--webhook URL", "a POST to this URL, or to that under `keychain:NAME`"),
                    required=True,
                ),
                Option("--smtp HOST[:PORT]", "the mail server"),
                Option("--from ADDRESS", "the sender of the mail", dest="sender"),
                Option(
                    "--security",
                    "of the mail (default starttls)",
                    choices=("none", "starttls", "tls"),
                    default="starttls",
                ),
                Option(
                    "--auth ENTRY",
                    "of the server's keychain: user name and password of the mail server, or the secret that signs the "
                    "webhook",
                ),
            ),
            list=("the alerts, and what became of them",),
            show=("what an alert has told, and what it has still to tell", NAME),
            test=("send a test now", NAME),
            rm=("delete an alert", NAME),
        ),
        more="Passwords and secrets are entries of the keychain on the servers: `penstock keychain set NAME`.",
    ),
    "state": Command(
        "what documents keep from run to run",
        "state",
        Actions(
            *KEPT,
            list=("what all documents keep",),
            show=("what a document keeps, and which run set it", STATE_DOCUMENT),
            set=(
                "say what the next run is to begin with",
                STATE_DOCUMENT,
                Option("key KEY", "a name in `state`, or with `--watermark` a reader"),
                Option("value VALUE", "JSON, or else text"),
                Option("--watermark", "what a reader has read up to"),
            ),
            rm=(
                "let a document keep something no more",
                STATE_DOCUMENT,
                Option("key KEY", "only this (default: all that it keeps)", nargs="?"),
                Option("--watermark", "of a reader"),
            ),
        ),
        more="Values that a playbook sets with `set: {state.x: …}`, and the watermarks of readers with `incremental`.",
    ),
    "hook": Command(
        "runs that start on a request from outside",
        "triggers",
        Actions(
            *KEPT,
            add=(
                "make or change a hook: `POST /hooks/NAME` starts a run",
                NAME,
                *WHAT_RUNS,
                Option("--secret", "requests must be signed; the secret is read from stdin, or asked for"),
            ),
            list=("the hooks",),
            on=("let a hook start runs", NAME),
            off=("keep a hook from starting runs", NAME),
            remove=("delete a hook", NAME),
        ),
    ),
    "token": Command(
        "who may ask a server for what",
        "administration",
        Actions(
            *KEPT,
            add=(
                "make a token; its secret is printed once",
                NAME,
                Option("--scope", "what it may do (default run)", choices=("read", "run", "admin"), default="run"),
                Option("--expires TIME", "for so long, such as `90d`", type=duration),
            ),
            list=("names, scopes and dates, never secrets",),
            revoke=("revoke a token", Option("token ID", "its id, as `list` shows it, or its name")),
        ),
    ),
    "prune": Command(
        "delete old runs, and results that nothing refers to any more",
        "administration",
        Option("--older-than TIME", "runs that ended so long ago, such as `30d`", type=duration, required=True),
        Option("--keep-failed", "but not those that failed"),
        Option("--dry-run", "only say what would go"),
        *RUN_STORES,
        JSON,
    ),
}


def parser_for(name: str, command: Command) -> Parser:
    parser = Parser(
        prog=f"penstock {name}", description=sentence(command.summary), epilog=command.more, allow_abbrev=False
    )
    for argument in command.arguments:
        argument.add_to(parser)
    return parser


def top_help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.summary}\n" for name, command in COMMANDS.items()]
    return (
        "usage: penstock COMMAND …\n\n"
        "One event-sourced engine that runs playbooks and jobs, with a log that can always say why.\n\n"
        f"{''.join(lines)}\n"
        "`penstock COMMAND --help` shows what a command takes; `penstock --version` the version.\n"
    )


def unknown_command(name: str) -> CommandLineError:
    if name.startswith("-"):
        return CommandLineError(f"`penstock` has no option `{name}`", "`penstock --help` lists the commands")
    close = meant(name, list(COMMANDS))
    if not close and name.endswith((".yaml", ".yml")):
        close = f"; to run that file, write `penstock run {name}`"
    return CommandLineError(f"there is no command `{name}`{close}", "`penstock --help` lists the commands")


__all__ = ["COMMANDS", "Command", "CommandLineError", "Parser", "parser_for", "top_help", "unknown_command"]
