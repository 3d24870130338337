"""What can be said of a `python` component."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from penstock.components.forms import FrameName
from penstock.ports.meanings import PYTHON
from penstock.tools.parameters import Positive, about

Mode = Literal["once", "row", "batch", "frame"]


class PythonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, about("The code.", schema=PYTHON)]
    mode: Annotated[
        Mode,
        about("How often the code runs: `once`, for every `row`, for every `batch`, or with all rows as a `frame`."),
    ] = "once"
    setup: Annotated[
        str | None, about("Code that runs once, before the first row; its names are there in `code`.", schema=PYTHON)
    ] = None
    frame: Annotated[
        FrameName, about("What `frame` is: a list of mappings, or a table of PyArrow, Polars or pandas.")
    ] = "rows"
    batch_size: Annotated[int, about("Rows in a batch, at most.", ge=1)] = 10_000
    on_error: Annotated[
        Literal["fail", "reject"],
        about("`reject`, in mode `row`: a row on which the code raises goes to `reject`, and the next one follows."),
    ] = "fail"
    output_schema: Annotated[
        dict[str, str] | None,
        about("The columns of `main` and their types; without it they are those of the rows the code makes."),
    ] = None
    timeout: Annotated[Positive | None, about("Seconds after which the code is stopped.")] = None

    def __post_init__(self) -> None:
        if self.on_error == "reject" and self.mode != "row":
            raise ValueError("`on_error: reject` needs `mode: row`; there is no single row to blame otherwise")
        if self.frame != "rows" and self.mode != "frame":
            raise ValueError(f"`frame: {self.frame}` needs `mode: frame`")
