"""The root of a document: header, context, settings, components."""

import pytest

from penstock.dialects.job import is_job
from penstock.dialects.kind import kind_of
from penstock.dialects.problems import Severity
from penstock.dialects.source.loader import load_text
from penstock.kernel.net import Durability, Limits
from tests.cases import cases
from tests.dialects.job.support import codes, compiled, errors, net_of, problems

ONE = "components: [{name: a, type: noop}]\n"


def test_the_header_may_be_left_out():
    assert net_of(ONE).kind == "job"
    assert net_of("apiVersion: penstock/v1\nkind: Job\nmetadata: {name: load}\n" + ONE).name == "load"
    assert net_of(ONE, file="folder/daily.yaml").name == "daily"


def test_components_may_be_a_mapping():
    assert net_of("components: {a: {type: noop}}\n") == net_of(ONE)
    assert "J0101" in errors("components: {a: noop}\n")
    assert "J0102" in errors("components: {a: {name: a, type: noop}}\n")
    assert "J0201" in errors("components: {a.b: {type: noop}}\n")


def test_jobs_and_playbooks_are_told_apart():
    def tree(text):
        return load_text(text).root

    assert is_job(tree(ONE))
    assert is_job(tree("kind: Joblet\n"))
    assert not is_job(tree("kind: Playbook\nworkflow: []\n"))
    assert not is_job(tree("workflow: []\ncomponents: []\n"))
    assert not is_job(tree("- a\n"))
    assert not is_job(None)


@cases(
    "text, code",
    [
        ("[]\n", "J0001"),
        (ONE + "conections: {}\n", "J0002"),
        (ONE + "inputs: {}\n", "J0002"),
        ("apiVersion: v9\n" + ONE, "J0003"),
        ("kind: Jobb\n" + ONE, "J0004"),
        ("kind: Job\n", "J0005"),
        ("components:\n", "J0005"),
        ("components: [{name: a, type: noop, active: false}]\n", "J0005"),
        ("kind: Playbook\nworkflow: []\n", "J0006"),
        ("workflow: []\n", "J0006"),
        ("components: 3\n", "J0101"),
        ("components: [3]\n", "J0101"),
        ("metadata: []\n" + ONE, "J0101"),
        ("metadata: {name: [x]}\n" + ONE, "J0101"),
        ("context: 3\n" + ONE, "J0101"),
        ("context: {groups: {prod: 3}}\n" + ONE, "J0101"),
        ("job_config: {limits: {max_reevaluations: many}}\n" + ONE, "J0101"),
        ("components: [{name: a, type: noop, active: 1}]\n", "J0101"),
        ("components: [{type: noop}]\n", "J0103"),
        ("components: [{name: __a, type: noop}]\n", "J0201"),
        ("components: [{name: 'a b', type: noop}]\n", "J0201"),
        ("components: [{name: 'a[0]', type: noop}]\n", "J0201"),
        ("components: [{name: a, type: noop}, {name: a, type: noop}]\n", "J0202"),
        ("components: [{name: a, type: nop}]\n", "J0203"),
        ("components: [{name: a, type: broken}, {name: b, type: broken}]\n", "J0204"),
    ],
)
def test_what_is_wrong_with_a_document_is_an_error_with_its_code(text, code):
    assert errors(text) == [code]


def test_a_misspelt_type_is_found_and_a_foreign_one_is_translated():
    (found,) = problems("components: [{name: a, type: fiter}]\n", "J0203")
    assert found.label == "did you mean `filter`?"
    (found,) = problems("components: [{name: a, type: tFilterRow}]\n", "J0203")
    assert found.hint == "what you look for may be `filter`"


def test_keychain_entries_are_read_as_in_playbooks():
    text = "keychain: [{name: token, kind: env, var: TOKEN}]\n" + ONE
    assert net_of(text).keychain == ({"name": "token", "kind": "env", "var": "TOKEN"},)
    assert errors("keychain: [{name: token, kind: envi}]\n" + ONE) == ["P0902"]


# ---- context


def test_context_has_plain_variables_and_groups():
    net = net_of("context: {city: Oslo, n: 3, groups: {prod: {city: Bergen}}}\n" + ONE)
    assert net.workload == {"city": "Oslo", "n": 3}
    assert net.contexts == {"prod": {"city": "Bergen"}}


def test_context_may_be_nothing_but_groups():
    net = net_of("context: {default: {city: Oslo}, prod: {city: Bergen}}\n" + ONE)
    assert net.workload == {"city": "Oslo"}
    assert net.contexts == {"prod": {"city": "Bergen"}}


def test_a_variable_may_be_a_mapping():
    net = net_of("context: {database: {host: x}}\n" + ONE)
    assert net.workload == {"database": {"host": "x"}}
    assert net.contexts == {}


def test_a_template_in_the_context_is_warned_of():
    assert codes("context: {path: '{{ x }}'}\n" + ONE) == ["J0106"]


# ---- job_config


def test_settings_reach_the_net():
    net = net_of(
        """
        job_config:
          fail_strategy: continue
          on_subjob_error: abort
          memory_limit: 256MB
          max_in_flight_rows: 1000
          max_in_flight_bytes: 64MB
          durability: strict
          limits: {max_reevaluations: 7, max_payload_bytes: 99}
          engine: {kind: duckdb, threads: 2, fuse: false}
        components: [{name: a, type: iterate_list, params: {items: []}}]
        """
    )
    assert net.aborts
    assert net.durability is Durability.STRICT
    assert net.limits == Limits(max_payload_bytes=99, max_reevaluations=7)
    assert net.engine == {
        "engine": "duckdb", "threads": 2, "fuse": False, "memory_limit": "256MB", "max_in_flight_rows": 1000,
        "max_in_flight_bytes": 64_000_000,
    }  # fmt: skip
    iterates = net.nodes["a"].iterates
    assert iterates is not None
    assert not iterates.halts


def test_an_engine_may_be_named_by_text_and_settings_have_defaults():
    net = net_of("job_config: {engine: duckdb}\n" + ONE)
    assert net == net_of(ONE)
    assert net.engine == {"engine": "duckdb", "fuse": True}
    assert not net.aborts


@cases(
    "given, limit",
    [
        ("256MB", "256MB"),
        ("2gb", "2GB"),
        ("1.5 GiB", "1.5GiB"),
        ("1000", "1000B"),
        ("0MB", None),
        ("much", None),
        ("[1]", None),
    ],
)
def test_amounts_of_memory_have_units(given, limit):
    text = f"job_config: {{memory_limit: {given}}}\n" + ONE
    if limit is None:
        assert errors(text) == ["J0107"]
    else:
        assert net_of(text).engine["memory_limit"] == limit


@cases(
    "config, code",
    [
        ("{fail_strategy: stop}", "J0104"),
        ("{on_subjob_error: stop}", "J0104"),
        ("{engine: spork}", "J0104"),
        ("{engine: {kind: spork}}", "J0104"),
        ("{engine: {thread: 1}}", "J0102"),
        ("{max_in_flight_rows: 0}", "J0105"),
        ("{max_rows: 1}", "J0102"),
        ("{limits: {max_step_visits: 1}}", "J0102"),
        ("{durability: sometimes}", "J0104"),
    ],
)
def test_settings_that_are_not_known_are_errors(config, code):
    assert errors(f"job_config: {config}\n" + ONE) == [code]


# ---- strictness and paths


def test_strict_turns_warnings_into_errors():
    text = "context: {path: '{{ x }}'}\n" + ONE
    assert compiled(text).net is not None
    assert compiled(text, strict=True).net is None


def test_a_problem_has_its_path_in_the_document():
    (found,) = problems("components:\n  - {name: a, type: noop}\n  - {name: b, type: nop}\n")
    assert found.path == "components[1].type"
    assert (found.position.line, found.position.column) == (3, 21)


def test_a_file_that_is_not_there_is_a_problem(tmp_path):
    from penstock.dialects.job import compile_file
    from tests.dialects.job.catalog import CATALOG

    assert [problem.code for problem in compile_file(tmp_path / "no.yaml", CATALOG).problems] == ["Y0001"]
    (tmp_path / "yes.yaml").write_text(ONE)
    assert compile_file(tmp_path / "yes.yaml", CATALOG).net is not None


@cases(
    "text, meant",
    [
        ("component: [{name: a, type: noop}]\nconnections: {}\n", "components"),
        ("componets: [{name: a, type: noop}]\n", "components"),
        (
            "components: [{name: a, type: noop}, {name: b, type: noop}]\nconnection: {control: a (ok) b}\n",
            "connections",
        ),
        ("nodes: [{name: a, type: noop}]\nconnections: {}\n", "components"),
        ("jobconfig: {fail_strategy: halt}\ncomponents: [{name: a, type: noop}]\n", "job_config"),
    ],
)
def test_a_misspelt_section_is_one_error_that_says_what_was_meant(text, meant):
    [problem] = [one for one in problems(text) if one.severity is Severity.ERROR]
    assert (problem.code, problem.label) == ("J0002", f"did you mean `{meant}`?")
    assert kind_of(text) == "job"


def test_what_could_be_a_playbook_is_left_to_its_reader():
    assert kind_of("worflow: []\n") == "playbook"
    assert kind_of("workload: {}\ncomponent: []\n") == "playbook"
    assert kind_of("kind: Playbook\ncomponents: []\n") == "playbook"


def test_an_unknown_type_names_the_five_nearest():
    [problem] = [one for one in problems("components: [{name: a, type: excel}]\n") if one.severity is Severity.ERROR]
    assert problem.hint.count("`") == 2 * (5 + 1 + 1), "five types, a command and how a joblet is written"


@pytest.mark.parametrize("text", ["{{ contxt.x }}", "{{ globl.x }}", "{{ workload.x }}", "{{ iteraton.item }}"])
def test_a_root_name_that_nothing_defines_is_an_error(text):
    job = f"components: [{{name: a, type: noop, params: {{}}}}, {{name: b, type: sleep, params: {{seconds: '{text}'}}}}]\n"
    assert "J0701" in errors(job)
    assert "J0701" not in errors(
        job.replace(".x }}", ".x | default(1) }}").replace(".item }}", ".item | default(1) }}")
    )


def test_a_root_name_of_a_condition_that_nothing_defines_is_an_error():
    text = (
        'components: [{name: a, type: noop}, {name: b, type: noop}]\nconnections:\n  control: |\n    a (if 1: "%s") b\n'
    )
    assert "J0701" in errors(text % "contxt.x == 1")
    assert "J0701" not in errors(text % "my_global.x == 1"), "whatever the code of a component writes"
