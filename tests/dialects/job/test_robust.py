"""Whatever a file holds, the answer is a net or problems, never an exception."""

from string import printable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.dialects.job.links import control_links, data_links
from penstock.dialects.job.plan import plan, plan_text
from penstock.dialects.problems import Severity
from penstock.kernel.net import On
from tests.depth import times
from tests.dialects.job.support import compiled, job, net_of

QUIET = settings(max_examples=times(20), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

NAMES = ("a", "b", "c", "d", "it", "s", "f", "u")
TYPES = {
    "a": "noop", "b": "noop", "c": "noop", "d": "noop", "it": "iterate_list", "s": "fixed_rows", "f": "filter", "u": "union",
}  # fmt: skip
ONS = [on.value for on in On if on not in (On.DATA, On.SUBJOB_DONE, On.IF)] + ['if 1: "x > 0"', 'if "NB_LINE"']
LINE = st.one_of(
    st.builds(lambda a, on, b: f"{a} ({on}) {b}", st.sampled_from(NAMES), st.sampled_from(ONS), st.sampled_from(NAMES)),
    st.builds(
        lambda a, p, b, q: f"{a}{p} -> {b}{q}",
        st.sampled_from(NAMES),
        st.sampled_from(("", ".main", ".item", ".reject")),
        st.sampled_from(NAMES),
        st.sampled_from(("", ".input", ".input_1", ".main")),
    ),
    st.builds(
        lambda a, b, on, c: f"{a}, {b} ({on}) {c}" if on == "synchronise" else f"{c} ({on}) {a}, {b}",
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(("synchronise", "parallelise")),
        st.sampled_from(NAMES),
    ),
)


@QUIET
@given(st.lists(LINE, max_size=9), st.sets(st.sampled_from(NAMES), max_size=2))
def test_any_set_of_links_gives_a_net_or_an_error(lines, inactive):
    text = job(*lines, types=TYPES)
    for name in inactive:
        text = text.replace(f"  - name: {name}\n", f"  - name: {name}\n    active: false\n")
    result = compiled(text)
    has_errors = any(problem.severity is Severity.ERROR for problem in result.problems)
    assert (result.net is None) == has_errors
    if result.net is None:
        return
    net = result.net
    plan(result)
    plan_text(result)
    members = [name for container in net.containers.values() for region in container.regions for name in region.members]
    assert sorted(members) == sorted(net.nodes)
    for key, container in net.containers.items():
        for region in container.regions:
            for rank, name in enumerate(region.members):
                part = net.nodes[name].part
                assert (part.container, part.region, part.rank) == (key, region.index, rank)
            place = {name: rank for rank, name in enumerate(region.members)}
            for link in net.links:
                if link.source in place and link.target in place:
                    assert place[link.source] < place[link.target]
    for link in net.links:
        source, target = net.nodes[link.source].part, net.nodes[link.target].part
        if link.on not in (On.ITERATE, On.ITERATION_OK, On.ITERATION_ERROR, On.DATA):
            assert source.container == target.container


@QUIET
@given(st.lists(LINE, max_size=6))
def test_the_order_of_the_lines_does_not_matter(lines):
    lines = [line for line in lines if "if " not in line]
    one, other = compiled(job(*lines, types=TYPES)), compiled(job(*lines[::-1], types=TYPES))
    assert (one.net is None) == (other.net is None)
    if one.net is not None and other.net is not None:
        assert one.net.digest == other.net.digest


@QUIET
@given(st.text(alphabet="abc.,->()\"' :\n#if1okx=*&[]{}", max_size=40))
def test_any_text_is_read_as_links_or_slips(text):
    for read in (data_links, control_links):
        found = read(text)
        assert found.statements or found.slips or not text.split("#")[0].strip() or "#" in text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.text(alphabet=printable, max_size=6)
    | st.sampled_from(("{{ x }}", "a -> b", "@x")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *NAMES,
                    "type",
                    "name",
                    "params",
                    "data",
                    "control",
                    "from",
                    "to",
                    "on",
                    "schema",
                    "groups",
                    "limits",
                    "engine",
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@QUIET
@given(
    st.dictionaries(
        st.sampled_from(
            (
                "kind",
                "metadata",
                "context",
                "keychain",
                "job_config",
                "components",
                "connections",
                "inputs",
                "outputs",
                "params",
                "apiVersion",
            )
        ),
        JSON,
    )
)
def test_any_tree_gives_a_net_or_an_error(tree):
    import json

    result = compiled(json.dumps(tree))
    assert result.net is not None or result.problems


def test_a_thousand_components_compile():
    net = net_of(job(*(f"c{n} (ok) c{n + 1}" for n in range(1000))))
    assert len(net.nodes) == 1001
