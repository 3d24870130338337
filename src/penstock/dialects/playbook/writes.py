"""Assignments: `set_ctx`, `set_iter`, `append_ctx`, and `set`, whose keys say by their prefix where they write (D25)."""

from __future__ import annotations

from penstock.dialects.playbook.drafts import Site, Where
from penstock.dialects.playbook.overlay import merged
from penstock.dialects.playbook.reading import Reading
from penstock.dialects.source import SourceNode, to_json
from penstock.kernel.net import Writes
from penstock.kernel.values import JsonMap, Template

_READ_ONLY = ("workload", "keychain", "args", "event", "execution", "outcome", "output")


def read_then_writes(reading: Reading, then: SourceNode, sites: list[Site]) -> Writes:
    """The writes of a rule. What `set` and the longer words both name is written as the longer words say."""
    found = _split(reading, then.get("set"), Where.POLICY, sites, bare="iter")
    return Writes(
        iter={**found.iter, **_plain(reading, then, "set_iter", "iter", sites)},
        ctx={**found.ctx, **_plain(reading, then, "set_ctx", "ctx", sites)},
        append=_plain(reading, then, "append_ctx", "ctx", sites),
    )


def read_task_set(reading: Reading, node: SourceNode | None, sites: list[Site]) -> Writes:
    return _split(reading, node, Where.ON_OK, sites, bare="iter")


def read_step_set(reading: Reading, node: SourceNode | None, sites: list[Site]) -> Writes:
    """A step's iterations are over when it is done, so a key without prefix goes to ctx."""
    return _split(reading, node, Where.ON_DONE, sites, bare="ctx")


def read_arc_set(reading: Reading, node: SourceNode | None, sites: list[Site]) -> tuple[Writes, dict[str, Template]]:
    """On an arc, `ctx.x` writes ctx and every other key is one of the token's args."""
    mapping = reading.mapping(node, "`set`")
    if mapping is None:
        return Writes(), {}
    sites.append(Site(mapping, Where.ARC))
    _refuse_templates(reading, mapping)
    ctx: dict[str, Template] = {}
    args: JsonMap = {}
    for key, value in mapping.entries.items():
        head, _, rest = key.partition(".")
        if head == "ctx" and rest:
            ctx[rest] = to_json(value)
        else:
            path = rest if head in ("args", "iter") and rest else key
            args = merged(args, _nested(path, to_json(value)))
    return Writes(ctx=ctx), args


def _refuse_templates(reading: Reading, mapping: SourceNode) -> None:
    for key, place in mapping.keys.items():
        if "{{" in key:
            reading.findings.error(
                "P0408",
                "the name of what is written cannot be a template",
                place,
                hint='write a mapping as the value: `ctx.seen: "{{ {key: value} }}"`, or collect with `append_ctx`',
            )


def _nested(path: str, value: Template) -> JsonMap:
    head, _, rest = path.partition(".")
    return {head: _nested(rest, value) if rest else value}


def _plain(reading: Reading, then: SourceNode, word: str, prefix: str, sites: list[Site]) -> dict[str, Template]:
    mapping = reading.mapping(then.get(word), f"`{word}`")
    if mapping is None:
        return {}
    sites.append(Site(mapping, Where.POLICY))
    _refuse_templates(reading, mapping)
    return {key.removeprefix(f"{prefix}."): to_json(value) for key, value in mapping.entries.items()}


def _split(reading: Reading, node: SourceNode | None, where: Where, sites: list[Site], bare: str) -> Writes:
    mapping = reading.mapping(node, "`set`")
    if mapping is None:
        return Writes()
    sites.append(Site(mapping, where))
    _refuse_templates(reading, mapping)
    writes = Writes()
    targets = {"ctx": writes.ctx, "iter": writes.iter}
    for key, value in mapping.entries.items():
        head, _, rest = key.partition(".")
        if head in _READ_ONLY and rest:
            reading.findings.error(
                "P0408",
                f"`{head}` cannot be written",
                mapping.keys[key],
                hint="write to `ctx.…`, or to `iter.…` within a pipeline",
            )
        elif head in targets and rest:
            targets[head][rest] = to_json(value)
        else:
            targets[bare][key] = to_json(value)
    return writes
