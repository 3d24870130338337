"""Three spellings of a link, and what is said about one that cannot be read."""

from penstock.dialects.job.links import control_links, data_links
from tests.cases import cases
from tests.dialects.job.support import compiled, errors, job, links, net_of, problems

PARTS = """\
components:
  - {name: a, type: fixed_rows, params: {columns: [id]}}
  - {name: b, type: filter, params: {where: id > 0}}
  - {name: c, type: log_rows}
  - {name: d, type: noop}
  - {name: e, type: noop}
  - {name: f, type: noop}
"""

SPELLINGS = {
    "block": """
connections:
  data: |
    a.main -> b.input
    b.main -> c.input
  control: |
    c (ok) d
    c (if 1: "NB_LINE > 0") e
    d (parallelise) e, f
""",
    "folded": """
connections:
  data:
    a.main -> b.input
    b.main -> c.input
  control: >
    c (ok) d
    c (if 1: "NB_LINE > 0") e
    d (parallelise) e, f
""",
    "list": """
connections:
  data:
    - a.main -> b.input
    - b.main -> c.input
  control:
    - c (ok) d
    - 'c (if 1: "NB_LINE > 0") e'
    - d (parallelise) e, f
""",
    "mappings": """
connections:
  data:
    - {from: a.main, to: b.input}
    - {from: b.main, to: c.input}
  control:
    - {from: c, to: d, on: ok}
    - {from: c, to: e, on: if, order: 1, when: NB_LINE > 0}
    - {from: d, to: [e, f], on: parallelise}
""",
    "without ports, in another order": """
connections:
  control:
    - {from: d, to: "e, f", on: parallelise}
    - {from: c, to: e, when: NB_LINE > 0}
    - c (ok) d
  data: b -> c   a -> b
""",
    "a chain": """
connections:
  data: a -> b -> c
  control: |
    # what comes after
    c (ok) d   # always
    c (if: NB_LINE > 0) e
    d (parallelise) f, e
""",
}


@cases("spelling", SPELLINGS)
def test_every_spelling_of_the_same_links_gives_the_same_net(spelling):
    net = net_of(PARTS + SPELLINGS[spelling])
    assert net == net_of(PARTS + SPELLINGS["block"])
    assert net.digest == net_of(PARTS + SPELLINGS["block"]).digest
    assert links(net) == [
        "a.main -> b.input",
        "b.main -> c.input",
        "c (ok) d",
        "c (if 1: NB_LINE > 0) e",
        "d (parallelise) e",
        "d (parallelise) f",
    ]


def test_another_link_gives_another_digest():
    one, other = net_of(job("a (ok) b", "a (ok) c")), net_of(job("a (ok) b", "b (ok) c"))
    assert one.digest != other.digest


def test_if_links_without_an_order_are_asked_in_the_order_they_are_written():
    net = net_of(job('a (if "x > 1") b', 'a (if "x > 2") c, d', 'a (if 7: "x > 3") e', 'z (if "y") b'))
    assert [(link.source, link.target, link.order) for link in net.links] == [
        ("a", "b", 1),
        ("a", "c", 2),
        ("a", "d", 2),
        ("a", "e", 7),
        ("z", "b", 1),
    ]


@cases(
    "text, order, condition",
    [
        ('a (if 1: "x > 0") b', 1, "x > 0"),
        ("a (if 2: x > 0) b", 2, "x > 0"),
        ('a (if "x > (1 + 2)") b', None, "x > (1 + 2)"),
        ("a (if: x == ')') b", None, "x == ')'"),
        ('a (if 3: "x == \\"y\\"") b', 3, 'x == "y"'),
        ("a (if 1: 'x' == y) b", 1, "'x' == y"),
        ("a(if 12:x)b", 12, "x"),
        ('a (if "{{ x }}") b', None, "{{ x }}"),
    ],
)
def test_a_condition_may_stand_in_quotes_or_bare(text, order, condition):
    (statement,) = control_links(text).statements
    assert statement.head is not None
    assert (statement.head.order, statement.head.condition.text) == (order, condition)
    assert [word.text for word in (*statement.sources, *statement.targets)] == ["a", "b"]


def test_names_with_dashes_are_told_from_arrows():
    (statement,) = data_links("big-orders.main->to-do.input").statements
    assert statement.sources[0].text == "big-orders.main"
    assert statement.targets[0].text == "to-do.input"


@cases(
    "line, column, said",
    [
        ("a.main b.input", 8, "`->` is expected"),
        ("a.main => b.input", 8, "`=>` is not an arrow"),
        ("a.main -->b.input", 8, "`-->` is not an arrow"),
        ("a.main ->", 10, "too early"),
        ("a (ok) b", 3, "control link"),
        ("a.main.x -> b", 1, "not a component"),
        ("a.output_* -> b", 1, "not a component"),
        ("a. -> b", 1, "not a component"),
        ("a & b", 3, "`->` is expected"),
    ],
)
def test_a_data_link_that_cannot_be_read_is_reported_where_it_goes_wrong(line, column, said):
    found = problems(PARTS + f"connections:\n  data: |\n    {line}\n", "J0301")
    assert [(problem.position.line, problem.position.column - 4) for problem in found] == [(10, column)], found
    assert said in found[0].message
    assert found[0].message.startswith("BAD_LINK: ")


@cases(
    "line, column, said",
    [
        ("a (okay) b", 4, "`okay`"),
        ("a () b", 4, "nothing"),
        ("a (ok b", 3, "never closed"),
        ("a -> b", 3, "missing"),
        ("a", 2, "missing"),
        ("a (if) b", 4, "no condition"),
        ("a (if 1:) b", 4, "no condition"),
        ("a (ok 1: x) b", 4, "takes no condition"),
        ("a.main (ok) b", 1, "is a port"),
        ("a (data) b", 4, "`data`"),
        ("a (subjob_done) b", 4, "`subjob_done`"),
    ],
)
def test_a_control_link_that_cannot_be_read_is_reported_where_it_goes_wrong(line, column, said):
    found = problems(PARTS + f"connections:\n  control: |\n    {line}\n", "J0301")
    assert [(problem.position.line, problem.position.column - 4) for problem in found] == [(10, column)], found
    assert said in found[0].message


def test_reading_goes_on_behind_a_link_that_cannot_be_read():
    text = PARTS + "connections:\n  data: a -> b -> c\n  control: |\n    d\n    d (oke) e\n    d (ok) nobody\n"
    assert [(problem.code, problem.position.line) for problem in problems(text)] == [
        ("J0301", 11),
        ("J0301", 12),
        ("J0302", 13),
    ]


def test_an_if_link_that_yaml_tears_apart_is_explained():
    (found,) = problems(PARTS + "connections:\n  control:\n    - d (if 1: x > 0) e\n", "J0301")
    assert found.rewrite == "- 'd (if 1: x > 0) e'"
    assert "quotes" in found.hint
    (slip,) = problems(PARTS + 'connections:\n  control:\n    - d (if 1: "x") e\n')
    assert "quotes" in slip.hint


@cases(
    "link",
    [
        "{from: a, to: b}",
        "{from: a, to: b, on: okay}",
        "{from: a, to: b, on: ok, when: x}",
        "{from: a, to: b, on: ok, order: 1}",
        "{from: a, to: b, on: if}",
        "{from: a.main, to: b, on: ok}",
    ],
)
def test_a_mapping_that_is_no_control_link_is_reported(link):
    assert "J0301" in errors(PARTS + f"connections:\n  control:\n    - {link}\n")


def test_shapes_and_words_of_links_are_checked():
    assert "J0101" in errors(PARTS + "connections:\n  control: {a: b}\n")
    assert "J0101" in errors(PARTS + "connections:\n  control: [[a]]\n")
    assert "J0102" in errors(PARTS + "connections:\n  control: [{from: d, to: e, on: ok, wenn: x}]\n")
    assert "J0103" in errors(PARTS + "connections:\n  data: [{from: a}]\n")
    (found,) = problems(PARTS + "connections:\n  control: [{source: d, to: e, on: ok}]\n", "J0102")
    assert found.label == "did you mean `from`?"


def test_the_place_of_a_link_is_its_own_line():
    result = compiled(PARTS + "connections:\n  data: |\n    a -> b\n    b -> c\n  control: |\n    d (ok) e\n")
    assert result.net is not None
    places = {link.target: result.positions.arcs[link.source, link.index].line for link in result.net.links}
    assert places == {"b": 10, "c": 11, "e": 13}


def test_a_link_that_is_there_twice_is_dropped_with_a_warning():
    text = job("a (ok) b", "a (ok) b")
    assert [problem.severity.value for problem in problems(text, "J0310")] == ["warning"]
    assert links(net_of(text)) == ["a (ok) b"]
