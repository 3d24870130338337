"""Words of the document, its steps, loops and directives."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dialects.playbook.public.table import Alias, Here, Reading, Rule, Treatment, dropped, refusal
from penstock.dialects.playbook.public.texts import as_expression
from penstock.dialects.playbook.words import SUGAR, TASK
from penstock.dialects.source.edits import Drop, Edit, Move, Path, Put, at
from penstock.dialects.source.node import SourceNode, to_json
from penstock.kernel.values import Json

# ---- The tasks of a step, wherever they stand: in a list, alone, under a label, in a choice or a loop of the pipeline


def task_paths(tool: SourceNode | None, path: Path) -> Iterator[Path]:
    """Where each task stands that has a tool of its own."""
    if tool is None:
        return
    if tool.kind == "sequence":
        for index, item in enumerate(tool.items):
            yield from task_paths(item, (*path, index))
    elif tool.kind == "mapping":
        if "kind" in tool.entries:
            yield path
        elif any(word in tool.entries for word in SUGAR):
            yield from _within_control(tool, path)
        elif len(tool.entries) == 1 and not tool.entries.keys() & TASK["task"].words.keys():
            ((label, body),) = tool.entries.items()
            yield from task_paths(body, (*path, label))


def _within_control(control: SourceNode, path: Path) -> Iterator[Path]:
    choose = control.get("choose")
    for index, branch in enumerate(choose.items if choose is not None else ()):
        for word in ("then", "else"):
            body = branch.get(word)
            below = (*path, "choose", index, word)
            if body is not None and "then" in body.entries:
                body, below = body.entries["then"], (*below, "then")
            yield from task_paths(body, below)
    for word in ("while", "until"):
        rounds = control.get(word)
        yield from task_paths(None if rounds is None else rounds.get("do"), (*path, word, "do"))


# ---- A step: what it gives to its tasks, and what it writes


def _given(word: str) -> Rule:
    """Each task gets the values that it does not have itself; what the arcs that lead here bring goes over them."""

    def read(here: Here) -> Reading | None:
        given = here.node.entries[word]
        if given.kind != "mapping":
            if given.is_null:
                return Reading((Drop(here.under(word)),))
            hint = "give it to the task that takes it, as `args`"
            return refusal(f"`{word}` of a step must be a mapping, not {given.noun}", hint)
        brought = _brought(here)
        edits: list[Edit] = []
        for path in task_paths(here.node.get("tool"), here.under("tool")):
            task = at(here.root, path)
            assert task is not None
            name = "input" if "input" in task.entries else "args"
            own = task.get(name)
            if own is not None and own.kind != "mapping" and not own.is_null:
                hint = f"write the entries of `{word}` into that template"
                return refusal(
                    f"the step's `{word}` cannot be added to `{name}` of its task, which is a template", hint
                )
            for key, value in given.entries.items():
                if own is not None and key in own.entries:
                    continue
                rendered = _laid_under(key, value) if key in brought else to_json(value)
                if rendered is None and key in brought:
                    hint = f'write `{key}: "{{{{ args.{key} | default(…) }}}}"` into `args` of the task'
                    return refusal(
                        f"`{key}` stands in `{word}` of this step, and an arc that leads here brings it too", hint
                    )
                edits.append(Put((*path, name, key), rendered, like=here.under(word, key)))
        return Reading((*edits, Drop(here.under(word))))

    return read


def _laid_under(key: str, value: SourceNode) -> Json:
    """What an arc brings, else the value; None when the value is no expression."""
    expression = as_expression(value)
    return None if expression is None else f"{{{{ args.{key} if args.{key} is defined else {expression} }}}}"


def _brought(here: Here) -> set[str]:
    """The names that arcs bring to this step."""
    name = here.text("step")
    found: set[str] = set()
    workflow = here.root.get("workflow")
    for step in workflow.items if workflow is not None else ():
        router = step.get("next")
        arcs = None if router is None else router.get("arcs")
        for arc in arcs.items if arcs is not None else ():
            target = arc.get("step")
            if target is not None and target.text() == name:
                for values in (arc.get("args"), arc.get("set")):
                    found |= {key for key in values.entries if "." not in key} if values is not None else set()
    return found


def _set_ctx(here: Here) -> Reading | None:
    given = here.node.entries["set_ctx"]
    if given.kind != "mapping":
        return refusal(f"`set_ctx` must be a mapping, not {given.noun}", "write `set: {ctx.name: value}`")
    return Reading(as_writes(here.root, here.path, "set_ctx"))


def as_writes(root: SourceNode, step: Path, word: str) -> tuple[Edit, ...]:
    """A mapping of names to values as `set` of the step, or as a part of the one that it has."""
    given = at(root, (*step, word))
    keys = [] if given is None else list(given.entries)
    if at(root, (*step, "set")) is None:
        renamed = (Move((*step, "set", key), (*step, "set", _of_ctx(key))) for key in keys if key != _of_ctx(key))
        return (Move((*step, word), (*step, "set")), *renamed)
    return (*(Move((*step, word, key), (*step, "set", _of_ctx(key))) for key in keys), Drop((*step, word)))


def _of_ctx(key: str) -> str:
    return f"ctx.{key.removeprefix('ctx.')}"


# ---- A loop


def _cursor(here: Here) -> Reading | None:
    given = here.node.entries["cursor"]
    if given.kind != "mapping" or "claim" not in given.entries:
        return refusal(
            "`cursor` must be a mapping with a statement under `claim`",
            "`{kind: postgres, auth: …, claim: UPDATE … RETURNING …}`",
        )
    if "in" in here.node.entries:
        return refusal("a loop has `in` or `cursor`, not both", "keep the one that is meant")
    edits: list[Edit] = [
        Move(here.under("cursor", "claim"), here.under("cursor", "sql")),
        Move(here.under("cursor"), here.under("in", "claim")),
    ]
    spec = here.node.get("spec")
    frame = None if spec is None else spec.get("frame")
    if spec is not None:
        if frame is not None:
            if (process := frame.get("process")) is not None and process.text() == "frame":
                return refusal(
                    "`process: frame` gives all rows of a claim to one iteration, and here each row has its own",
                    "collect rows in the SQL, as one row with a list, if they belong together",
                )
            if "max_rows" in frame.entries:
                edits.append(Move(here.under("spec", "frame", "max_rows"), here.under("in", "claim", "rows")))
            edits.append(Drop(here.under("spec", "frame")))
        if (mode := spec.get("mode")) is not None and mode.text() == "cursor":
            # Without a number of claimers there is one.
            several = "max_in_flight" in spec.entries
            edits.append(Put(here.under("spec", "mode"), "parallel" if several else "sequential"))
    return Reading(tuple(edits))


# ---- The document


def _spec(here: Here) -> Reading | None:
    return Reading(
        (
            *(Move(here.under("spec", key), here.under("workload", key)) for key in here.node.entries["spec"].entries),
            Drop(here.under("spec")),
        ),
        message="`spec` is not a section of a playbook",
        hint="no engine reads it: values that steps read belong to `workload`",
    )


DOCUMENT = (
    Alias("root", "spec", "Values, in documents from before `workload`.", Treatment.REFUSED, "`workload`", _spec),
    Alias("root", "tracing", "Asks for traces; no engine reads it.", Treatment.IGNORED, "nothing", dropped("tracing")),
)

STEP = (
    Alias(
        "step",
        "input",
        "Values for the tasks of the step. What an arc brings goes over them.",
        Treatment.ALIAS,
        "`args` of each task that does not have the key itself",
        _given("input"),
    ),
    Alias(
        "step",
        "args",
        "The same as `input` of a step.",
        Treatment.ALIAS,
        "`args` of each task that does not have the key itself",
        _given("args"),
    ),
    Alias("step", "set_ctx", "Writes to ctx when the step is done.", Treatment.HINT, "`set: {ctx.x: …}`", _set_ctx),
    Alias(
        "step",
        "output",
        "Which fields of a large result stay readable.",
        Treatment.IGNORED,
        "nothing: a result is read whole, by name, whatever its size",
        dropped("output"),
    ),
    Alias(
        "step",
        "result",
        "The same as `output` of a step.",
        Treatment.IGNORED,
        "nothing: a result is read whole, by name, whatever its size",
        dropped("result"),
    ),
)

LOOP = (
    Alias(
        "loop",
        "cursor",
        "Rows that a statement claims, until it returns none.",
        Treatment.ALIAS,
        "`in: {claim: {kind, auth, sql}}`",
        _cursor,
        replaces="in",
    ),
)


def _fixed(here: Here) -> Reading | None:
    return Reading((Drop(here.under("backoff")),)) if here.text("backoff") == "fixed" else None


DIRECTIVE = (
    Alias(
        "then",
        "backoff: fixed",
        "The same delay before each attempt.",
        Treatment.ALIAS,
        "`delay` alone",
        _fixed,
    ),
)
