"""From a document to the draft of a job or a joblet: its kind, its sections and its `job_config`."""

from __future__ import annotations

from pathlib import PurePath

from penstock.dialects.connections import component_params, engine_holders, write_out_connections
from penstock.dialects.job.component import read_components, read_engine
from penstock.dialects.job.drafts import Config, End, Engine, JobDraft, ParamDraft
from penstock.dialects.job.links import read_end, read_links
from penstock.dialects.job.reader import Reading
from penstock.dialects.job.words import API_VERSIONS, FAIL_STRATEGIES, KINDS, STARTS, SUBJOB_POLICIES
from penstock.dialects.reader import did_you_mean, listed, read_keychain
from penstock.dialects.source.node import SourceNode, to_json
from penstock.dialects.words import INPUT_RULES, OPEN
from penstock.kernel.net import Durability, Limits
from penstock.kernel.values import JsonMap


def is_job(root: SourceNode | None) -> bool:
    """Is this tree a job or a joblet, rather than a playbook? Said by `kind`, or by its sections when there is none."""
    if root is None or root.kind != "mapping":
        return False
    kind = root.get("kind")
    if kind is not None and kind.value in KINDS:
        return True
    return "components" in root.entries and "workflow" not in root.entries


def read_document(
    reading: Reading, root: SourceNode, file: str, text: str, *, as_joblet: bool = False
) -> JobDraft | None:
    """None if the document is not a job at all, so that further problems would only add noise."""
    if not _is_readable(reading, root):
        return None
    kind = root.get("kind")
    is_joblet = as_joblet if kind is None else kind.value == "Joblet"
    write_out_connections(reading, root, component_params(root), engine_holders(root))
    reading.words(root, "joblet" if is_joblet else "job", skip=("components", "kind", "apiVersion"))
    _take_as_meant(reading, root, "joblet" if is_joblet else "job")
    _check_version(reading, root)
    draft = JobDraft(PurePath(file).stem or "job", file, root.position, is_joblet)
    _read_metadata(reading, root, draft)
    _read_context(reading, root.get("context"), draft)
    draft.keychain_nodes = read_keychain(reading, root.get("keychain"))
    draft.keychain = [_map(entry) for entry in draft.keychain_nodes]
    if is_joblet:
        _read_joblet(reading, root, draft, text)
    else:
        draft.config = read_config(reading, root)
        state = reading.mapping(root.get("state"), "`state`")
        if state is not None:
            draft.state = _map(state)
            reading.warn_unrendered(state, "`state`")
    components = root.get("components")
    if components is None or components.is_null or not (components.items or components.entries or components.value):
        position = root.position if components is None else root.keys["components"]
        reading.findings.error(
            "J0005", "there are no components", position, hint="`components` is a list of components"
        )
    else:
        draft.components = read_components(reading, components)
    draft.links = read_links(reading, root, text)
    return draft


def _take_as_meant(reading: Reading, root: SourceNode, scope: str) -> None:
    """Reads a section whose name is misspelt, which has been reported, under the name that was meant."""
    for key in list(root.entries):
        meant = None if key in reading.language.scopes[scope].words else reading.meant_word(key, scope)
        if meant is not None and meant not in root.entries:
            root.entries[meant], root.keys[meant] = root.entries[key], root.keys[key]


def _is_readable(reading: Reading, root: SourceNode) -> bool:
    if root.kind != "mapping":
        hint = "it has `components` and `connections`"
        reading.findings.error("J0001", f"a job is a mapping, not {root.noun}", root.position, hint=hint)
        return False
    kind = root.get("kind")
    if kind is not None and kind.value not in KINDS:
        if kind.value == "Playbook":
            reading.findings.error("J0006", "this is a playbook, and a job is expected here", kind.position)
            return False
        label = did_you_mean(str(kind.value), (*KINDS, "Playbook"))
        reading.findings.error(
            "J0004",
            f"{kind.shown} is not a kind of document",
            kind.position,
            label=label,
            hint=f"it is one of {listed(KINDS)}",
        )
    elif kind is None and "workflow" in root.entries:
        reading.findings.error("J0006", "this is a playbook, and a job is expected here", root.keys["workflow"])
        return False
    return True


def _check_version(reading: Reading, root: SourceNode) -> None:
    version = root.get("apiVersion")
    if version is not None and version.value not in API_VERSIONS:
        reading.findings.error(
            "J0003", f"{version.shown} is not a version of the language of jobs", version.position,
            label=did_you_mean(str(version.value), API_VERSIONS), hint=f"write `apiVersion: {API_VERSIONS[0]}`",
        )  # fmt: skip


def _read_metadata(reading: Reading, root: SourceNode, draft: JobDraft) -> None:
    metadata = reading.mapping(root.get("metadata"), "`metadata`")
    if metadata is None:
        return
    draft.metadata = _map(metadata)
    named = metadata.get("name")
    if named is not None and named.kind != "scalar":
        reading.wrong_shape(named, "`metadata.name`", "text")
    elif named is not None and named.value is not None:
        draft.name = str(named.value)


def _map(node: SourceNode) -> JsonMap:
    value = to_json(node)
    return value if isinstance(value, dict) else {}


def _read_context(reading: Reading, node: SourceNode | None, draft: JobDraft) -> None:
    """Plain variables with `groups` among them, or nothing but groups, one of which is `default`."""
    context = reading.mapping(node, "`context`")
    if context is None:
        return
    reading.warn_unrendered(context, "`context`")
    variables = _map(context)
    if "default" in variables and all(isinstance(value, dict) for value in variables.values()):
        groups = variables
    else:
        given = reading.mapping(context.get("groups"), "`context.groups`")
        groups = {} if given is None else _map(given)
        for name, values in groups.items():
            assert given is not None
            if not isinstance(values, dict):
                reading.wrong_shape(given.entries[name], f"the group `{name}`", "a mapping")
        variables.pop("groups", None)
        draft.context = variables
    for name, values in groups.items():
        if name == "default" and isinstance(values, dict):
            draft.context = {**draft.context, **values}
        elif isinstance(values, dict):
            draft.contexts[name] = values


def _read_joblet(reading: Reading, root: SourceNode, draft: JobDraft, text: str) -> None:
    params = reading.mapping(root.get("params"), "`params`")
    if params is not None:
        draft.params = {key: ParamDraft(params.keys[key], value) for key, value in params.entries.items()}
    inputs = reading.mapping(root.get("inputs"), "`inputs`")
    for port, node in inputs.entries.items() if inputs is not None else ():
        ends = [read_end(reading, item, text, f"the input `{port}`") for item in _listed(reading, node, port)]
        draft.inputs[port] = tuple(end for end in ends if end is not None)
    outputs = reading.mapping(root.get("outputs"), "`outputs`")
    for port, node in outputs.entries.items() if outputs is not None else ():
        end: End | None = read_end(reading, node, text, f"the output `{port}`")
        if end is not None:
            draft.outputs[port] = end


def _listed(reading: Reading, node: SourceNode, port: str) -> list[SourceNode]:
    return node.items if node.kind == "sequence" else [node]


# ---- `job_config`: how a job runs


_FACTORS = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def read_config(reading: Reading, root: SourceNode) -> Config:
    node = reading.section(root, "job_config", "job_config")
    if node is None:
        return Config()
    reading.warn_unrendered(node, "`job_config`", skip="engine")
    strategy = reading.choice(node.get("fail_strategy"), "a fail strategy", FAIL_STRATEGIES)
    policy = reading.choice(node.get("on_subjob_error"), "what to do on an error of a sub-job", SUBJOB_POLICIES)
    return Config(
        halts=strategy in (None, "halt"),
        fails=strategy == "continue_then_fail",
        aborts=policy == "abort",
        starts_whole=reading.choice(node.get("start"), "what starts", STARTS) == "subjob",
        durability=reading.enum(node.get("durability"), "a durability", Durability) or Durability.GROUPED,
        limits=_limits(reading, node),
        engine=_engine(reading, node),
        open_inputs=reading.choice(node.get("inputs"), "a rule for inputs", INPUT_RULES) == OPEN,
    )


def _limits(reading: Reading, node: SourceNode) -> Limits:
    limits = Limits()
    section = reading.section(node, "limits", "limits")
    if section is None:
        return limits
    return Limits(
        max_payload_bytes=reading.whole(section.get("max_payload_bytes"), "`max_payload_bytes`")
        or limits.max_payload_bytes,
        max_reevaluations=reading.whole(section.get("max_reevaluations"), "`max_reevaluations`")
        or limits.max_reevaluations,
    )


def _engine(reading: Reading, node: SourceNode) -> Engine:
    return Engine(
        words=read_engine(reading, node.get("engine")),
        node=node.get("engine"),
        memory_limit=reading.size(node.get("memory_limit"), "`memory_limit`"),
        max_in_flight_rows=reading.whole(node.get("max_in_flight_rows"), "`max_in_flight_rows`"),
        max_in_flight_bytes=_bytes(reading.size(node.get("max_in_flight_bytes"), "`max_in_flight_bytes`")),
    )


def _bytes(size: str | None) -> int | None:
    if size is None:
        return None
    number = size.rstrip("BKMGTi")
    return max(1, int(float(number) * _FACTORS[size[len(number) :]]))
