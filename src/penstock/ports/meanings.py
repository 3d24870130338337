"""What the text in a parameter means, beside its type: a file that is read, a URL, a secret's name, code.

A tool or component says so in the JSON Schema of its parameters:

    path: Annotated[str, Meta(description="The file.", extra_json_schema=READS_FILE)]

What can be checked before a run (is the file there, can the URL work, is the secret declared, is it Python) follows from this
alone, in the same way for playbooks and jobs, and for the tools and components of plug-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

MEANING: Final = "x-meaning"
SCHEMES: Final = "x-schemes"
"""The schemes that a URL may begin with."""
WHEN: Final = "x-when"
"""Parameter, or `mapping.key` -> its values for which the meaning applies; null stands for one that is not given."""

FILE, SCRIPT, LOCAL, URL = "reads-file", "reads-script", "local-path", "url"
DATABASE_URL, ENTRY, CODE, BODY = "database", "keychain-entry", "python", "python-body"

READS_FILE: dict[str, Any] = {MEANING: FILE}
"""A path, or a pattern such as `in/*.csv`; relative to the document's folder. The call fails when nothing is there."""
READS_SCRIPT: dict[str, Any] = {MEANING: SCRIPT}
"""The same for a file that is part of the program: it is not delivered during a run."""
LOCAL_PATH: dict[str, Any] = {MEANING: LOCAL}
"""The path of a file that is created if it does not exist."""
KEYCHAIN_ENTRY: dict[str, Any] = {MEANING: ENTRY}
"""The name of a keychain entry, if it is a text."""
PYTHON: dict[str, Any] = {MEANING: CODE}
"""Python, with the names of the tool or component in it."""
PYTHON_BODY: dict[str, Any] = {MEANING: BODY}
"""The same, and it may `return`."""
DATABASE: dict[str, Any] = {
    MEANING: DATABASE_URL,
    SCHEMES: ["postgresql", "postgres", "mysql", "mariadb", "sqlite", "duckdb"],
}
"""The URL of any database; a text that is none is the name of a keychain entry."""


CONNECTION_FIELDS: Mapping[str, str] = {
    "dsn": "url", "uri": "url", "connection_string": "url", "value": "url", "username": "user", "db_user": "user",
    "dbname": "database", "db": "database", "db_name": "database", "db_host": "host", "hostname": "host",
    "db_port": "port", "db_password": "password", "passwd": "password", "pwd": "password",
}  # fmt: skip
"""Other names of the fields of a connection to a database."""


def url(*schemes: str) -> dict[str, Any]:
    return {MEANING: URL, SCHEMES: list(schemes)}


WEB = url("http", "https")
OBJECT_STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
WEB_SCHEMES, SERVER_SCHEMES = ("https", "http"), ("sftp", "ftp", "ftps")
FILE_SCHEMES = (*OBJECT_STORES, *WEB_SCHEMES, *SERVER_SCHEMES)
"""Where files may be, beside this machine."""
READS_ANYWHERE: dict[str, Any] = {MEANING: FILE, SCHEMES: list(FILE_SCHEMES)}
"""As READS_FILE, or a URL of a file elsewhere."""
WRITES_ANYWHERE: dict[str, Any] = {MEANING: LOCAL, SCHEMES: [*OBJECT_STORES, *SERVER_SCHEMES]}


def only_when(meaning: Schema, **values: list[str]) -> dict[str, Any]:
    return {**meaning, WHEN: values}
