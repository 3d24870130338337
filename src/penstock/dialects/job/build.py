"""From a document's draft to its level: members, links with ports, bodies, sub-jobs, order. Every step reports what it finds."""

from __future__ import annotations

from collections.abc import Callable

from penstock.dialects.job.bodies import find_bodies
from penstock.dialects.job.checks.names import Names, check_names
from penstock.dialects.job.drafts import ComponentDraft, JobDraft
from penstock.dialects.job.inactive import leave_out
from penstock.dialects.job.joins import check_forks, check_joins
from penstock.dialects.job.level import POST_JOB, PRE_JOB, Level, Member
from penstock.dialects.job.order import find_order
from penstock.dialects.job.reader import Reading, is_template
from penstock.dialects.job.subjobs import find_subjobs
from penstock.dialects.job.wiring import check_arity, wire_up
from penstock.dialects.problems import Place
from penstock.dialects.source.loader import to_json
from penstock.kernel.errors import PenstockError
from penstock.ports.components import Port, Ports

_ROLES = {
    PRE_JOB: ("pre-job", "before everything else"),
    POST_JOB: ("post-job", "when everything else has ended"),
}

Find = Callable[[str, Place], Level | None]
"""The joblet of a name, or None when it has been reported."""


def build(reading: Reading, draft: JobDraft, text: str, find: Find, names: Names) -> Level:
    level = Level(draft, text)
    for index, component in enumerate(draft.components.values()):
        member = _member(reading, component, index, find)
        level.members[component.name] = member
    level.wires = wire_up(reading, level)
    check_forks(reading, level)
    leave_out(reading, level)
    inner = [joblet for member in level.members.values() if (joblet := member.joblet or member.body) is not None]
    level.depth = max((joblet.depth + 1 for joblet in inner), default=0)
    level.size = len(level.members) + sum(joblet.size for joblet in inner)
    if not level.members and draft.components:
        reading.findings.error("J0005", "every component is left out", draft.place, hint="one at least must be active")
    check_arity(reading, level)
    is_sound = find_bodies(reading, level)
    check_names(reading, level, names)
    find_subjobs(level)
    check_joins(reading, level)
    _check_roles(reading, level)
    if is_sound:
        find_order(reading, level)
    return level


def _member(reading: Reading, draft: ComponentDraft, index: int, find: Find) -> Member:
    called = draft.calls
    if called is not None:
        joblet = find(called, draft.type_place)
        return Member(draft, index, None if joblet is None else joblet.ports(), joblet=joblet)
    description = reading.describe(draft.type, draft.type_place)
    if description is None:
        return Member(draft, index, None)
    member = Member(draft, index, _ports(reading, draft), description)
    if description.is_iterator:
        member.body = _body(reading, draft, find)
        member.ports = _with_inputs(member)
    return member


def _ports(reading: Reading, draft: ComponentDraft) -> Ports | None:
    params = {name: to_json(param.node) for name, param in draft.params.items()}
    try:
        return reading.catalog.ports(draft.type, params)
    except PenstockError as error:
        hint = error.hint or ""
        reading.report(
            "BAD_PARAM", f"the ports of `{draft.name}` are not clear: {error.message}", draft.place, hint=hint
        )
        return None


def _body(reading: Reading, draft: ComponentDraft, find: Find) -> Level | None:
    param = draft.params.get("body")
    if param is None or param.node.is_null:
        return None
    name = param.node.text()
    if name is None or is_template(param.node):
        hint = "the plan must know it, so it cannot be a template"
        reading.report("BAD_PARAM", "`body` is the name of a joblet, written out", param.node.place, hint=hint)
        return None
    return find(name.removeprefix("@"), param.node.place)


def _with_inputs(member: Member) -> Ports | None:
    """An iterator whose body is a joblet takes the rows for that joblet's other inputs, too."""
    if member.body is None or member.ports is None:
        return member.ports
    item = item_input(member.body)
    known = {port.name for port in member.ports.inputs}
    more = [port for port in member.body.ports().inputs if port.name != item and port.name not in known]
    member.body_inputs = frozenset(port.name for port in more)
    return Ports((*member.ports.inputs, *(Port(port.name, port.required) for port in more)), member.ports.outputs)


def item_input(body: Level) -> str | None:
    """The input of a body's joblet that takes the element: `item`, or its only one."""
    inputs = list(body.draft.inputs)
    return "item" if "item" in inputs else inputs[0] if len(inputs) == 1 else None


def _check_roles(reading: Reading, level: Level) -> None:
    for role in _ROLES:
        members = [member for member in level.members.values() if member.draft.type == role]
        for member in members:
            where = level.homes.get(member.name, "")
            if level.draft.is_joblet or where:
                around = "a joblet" if level.draft.is_joblet else f"the body of `{where}`"
                message = f"`{role}` stands in a job, and `{member.name}` is in {around}"
                reading.report("ROLE_PLACE", message, member.draft.type_place)
            else:
                _check_links_into(reading, level, member)
        if len(members) > 1:
            message = f"there are two components of type `{role}`: `{members[0].name}` and `{members[1].name}`"
            reading.report("ROLE_PLACE", message, members[1].draft.type_place, hint="a job has one at most")


def _check_links_into(reading: Reading, level: Level, member: Member) -> None:
    role, when = _ROLES[member.draft.type]
    for wire in level.into(member.name):
        message = f"`{wire}` leads into the {role} `{member.name}`, which starts by itself {when}"
        hint = f"take this link away; what is to run after `{wire.source}` alone is a component of its own"
        reading.report("ROLE_LINK", message, wire.place, hint=hint)
