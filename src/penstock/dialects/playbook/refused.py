"""Words that this language had once, or that people bring from elsewhere: each is refused and names what replaces it.

Where the rewrite is mechanical it is shown as YAML. `SYNONYMS` are words that never were in the language but are easily written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import yaml

from penstock.dialects.playbook.words import SCOPES
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import Json, JsonMap, merge_deeply


@dataclass(frozen=True, slots=True)
class Refusal:
    code: str
    message: str
    hint: str
    rewrite: str = ""
    label: str = ""


_Make = Callable[[str, SourceNode], Refusal]

THEN_WORDS = (
    "do", "attempts", "backoff", "delay", "max_delay", "jitter", "to", "set_iter", "set_ctx", "append_ctx", "set_shared", "set",
)  # fmt: skip


def refusal(scope: str, key: str, node: SourceNode) -> Refusal | None:
    """Why `key` may not stand in `node`, a mapping of that scope; None when the word is merely unknown."""
    make = _REFUSED.get(scope, {}).get(key)
    return None if make is None else make(key, node)


def _map(value: Json) -> JsonMap:
    return value if isinstance(value, dict) else {}


def _value(node: SourceNode, key: str) -> Json:
    return to_json(node.entries[key])


def _rest(node: SourceNode, *without: str) -> JsonMap:
    return {key: to_json(value) for key, value in node.entries.items() if key not in without}


def _root_vars(key: str, node: SourceNode) -> Refusal:
    values = _map(_value(node, key))
    workload = merge_deeply(_map(_rest(node).get("workload")), values)
    return Refusal(
        "P0201", "a playbook has no `vars`", "inputs belong to `workload`; values that change are written with `set_ctx`",
        yaml_text({"workload": workload}) if values else "",
    )  # fmt: skip


def _scoped_vars(key: str, node: SourceNode) -> Refusal:
    values = _map(_value(node, key))
    writes: JsonMap = {f"ctx.{name}": value for name, value in values.items()}
    return Refusal(
        "P0201", f"there is no `{key}` scope", "values that other steps read are written to ctx, with `set`",
        yaml_text({"set": writes}) if writes else "",
    )  # fmt: skip


def _then_vars(key: str, node: SourceNode) -> Refusal:
    values = _map(_value(node, key))
    hint = "write to `ctx` with `set_ctx`, or to this iteration with `set_iter`"
    return Refusal("P0201", f"there is no `{key}`", hint, yaml_text({"set_ctx": values}) if values else "")


def _to_metadata(key: str, node: SourceNode) -> Refusal:
    metadata = {**_map(_rest(node).get("metadata")), key: _value(node, key)}
    return Refusal(
        "P0216",
        f"`{key}` is not a section of a playbook",
        "it belongs to `metadata`",
        yaml_text({"metadata": metadata}),
    )


def _step_when(key: str, node: SourceNode) -> Refusal:
    rules: list[Json] = [
        {"when": _value(node, key), "then": {"allow": True}},
        {"else": {"then": {"allow": False}}},
    ]
    spec = merge_deeply(_map(_rest(node).get("spec")), {"policy": {"admit": {"rules": rules}}})
    hint = "admission is `spec.policy.admit.rules`; to choose among ways on, put `when` on the arcs that lead here"
    return Refusal("P0202", "a step has no `when`", hint, yaml_text({"spec": spec}))


def _case(key: str, node: SourceNode) -> Refusal:
    hint = "ways on are `next.arcs` with `when`; what a task's outcome means is its `spec.policy.rules`"
    arcs = _case_arcs(_value(node, key))
    return Refusal("P0203", "a step has no `case`", hint, yaml_text({"next": {"arcs": arcs}}) if arcs else "")


def _case_arcs(cases: Json) -> list[Json]:
    """The arcs that a `case` list comes to, or nothing when it does more than route."""
    arcs: list[Json] = []
    for case in cases if isinstance(cases, list) else []:
        entry = _map(case)
        then = _map(entry.get("then"))
        if set(entry) - {"when", "then"} or set(then) != {"next"}:
            return []
        guard = {"when": entry["when"]} if "when" in entry else {}
        arcs += [{**_map(arc), **guard} for arc in arcs_of(then["next"])]
    return arcs


def arcs_of(value: Json) -> list[Json]:
    """Arcs in the canonical form from the older spellings: a name, a list of names, a list of arcs."""
    entries = value if isinstance(value, list) else [value]
    arcs: list[Json] = []
    for entry in entries:
        if isinstance(entry, dict):
            arc = {("when" if key in ("expr", "if", "condition") else key): inner for key, inner in entry.items()}
            then = next((arc[word] for word in ("then", "else") if word in arc), None)
            if then is not None and arc.keys() <= {"when", "then", "else"} and "step" not in arc:
                guard = {"when": arc["when"]} if "when" in arc else {}
                arcs += [{**_map(one), **guard} for one in arcs_of(then)]
                continue
            arcs.append({"step": arc.pop("step", arc.pop("to", None)), **arc})
        elif entry is not None:
            arcs.append({"step": entry})
    return arcs


def router_of(value: Json) -> JsonMap:
    """`next` in the canonical form. Several arcs without a guard were all taken, so they stay inclusive."""
    arcs = arcs_of(value)
    open_arcs = sum(1 for arc in arcs if "when" not in _map(arc))
    return {"next": {"spec": {"mode": "inclusive" if open_arcs > 1 else "exclusive"}, "arcs": arcs}}


def _pipe(key: str, node: SourceNode) -> Refusal:
    value = _value(node, key)
    hint = "`tool` is always a pipeline: give it the list itself"
    return Refusal("P0204", "there is no `pipe`", hint, yaml_text({"tool": value}) if isinstance(value, list) else "")


def _eval(key: str, node: SourceNode) -> Refusal:
    value = _value(node, key)
    rules = [_rule(entry) for entry in (value if isinstance(value, list) else [value])]
    hint = "what an outcome means is said in `spec.policy.rules`"
    known: list[Json] = [rule for rule in rules if rule]
    spec = merge_deeply(_map(_rest(node).get("spec")), {"policy": {"rules": known}})
    whole = known and len(known) == len(rules)
    return Refusal("P0205", "there is no `eval`", hint, yaml_text({"spec": spec}) if whole else "")


def _rule(entry: Json) -> JsonMap:
    """One rule in the canonical form, or nothing when it says more than a rule can."""
    given = _map(entry)
    if "else" in given:
        inner = merge_deeply(_map(given["else"]), _map(given.get("then")))
        return {"else": {"then": _map(inner.get("then")) or inner}}
    condition = given.get("when", given.get("expr"))
    then = _map(given.get("then")) or {key: value for key, value in given.items() if key in THEN_WORDS}
    if condition is None or set(given) - {"when", "expr", "then", *THEN_WORDS}:
        return {}
    return {"when": condition, "then": then}


def _expr(key: str, node: SourceNode) -> Refusal:
    renamed = {("when" if name == key else name): value for name, value in _rest(node).items()}
    return Refusal(
        "P0206", f"`{key}` is not a conditional", "`when` is the only one", yaml_text([renamed]), "write `when`"
    )


def _bare_next(key: str, node: SourceNode) -> Refusal:
    arc = _rest(node, "spec", "arcs")
    rewrite = yaml_text(router_of(arc)) if "step" in arc and "arcs" not in node.entries else ""
    return Refusal(
        "P0208",
        f"`{key}` stands in `next` without an arc",
        "`next` is a router: arcs are the entries of `next.arcs`",
        rewrite,
    )


def _sink(key: str, node: SourceNode) -> Refusal:
    value = _map(_value(node, key))
    tool = _map(value.get("tool")) or value
    task = {"name": "store", **tool} if "kind" in tool else {}
    hint = "storing is a task like any other: write it after the task whose result it stores"
    return Refusal("P0209", f"there is no `{key}`", hint, yaml_text({"tool": [task]}) if task else "")


def _retry(key: str, node: SourceNode) -> Refusal:
    value = _value(node, key)
    given = _map(value)
    renamed = {"max_attempts": "attempts", "initial_delay": "delay", "backoff_multiplier": "backoff"}
    then: JsonMap = {"do": "retry", "attempts": value if isinstance(value, int) else 3}
    for name, inner in given.items():
        word = renamed.get(name, name)
        if word in ("attempts", "delay", "max_delay", "jitter"):
            then[word] = inner
        elif word == "backoff":
            then["backoff"] = inner if inner in ("none", "linear", "exponential") else "exponential"
    rules: list[Json] = [{"when": "{{ outcome.status == 'error' }}", "then": then}]
    hint = "running a task again is a rule of its policy"
    return Refusal("P0210", f"`{key}` is not a word here", hint, yaml_text({"spec": {"policy": {"rules": rules}}}))


_NOT_OF_A_TOOL = ("when", "case", "vars", "pipe", "eval", "sink", "save", "set_ctx")
"""Words of a step in its older forms, which have rewrites of their own."""


def _step_kind(key: str, node: SourceNode) -> Refusal:
    around = {*SCOPES["step"].words, *_NOT_OF_A_TOOL}
    own = {name: value for name, value in _rest(node, key).items() if name not in around}
    hint = "the tool's kind and its parameters stand under `tool`"
    return Refusal("P0211", f"a step has no `{key}`", hint, yaml_text({"tool": {"kind": _value(node, key), **own}}))


def _task_type(key: str, node: SourceNode) -> Refusal:
    value = _value(node, key)
    rewrite = yaml_text({"kind": value}) if isinstance(value, str) else ""
    return Refusal("P0211", f"a task has no `{key}`", "the tool is named by `kind`", rewrite, "write `kind`")


def _task_when(key: str, node: SourceNode) -> Refusal:
    task = _rest(node, key)
    branch: list[Json] = [{"when": _value(node, key), "then": [task]}]
    hint = "put it into a `choose`, or jump over it with the policy of the task before"
    return Refusal("P0212", "a task has no `when`", hint, yaml_text([{"name": "choice", "choose": branch}]))


def _under_spec(key: str, node: SourceNode) -> Refusal:
    spec = merge_deeply(_map(_rest(node).get("spec")), {key: _value(node, key)})
    return Refusal(
        "P0213",
        f"`{key}` stands in the wrong place",
        f"it belongs under `spec`, as `spec.{key}`",
        yaml_text({"spec": spec}),
    )


def _under_policy(key: str, node: SourceNode) -> Refusal:
    spec = merge_deeply(_map(_rest(node).get("spec")), {"policy": {key: _value(node, key)}})
    hint = f"it belongs under `spec.policy`, as `spec.policy.{key}`"
    return Refusal("P0213", f"`{key}` stands in the wrong place", hint, yaml_text({"spec": spec}))


def _step_shared(key: str, node: SourceNode) -> Refusal:
    hint = "it is a task of the loop that shares: put it on the task, or into `then` of one of its rules"
    return Refusal("P0613", f"a step has no `{key}`", hint)


def _task_tool(key: str, node: SourceNode) -> Refusal:
    value = _value(node, key)
    task = {"kind": value} if isinstance(value, str) else _map(value)
    rest = _rest(node, key)
    hint = "the tool is named by `kind`, and its parameters stand beside it"
    return Refusal("P0217", "a task has no `tool`", hint, yaml_text([{**rest, **task}]) if task else "")


def _rule_do(key: str, node: SourceNode) -> Refusal:
    then = {name: value for name, value in _rest(node).items() if name in THEN_WORDS}
    rule = {**_rest(node, *THEN_WORDS), "then": merge_deeply(_map(_rest(node).get("then")), then)}
    return Refusal("P0407", f"`{key}` stands beside `when`", "directives stand under `then`", yaml_text([rule]))


_EXPR: dict[str, _Make] = {"expr": _expr}
_REFUSED: dict[str, dict[str, _Make]] = {
    "root": {"vars": _root_vars, **dict.fromkeys(("version", "name", "path", "description", "labels", "tags"), _to_metadata)},
    "step": {
        "when": _step_when, "case": _case, "pipe": _pipe, "eval": _eval, "vars": _scoped_vars, "sink": _sink, "save": _sink,
        "retry": _retry, "type": _step_kind, "kind": _step_kind, "policy": _under_spec, "join": _under_spec,
        "admit": _under_policy, "lifecycle": _under_policy,
        "set_shared": _step_shared, **dict.fromkeys(("loop_mode", "fanout", "reducers", "pool", "concurrency"), _under_spec),
    },
    "executor": {
        **dict.fromkeys(("policy", "durability", "loop_mode", "fanout", "pool"), _under_spec),
        "limits": _under_policy, "failure": _under_policy,
    },
    "executor_spec": {"limits": _under_policy, "failure": _under_policy},
    "loop": dict.fromkeys(("mode", "max_in_flight", "policy"), _under_spec),
    "next": {"mode": _under_spec, **dict.fromkeys(("step", "when", "args", "to", "set"), _bare_next)},
    "arc": _EXPR,
    "admit_rule": _EXPR,
    "branch": _EXPR,
    "while": _EXPR,
    "until": _EXPR,
    "rule": {**_EXPR, **dict.fromkeys(THEN_WORDS, _rule_do)},
    "then": {"vars": _then_vars, "set_vars": _then_vars},
    "task": {
        "eval": _eval, "pipe": _pipe, "vars": _scoped_vars, "sink": _sink, "save": _sink, "retry": _retry, "type": _task_type,
        "when": _task_when, "policy": _under_spec, "rules": _under_policy, "tool": _task_tool,
    },
}  # fmt: skip

SYNONYMS: dict[str, dict[str, str]] = {
    "root": {
        "steps": "workflow", "tasks": "workflow", "inputs": "workload", "input": "workload", "params": "workload",
        "variables": "workload", "secrets": "keychain", "credentials": "keychain", "config": "executor",
    },
    "step": {
        "name": "step", "id": "step", "description": "desc", "doc": "desc", "tools": "tool", "tasks": "tool", "task": "tool",
        "pipeline": "tool", "run": "tool", "for": "loop", "foreach": "loop", "iterate": "loop", "arcs": "next", "then": "next",
    },
    "loop": {
        "collection": "in", "items": "in", "over": "in", "each": "in", "element": "iterator", "item": "iterator",
        "as": "iterator", "var": "iterator",
    },
    "next": {"then": "arcs", "steps": "arcs"},
    "arc": {
        "to": "step", "target": "step", "next": "step", "goto": "step", "if": "when", "condition": "when", "guard": "when",
        "input": "args", "with": "args", "params": "args", "data": "args", "description": "desc",
    },
    "rule": {"if": "when", "condition": "when", "action": "then", "default": "else"},
    "admit_rule": {"if": "when", "condition": "when", "allow": "then"},
    "branch": {"if": "when", "condition": "when", "do": "then", "tasks": "then"},
    "while": {"condition": "when", "if": "when", "then": "do", "tasks": "do", "limit": "max"},
    "until": {"condition": "when", "if": "when", "then": "do", "tasks": "do", "limit": "max"},
    "then": {
        "action": "do", "directive": "do", "goto": "to", "target": "to", "label": "to", "max_attempts": "attempts",
        "retries": "attempts", "initial_delay": "delay", "wait": "delay", "append": "append_ctx",
    },
    "task_policy": {"rule": "rules"},
    "limits": {"max_payload": "max_payload_bytes", "max_visits": "max_step_visits"},
    "lifecycle": {"timeout": "timeout_s", "deadline": "deadline_s"},
    "fanout": {
        "retries": "max_job_retries", "max_retries": "max_job_retries", "partial": "allow_partial", "ttl_s": "queue_ttl_s",
        "concurrency": "max_concurrent", "max_in_flight": "max_concurrent", "lease_timeout_s": "lease_s", "limit": "max_shards",
        "batch_size": "range_size", "chunk_size": "range_size", "shard_size": "range_size",
    },
    "collection_files": {"glob": "path", "pattern": "path"},
    "collection_objects": {"path": "url", "prefix": "url", "glob": "pattern"},
    "collection_claim": {
        "query": "sql", "command": "sql", "claim": "sql", "statement": "sql", "max_rows": "rows", "batch": "rows",
        "limit": "rows", "args": "params", "primary_key": "key",
    },
    "collection_sql": {"sql": "query", "command": "query", "order_by": "key", "primary_key": "key"},
    "shared": {"name": "key", "operation": "op", "reducer": "op"},
}  # fmt: skip


# ---- Rewrites as YAML


class _Dumper(yaml.SafeDumper):
    """Two spaces before list dashes, quotes as people write them around templates, blocks for texts of several lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif "{{" in text and '"' not in text and "\\" not in text:
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_nothing(dumper: yaml.SafeDumper, _: None) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(type(None), _represent_nothing)


def yaml_text(value: Json) -> str:
    """The value as block YAML, keys in the order given, without a final line break."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n")
