"""Queries that give the same rows on every engine: names, types, values, in any order."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from penstock.ports.rows import Column, EngineSession, Relation, Schema

SCHEMA: Schema = tuple(
    Column(name, type)
    for name, type in {
        "Id": "INTEGER", "n": "BIGINT", "k": "INTEGER", "price": "DECIMAL(10,2)", "x": "DOUBLE", "name": "VARCHAR",
        "d": "DATE", "t": "TIMESTAMP", "z": "TIMESTAMP WITH TIME ZONE", "ok": "BOOLEAN", "tags": "VARCHAR[]",
        "s": "STRUCT(a INTEGER, b VARCHAR)", "raw": "VARCHAR", "huge": "HUGEINT", "u": "UUID", "b": "BLOB",
    }.items()
)  # fmt: skip
ROWS: list[tuple[Any, ...]] = [
    (1, 7, 2, Decimal("10.25"), 1.5, "Anna", date(2024, 1, 31), datetime(2024, 1, 31, 12, 30, 15), datetime(2024, 1, 31, 12, tzinfo=UTC), True, ["a", "b"], {"a": 1, "b": "x"}, '{"v": 1, "w": ["p"]}', 2**70, "8f14e45f-ceea-4c7a-9b1d-000000000001", b"\x01"),
    (2, -7, 2, Decimal("-3.35"), -2.5, "ärger", date(2023, 12, 31), datetime(2023, 12, 31, 23, 59, 59, 123456), datetime(2023, 7, 1, tzinfo=UTC), False, [], {"a": None, "b": None}, '{"v": "q"}', -1, "8f14e45f-ceea-4c7a-9b1d-000000000002", b""),
    (3, 7, -2, Decimal("0.00"), 0.5, "", date(2024, 2, 29), datetime(2024, 2, 29), datetime(2024, 2, 29, 5, tzinfo=UTC), None, ["c", None], {"a": 3, "b": "it's \\ {x}"}, "no json", 0, None, b"xyz"),
    (4, None, 0, None, None, None, None, None, None, None, None, None, None, None, None, None),
    (5, 7, 2, Decimal("99999999.99"), 1e10, "a.b,c.d", date(1999, 12, 31), datetime(1999, 1, 1, 1, 1, 1), datetime(1999, 1, 1, tzinfo=UTC), True, ["b"], {"a": 5, "b": ""}, "{}", 5, "8f14e45f-ceea-4c7a-9b1d-000000000005", b"\xff"),
]  # fmt: skip

QUERIES = {
    "everything": "SELECT * FROM input",
    "arithmetic": "SELECT id, n // k AS whole, n % k AS rest, n / k AS part, n + k AS more, -n AS less, price * 3 AS p3,"
    " price / 3 AS third, price + x AS mixed, abs(n) AS a, round(x) AS r, round(x, 1) AS r1, round(price, 1) AS rp,"
    " floor(x) AS f, ceil(x) AS c, trunc(x) AS t, sqrt(abs(x)) AS root, power(k, 2) AS square, x * 100 AS big FROM input",
    "casts": "SELECT id, CAST(x AS BIGINT) AS i, CAST(price AS INTEGER) AS ip, CAST(n AS VARCHAR) AS v, CAST(price AS VARCHAR) AS vp,"
    " TRY_CAST(name AS INTEGER) AS no, CAST(d AS TIMESTAMP) AS dt, CAST(t AS DATE) AS td, CAST(d AS VARCHAR) AS vd,"
    " CAST(t AS VARCHAR) AS vt, CAST(ok AS VARCHAR) AS vo, CAST(n AS DOUBLE) AS nd, CAST(k AS DECIMAL(12,3)) AS kd,"
    " CAST('2024-05-06' AS DATE) AS fixed, TRY_CAST('x' AS DATE) AS bad FROM input",
    "texts": "SELECT id, upper(name) AS u, lower(name) AS l, length(name) AS n, strlen(name) AS bytes, name || '!' AS c,"
    " concat(name, '-', n) AS cc, concat_ws('/', name, raw) AS cw, left(name, 2) AS lf, right(name, 2) AS rt,"
    " substr(name, 2, 2) AS sb, substring(name, 2) AS sc, trim('  ' || name || ' ') AS tr, trim(name, 'Aa') AS tc,"
    " replace(name, 'a', 'b') AS rp, reverse(name) AS rv, repeat(name, 2) AS rr, lpad(name, 6, '*') AS lp,"
    " contains(name, 'nn') AS co, starts_with(name, 'A') AS sw, name LIKE 'A%' AS lk, name ILIKE 'a%' AS il,"
    " split_part(name, '.', 2) AS sp, string_split(name, '.') AS ss, translate(name, 'an', 'xy') AS ts,"
    " md5(name) AS m5, sha256(name) AS sh, strpos(name, 'n') AS ps, name IN ('Anna', '') AS is_in FROM input",
    "patterns": r"SELECT id, regexp_matches(name, '^A.*a$') AS m, regexp_full_match(name, 'A.*') AS f,"
    r" regexp_extract(name, '(\w)\.(\w)') AS e, regexp_extract(name, '(\w)\.(\w)', 2) AS e2,"
    r" regexp_replace(name, '[an]', '<\0>') AS one, regexp_replace(name, '([an])', '<\1>', 'g') AS every,"
    r" regexp_extract_all(name, '[a-z]') AS all_of, name LIKE '%\%' AS esc FROM input",
    "dates": "SELECT id, year(d) AS y, month(d) AS m, day(d) AS dd, quarter(d) AS q, week(d) AS w, dayofweek(d) AS dw,"
    " dayofyear(d) AS dy, d + INTERVAL 1 MONTH AS next, d + 3 AS later, d - DATE '2024-01-01' AS days,"
    " date_trunc('month', t) AS tm, date_diff('month', DATE '2023-11-30', d) AS months, date_diff('hour', t, TIMESTAMP '2024-03-01 00:00:00') AS hours,"
    " strftime(t, '%d.%m.%Y %H:%M:%S') AS f, last_day(d) AS ld, hour(t) AS h, extract(month FROM d) AS em,"
    " dayname(d) AS dn, z AS zone FROM input",
    "dates out of texts": "SELECT id, try_strptime('31.1.2024', '%d.%m.%Y') AS p, try_strptime(name, '%Y') AS np FROM input",
    "nulls": "SELECT id, coalesce(n, -1) AS c, nullif(k, 2) AS nf, n IS NULL AS isn, n = 7 AS eq, n <> 7 AS ne,"
    " NOT (n > 0) AS nt, ok IS TRUE AS it, n IS DISTINCT FROM 7 AS df, greatest(n, k) AS g, least(n, k) AS l,"
    " CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END AS cs, ok AND n > 0 AS an FROM input",
    "groups": "SELECT k, count(*) AS c, count(n) AS cn, count(DISTINCT n) AS cd, sum(n) AS s, sum(price) AS sp, avg(n) AS a,"
    " avg(price) AS ap, min(name) AS mn, max(d) AS mx, bool_or(ok) AS bo, median(x) AS md, stddev(x) AS sd,"
    " string_agg(name, ',' ORDER BY id) AS st, list(n ORDER BY id) AS li, list(id ORDER BY id DESC) AS ld,"
    " arg_max(name, id) AS am, sum(n) FILTER (WHERE n > 0) AS sf, count_if(ok) AS ci, quantile_cont(x, 0.25) AS qc,"
    " first(name ORDER BY id) AS fi FROM input GROUP BY k",
    "totals of nothing": "SELECT count(*) AS c, sum(n) AS s, max(name) AS m, list(n) AS l FROM input WHERE id > 100",
    "nothing": "SELECT *, n * 2 AS twice FROM input WHERE id > 100",
    "windows": "SELECT id, row_number() OVER (ORDER BY n, id) AS rn, row_number() OVER (ORDER BY n DESC, id) AS rd,"
    " rank() OVER (PARTITION BY k ORDER BY n) AS rk, lag(n) OVER (ORDER BY id) AS lg, sum(n) OVER (PARTITION BY k ORDER BY id) AS rs,"
    " first_value(name) OVER (PARTITION BY k ORDER BY id) AS fv, ntile(2) OVER (ORDER BY id) AS nt FROM input",
    "windows over what is there": "SELECT id, last_value(n IGNORE NULLS) OVER (ORDER BY id"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS lv FROM input",
    "structures": "SELECT id, s.a AS sa, struct_extract(s, 'b') AS sb, {'a': n, 'b': name} AS struct FROM input",
    "lists": "SELECT id, tags[1] AS first, tags[9] AS none, len(tags) AS size,"
    " list_contains(tags, 'b') AS has, array_to_string(tags, '+') AS joined, list_transform(tags, lambda x: upper(x)) AS up,"
    " [n, k] AS made, list_filter(tags, lambda x: x = 'b') AS some FROM input",
    "unnested": "SELECT id, unnest(tags) AS tag FROM input",
    "json": "SELECT id, json_valid(raw) AS ok, CASE WHEN json_valid(raw) THEN json_extract_string(raw, '$.v') END AS v FROM input",
    "one of each": "SELECT * FROM input QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1",
    "all but": "SELECT * EXCLUDE (x, tags, s) REPLACE (n + 1 AS n) FROM input",
    "unions": "SELECT id, n FROM input UNION ALL BY NAME SELECT name, id FROM other",
    "distinct": "SELECT DISTINCT n, k FROM input",
    "inner": "SELECT input.id, other.name FROM input JOIN other ON input.n = other.n",
    "outer": "SELECT input.id AS l, other.id AS r FROM input FULL JOIN other ON input.n = other.n AND input.id < other.id",
    "anti": "SELECT id FROM input ANTI JOIN other USING (k)",
    "semi": "SELECT id FROM input WHERE EXISTS (SELECT 1 FROM other WHERE other.n IS NOT DISTINCT FROM input.n)",
    "in a subquery": "SELECT id FROM input WHERE n IN (SELECT n FROM other)",
    "case of names": 'SELECT ID, "NAME" AS "Name", Price AS "PRICE total" FROM INPUT WHERE "N" > 0',
    "sorted": "SELECT id FROM input ORDER BY n DESC NULLS FIRST, id LIMIT 3",
    "values": "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(x, y)",
    "numbers": "SELECT range AS i FROM range(3, 6)",
    "literals": "SELECT 1.5 AS d, 1.5e0 AS f, 'it''s \\ {x}' AS t, TRUE AS b, NULL AS n, DATE '2024-01-02' AS day, 3000000000 AS big",
}


def kept(session: EngineSession) -> dict[str, Relation]:
    rows = session.load(SCHEMA, [ROWS])
    return {"input": rows, "other": session.load(SCHEMA, [ROWS[1:4]])}


def shown(session: EngineSession, relation: Relation) -> list[str]:
    found = session.rows('SELECT * FROM "it"', {"it": relation})
    return sorted(repr(row) for batch in found for row in batch)
