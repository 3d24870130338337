"""Random groups of stages for the tests of fusing, and the same group run stage by stage with every port kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.data.duckdb_engine import DuckDbSession
from penstock.ports.rows import Relation, Stage

COLUMNS = "id, g, name, v"


def tables(session: DuckDbSession, chance: random.Random) -> list[Relation]:
    """A few tables of one shape, some of them empty, with nulls and repeated rows."""
    sizes = [0, 1, 7, 500, 5000]
    return [
        session.select(
            f"SELECT (range * 7919) % {chance.choice([3, 50, 4000])} AS id, range % {chance.randint(1, 9)} AS g, "
            f"'n' || (range % 13) AS name, nullif((range * 31) % 101, 7)::DOUBLE AS v FROM range({size})",
            {},
        )
        for size in chance.sample(sizes, 3)
    ]


def group(relations: Sequence[Relation], chance: random.Random, size: int) -> list[Stage]:
    """Stages that all keep the one shape, so that any may read any."""
    made: list[tuple[str, str]] = []
    stages: list[Stage] = []

    def source() -> tuple[str, str] | Relation:
        if made and chance.random() < 0.8:
            # The last one most of the time, so that chains grow long.
            return made[-1] if chance.random() < 0.7 else chance.choice(made)
        return chance.choice(relations)

    for number in range(size):
        name = f"s{number}"
        stage = _stage(name, source, chance)
        wanted = frozenset(port for port in stage.selects if chance.random() < 0.15)
        stages.append(replace(stage, wanted=wanted))
        made.extend((name, port) for port in stage.selects)
    return stages


def _stage(name: str, source: Any, chance: random.Random) -> Stage:
    low, high = chance.randint(0, 60), chance.randint(0, 9)
    match chance.choice(KINDS):
        case "filter":
            return Stage(name, {"main": f"SELECT * FROM input WHERE v > {low} OR g = {high}"}, {"input": source()})
        case "split":
            selects = {
                "main": f"SELECT * FROM input WHERE v > {low}",
                "reject": f"SELECT * FROM input WHERE (v > {low}) IS NOT TRUE",
            }
            return Stage(name, selects, {"input": source()})
        case "derive":
            query = "SELECT id, g + 1 AS g, upper(name) AS name, v * 2 AS v FROM input"
            return Stage(name, {"main": query}, {"input": source()}, keeps_count=True)
        case "join":
            how = chance.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "RIGHT JOIN", "FULL JOIN"])
            query = f"SELECT main.id, main.g, main.name, main.v FROM main {how} (SELECT DISTINCT id FROM lookup) l USING (id)"
            return Stage(name, {"main": query}, {"main": source(), "lookup": source()})
        case "aggregate":
            query = "SELECT min(id) AS id, g, max(name) AS name, sum(v) AS v FROM input GROUP BY g"
            return Stage(name, {"main": query}, {"input": source()})
        case "union":
            query = f"SELECT {COLUMNS} FROM input_1 UNION ALL SELECT {COLUMNS} FROM input_2"
            return Stage(name, {"main": query}, {"input_1": source(), "input_2": source()})
        case "unique":
            return Stage(
                name,
                {"unique": "SELECT DISTINCT ON (id, name) * FROM input ORDER BY id, name, g, v"},
                {"input": source()},
            )
        case "sort":
            return Stage(
                name,
                {"main": "SELECT * FROM input ORDER BY v DESC, id, g, name"},
                {"input": source()},
                keeps_count=True,
            )
        case "top":
            query = f"SELECT * FROM input ORDER BY id, g, name, v LIMIT {low}"
            return Stage(name, {"main": query}, {"input": source()})
        case "first":
            # Which rows come first after a join is left to chance, so they are made alike.
            query = f"SELECT 3::BIGINT AS id, 4::BIGINT AS g, 'n1' AS name, 50::DOUBLE AS v FROM input LIMIT {low}"
            return Stage(name, {"main": query}, {"input": source()})
        case "exists":
            query = f"SELECT * FROM main WHERE EXISTS (SELECT 1 FROM lookup WHERE v > {low})"
            return Stage(name, {"main": query}, {"main": source(), "lookup": source()})
        case "scalar":
            query = (
                "SELECT id, g, name, coalesce((SELECT max(l.v) FROM lookup l WHERE l.id = main.id), v) AS v FROM main"
            )
            return Stage(name, {"main": query}, {"main": source(), "lookup": source()}, keeps_count=True)
        case "window":
            query = "SELECT * FROM input QUALIFY row_number() OVER (PARTITION BY g ORDER BY id, name, v) <= 3"
            return Stage(name, {"main": query}, {"input": source()})
        case "unnest":
            query = "SELECT id, unnest([g, g + 1]) AS g, name, v FROM input WHERE id < 20"
            return Stage(name, {"main": query}, {"input": source()})
        case "distinct":
            return Stage(name, {"main": "SELECT DISTINCT * FROM input"}, {"input": source()})
        case "except":
            query = f"SELECT {COLUMNS} FROM input_1 EXCEPT SELECT {COLUMNS} FROM input_2"
            return Stage(name, {"main": query}, {"input_1": source(), "input_2": source()})
        case "nothing":
            return Stage(name, {"main": "SELECT * FROM input WHERE false"}, {"input": source()})
        case "twice":
            query = "SELECT a.id, b.g, a.name, b.v FROM input a JOIN (SELECT g, max(v) AS v FROM input GROUP BY g) b USING (g)"
            return Stage(name, {"main": query}, {"input": source()})
        case _:
            query = "WITH t AS (SELECT * FROM input WHERE g < 5) SELECT * FROM t WHERE v IN (SELECT max(v) FROM t) OR id > 1"
            return Stage(name, {"main": query}, {"input": source()})


KINDS = [
    *(
        "filter",
        "split",
        "derive",
        "join",
        "aggregate",
        "union",
        "unique",
        "sort",
        "top",
        "first",
        "nothing",
        "twice",
        "cte",
    ),
    *("exists", "scalar", "window", "unnest", "distinct", "except", "filter", "derive", "join", "filter", "join"),
]


def one_by_one(session: DuckDbSession, stages: Sequence[Stage]) -> dict[tuple[str, str], Relation]:
    """Every port as a table of its own."""
    made: dict[tuple[str, str], Relation] = {}
    for stage in stages:
        inputs = {
            name: source if isinstance(source, Relation) else made[source] for name, source in stage.inputs.items()
        }
        for port, query in stage.selects.items():
            made[stage.name, port] = session.select(query, inputs)
    return made
