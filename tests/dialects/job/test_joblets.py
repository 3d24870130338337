"""Joblets: expansion, names, boundaries, parameters."""

from pathlib import Path

from penstock.dialects.job import compile_file
from penstock.kernel.net import On, Opening
from tests.cases import cases
from tests.dialects.job.catalog import CATALOG
from tests.dialects.job.support import compiled, errors, links, net_of, problems, subjobs

CLEAN = """
kind: Joblet
inputs: {rows: keep.input}
outputs: {kept: keep.main, thrown: keep.reject}
components:
  - {name: keep, type: filter, params: {where: id > 0}}
  - {name: note, type: noop}
connections: {control: keep (ok) note}
"""
CALL = """
components:
  - {name: src, type: fixed_rows, params: {columns: [id]}}
  - {name: tidy, type: "@clean"}
  - {name: show, type: log_rows}
  - {name: after, type: noop}
connections:
  data: |
    src -> tidy.rows
    tidy.kept -> show
  control: |
    tidy (ok) after
"""


def part(net, name):
    found = net.nodes[name].part
    assert found is not None
    return found


def test_a_call_stays_as_a_component_and_opens_a_container():
    net = net_of(CALL, {"clean": CLEAN})
    assert list(net.nodes) == ["src", "tidy", "tidy.__keep", "tidy.__note", "show", "after"]
    assert net.nodes["tidy"].tasks[0].kind == "joblet"
    assert net.nodes["tidy"].tasks[0].params == {"joblet": "clean"}
    assert part(net, "tidy").opens == "tidy"
    assert net.containers["tidy"].opening is Opening.JOBLET
    assert subjobs(net, "tidy") == [("tidy.__keep", "tidy.__note")]
    assert subjobs(net) == [("src", "tidy", "show", "after")]
    assert (part(net, "tidy.__keep").container, part(net, "tidy.__keep").local) == ("tidy", "__keep")
    assert part(net, "tidy.__keep").prefix == ("tidy",)
    assert part(net, "tidy").prefix == ()


def test_rows_pass_through_the_call_which_is_its_own_boundary():
    net = net_of(CALL, {"clean": CLEAN})
    assert links(net) == [
        "src.main -> tidy.rows",
        "tidy.kept -> show.input",
        "tidy.rows -> tidy.__keep.input",
        "tidy.__keep.main -> tidy.kept",
        "tidy (ok) after",
        "tidy.__keep (ok) tidy.__note",
    ]
    assert [link.crosses for link in net.links if link.on is On.DATA] == [False, False, True, True]
    assert part(net, "tidy").required == ("rows",)


def test_an_output_that_the_caller_does_not_read_has_no_link_inside():
    assert "tidy.__keep.reject -> tidy.thrown" not in links(net_of(CALL, {"clean": CLEAN}))
    text = CALL.replace("    tidy.kept -> show\n", "    tidy.thrown -> show\n")
    assert "tidy.__keep.reject -> tidy.thrown" in links(net_of(text, {"clean": CLEAN}))


def test_two_calls_of_one_joblet_are_two_containers():
    text = CALL.replace("  - {name: show", '  - {name: again, type: "@clean"}\n  - {name: show').replace(
        "    tidy.kept -> show\n", "    tidy.kept -> again.rows\n    again.kept -> show\n"
    )
    net = net_of(text, {"clean": CLEAN})
    assert set(net.containers) == {"", "tidy", "again"}
    assert "again.__keep" in net.nodes


def test_joblets_nest_and_every_name_says_where():
    outer = """
        kind: Joblet
        inputs: {rows: inner.rows}
        outputs: {out: inner.kept}
        components: [{name: inner, type: "@clean"}]
        """
    net = net_of(CALL.replace("@clean", "@outer").replace("tidy.kept", "tidy.out"), {"outer": outer, "clean": CLEAN})
    assert list(net.nodes) == [
        "src",
        "tidy",
        "tidy.__inner",
        "tidy.__inner.__keep",
        "tidy.__inner.__note",
        "show",
        "after",
    ]
    assert part(net, "tidy.__inner.__keep").prefix == ("tidy", "tidy.__inner")
    assert part(net, "tidy.__inner.__keep").local == "__keep"
    assert part(net, "tidy.__inner").local == "__inner"
    assert "tidy.__inner.kept -> tidy.out" in links(net)


def test_an_iterator_inside_a_joblet_has_its_body_there():
    joblet = """
        kind: Joblet
        components:
          - {name: it, type: iterate_list, params: {items: [1]}}
          - {name: work, type: warn, params: {message: "{{ iteration.item }}"}}
        connections: {control: it (iterate) work}
        """
    net = net_of('components: [{name: j, type: "@loop"}]\n', {"loop": joblet})
    assert subjobs(net, "j") == [("j.__it",)]
    assert subjobs(net, "j.__it") == [("j.__work",)]
    assert part(net, "j.__work").local == "__work"


def test_a_call_inside_a_body_opens_its_own_container():
    text = """
        components:
          - {name: it, type: iterate_list, params: {items: [1]}}
          - {name: tidy, type: "@clean"}
        connections: {data: it.item -> tidy.rows}
        """
    net = net_of(text, {"clean": CLEAN})
    assert subjobs(net, "it") == [("tidy",)]
    assert part(net, "tidy.__keep").container == "tidy"
    assert part(net, "tidy.__keep").prefix == ("tidy",)


def test_links_of_sub_jobs_inside_a_joblet_stay_inside():
    joblet = 'kind: Joblet\ncomponents: [{name: a, type: noop}, {name: b, type: noop}]\nconnections: {control: "a (subjob_error) b"}\n'
    net = net_of('components: [{name: j, type: "@x"}]\n', {"x": joblet})
    assert subjobs(net, "j") == [("j.__a",), ("j.__b",)]


def test_die_on_error_is_not_inherited():
    net = net_of(CALL.replace('type: "@clean"', 'type: "@clean", die_on_error: true'), {"clean": CLEAN})
    assert part(net, "tidy").die_on_error
    assert not part(net, "tidy.__keep").die_on_error


def test_context_and_secrets_of_a_joblet_are_defaults_that_the_job_overrides():
    joblet = "kind: Joblet\ncontext: {a: 1, b: 1}\nkeychain: [{name: k, kind: env, var: K}]\ncomponents: [{name: x, type: warn, params: {message: '{{ a }} {{ city }}'}}]\n"
    result = compiled('context: {b: 2, city: Oslo}\ncomponents: [{name: j, type: "@x"}]\n', {"x": joblet})
    assert result.problems == ()
    assert result.net is not None
    assert result.net.workload == {"a": 1, "b": 2, "city": "Oslo"}
    assert [entry["name"] for entry in result.net.keychain] == ["k"]


# ---- what is wrong


@cases(
    "joblet, name",
    [
        (CLEAN.replace("rows: keep.input", "rows: kep.input"), "JOBLET_PORT"),
        (CLEAN.replace("rows: keep.input", "rows: keep.inptu"), "UNKNOWN_PORT"),
        (CLEAN.replace("kept: keep.main", "kept: keep.man"), "UNKNOWN_PORT"),
        (CLEAN.replace("kept: keep.main", "rows: keep.main"), "JOBLET_PORT"),
        (CLEAN.replace("kind: Joblet", "kind: Job"), "NOT_A_JOBLET"),
        (CLEAN.replace("type: noop", "type: nope"), "UNKNOWN_TYPE"),
        (CLEAN.replace("type: noop", "type: pre_job"), "ROLE_PLACE"),
    ],
)
def test_what_is_wrong_with_a_joblet_is_reported_in_its_file(joblet, name):
    found = problems(CALL, None, {"clean": joblet})
    assert name in [problem.message.partition(":")[0] for problem in found]
    (named,) = [problem for problem in found if problem.message.startswith(f"{name}:")][:1]
    assert named.position.file == ("test.yaml" if name == "NOT_A_JOBLET" else "clean.yaml")


def test_a_joblet_that_is_not_yaml_is_reported_in_its_file():
    (found,) = problems('components: [{name: j, type: "@x"}]\n', None, {"x": "a: [\n"})
    assert found.position.file == "x.yaml"
    assert found.code.startswith("Y01")


def test_a_joblet_that_is_not_there_says_where_it_was_looked_for():
    (found,) = problems(CALL.replace("@clean", "@missing"), "J0901", {"clean": CLEAN})
    assert found.message == "JOBLET_NOT_FOUND: there is no joblet `missing`"
    assert "`missing.yaml`" in found.hint
    assert "`joblets/missing.yaml`" in found.hint
    assert errors('components: [{name: j, type: "@../../etc/passwd"}]\n') == ["J0901"]


def test_an_output_of_a_body_cannot_be_an_output_of_the_joblet():
    joblet = """
        kind: Joblet
        outputs: {out: f.main}
        components:
          - {name: it, type: iterate_list, params: {items: [1]}}
          - {name: f, type: filter, params: {where: id > 0}}
        connections: {data: it.item -> f}
        """
    assert errors('components: [{name: j, type: "@x"}]\n', {"x": joblet}) == ["J0309"]


def test_a_call_that_lacks_a_required_input_is_reported():
    (found,) = problems(CALL.replace("    src -> tidy.rows\n", ""), "J0305", {"clean": CLEAN})
    assert found.message == "PORT_ARITY: nothing feeds the input `rows` of `tidy`"


def test_an_optional_input_that_is_not_fed_leaves_no_link():
    joblet = "kind: Joblet\ninputs: {rows: p.input}\ncomponents: [{name: p, type: python, params: {code: pass}}]\n"
    assert links(net_of('components: [{name: j, type: "@x"}]\n', {"x": joblet})) == []
    outer = 'kind: Joblet\ninputs: {rows: in.rows}\ncomponents: [{name: in, type: "@x"}]\n'
    assert links(net_of('components: [{name: j, type: "@y"}]\n', {"x": joblet, "y": outer})) == []


# ---- parameters


def with_params(params: str, joblet: str, **more: object):
    return compiled(f'components: [{{name: j, type: "@x", params: {params}}}]\n', {"x": joblet}, **more)


WARN = "kind: Joblet\nparams: {least: 3, name: }\ncomponents: [{name: w, type: warn, params: {message: %s}}]\n"


@cases(
    "message, given, expected",
    [
        ("'{{ params.least }}'", "{name: x}", 3),
        ("'{{ params.least }}'", "{name: x, least: [1, 2]}", [1, 2]),
        ("'{{ params.name }}'", "{name: '{{ global.x }}'}", "{{ global.x }}"),
        ("'at least {{ params.least }}!'", "{name: x}", "at least 3!"),
        ("'<{{ params.name }}>'", "{name: Ann}", "<Ann>"),
        ("'<{{ params.name }}>'", "{name: '{{ city }}'}", "<{{ (city) }}>"),
        ("'<{{ params.name }}>'", "{name: 'in {{ city }}'}", '<{{ ("in " ~ (city)) }}>'),
        ("'{{ params.least + 1 }}'", "{name: x}", "{{ 3 + 1 }}"),
        ("'{{ params.name | upper }}'", "{name: 'it''s'}", '{{ "it\'s" | upper }}'),
        ("'{{ params.name.first }}'", "{name: {first: Ann}}", '{{ {"first": "Ann"}.first }}'),
        ("'{{ params.least }}{% if params.name %}y{% endif %}'", "{name: x}", '3{% if "x" %}y{% endif %}'),
        ("['{{ params.least }}', {a: '{{ params.name }}'}]", "{name: x}", [3, {"a": "x"}]),
        ("'{{ params.least }} {{ params.least }}'", "{name: x, least: -1}", "-1 -1"),
        ("'{{ -params.least }}'", "{name: x, least: -1}", "{{ -(-1) }}"),
        ("'{{- params.name -}}  a'", "{name: x}", '{{- "x" -}}  a'),
        ("'{{ params.least or params.name }}'", "{name: x, least: true}", '{{ true or "x" }}'),
        ("'none'", "{name: x}", "none"),
    ],
)
def test_parameters_are_filled_in_when_the_call_is_expanded(message, given, expected):
    text = f'context: {{city: Oslo}}\ncomponents: [{{name: j, type: "@x", params: {given}}}]\n'
    net = net_of(text, {"x": WARN % message})
    assert net.nodes["j.__w"].tasks[0].params == {"message": expected}


def test_parameters_are_filled_into_conditions():
    joblet = "kind: Joblet\nparams: {least: 3}\ncomponents: [{name: a, type: noop}, {name: b, type: noop}]\nconnections: {control: 'a (if \"NB_LINE > params.least\") b'}\n"
    net = with_params("{least: 7}", joblet).net
    assert net is not None
    assert [link.when for link in net.links] == ["NB_LINE > 7"]


def test_parameters_are_passed_through_nested_calls():
    inner = WARN % "'{{ params.name }}'"
    outer = 'kind: Joblet\nparams: {who: }\ncomponents: [{name: i, type: "@in", params: {name: "{{ params.who }}!"}}]\n'
    net = net_of('components: [{name: j, type: "@out", params: {who: Ann}}]\n', {"in": inner, "out": outer})
    assert net.nodes["j.__i.__w"].tasks[0].params == {"message": "Ann!"}


def test_a_parameter_that_is_missing_or_unknown_is_reported_at_the_call():
    joblet = WARN % "'{{ params.name }}'"
    (missing,) = [problem for problem in with_params("{}", joblet).problems if problem.code == "J0503"]
    assert missing.message == "MISSING_PARAM: the joblet `x` needs the parameter `name`"
    (unknown,) = [problem for problem in with_params("{name: a, leest: 1}", joblet).problems if problem.code == "J0502"]
    assert unknown.label == "did you mean `least`?"
    assert unknown.position.file == "test.yaml"


def test_a_wrong_value_is_reported_where_the_caller_wrote_it():
    joblet = "kind: Joblet\nparams: {n: 1}\ncomponents: [{name: s, type: sleep, params: {seconds: '{{ params.n }}'}}]\n"
    (found,) = [problem for problem in with_params("{n: [1]}", joblet).problems if problem.code == "J0501"]
    assert (found.position.file, found.position.line, found.position.column) == ("test.yaml", 1, 48)


def test_a_value_that_cannot_be_written_into_an_expression_is_refused():
    text = 'components: [{name: j, type: "@x", params: {name: "{% if a %}b{% endif %}"}}]\n'
    assert "J0501" in errors(text, {"x": WARN % "'<{{ params.name | upper }}>'"})


def test_params_are_seen_in_joblets_only():
    assert errors("components: [{name: w, type: warn, params: {message: '{{ params.x }}'}}]\n") == ["J0702"]


# ---- files


def test_joblets_are_found_beside_the_document_and_in_the_folder_joblets(tmp_path: Path):
    (tmp_path / "joblets").mkdir()
    (tmp_path / "job.yaml").write_text('components: [{name: a, type: "@one"}, {name: b, type: "@two"}]\n')
    (tmp_path / "one.yaml").write_text("components: [{name: x, type: noop}]\n")
    (tmp_path / "joblets" / "two.yaml").write_text(
        'kind: Joblet\ncomponents: [{name: x, type: "@three"}, {name: y, type: "@one"}]\n'
    )
    (tmp_path / "joblets" / "three.yml").write_text("kind: Joblet\ncomponents: [{name: z, type: noop}]\n")
    result = compile_file(tmp_path / "job.yaml", CATALOG)
    assert result.net is not None, result.problems
    assert list(result.net.nodes) == ["a", "a.__x", "b", "b.__x", "b.__x.__z", "b.__y", "b.__y.__x"]
    assert set(result.sources) == {
        str(tmp_path / "one.yaml"),
        str(tmp_path / "joblets" / "two.yaml"),
        str(tmp_path / "joblets" / "three.yml"),
    }


def test_a_run_can_be_pinned_to_the_sources_it_began_with(tmp_path: Path):
    (tmp_path / "job.yaml").write_text('components: [{name: a, type: "@one"}]\n')
    (tmp_path / "one.yaml").write_text("components: [{name: x, type: noop}]\n")
    first = compile_file(tmp_path / "job.yaml", CATALOG)
    (tmp_path / "one.yaml").write_text("components: [{name: changed, type: noop}]\n")
    again = compile_file(tmp_path / "job.yaml", CATALOG, read=lambda path: first.sources.get(str(path)))
    assert again.net == first.net


def test_sources_have_one_name_by_whatever_way_their_folder_was_reached(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "job.yaml").write_text('components: [{name: a, type: "@one"}]\n')
    (tmp_path / "real" / "one.yaml").write_text("components: [{name: x, type: noop}]\n")
    result = compile_file(tmp_path / "link" / "job.yaml", CATALOG)
    assert set(result.sources) == {str(tmp_path / "real" / "one.yaml")}
    assert str(tmp_path / "link" / "one.yaml") in result.texts


def test_a_misspelt_joblet_is_found(tmp_path: Path):
    (tmp_path / "job.yaml").write_text('components: [{name: a, type: "@normalise"}]\n')
    (tmp_path / "normalize.yaml").write_text("components: [{name: x, type: noop}]\n")
    (found,) = compile_file(tmp_path / "job.yaml", CATALOG).problems
    assert found.label == "did you mean `normalize`?"


def test_a_joblet_can_be_looked_at_by_itself():
    result = compiled(CLEAN)
    assert [problem.severity.value for problem in result.problems if problem.severity.value == "error"] == []
    assert result.is_joblet
    assert result.net is not None
    assert not compiled(CALL, {"clean": CLEAN}).is_joblet


def test_the_source_map_names_the_file_of_each_component():
    places = compiled(CALL, {"clean": CLEAN}).positions
    assert places.steps["tidy"].file == "test.yaml"
    assert places.steps["tidy.__keep"].file == "clean.yaml"
    assert places.lines_of("tidy.__keep", "tidy.__keep") == {"where": 6}


def test_joblets_that_multiply_are_stopped():
    joblets = {
        f"j{n}": "kind: Joblet\ncomponents: ["
        + ", ".join(f'{{name: c{m}, type: "@j{n + 1}"}}' for m in range(30))
        + "]\n"
        for n in range(4)
    }
    joblets["j4"] = "kind: Joblet\ncomponents: [{name: x, type: noop}]\n"
    assert errors('components: [{name: a, type: "@j0"}]\n', joblets) == ["J0905"]
