"""Assignments: `set_ctx`, `set_iter`, `append_ctx`, `set_shared`; and `set`, whose keys say by their prefix where they go."""

from __future__ import annotations

from penstock.dialects.playbook.drafts import Shared, Site, Where
from penstock.dialects.playbook.overlay import merged
from penstock.dialects.playbook.reader import Reading, did_you_mean
from penstock.dialects.playbook.shared import SharedWrites, read_shared
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import SourceNode, to_json
from penstock.kernel.kept import STATE
from penstock.kernel.net import Writes
from penstock.kernel.values import JsonMap, Template

_READ_ONLY = ("workload", "keychain", "args", "event", "execution", "outcome", "output")


def read_then_writes(reading: Reading, then: SourceNode, sites: list[Site], shared: list[Shared]) -> Writes:
    """The writes of a rule. What `set` and the longer words both name is written as the longer words say."""
    into = SharedWrites()
    found = _split(reading, then.get("set"), Where.POLICY, sites, bare="iter", shared=into)
    read_shared(reading, then.get("set_shared"), Where.POLICY, sites, into)
    shared += into.drafts
    return Writes(
        iter={**found.iter, **_plain(reading, then, "set_iter", "iter", sites)},
        ctx={**found.ctx, **_plain(reading, then, "set_ctx", "ctx", sites)},
        append=_plain(reading, then, "append_ctx", "ctx", sites),
        shared=into.templates,
    )


def read_task_set(reading: Reading, task: SourceNode, sites: list[Site], shared: list[Shared]) -> Writes:
    """What a task writes after an ok outcome."""
    into = SharedWrites()
    found = _split(reading, task.get("set"), Where.ON_OK, sites, bare="iter", shared=into)
    read_shared(reading, task.get("set_shared"), Where.ON_OK, sites, into)
    shared += into.drafts
    return Writes(iter=found.iter, ctx=found.ctx, shared=into.templates)


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
        elif head == STATE and rest and _is_kept(reading, rest, mapping.keys[key], "the args of the token"):
            ctx[key] = to_json(value)
        elif head == "shared" and rest:
            _refuse_shared(reading, "an arc", mapping.keys[key])
        else:
            path = rest if head in ("args", "iter") and rest else key
            args = merged(args, _nested(path, to_json(value)))
    return Writes(ctx=ctx), args


def _is_kept(reading: Reading, path: str, place: Place, otherwise: str) -> bool:
    """Does a key `state.…` name what the document keeps between runs? In one that keeps nothing it is a key like any other."""
    name = path.partition(".")[0]
    if reading.state is None:
        hint = (
            f"declare it: `state: {{{name}: null}}` at the root; or write `ctx.state.{path}` if it is for this run only"
        )
        message = (
            f"`state.{path}` goes into {otherwise}, for this run only: the document does not say that it keeps anything"
        )
        reading.findings.warning("P0831", message, place, hint=hint)
        return False
    if name not in reading.state:
        hint = f"declare it with the value of the first run: `state: {{{name}: null}}`"
        label = did_you_mean(name, reading.state)
        reading.findings.error("P0830", f"`state` does not declare `{name}`", place, label=label, hint=hint)
    return True


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


def _refuse_shared(reading: Reading, what: str, place: Place) -> None:
    hint = "it is a task of the loop that shares: put it on the task, or into `then` of one of its rules"
    reading.findings.error("P0613", f"{what} cannot share: by then all iterations are over", place, hint=hint)


def _split(
    reading: Reading,
    node: SourceNode | None,
    where: Where,
    sites: list[Site],
    bare: str,
    shared: SharedWrites | None = None,
) -> Writes:
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
        elif head == STATE and rest and _is_kept(reading, rest, mapping.keys[key], f"`{bare}`"):
            writes.ctx[key] = to_json(value)
        elif head == "shared" and rest:
            if shared is None:
                _refuse_shared(reading, "a step", mapping.keys[key])
            else:
                shared.add(reading, rest, mapping.keys[key], value)
        else:
            targets[bare][key] = to_json(value)
    return writes
