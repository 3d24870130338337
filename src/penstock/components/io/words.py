"""Parameters that several readers and writers have, each said once."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.ports.meanings import LOCAL_PATH, READS_FILE

Character = Annotated[str, Meta(min_length=1, max_length=1)]
Filled = Annotated[str, Meta(min_length=1)]
AtLeastOne = Annotated[int, Meta(ge=1)]

SourcePath = Annotated[
    str,
    Meta(
        min_length=1,
        description="The file, relative to the document's folder; or a pattern such as `in/*.csv`, whose files are read in "
        "the order of their names.",
        extra_json_schema=READS_FILE,
    ),
]
OneSourcePath = Annotated[
    str, Meta(min_length=1, description="The file, relative to the document's folder.", extra_json_schema=READS_FILE)
]
TargetPath = Annotated[
    str,
    Meta(
        min_length=1,
        description="The file, relative to the document's folder; folders that are missing are made. It appears whole or not "
        "at all.",
        extra_json_schema=LOCAL_PATH,
    ),
]
Append = Annotated[
    bool,
    Meta(
        description="Add to the end of the file, if there is one, instead of replacing it. Running the job again adds again."
    ),
]
Delimiter = Annotated[
    str, Meta(min_length=1, max_length=4, description="The delimiter between two values; `tab` for a tab character.")
]
Encoding = Annotated[
    str,
    Meta(
        description="How the text is written in bytes: `utf-8`, `latin-1`, `cp1252`, `utf-16` … as Python names them."
    ),
]
NullTexts = Annotated[
    str | list[str], Meta(description="How a missing value is written; a list when there are several ways.")
]
Decimal = Annotated[str, Meta(min_length=1, max_length=1, description="The decimal mark of numbers: `.` or `,`.")]
Thousands = Annotated[Character | None, Meta(description="The separator of thousands in a number.")]
DateFormat = Annotated[
    str | None, Meta(description="How dates are written, such as `%d/%m/%Y`; `2024-12-31` when left out.")
]
TimestampFormat = Annotated[
    str | None,
    Meta(description="How timestamps are written, such as `%d/%m/%Y %H:%M`; `2024-12-31 23:59:59` when left out."),
]
OnError = Annotated[
    Literal["fail", "skip"],
    Meta(
        description="What a line that cannot be read does when the `reject` port is not connected: `fail` ends the component in "
        "ERROR and names the line, `skip` leaves it out and counts it."
    ),
]
FileColumn = Annotated[
    Filled | None,
    Meta(description="The name of a further column with the path of the file each row is from."),
]
Types = Annotated[
    dict[str, str], Meta(description="Types of some columns, such as `{id: integer, price: 'decimal(10,2)'}`.")
]
Header = Annotated[bool, Meta(description="The first line names the columns.")]


WriteMode = Literal["insert", "update", "upsert", "delete", "truncate_insert", "create", "replace"]


class NamedColumn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A column and its type."""

    name: Annotated[str, Meta(min_length=1, description="Its name.")]
    type: Annotated[str | None, Meta(description="Its type, such as `integer`; inferred when left out.")] = None


Columns = list[str | NamedColumn]
