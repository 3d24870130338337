"""The grammar of conditions (appendix A), as the planner keeps it."""

import pytest

from tests.cases import cases
from tests.dialects.job.support import errors, job, problems

ALLOWED = [
    "42 > x", "status == 'prod'", "3.14 < x", "row_count > 0", "(status == 'OK') and (attempts < 3)", "(price * qty) > 1000",
    "len(rows) > 0", "abs(delta) < 0.5", "not done", "a or b", "x % 2 == 0", "x // 2 == 1", "-x < 3", "x ** 2 > 4",
    "status in ['OK', 'DONE']", "status not in ['OK']", "1 < x < 3", "global.count > 0", "global['a.__b__C'] == 1",
    "global.load.NB_LINE > 0", "context.env == 'prod'", "x is defined", "x is not defined", "x is none",
    "global.x | default(0) > 3", "max(a, b) > min(c, 3)", "round(x) == int(y)", "NB_LINE > 0 and NB_LINE_OUT_reject == 0",
    "{{ NB_LINE > 0 }}", "rows[0] == 1", "sum(parts) == float(total)", "str(code) == 'x'", "bool(x)",
]  # fmt: skip
REFUSED = [
    "__import__('os')", "x.__class__", "x['__class__']", "().__class__", "open('/etc/passwd')", "x.items()", "x.append(1)",
    "name.upper() == 'A'", "x = 3", "x := 3", "lambda: 1", "[y for y in x]", "import os", "x if y else z", "x ~ y == 'ab'",
    "x[1:2]", "{'a': 1} == x", "name | upper == 'A'", "x | map('upper')", "x is divisibleby(2)", "range(10)", "eval('1')",
    "print(x)", "x; y", "{% if x %}1{% endif %}", "{{ x }} > 3", "", "x >", "((x)", "global.get('x')", "exec",
    "dict(a=1)", "zip(a, b)", "sorted(x)",
]  # fmt: skip


def condition(text: str) -> str:
    head = "components: [{name: a, type: noop}, {name: b, type: noop}]\n"
    quoted = text.replace("'", "''")
    return f"{head}connections:\n  control:\n    - {{from: a, to: b, on: if, when: '{quoted}'}}\n"


@pytest.mark.clause("JA.1")
@cases("text", ALLOWED)
def test_what_the_grammar_has_is_accepted(text):
    assert errors(condition(text)) == []


@pytest.mark.clause("JA.1")
@cases("text", [text for text in REFUSED if text not in ("", "exec")])
def test_what_the_grammar_does_not_have_is_refused_before_the_run(text):
    found = problems(condition(text), "J0401")
    assert found
    assert all(problem.message.startswith("BAD_CONDITION: ") for problem in found)
    assert all(problem.position.line == 4 for problem in found)


@pytest.mark.clause("JA.1")
def test_an_empty_condition_is_refused():
    assert errors(condition("")) == ["J0101"]


@pytest.mark.clause("JA.1")
def test_a_refused_part_is_pointed_at():
    (found,) = problems(job('a (if 1: "NB_LINE > 0 and x.pop() > 1") b'), "J0401")
    line = job('a (if 1: "NB_LINE > 0 and x.pop() > 1") b').splitlines()[found.position.line - 1]
    assert line[found.position.column - 1 : found.position.end_column - 1] == "pop"
