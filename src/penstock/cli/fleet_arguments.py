"""What can be typed about a fleet: the processes it is made of, and what a server keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.cli.parsing import (
    Command,
    Parser,
    as_json,
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
        help="what tasks may reach beside public addresses: `loopback`, `private`, `link-local`, a network such as "
        f"10.1.0.0/16, a host name, or `any`; may be repeated (default: PENSTOCK_ALLOW_ADDRESS, else {otherwise})",
    )


def _lease(text: str) -> float:
    from argparse import ArgumentTypeError

    value = seconds(text)
    if value < 1:
        raise ArgumentTypeError(f"`{text}` is too short: 1 second at the least")
    return value


def _worker(parser: Parser) -> None:
    database(parser)
    results(parser)
    dispatch(parser)
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
        revoke=("make a token useless", revoke),
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


def _schedule(parser: Parser) -> None:
    def add(one: Parser) -> None:
        _named(one)
        one.add_argument("cron", metavar="CRON", help="such as '0 6 * * 1-5' or '@daily'")
        _what_runs(one)
        one.add_argument("--zone", metavar="ZONE", default="UTC", help="the time zone it is read in (default UTC)")
        one.add_argument("--context", metavar="NAME", help="of a job: a group of its context")
        one.add_argument(
            "--missed",
            choices=("all", "last", "none"),
            default="last",
            help="what becomes of slots that passed while nobody was there (default last)",
        )

    _actions(
        parser,
        add=("make or change a schedule", add),
        list=("the schedules, and when each fires next", None),
        on=("let a schedule fire", _named),
        off=("keep a schedule from firing", _named),
        remove=("delete a schedule", _named),
    )


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


def _catalog(parser: Parser) -> None:
    def put(one: Parser) -> None:
        one.add_argument("path", metavar="PATH", help="the name it goes by, such as `sales/orders`")
        one.add_argument("file", metavar="FILE", help="a playbook or a job")

    def path(one: Parser) -> None:
        one.add_argument("path", metavar="PATH")

    def show(one: Parser) -> None:
        path(one)
        one.add_argument("--version", metavar="N", type=count, default=None, help="this version, not the newest")

    def every(one: Parser) -> None:
        one.add_argument("prefix", metavar="PREFIX", nargs="?", default="", help="only those whose path begins so")

    _actions(
        parser,
        put=("keep a document under a path; other content than before is a new version", put),
        list=("the documents, each in its newest version", every),
        show=("the text of a document", show),
        versions=("all versions of a document", path),
        remove=("take a document out of the catalog", path),
    )


FLEET_COMMANDS: dict[str, Command] = {
    "up": Command(
        "start a server and workers on this machine",
        "up",
        _up,
        more="Without `--database` it has a PostgreSQL of its own in the state folder.",
    ),
    "serve": Command(
        "start a server: the API, and the executions it looks after",
        "serve",
        _serve,
        more="Without a database it is a fleet in one process. SIGTERM lets go of everything; another server goes on.",
    ),
    "worker": Command(
        "start a worker, which runs what servers hand out",
        "worker",
        _worker,
        more="SIGTERM drains it: it takes nothing more, ends what it can within the grace, and gives the rest back.",
    ),
    "workers": Command("who works, and on what", "workers", _workers),
    "catalog": Command("documents that a server keeps by path and version", "catalog", _catalog),
    "schedule": Command("runs that start by the clock", "schedule", _schedule),
    "hook": Command("runs that start on a request from outside", "hook", _hook),
    "token": Command("who may ask a server for what", "token", _token),
    "prune": Command("delete old runs, and results that nothing refers to any more", "prune", _prune),
}
