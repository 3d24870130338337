"""`loop`: the collection, the iterator, and how iterations run.

`in` is a template, a list, or a description: `{range: …}`, `{lines: …}` and so on, which is never written out. What is written in
a description is checked here; templates in it when it runs.
"""

from __future__ import annotations

from penstock.dialects.playbook.collections import check_paged
from penstock.dialects.playbook.drafts import LoopDraft, Site, Where
from penstock.dialects.playbook.fanouts import read_fanout, read_reducers
from penstock.dialects.playbook.overlay import without_engine_words, without_policy
from penstock.dialects.playbook.policy import refuse_control
from penstock.dialects.playbook.reader import Reading, did_you_mean, is_template, listed
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.kernel.net import FailureMode, LoopMode
from penstock.kernel.values import JsonMap, Template

_RANGE_WORDS = ("start", "stop", "step")
_OWN_NAMES = ("index", "parent", "loop_id", "shard_id", "iter_key")


def read_loop(reading: Reading, node: SourceNode | None, sites: list[Site]) -> LoopDraft | None:
    loop = reading.mapping(node, "`loop`")
    if loop is None:
        return None
    reading.words(loop, "loop")
    given, named = loop.get("in"), loop.get("iterator")
    iterator = None if named is None else reading.name(named, "the name of an iterator")
    if iterator in _OWN_NAMES and named is not None:
        reading.findings.error(
            "P0602", f"`iter.{iterator}` has a meaning already", named.place, hint="choose another iterator"
        )
    collection = None if given is None else _read_collection(reading, given, sites)
    draft = LoopDraft(loop.place, collection, iterator or "item")
    spec = reading.section(loop, "spec", "loop_spec")
    if spec is not None:
        _read_spec(reading, spec, draft)
    if draft.max_in_flight is not None and draft.mode is LoopMode.SEQUENTIAL:
        hint = "add `mode: parallel`, or leave `max_in_flight` out"
        reading.findings.warning("P0605", "a sequential loop has one iteration in flight", loop.place, hint=hint)
    return draft


def _read_collection(reading: Reading, node: SourceNode, sites: list[Site]) -> Template:
    sites.append(Site(node, Where.COLLECTION))
    if node.kind == "sequence" or is_template(node):
        return to_json(node)
    if node.kind == "mapping" and _check_description(reading, node):
        return to_json(node)
    if node.kind != "mapping":
        hint = "it is a template that gives a list, a list, or a description such as `{range: 10}`"
        reading.findings.error("P0603", f"`loop.in` is {node.noun}, not a collection", node.place, hint=hint)
    return None


def _check_description(reading: Reading, node: SourceNode) -> bool:
    kinds = reading.language.scopes["collection"].words
    if len(node.entries) > 1:
        hint = f"one key says what it is: {listed(kinds)}"
        second = list(node.keys.values())[1]
        reading.findings.error("P0603", "a collection is of one kind, and has one key", second, hint=hint)
        return False
    for key, value in node.entries.items():
        if key == "range":
            _check_range(reading, value)
        elif key in kinds:
            check_paged(reading, key, value, node.keys[key])
        else:
            hint = f"it is one of {listed(kinds)}; a mapping of your own is given by a template"
            label = did_you_mean(key, kinds)
            reading.findings.error(
                "P0603", f"`{key}` is not a kind of collection", node.keys[key], label=label, hint=hint
            )
            return False
        return True
    reading.findings.error("P0603", "`loop.in` is an empty mapping", node.place, hint=f"it has one of {listed(kinds)}")
    return False


def _check_range(reading: Reading, bounds: SourceNode) -> None:
    values = {"stop": bounds} if bounds.kind != "mapping" else bounds.entries
    for key, value in values.items():
        if key not in _RANGE_WORDS:
            hint = "a range has `start`, `stop` and `step`"
            reading.findings.error("P0604", f"`{key}` is not a bound of a range", bounds.keys[key], hint=hint)
        elif not is_template(value):
            number = reading.whole(value, f"`{key}`", least=-(2**63))
            if key == "step" and number == 0:
                reading.findings.error("P0604", "a range cannot step by 0", value.place)
    if "stop" not in values:
        reading.findings.error("P0604", "a range has no `stop`", bounds.place)


def _read_spec(reading: Reading, spec: SourceNode, draft: LoopDraft) -> None:
    value = to_json(spec)
    plain: JsonMap = value if isinstance(value, dict) else {}
    draft.spec = without_engine_words(without_policy(plain))
    draft.fanout = read_fanout(reading, spec, None)
    reading.warn_unrendered(spec, "`spec`", skip="policy")
    policy = reading.mapping(spec.get("policy"), "`policy`")
    layers = [spec]
    if policy is not None:
        reading.words(policy, "loop_policy", skip=refuse_control(reading, policy, "a loop's policy"))
        reading.choice(policy.get("exec"), "a place to run iterations", ("local", "distributed"))
        failure = reading.section(policy, "failure", "failure")
        if failure is not None:
            draft.failure = reading.enum(failure.get("mode"), "a failure mode", FailureMode)
        reducers = policy.get("reducers")
        draft.reducers = None if reducers is None or reducers.is_null else read_reducers(reading, reducers)
        layers.insert(0, policy)
    for layer in layers:
        draft.mode = reading.enum(layer.get("mode"), "a loop mode", LoopMode) or draft.mode
        draft.max_in_flight = reading.whole(layer.get("max_in_flight"), "`max_in_flight`") or draft.max_in_flight
