"""Policies, each typed by the scope it stands in.

Only a task's `spec.policy.rules` control anything. Everywhere else a control action is refused, and the message names the right
scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.dialects.playbook.drafts import Shared, Site, Where
from penstock.dialects.playbook.reader import Reading
from penstock.dialects.playbook.refused import yaml_text
from penstock.dialects.playbook.words import BACKOFFS, DIRECTIVES
from penstock.dialects.playbook.writes import read_then_writes
from penstock.dialects.problems import Position
from penstock.dialects.reader import is_template
from penstock.dialects.source.node import SourceNode, to_json
from penstock.dialects.source.tree import NotJson, resolve
from penstock.kernel.net import AdmitRule, Backoff, Do, Rule, Then
from penstock.kernel.pipeline import DEFAULT_ATTEMPTS
from penstock.kernel.values import Template

_RETRY_WORDS = ("attempts", "backoff", "delay", "max_delay", "jitter")
_CONTROL_WORDS = frozenset(
    {"do", "rules", "retry", "jump", "break", "continue", "fail", "set_ctx", "set_iter", "set_shared", "eval"}
)
# Sections with words and keys of their own.
_OWN_SECTIONS = ("admit", "fanout", "reducers")


@dataclass(slots=True)
class RulesDraft:
    rules: tuple[Rule, ...] = ()
    jumps: dict[int, Position] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)
    shared: list[Shared] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule taken apart: `when` is None for `else`."""

    node: SourceNode
    when: SourceNode | None
    then: SourceNode | None


def clauses(reading: Reading, items: list[SourceNode], scope: str, what: str) -> list[Clause]:
    """The rules of a list in whichever of the spellings of `else` they are written (D25)."""
    found: list[Clause] = []
    for number, item in enumerate(items):
        node = reading.mapping(item, what)
        if node is None:
            if item.is_null:
                reading.wrong_shape(item, what, "a mapping")
            continue
        reading.words(node, scope)
        clause = _clause(reading, node, what)
        if clause is None:
            continue
        found.append(clause)
        if clause.when is None and number + 1 < len(items):
            hint = "rules are asked from top to bottom: `else` is the last one"
            reading.findings.error("P0404", f"no {what} below this `else` is ever asked", node.keys["else"], hint=hint)
    return found


def _clause(reading: Reading, node: SourceNode, what: str) -> Clause | None:
    has_when, has_else = "when" in node.entries, "else" in node.entries
    if has_when and has_else:
        reading.findings.error(
            "P0403", f"a {what} has both `when` and `else`", node.keys["else"], hint="make two of it"
        )
        return None
    if has_when:
        return Clause(node, node.entries["when"], node.get("then"))
    if not has_else:
        if "expr" not in node.entries:
            reading.findings.error("P0403", f"a {what} has neither `when` nor `else`", node.position)
        return None
    fallback = node.entries["else"]
    if fallback.is_null:
        return Clause(node, None, node.get("then"))
    if "then" in node.entries:
        reading.findings.error("P0403", "this `else` says what to do twice: in itself and in `then`", node.keys["then"])
        return None
    return Clause(node, None, fallback.get("then") or fallback)


def read_task_policy(reading: Reading, node: SourceNode) -> RulesDraft | None:
    """`task.spec.policy`: an object with a required list of rules, and no other shape."""
    if node.is_null:
        return None
    if node.kind != "mapping":
        rewrite = yaml_text({"policy": {"rules": to_json(node)}}) if node.kind == "sequence" else ""
        hint = "`policy` is a mapping with a list under `rules`"
        reading.findings.error(
            "P0401", f"a task's policy is a mapping, not {node.noun}", node.position, hint=hint, rewrite=rewrite
        )
        return None
    rules = node.get("rules")
    if rules is None:
        hint = "`rules` is required: without a policy an ok outcome continues and an error fails"
        reading.findings.error("P0401", "a task's policy has no `rules`", node.position, hint=hint)
    reading.words(node, "task_policy", skip=("rules",))
    _reserved(reading, node)
    return read_rules(reading, reading.items(rules, "`rules`"))


def _reserved(reading: Reading, node: SourceNode) -> None:
    for key in ("before", "after", "finally"):
        hook = node.get(key)
        if hook is not None and (hook.items or hook.kind == "mapping"):
            reading.findings.error(
                "P0417", f"`{key}` hooks are reserved and do nothing yet", node.keys[key], hint="leave it out"
            )
    for key, only in (("mode", "exclusive"), ("on_unmatched", "continue")):
        value = node.get(key)
        if value is not None and value.value != only:
            reading.findings.error("P0417", f"`{key}` is reserved; `{only}` is all it may say yet", value.position)


def read_rules(reading: Reading, items: list[SourceNode]) -> RulesDraft:
    draft = RulesDraft()
    rules: list[Rule] = []
    for clause in clauses(reading, items, "rule", "rule"):
        when = reading.condition(clause.when, "`when`")
        if clause.when is not None:
            if when is None:
                continue
            draft.sites.append(Site(clause.when, Where.POLICY, is_condition=True))
        if clause.then is None or clause.then.is_null:
            if "do" not in clause.node.entries:
                reading.findings.error(
                    "P0406", "this rule does not say what to do", clause.node.position, hint="add `then: {do: …}`"
                )
            continue
        then = _read_then(reading, clause.then, draft, len(rules))
        rules.append(Rule(when, then))
    draft.rules = tuple(rules)
    return draft


def _read_then(reading: Reading, node: SourceNode, draft: RulesDraft, number: int) -> Then:
    if node.kind != "mapping":
        text = node.text()
        rewrite = yaml_text({"then": {"do": text}}) if text in DIRECTIVES else ""
        reading.wrong_shape(node, "`then`", "a mapping", rewrite=rewrite)
        return Then()
    reading.words(node, "then")
    given = node.get("do")
    do = Do.CONTINUE
    if given is not None:
        text = reading.choice(given, "a directive", DIRECTIVES, code="P0412")
        if text is None:
            return Then(writes=read_then_writes(reading, node, draft.sites, draft.shared))
        do = Do(text)
    _misplaced(reading, node, do, has_do=given is not None)
    _check_backoff(reading, node)
    target = node.get("to")
    if do is Do.JUMP and target is None:
        hint = "`to` names a task of the same pipeline"
        reading.findings.error("P0413", "this jump does not say where to", node.position, hint=hint)
    if do is Do.RETRY and "attempts" not in node.entries:
        message = f"this retry does not say how often: `attempts: {DEFAULT_ATTEMPTS}` is taken"
        reading.findings.note("P0416", message, node.keys["do"])
    if do is Do.JUMP and target is not None:
        draft.jumps[number] = target.position
    return Then(
        do=do,
        attempts=_attempts(reading, node.get("attempts"), draft),
        backoff=Backoff(reading.choice(node.get("backoff"), "a backoff", BACKOFFS) or "none"),
        delay=_delay(reading, node.get("delay"), draft),
        max_delay=_or(reading.number(node.get("max_delay"), "`max_delay`"), 300.0),
        jitter=_or(reading.number(node.get("jitter"), "`jitter`"), 0.0),
        to=reading.text(target, "`to`") if do is Do.JUMP else None,
        writes=read_then_writes(reading, node, draft.sites, draft.shared),
    )


def _check_backoff(reading: Reading, node: SourceNode) -> None:
    backoff, delay = node.get("backoff"), node.get("delay")
    if backoff is not None and backoff.value == "none" and delay is not None and delay.value not in (0, None):
        reading.findings.note(
            "P0418",
            "the delay does not grow, and it is waited for before each attempt; another engine waits for nothing with `none`",
            backoff.position,
            hint="leave `backoff` out, which means the same; or write `delay: 0` to try again at once",
        )


def _misplaced(reading: Reading, node: SourceNode, do: Do, has_do: bool) -> None:
    """Words that only one directive understands, beside another one or beside none."""
    for words, owner in ((("to",), Do.JUMP), (_RETRY_WORDS, Do.RETRY)):
        for word in words:
            if word in node.entries and do is not owner:
                message = f"`{word}` means something only with `do: {owner.value}`"
                label = "" if has_do else f"`do: {owner.value}` is missing"
                reading.findings.error("P0415", message, node.keys[word], label=label)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _unquoted(node: SourceNode) -> SourceNode:
    """A number that was written as text: `delay: "2"`."""
    try:
        value = resolve(node.text() or "")
    except NotJson:
        return node
    return replace(node, value=value) if isinstance(value, int | float) and not isinstance(value, bool) else node


def _attempts(reading: Reading, node: SourceNode | None, draft: RulesDraft) -> Template:
    if node is not None and is_template(node):
        draft.sites.append(Site(node, Where.POLICY))
        return node.text()
    return reading.whole(None if node is None else _unquoted(node), "`attempts`")


def _delay(reading: Reading, node: SourceNode | None, draft: RulesDraft) -> Template:
    if node is not None and is_template(node):
        draft.sites.append(Site(node, Where.POLICY))
        return node.text()
    return _or(reading.number(None if node is None else _unquoted(node), "`delay`"), 0.0)


def read_admission(reading: Reading, node: SourceNode, sites: list[Site]) -> tuple[AdmitRule, ...] | None:
    admit = reading.mapping(node, "`admit`")
    if admit is None:
        return None
    reading.words(admit, "admit")
    reading.choice(admit.get("mode"), "an admission mode", ("exclusive", "inclusive"))
    rules: list[AdmitRule] = []
    for clause in clauses(reading, reading.items(admit.get("rules"), "`rules`"), "admit_rule", "admission rule"):
        when = reading.condition(clause.when, "`when`")
        if clause.when is not None:
            if when is None:
                continue
            sites.append(Site(clause.when, Where.ADMIT, is_condition=True))
        allow = _read_allow(reading, clause)
        if allow is not None:
            rules.append(AdmitRule(when, allow))
    return tuple(rules)


def _read_allow(reading: Reading, clause: Clause) -> bool | None:
    then = clause.then
    hint = "an admission rule ends in `then: {allow: true}` or `then: {allow: false}`"
    if then is not None and then.kind == "mapping":
        control = [key for key in then.entries if key in _CONTROL_WORDS]
        if control:
            message = f"`{control[0]}` is a control action, and admission only lets tokens in or not"
            reading.findings.error("P0402", message, then.keys[control[0]], hint=hint)
            return None
        reading.words(then, "admit_then", skip=("allow",))
        allow = then.get("allow")
        if allow is not None and isinstance(allow.value, bool):
            return allow.value
    position = clause.node.position if then is None or then.is_null else then.position
    reading.findings.error("P0405", "this admission rule has no `allow: true` or `allow: false`", position, hint=hint)
    return None


def refuse_control(reading: Reading, node: SourceNode | None, scope: str) -> set[str]:
    """Report control actions in a policy that is not a task's; gives the keys of `node` that were reported."""
    if node is None or node.kind != "mapping":
        return set()
    found: set[str] = set()
    for key, value in node.entries.items():
        if key in _CONTROL_WORDS:
            found.add(key)
            reading.findings.error(
                "P0402", f"`{key}` is a control action, and {scope} may not have one", node.keys[key],
                hint="control belongs to a task: move it to that task's `spec.policy.rules`",
            )  # fmt: skip
        elif key not in _OWN_SECTIONS:
            for inner in (value, *value.items):
                refuse_control(reading, inner, scope)
    return found
