"""The words around the workflow: root, metadata, executor and keychain."""

from __future__ import annotations

from penstock.dialects.playbook.word import (
    ANY,
    API_VERSIONS,
    DURABILITIES,
    FAILURE_MODES,
    LOOP_PLACES,
    MAPPING,
    NAME,
    TEXT,
    Scope,
    Strictness,
    Word,
    choice,
    integer,
    list_of,
    ref,
)
from penstock.kernel.values import JsonMap

ROOT = Scope(
    "playbook",
    "A playbook: steps that run tool pipelines, and arcs that carry tokens from step to step.",
    {
        "apiVersion": Word("The version of the language.", choice(API_VERSIONS), required=True),
        "kind": Word("What this document is.", {"const": "Playbook"}, required=True),
        "metadata": Word("What the playbook is called, and anything else worth saying about it.", ref("metadata")),
        "keychain": Word("The secrets this playbook needs, by name.", list_of(ref("keychain"))),
        "executor": Word("How the engine should run it: limits, failure mode, durability.", ref("executor")),
        "workload": Word("Default inputs. A payload is merged over them; nothing changes them during a run.", MAPPING),
        "workflow": Word("The steps.", list_of(ref("step"), 1), required=True),
        "workbook": Word("Named tasks that steps call with `kind: workbook`.", ref("workbook")),
    },
)

EXECUTOR = {
    "metadata": Scope(
        "metadata",
        "What the playbook is called. Further keys are yours.",
        {
            "name": Word("The playbook's name.", TEXT, required=True),
            "path": Word("Its name in a catalog.", TEXT),
            "version": Word("Its version.", {"type": ["string", "number"]}),
            "description": Word("What it is for.", TEXT),
            "labels": Word("Labels, as a mapping.", MAPPING),
            "tags": Word("Tags, as a list.", list_of(TEXT)),
        },
        Strictness.OPEN,
    ),
    "executor": Scope(
        "executor",
        "How the engine should run this playbook.",
        {
            "kind": Word("Where it is meant to run, such as `local` or `distributed`: an intent.", TEXT),
            "profile": Word("A named set of runtime defaults: an intent.", TEXT),
            "version": Word("The runtime it was written for: an intent.", {"type": ["string", "number"]}),
            "requires": Word("What it needs from the runtime: an intent.", MAPPING),
            "spec": Word("Defaults for every step and task, and the limits of the run.", ref("executor_spec")),
        },
        Strictness.OPEN,
    ),
    "executor_spec": Scope(
        "executor.spec",
        "The outermost layer of every task's `spec`. Further keys are knobs of tools.",
        {
            "policy": Word("Limits and failure mode of the whole run.", ref("executor_policy")),
            "durability": Word(
                "`strict` also waits for the disk between the tasks of a pipeline.", choice(DURABILITIES, "grouped")
            ),
            "loop_mode": Word("Where loops run.", choice(LOOP_PLACES, "local")),
            "entry_step": Word("The first step; otherwise `start`, otherwise the first in the file.", TEXT),
            "timeout": Word("Time limit of a task in seconds, or a mapping such as `{connect: 5, read: 15}`."),
        },
        Strictness.OPEN,
    ),
    "executor_policy": Scope(
        "executor.spec.policy",
        "Rules for the whole run.",
        {
            "limits": Word("Bounds that end a runaway run.", ref("limits")),
            "failure": Word(
                "What a failed step means elsewhere; loops take it over too.",
                ref("failure"),
            ),
            "durability": Word("The same as `executor.spec.durability`.", choice(DURABILITIES)),
            "results": Word("How results are kept: an intent.", MAPPING),
            "defaults": Word("Defaults for time-outs and resources: an intent.", MAPPING),
        },
        Strictness.HINTS,
    ),
    "limits": Scope(
        "executor.spec.policy.limits",
        "Bounds that end a runaway run with a clear error.",
        {
            "max_payload_bytes": Word(
                "Results above this size are kept outside the log, by reference.", integer(1, 1_048_576)
            ),
            "max_step_visits": Word("How often one step may run.", integer(1, 10_000)),
            "max_task_runs": Word("How many tasks one pipeline may run, jumps included.", integer(1, 1_000_000)),
        },
    ),
    "failure": Scope(
        "failure",
        "`fail_fast` stops what has not started; `best_effort` lets it run.",
        {"mode": Word("The mode.", choice(FAILURE_MODES), required=True)},
    ),
}

_SECRET: JsonMap = {"type": ["string", "object"]}
_KEYCHAIN_COMMON = {
    "name": Word("Read in tool parameters as `{{ keychain.<name> }}`.", NAME, required=True),
    "kind": Word("How the secret is found.", TEXT, required=True),
}
_PROVIDED = {
    "provider": Word("The provider of secrets, such as `environment`, `local` or `vault`.", TEXT),
    "key": Word("The secret's name there; otherwise the entry's own name.", TEXT),
    "field": Word("One field of a structured secret.", TEXT),
}


def _keychain(kind: str, about: str, words: dict[str, Word]) -> Scope:
    return Scope(f"keychain {kind}", about, {**_KEYCHAIN_COMMON, **words}, Strictness.OPEN)


def _database(kind: str, product: str) -> Scope:
    return _keychain(
        kind,
        f"How to reach a {product} database. With nothing but a name it is looked up under that name.",
        {
            "url": Word("A whole connection URL.", _SECRET),
            "host": Word("The host.", _SECRET),
            "port": Word("The port.", {"type": ["integer", "string", "object"]}),
            "database": Word("The database.", _SECRET),
            "user": Word("The user.", _SECRET),
            "password": Word("The password, best as `{env: NAME}`, `{file: path}` or `{secret: key}`.", _SECRET),
            "sslmode": Word("How far the connection is secured.", TEXT),
            **_PROVIDED,
        },
    )


KEYCHAIN_KINDS: dict[str, Scope] = {
    "env": _keychain(
        "env", "From an environment variable.", {"var": Word("The variable's name.", TEXT, required=True)}
    ),
    "file": _keychain("file", "The content of a file.", {"path": Word("The file.", TEXT, required=True)}),
    "static": _keychain(
        "static", "Written in the playbook: for tests only.", {"value": Word("The value.", ANY, required=True)}
    ),
    "secret_manager": _keychain("secret_manager", "From a provider of secrets.", _PROVIDED),
    "postgres_credential": _database("postgres_credential", "PostgreSQL"),
    "mysql_credential": _database("mysql_credential", "MySQL"),
    "basic": _keychain(
        "basic",
        "A user name and a password.",
        {"username": Word("The user name.", _SECRET), "password": Word("The password.", _SECRET), **_PROVIDED},
    ),
    "bearer": _keychain("bearer", "A bearer token.", {"token": Word("The token.", _SECRET), **_PROVIDED}),
    "api_key": _keychain(
        "api_key",
        "A key that is sent in a header or in the query.",
        {
            "value": Word("The key.", _SECRET),
            "header": Word("The header it is sent in.", TEXT),
            "query": Word("The query parameter it is sent in.", TEXT),
            **_PROVIDED,
        },
    ),
    "oauth2": _keychain(
        "oauth2",
        "A token got with client credentials, and got again before it ends.",
        {
            "token_url": Word("Where tokens are given out.", _SECRET),
            "client_id": Word("The client's id.", _SECRET),
            "client_secret": Word("The client's secret.", _SECRET),
            "scope": Word("The scopes asked for.", {"type": ["string", "array"]}),
            "audience": Word("The audience asked for.", TEXT),
            "client_auth": Word("How the client shows who it is.", TEXT),
            **_PROVIDED,
        },
    ),
}
