"""A fused group gives the rows, the counts and the hashes of the same stages run one by one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock.data.duckdb_engine import DuckDbEngine, DuckDbSession
from penstock.data.fusion import fusion
from penstock.ports.rows import Copy, Relation, RowsFailed, Stage
from tests.data.groups import group, one_by_one, tables
from tests.depth import times


def numbers(session: DuckDbSession, count: int) -> Relation:
    return session.select(f"SELECT range AS i, range % 10 AS g, 'n' || range AS s FROM range({count})", {})


@pytest.mark.parametrize("seed", range(times(16)))
def test_any_group_has_the_counts_and_the_rows_of_its_stages_run_one_by_one(session: DuckDbSession, seed: int) -> None:
    chance = random.Random(seed)
    stages = group(tables(session, chance), chance, size=chance.randint(1, 12))
    expected = one_by_one(session, stages)
    staged = session.fuse(stages)
    counted = {(stage.name, port): staged[stage.name].rows[port] for stage in stages for port in stage.selects}
    assert counted == {place: relation.rows for place, relation in expected.items()}
    for stage in stages:
        for port, relation in staged[stage.name].relations.items():
            assert relation.hash == expected[stage.name, port].hash
            assert relation.schema == expected[stage.name, port].schema
        assert set(staged[stage.name].relations) == set(stage.wanted)


def chain(rows: Relation, *queries: str) -> list[Stage]:
    stages: list[Stage] = []
    for number, query in enumerate(queries):
        source = (stages[-1].name, "main") if stages else rows
        stages.append(Stage(f"s{number}", {"main": query}, {"input": source}))
    return stages


def counts(session: DuckDbSession, stages: list[Stage]) -> dict[str, dict[str, int]]:
    return {name: dict(staged.rows) for name, staged in session.fuse(stages).items()}


def test_a_filter_is_not_pushed_past_the_boundary_that_is_counted(session: DuckDbSession) -> None:
    rows = numbers(session, 300_000)
    lookup = session.select("SELECT range AS i, 'l' || range AS label FROM range(100)", {})
    join = Stage(
        "join",
        {"main": "SELECT input.*, label FROM input JOIN lookup USING (i)"},
        {"input": ("s1", "main"), "lookup": lookup},
    )
    last = Stage("last", {"main": "SELECT count(*) AS n FROM input WHERE label = 'l3'"}, {"input": ("join", "main")})
    stages = [*chain(rows, "SELECT * FROM input WHERE g <> 3", "SELECT * FROM input WHERE i >= 7"), join, last]
    assert counts(session, stages) == {
        "s0": {"main": 270_000},
        "s1": {"main": 269_994},
        "join": {"main": 84},
        "last": {"main": 1},
    }


def test_a_limit_above_a_boundary_does_not_cut_its_count(session: DuckDbSession) -> None:
    stages = chain(numbers(session, 200_000), "SELECT * FROM input WHERE g < 5", "SELECT * FROM input LIMIT 3")
    assert counts(session, stages) == {"s0": {"main": 100_000}, "s1": {"main": 3}}


def test_a_join_with_nothing_does_not_hide_what_it_did_not_read(session: DuckDbSession) -> None:
    rows, nothing = numbers(session, 50_000), numbers(session, 0)
    left = Stage("left", {"main": "SELECT * FROM input WHERE g < 5"}, {"input": rows})
    right = Stage("right", {"main": "SELECT * FROM input WHERE g < 5"}, {"input": nothing})
    join = Stage(
        "join", {"main": "SELECT a.* FROM a JOIN b USING (i)"}, {"a": ("left", "main"), "b": ("right", "main")}
    )
    assert counts(session, [left, right, join]) == {"left": {"main": 25_000}, "right": {"main": 0}, "join": {"main": 0}}


def test_a_branch_that_the_optimizer_removes_is_counted_all_the_same(session: DuckDbSession) -> None:
    stages = chain(numbers(session, 1000), "SELECT * FROM input WHERE g = 1", "SELECT * FROM input WHERE 1 = 0")
    assert counts(session, stages) == {"s0": {"main": 100}, "s1": {"main": 0}}


def test_a_count_that_chance_would_change_is_taken_from_rows_that_are_kept(session: DuckDbSession) -> None:
    rows = numbers(session, 10_000)
    stages = chain(
        rows, "SELECT * FROM input WHERE random() < 0.5", "SELECT *, 1 AS one FROM input", "SELECT * FROM input LIMIT 5"
    )
    stages[1] = Stage("s1", stages[1].selects, stages[1].inputs, wanted=frozenset({"main"}))
    staged = session.fuse(stages)
    assert staged["s0"].rows["main"] == staged["s1"].rows["main"] == staged["s1"].relations["main"].rows


def test_an_input_that_is_read_twice_is_made_once(session: DuckDbSession) -> None:
    rows = numbers(session, 1000)
    stages = chain(
        rows, "SELECT *, random() AS r FROM input", "SELECT count(*) AS n FROM input a JOIN input b USING (i, r)"
    )
    stages[1] = Stage("s1", stages[1].selects, stages[1].inputs, wanted=frozenset({"main"}))
    assert fusion(stages).kept == {("s0", "main"), ("s1", "main")}
    made = session.fuse(stages)["s1"].relations["main"]
    assert list(session.rows("SELECT n FROM t", {"t": made})) == [[(1000,)]]


def test_stages_that_keep_the_count_need_no_mark(session: DuckDbSession, tmp_path: Path) -> None:
    stages = [
        Stage("read", {"main": "SELECT * FROM range(10) t(i)"}),
        Stage("derive", {"main": "SELECT *, i + 1 AS j FROM input"}, {"input": ("read", "main")}, keeps_count=True),
        Stage("write", {}, {"input": ("derive", "main")}, copy=Copy(tmp_path / "out.csv", "csv")),
    ]
    assert not fusion(stages).marks
    assert counts(session, stages) == {"read": {"main": 10}, "derive": {"main": 10}, "write": {"": 10}}


def test_a_whole_group_is_one_statement_that_ends_in_a_file(session: DuckDbSession, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    stages = [
        *chain(numbers(session, 100), "SELECT * FROM input WHERE g = 1", "SELECT i, s FROM input ORDER BY i DESC"),
        Stage("write", {}, {"input": ("s1", "main")}, copy=Copy(path, "csv", {"header": True})),
    ]
    assert len(fusion(stages).steps) == 1
    assert counts(session, stages)["write"] == {"": 10}
    assert path.read_text().splitlines()[:3] == ["i,s", "91,n91", "81,n81"]


def test_a_very_long_chain_is_cut_and_gives_the_same(session: DuckDbSession) -> None:
    queries = [f"SELECT * FROM input WHERE i <> {number}" for number in range(80)]
    stages = chain(numbers(session, 100), *queries)
    assert len(fusion(stages).steps) > 1
    assert counts(session, stages)["s79"] == {"main": 20}


def test_order_is_kept_through_filters_and_counted_boundaries(session: DuckDbSession) -> None:
    stages = chain(
        numbers(session, 250_000),
        "SELECT * FROM input ORDER BY hash(i)",
        "SELECT * FROM input WHERE g <> 3",
        "SELECT i, g FROM input WHERE g <> 4",
    )
    stages[-1] = Stage("s2", stages[-1].selects, stages[-1].inputs, wanted=frozenset({"main"}))
    made = session.fuse(stages)["s2"].relations["main"]
    check = "SELECT count(*) FROM (SELECT hash(i) AS h, lag(hash(i)) OVER () AS before FROM t) WHERE h < before"
    assert list(session.rows(check, {"t": made})) == [[(0,)]]


def test_a_group_that_fails_leaves_neither_files_nor_tables(
    engine: DuckDbEngine, session: DuckDbSession, tmp_path: Path
) -> None:
    rows = numbers(session, 100)
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("before")
    stages = [
        Stage("good", {"main": "SELECT * FROM input WHERE g > 1"}, {"input": rows}, wanted=frozenset({"main"})),
        Stage("write", {}, {"input": ("good", "main")}, copy=Copy(first, "csv")),
        Stage("bad", {"main": "SELECT CAST(s AS INTEGER) AS n FROM input"}, {"input": ("good", "main")}),
        Stage("too", {}, {"input": ("bad", "main")}, copy=Copy(second, "csv")),
    ]
    with pytest.raises(RowsFailed, match="`n2` is not a valid INTEGER") as failed:
        session.fuse(stages)
    assert failed.value.kind == "conversion"
    assert first.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["first.csv"]
    left = list(session.rows("SELECT table_name FROM duckdb_tables()", {}))
    assert left == [[(rows.name,)]]


def test_tables_between_the_statements_of_a_group_are_dropped_when_it_has_run(session: DuckDbSession) -> None:
    rows = numbers(session, 100)
    split = Stage(
        "split",
        {"low": "SELECT * FROM input WHERE g < 5", "high": "SELECT * FROM input WHERE g >= 5"},
        {"input": ("s0", "main")},
    )
    assert counts(session, [*chain(rows, "SELECT * FROM input WHERE i > 9"), split]) == {
        "s0": {"main": 90},
        "split": {"low": 45, "high": 45},
    }
    assert list(session.rows("SELECT table_name FROM duckdb_tables()", {})) == [[(rows.name,)]]


def test_names_of_inputs_never_meet_the_names_of_tables(session: DuckDbSession) -> None:
    one = session.select("SELECT 1 AS a", {})
    two = session.select("SELECT 2 AS a", {})
    crossed = {one.name: two, two.name: one}
    made = session.select(f'SELECT x.a AS x, y.a AS y FROM "{one.name}" x, "{two.name}" y', crossed)
    assert list(session.rows("SELECT * FROM t", {"t": made})) == [[(2, 1)]]


def test_the_plan_of_a_group_is_hashed_the_same_however_it_is_fused(session: DuckDbSession) -> None:
    stages = chain(numbers(session, 10), "SELECT * FROM input WHERE i > 1", "SELECT * FROM input WHERE i > 2")
    assert fusion(stages).key(("s1", "main")) == fusion(stages, keep_all=True).key(("s1", "main"))
    other = chain(numbers(session, 11), "SELECT * FROM input WHERE i > 1", "SELECT * FROM input WHERE i > 2")
    assert fusion(stages).key(("s1", "main")) != fusion(other).key(("s1", "main"))
