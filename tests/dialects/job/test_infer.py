"""Columns before the run, and the places of mistakes that only a component can find."""

from penstock.dialects.job import lineage
from penstock.ports.rows import Column
from tests.cases import cases
from tests.dialects.job.support import compiled, errors, job, problems


def document(where: str) -> str:
    return (
        "context: {least: 3, column: id}\n"
        "components:\n"
        "  - {name: a, type: fixed_rows, params: {columns: [id]}}\n"
        "  - name: b\n"
        "    type: filter\n"
        "    params:\n"
        f"      where: {where}\n"
        "  - {name: c, type: log_rows}\n"
        "connections: {data: a -> b -> c}\n"
    )


def test_columns_flow_from_component_to_component():
    result = compiled(job("a -> d", "d -> c", types={"a": "fixed_rows", "d": "derive", "c": "log_rows"}))
    assert result.schemas["a", "main"] == (Column("id", "BIGINT"),)
    assert result.schemas["d", "main"] == (Column("id", "BIGINT"), Column("twice", "DOUBLE"))


def test_what_cannot_be_known_is_none():
    result = compiled(job("a -> b", "b -> c", types={"a": "read_csv"}))
    assert result.schemas["a", "main"] is None
    assert result.schemas["b", "main"] is None


def test_a_declared_schema_is_taken_at_its_word():
    text = job("a -> b", "b -> c", types={"a": "read_csv"}).replace(
        "type: 'read_csv'\n", "type: read_csv\n    schema: [{id: BIGINT}]\n"
    )
    assert compiled(text).schemas["b", "main"] == (Column("id", "BIGINT"),)
    assert "J0601" in errors(text.replace("id > 0", "idd > 0"))


@cases(
    "where, code, line, columns",
    [
        ("ident > 0", "J0601", 7, (14, 19)),
        ("'id > 0 and ident = 1'", "J0601", 7, (26, 31)),
        ("|\n        id > 0\n        and ident = 1", "J0601", 9, (13, 18)),
        (">\n        id > 0\n        and ident = 1", "J0601", 9, (13, 18)),
        ("id >", "J0603", 7, (17, 18)),
        ("id + DATE '2024-01-01'", "J0602", 7, (19, 23)),
    ],
)
def test_a_mistake_has_its_place_in_the_text_of_the_parameter(where, code, line, columns):
    (found,) = problems(document(where), code)
    assert (found.position.line, found.position.column, found.position.end_column) == (line, *columns)


def test_a_mistake_in_a_rendered_text_is_found_by_its_word_or_else_as_a_whole():
    (found,) = problems(document("'ident > {{ least }}'"), "J0601")
    assert (found.position.column, found.position.end_column) == (15, 20)
    (found,) = problems(document("'{{ column }}ent > 0'"), "J0601")
    assert (found.position.column, found.position.end_column) == (14, 35)


def test_templates_of_the_context_are_filled_in_and_others_are_not_looked_at():
    assert errors(document("'{{ column }} > {{ context.least }}'")) == []
    assert errors(document("'{{ global.x }} > 0'")) == []
    text = document("'{{ column }} > 0'")
    assert [problem.code for problem in compiled(text, context={"column": "other"}).problems] == ["J0601"]


def test_a_mistake_inside_a_mapping_has_its_place():
    text = job(
        "a -> d",
        "d -> c",
        types={"a": "fixed_rows", "d": "derive", "c": "log_rows"},
        d={"columns": {"x": "id + 1", "y": "idd + 1"}},
    )
    (found,) = problems(text, "J0601")
    line = text.splitlines()[found.position.line - 1]
    assert line[found.position.column - 1 : found.position.end_column - 1] == "idd"
    assert found.message == "UNKNOWN_COLUMN: there is no column `idd` (in `d`)"


JOBLET = """
kind: Joblet
params: {least: 0}
inputs: {rows: keep.input}
outputs: {kept: keep.main}
components: [{name: keep, type: filter, params: {where: "id > {{ params.least }} and idd > 0"}}]
"""
CALL = job("a -> j.rows", "j.kept -> b", "b -> c", types={"a": "fixed_rows", "j": "@x", "b": "filter", "c": "log_rows"})


def test_columns_go_through_joblets_and_mistakes_inside_are_reported_there():
    result = compiled(CALL, {"x": JOBLET})
    assert result.schemas["j", "kept"] == (Column("id", "BIGINT"),)
    assert result.schemas["b", "main"] == (Column("id", "BIGINT"),)
    (found,) = [problem for problem in result.problems if problem.code == "J0601"]
    assert (found.position.file, found.position.line, found.position.column, found.position.end_column) == (
        "x.yaml",
        6,
        86,
        89,
    )


def test_lineage_looks_through_joblets():
    result = compiled(CALL, {"x": JOBLET.replace(" and idd > 0", "")})
    assert result.lineage["b", "main"] == {"id": (("j.__keep", "main", "id"),)}
    assert lineage.origins(result, "b", "main", "id") == [("a", "main", "id")]
    assert lineage.text(result) == "c.input\n  id  <-  a.main.id\n"
    shown = lineage.as_json(result)
    assert shown["targets"] == [
        {
            "component": "c",
            "port": "input",
            "column": "id",
            "origins": [{"component": "a", "port": "main", "column": "id"}],
        }
    ]
    assert lineage.mermaid(result).count("-->") == 2


def test_lineage_says_when_columns_are_not_known():
    result = compiled(job("a -> b", types={"a": "read_csv"}))
    assert lineage.text(result) == "b.input\n  the columns are not known before the run\n"


# ---- notes


def test_an_output_that_nobody_reads_is_a_note_and_rejects_are_not():
    (found,) = problems(job("a -> b", types={"a": "fixed_rows", "b": "filter"}))
    assert (found.code, found.severity.value) == ("J0801", "note")
    assert found.message == "UNREAD_OUTPUT: nobody reads the output `main` of `b`"


def test_outputs_of_code_and_outputs_of_joblets_are_not_noted():
    assert problems("components: [{name: p, type: python, params: {code: pass}}]\n") == []
    assert problems(JOBLET.replace(" and idd > 0", "")) == []
