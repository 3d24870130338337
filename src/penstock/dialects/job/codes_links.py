"""Codes about links, sub-jobs, forks and bodies."""

from __future__ import annotations

from penstock.dialects.problems import CodeDoc

_PARTS = """\
components:
  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: keep, type: filter, params: { where: id > 0 } }
  - { name: show, type: log_rows }
"""
_CHAIN = _PARTS + "connections:\n  data: |\n    orders.main -> keep.input\n    keep.main -> show.input\n"

_STEPS = "components:\n" + "".join(
    f"  - {{ name: {name}, type: sleep, params: {{ seconds: 1 }} }}\n" for name in ("a", "b", "c", "d")
)


def _control(*lines: str) -> str:
    return _STEPS + "connections:\n  control: |\n" + "".join(f"    {line}\n" for line in lines)


_POST = """\
components:
  - { name: work, type: sleep, params: { seconds: 1 } }
  - { name: last, type: post_job }
  - { name: tidy, type: sleep, params: { seconds: 1 } }
connections:
  control: %s
"""
_LOOP = """\
components:
  - { name: each, type: iterate_list, params: { items: [1, 2] } }
  - { name: work, type: sleep, params: { seconds: 1 } }
  - { name: done, type: sleep, params: { seconds: 1 } }
connections:
  control: |
    each (iterate) work
    each (%s) done
"""
_UNION = """\
components:
  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: more, type: fixed_rows, params: { columns: [id], rows: [[2]] } }
%s  - { name: show, type: log_rows }
connections:
  data: |
"""

_SHARED = """\
components:
  - { name: rows, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: empty, type: run_sql, params: { connection: "sqlite:///a.db", sql: DELETE FROM t, transaction: shared } }
  - { name: load, type: write_sql, params: { connection: "sqlite:///a.db", table: t } }
connections:
  data: rows.main -> load.input
  control: empty %s rows
"""
_BESIDE = """\
components:
  - { name: empty, type: run_sql, params: { connection: "sqlite:///a.db", sql: DELETE FROM t, transaction: shared } }
  - { name: rows, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: load, type: write_sql, params: { connection: "sqlite:///a.db", table: t } }
  - { name: look, type: read_sql, params: { connection: "sqlite:///a.db", table: t } }
  - { name: show, type: log_rows }
connections:
  data:
    - rows.main -> load.input
    - look.main -> show.input
  control:
    - empty (ok) rows
    - load %s look
"""
_TRIGGERED = """\
components:
  - { name: load, type: sleep, params: { seconds: 1 } }
  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: show, type: log_rows }
connections:
  data: orders -> show
  control: load (subjob_ok) show
"""

LINKS = {
    "J0301": CodeDoc(
        "a link that cannot be read",
        "A data link is written `a.port -> b.port`, a control link `a (ok) b`; both may also be mappings.",
        "Look at the caret, and write the link in one of these forms. A link with a colon in it needs quotes in a list.",
        _control("a (oke) b"),
        _control("a (ok) b"),
    ),
    "J0302": CodeDoc(
        "a link to a component that is not there",
        "Both ends of a link are components of the same document.",
        "Correct the name, or add the component.",
        _CHAIN.replace("keep.main -> show", "kep.main -> show"),
        _CHAIN,
    ),
    "J0303": CodeDoc(
        "a port that a component does not have",
        "Rows leave through the outputs of a component and arrive at the inputs of another, each with its own name.",
        "Choose one of the ports the hint lists.",
        _CHAIN.replace("keep.main", "keep.man"),
        _CHAIN,
    ),
    "J0304": CodeDoc(
        "a component that nothing reaches",
        "It needs rows, and no link leads to it or away from it, so it could never run.",
        "Feed it, or leave it out with `active: false`.",
        _PARTS + "connections:\n  data: orders -> keep\n",
        _CHAIN,
    ),
    "J0305": CodeDoc(
        "an input with too few or too many links",
        "An input that is required must be fed, and one that takes a single stream must be fed once.",
        "Add the missing link, or bring several streams together with `union`.",
        _UNION % "" + "    orders -> show\n    more -> show\n",
        _UNION % "  - { name: both, type: union }\n"
        + "    orders -> both.input_1\n    more -> both.input_2\n    both -> show\n",
    ),
    "J0306": CodeDoc(
        "links that lead in a circle",
        "Each component would wait for the others, and none could start. A link that waits for the end of a sub-job counts as "
        "waiting for all of its members.",
        "Take one of the links away; to repeat something, use an iterator.",
        _control("a (ok) b", "b (ok) c", "c (ok) a"),
        _control("a (ok) b", "b (ok) c"),
    ),
    "J0307": CodeDoc(
        "a fork with one branch",
        "`parallelise` starts branches that run side by side, so there must be two of them.",
        "List another target, or use `ok`.",
        _control("a (parallelise) b"),
        _control("a (parallelise) b, c"),
    ),
    "J0308": CodeDoc(
        "a join whose branches are not clear",
        "A join waits for branches that one fork has started, each listed once, in one link.",
        "List one component of each branch in a single `synchronise` link.",
        _control("a (parallelise) b, c", "b (synchronise) d", "c (synchronise) d"),
        _control("a (parallelise) b, c", "b, c (synchronise) d"),
    ),
    "J0309": CodeDoc(
        "a link across the border of a body",
        "What an iterator's body reaches through data, ok, error and if links runs once per element. Rows may come in from "
        "outside; nothing else may lead in or out.",
        "Go on after all iterations with `iterator_complete`, or after each with `iteration_ok`.",
        _LOOP % "ok" + "    work (ok) done\n",
        _LOOP % "iterator_complete",
    ),
    "J0310": CodeDoc(
        "a control link that is there twice",
        "The second says nothing that the first does not.",
        "Delete one of them.",
        _control("a (ok) b", "a (ok) b"),
        _control("a (ok) b"),
    ),
    "J0311": CodeDoc(
        "a link of an iterator on something else",
        "Only iterators have iterations.",
        "Let the link begin at an iterator, or use `ok`.",
        _control("a (iterator_complete) b"),
        _control("a (ok) b"),
    ),
    "J0312": CodeDoc(
        "an iterator without a body",
        "Without a body nothing runs per element.",
        "Add an `iterate` link, read its `item` port, or name a joblet in its parameter `body`.",
        "components:\n  - { name: each, type: iterate_list, params: { items: [1, 2] } }\n",
        _LOOP % "iterator_complete",
    ),
    "J0313": CodeDoc(
        "a link into a pre-job or post-job",
        "A pre-job starts before everything else, and a post-job when everything else has ended, however it ended. No link can "
        "make it sooner or later.",
        "Take the link away. What is to run after one component only is a component of its own.",
        _POST % "work (ok) last, tidy",
        _POST % "last (ok) tidy",
    ),
    "J0314": CodeDoc(
        "a source that does not wait for the trigger of its sub-job",
        "A component that no control link leads to starts with the job, also when its sub-job has a trigger. A source in "
        "there reads what was there before the trigger fired, such as yesterday's rows.",
        "Write `job_config: { start: subjob }`, and triggered sub-jobs start as a whole; or lead a link to the source. What is "
        "meant to start with the job says so: `startable: true`.",
        _TRIGGERED,
        "job_config: { start: subjob }\n" + _TRIGGERED,
    ),
    "J0315": CodeDoc(
        "a shared transaction with nobody to share it",
        "`transaction: shared` is one transaction with the writers of the same connection in the same sub-job, committed when "
        "that has ended. There is none: they are in other sub-jobs, which commit by themselves, or name another connection.",
        "Lead to the writer by `ok` or by rows, so that both are in one sub-job, and name the connection in the same words. A "
        "statement that is to count by itself says `transaction: own`.",
        _SHARED % "(subjob_ok)",
        _SHARED % "(ok)",
    ),
    "J0316": CodeDoc(
        "a database that is used beside the shared transaction",
        "While a sub-job has a shared transaction, another component of it, or one inside an iterator or joblet of it, uses the "
        "same database on a connection of its own. It does not see what is not committed yet, and if both change the "
        "same rows, each waits for the other until the database gives up.",
        "Move it to a sub-job of its own with `subjob_ok`. Rows that must see what was written can be read by a `run_sql` with "
        "`transaction: shared`, from its port `rows`.",
        _BESIDE % "(ok)",
        _BESIDE % "(subjob_ok)",
    ),
}
