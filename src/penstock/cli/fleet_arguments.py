"""What can be typed about a fleet: the processes it is made of, and what a server keeps."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from penstock.cli.parser import (
    Command,
    Parser,
    as_json,
    base,
    count,
    database,
    dispatch,
    duration,
    results,
    seconds,
    server,
    store,
)

LISTEN = "127.0.0.1:8470"


def _serve(parser: Parser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"where to listen (default {LISTEN})")
    database(parser)
    results(parser)
    dispatch(parser)
    base(parser)
    _served(parser)
    _addresses(parser, "nothing")
    parser.add_argument("--name", metavar="NAME", help="what others see of this server (default: host and process id)")
    store(parser)


def _served(parser: Parser) -> None:
    parser.add_argument("--tls-cert", metavar="PATH", help="a certificate in PEM form: serve HTTPS")
    parser.add_argument("--tls-key", metavar="PATH", help="its key")
    parser.add_argument(
        "--no-auth", action="store_true", help="everybody who can reach the server may do everything; think twice"
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name by which it may be asked without a token, beside `localhost`, the name of this machine and addresses; "
        "may be repeated (default: PENSTOCK_ALLOW_HOST)",
    )
    parser.add_argument(
        "--lease",
        metavar="SECONDS",
        type=_lease,
        default=10.0,
        help="a server or worker that is not heard of for so long has lost its work (default 10)",
    )
    parser.add_argument(
        "--max-body", metavar="BYTES", type=count, default=None, help="the largest request (default 10485760)"
    )
    parser.add_argument(
        "--slots",
        metavar="N",
        type=count,
        default=None,
        help="how much a worker does at a time (default: PENSTOCK_SLOTS, else 4)",
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="when stopped, how long tasks may go on to their end (default 10)",
    )


def _addresses(parser: Parser, otherwise: str) -> None:
    parser.add_argument(
        "--allow-address",
        metavar="WHAT",
        action="append",
        default=[],
        help="what tasks and alerts may reach beside public addresses: `loopback`, `private`, `link-local`, a network such as "
        f"10.1.0.0/16, a host name, or `any`; may be repeated (default: PENSTOCK_ALLOW_ADDRESS, else {otherwise})",
    )


def _lease(text: str) -> float:
    value = seconds(text)
    if value < 1:
        raise ArgumentTypeError(f"`{text}` is too short: 1 second at the least")
    return value


def _worker(parser: Parser) -> None:
    database(parser)
    results(parser)
    dispatch(parser)
    base(parser)
    parser.add_argument("--pool", metavar="NAME", help="the pool it works in (default: PENSTOCK_POOL, else `default`)")
    parser.add_argument(
        "--slots",
        metavar="N",
        type=count,
        default=None,
        help="how much it does at a time (default: PENSTOCK_SLOTS, else 4)",
    )
    parser.add_argument(
        "--label",
        metavar="WORD",
        action="append",
        default=[],
        help="something it has, such as `gpu`, for steps that need it; may be repeated",
    )
    _addresses(parser, "nothing")
    parser.add_argument("--name", metavar="NAME", help="what others see of it (default: host and process id)")
    parser.add_argument(
        "--lease", metavar="SECONDS", type=_lease, default=10.0, help="as the servers have it (default 10)"
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="when stopped, how long tasks may go on to their end (default 10)",
    )
    store(parser)


def _up(parser: Parser) -> None:
    parser.add_argument("--workers", metavar="N", type=count, default=2, help="how many workers (default 2)")
    parser.add_argument("--pool", metavar="NAME", help="the pool they work in (default: PENSTOCK_POOL, else `default`)")
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"where to listen (default {LISTEN})")
    database(parser)
    results(parser)
    dispatch(parser)
    base(parser)
    _served(parser)
    _addresses(parser, "`loopback`")
    parser.add_argument(
        "--verbose", action="store_true", help="also say which database it uses, as `--database` takes it"
    )
    store(parser)


def _prune(parser: Parser) -> None:
    parser.add_argument(
        "--older-than", metavar="TIME", type=duration, required=True, help="runs that ended so long ago, such as `30d`"
    )
    parser.add_argument("--keep-failed", action="store_true", help="but not those that failed")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    store(parser)
    database(parser)
    results(parser)
    server(parser)
    as_json(parser)


Add = Callable[[Parser], None]


def _actions(parser: Parser, **added: tuple[str, Add | None]) -> None:
    """Sub-commands, each with what all of them take: where the server's things are."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for name, (said, add) in added.items():
        one: Any = actions.add_parser(
            name, help=said, description=said[:1].upper() + said[1:] + ".", allow_abbrev=False
        )
        if add is not None:
            add(one)
        store(one)
        database(one)
        server(one)
        as_json(one)


def _named(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def _token(parser: Parser) -> None:
    def add(one: Parser) -> None:
        _named(one)
        one.add_argument(
            "--scope", choices=("read", "run", "admin"), default="run", help="what it may do (default run)"
        )
        one.add_argument("--expires", metavar="TIME", type=duration, help="for so long, such as `90d`")

    def revoke(one: Parser) -> None:
        one.add_argument("token", metavar="ID", help="its id, as `list` shows it, or its name")

    _actions(
        parser,
        add=("make a token; its secret is printed once", add),
        list=("names, scopes and dates, never secrets", None),
        revoke=("revoke a token", revoke),
    )


def _workers(parser: Parser) -> None:
    parser.add_argument("--leases", action="store_true", help="also what waits and what is held")
    store(parser)
    database(parser)
    server(parser)
    as_json(parser)


def _what_runs(one: Parser) -> None:
    one.add_argument("path", metavar="PATH", help="a document of the catalog")
    one.add_argument("--version", metavar="N", type=count, default=None, help="always this version, not the newest")
    one.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a value of the workload; repeatable"
    )
    one.add_argument("--payload", metavar="JSON|@FILE", help="values of the workload as a JSON object")
    one.add_argument("--context", metavar="NAME", help="of a job: a group of its context")


def _schedule(parser: Parser) -> None:
    def add(one: Parser) -> None:
        _named(one)
        one.add_argument("cron", metavar="CRON", help="such as '0 6 * * 1-5' or '@daily'")
        _what_runs(one)
        one.add_argument("--zone", metavar="ZONE", default="UTC", help="the time zone it is read in (default UTC)")
        one.add_argument(
            "--missed",
            choices=("all", "last", "none"),
            default="last",
            help="what becomes of slots that passed while nobody was there (default last)",
        )
        one.add_argument(
            "--overlap",
            choices=("allow", "skip", "queue", "cancel"),
            default="allow",
            help="what becomes of a slot while an earlier run of the schedule is still going: both run, the slot is skipped, "
            "it waits, or the earlier run is cancelled (default allow)",
        )
        one.add_argument(
            "--deadline",
            metavar="TIME",
            type=duration,
            help="a run that has not ended so long after its slot is late, such as `30m`",
        )

    def show(one: Parser) -> None:
        _named(one)
        one.add_argument("--limit", metavar="N", type=count, default=20, help="of its newest slots (default 20)")

    _actions(
        parser,
        add=("make or change a schedule", add),
        list=("the schedules, and when each fires next", None),
        show=("a schedule, and what became of its slots", show),
        on=("let a schedule fire", _named),
        off=("keep a schedule from firing", _named),
        remove=("delete a schedule", _named),
    )


def _backfill(parser: Parser) -> None:
    parser.add_argument("name", metavar="SCHEDULE")
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help="the first slot: a date or a time, in the zone of the schedule"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="the last slot; of a date, the whole day")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--missing", action="store_true", help="only slots that never had a run")
    which.add_argument("--failed", action="store_true", help="only slots whose last run did not complete")
    parser.add_argument("--dry-run", action="store_true", help="only say which slots would run")
    parser.add_argument(
        "--at-once",
        metavar="N",
        type=count,
        default=1,
        help="so many of its runs may be going at a time, if the schedule has `--overlap allow` (default 1)",
    )
    parser.add_argument(
        "--name", dest="label", metavar="NAME", help="the same name again runs no slot twice (default: the period)"
    )
    parser.add_argument("--detach", action="store_true", help="do not wait for the runs")
    parser.add_argument("--stop", action="store_true", help="let the slots of its backfills wait no more; runs go on")
    store(parser)
    database(parser)
    server(parser)
    as_json(parser)


def _hook(parser: Parser) -> None:
    def add(one: Parser) -> None:
        _named(one)
        _what_runs(one)
        one.add_argument(
            "--secret", action="store_true", help="requests must be signed; the secret is read from stdin, or asked for"
        )

    _actions(
        parser,
        add=("make or change a hook: `POST /hooks/NAME` starts a run", add),
        list=("the hooks", None),
        on=("let a hook start runs", _named),
        off=("keep a hook from starting runs", _named),
        remove=("delete a hook", _named),
    )


def _alert(parser: Parser) -> None:
    def add(one: Parser) -> None:
        _named(one)
        one.add_argument(
            "--on",
            action="append",
            required=True,
            choices=("failed", "late", "missed"),
            help="a run that failed, a slot past its deadline, a slot that nobody ran; repeatable",
        )
        one.add_argument("--schedule", metavar="NAME", help="only of this schedule")
        one.add_argument("--document", metavar="PATH", help="only of this document of the catalog")
        one.add_argument("--label", metavar="WORD", help="only of runs with this label")
        where = one.add_mutually_exclusive_group(required=True)
        where.add_argument("--mail", metavar="TO", help="by mail; several addresses with commas")
        where.add_argument("--webhook", metavar="URL", help="a POST to this URL, or to that under `keychain:NAME`")
        one.add_argument("--smtp", metavar="HOST[:PORT]", help="the mail server")
        one.add_argument("--from", dest="sender", metavar="ADDRESS", help="the sender of the mail")
        one.add_argument(
            "--security", choices=("none", "starttls", "tls"), default="starttls", help="of the mail (default starttls)"
        )
        one.add_argument(
            "--auth",
            metavar="ENTRY",
            help="of the server's keychain: user name and password of the mail server, or the secret that signs the webhook",
        )

    def deliveries(one: Parser) -> None:
        _named(one)

    _actions(
        parser,
        add=("make or change an alert", add),
        list=("the alerts, and what became of them", None),
        show=("what an alert has told, and what it has still to tell", deliveries),
        test=("send a test now", _named),
        rm=("delete an alert", _named),
    )


def _state(parser: Parser) -> None:
    def document(one: Parser) -> None:
        one.add_argument("document", metavar="DOCUMENT", help="a file, or a path in the catalog")

    def keyed(one: Parser) -> None:
        document(one)
        one.add_argument("key", metavar="KEY", help="a name in `state`, or with `--watermark` a reader")
        one.add_argument("value", metavar="VALUE", help="JSON, or else text")
        one.add_argument("--watermark", action="store_true", help="what a reader has read up to")

    def remove(one: Parser) -> None:
        document(one)
        one.add_argument("key", metavar="KEY", nargs="?", help="only this (default: all that it keeps)")
        one.add_argument("--watermark", action="store_true", help="of a reader")

    _actions(
        parser,
        list=("what all documents keep", None),
        show=("what a document keeps, and which run set it", document),
        set=("say what the next run is to begin with", keyed),
        rm=("let a document keep something no more", remove),
    )


def _catalog(parser: Parser) -> None:
    def put(one: Parser) -> None:
        one.add_argument(
            "path",
            metavar="PATH",
            help="the name it goes by, such as `sales/orders`; or just a folder, whose name it gets",
        )
        one.add_argument("file", metavar="FILE|DIR", nargs="?", help="a playbook or a job; or a project, as a folder")

    def path(one: Parser) -> None:
        one.add_argument("path", metavar="PATH")

    def show(one: Parser) -> None:
        path(one)
        one.add_argument("--version", metavar="N", type=count, default=None, help="this version, not the newest")

    def diff(one: Parser) -> None:
        path(one)
        one.add_argument(
            "--from", dest="since", metavar="N", type=count, default=None, help="(default: the one before)"
        )
        one.add_argument("--to", metavar="N", type=count, default=None, help="(default: the newest)")

    def every(one: Parser) -> None:
        one.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only those whose path begins so")

    _actions(
        parser,
        put=("keep a document, or a folder as a project; other content than before is a new version", put),
        list=("the documents and projects, each in its newest version", every),
        show=("the text of a document, or the files of a project", show),
        diff=("what differs between two versions", diff),
        versions=("all versions of a document or project", path),
        remove=("take a document or project out of the catalog", path),
    )


FLEET_COMMANDS: dict[str, Command] = {
    "up": Command(
        "start a server and workers on this machine",
        "processes",
        _up,
        more="Without `--database` it has a PostgreSQL of its own in the state folder.",
    ),
    "serve": Command(
        "start a server: the API, and the executions it looks after",
        "processes",
        _serve,
        more="Without a database it is a fleet in one process. SIGTERM lets go of everything; another server goes on.",
    ),
    "worker": Command(
        "start a worker, which runs what servers hand out",
        "processes",
        _worker,
        more="SIGTERM drains it: it takes nothing more, ends what it can within the grace, and gives the rest back.",
    ),
    "workers": Command("who works, and on what", "administration", _workers),
    "catalog": Command("documents and projects that a server keeps by path and version", "catalog", _catalog),
    "schedule": Command("runs that start by the clock", "triggers", _schedule),
    "backfill": Command(
        "run slots of a schedule that are in the past",
        "triggers",
        _backfill,
        more="The slots run in order on the server, each with its own time in `workload.event.slot`.",
    ),
    "alert": Command(
        "tell people what went wrong, by mail or webhook",
        "alert",
        _alert,
        more="Passwords and secrets are entries of the keychain on the servers: `penstock keychain set NAME`.",
    ),
    "state": Command(
        "what documents keep from run to run",
        "state",
        _state,
        more="Values that a playbook sets with `set: {state.x: …}`, and the watermarks of readers with `incremental`.",
    ),
    "hook": Command("runs that start on a request from outside", "triggers", _hook),
    "token": Command("who may ask a server for what", "administration", _token),
    "prune": Command("delete old runs, and results that nothing refers to any more", "administration", _prune),
}
