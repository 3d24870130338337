"""The `python` component: the author's code over rows, in a thread of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from penstock.components.base import Action, Call, Mistake, PlanCall, Port, Ports
from penstock.components.code.frames import FrameName
from penstock.ports.meanings import PYTHON
from penstock.ports.rows import Schema
from penstock.tools.module_path import prefer
from penstock.tools.parameters import Positive

Mode = Literal["once", "row", "batch", "frame"]


class PythonParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(description="The code.", extra_json_schema=PYTHON)]
    mode: Annotated[
        Mode,
        Meta(
            description="How often the code runs: `once`, for every `row`, for every `batch`, or with all rows as a `frame`."
        ),
    ] = "once"
    setup: Annotated[
        str | None,
        Meta(
            description="Code that runs once, before the first row; its names are there in `code`.",
            extra_json_schema=PYTHON,
        ),
    ] = None
    frame: Annotated[
        FrameName, Meta(description="What `frame` is: a list of mappings, or a table of PyArrow, Polars or pandas.")
    ] = "rows"
    batch_size: Annotated[int, Meta(ge=1, description="Rows in a batch, at most.")] = 10_000
    on_error: Annotated[
        Literal["fail", "reject"],
        Meta(
            description="`reject`, in mode `row`: a row on which the code raises goes to `reject`, and the next one follows."
        ),
    ] = "fail"
    output_schema: Annotated[
        dict[str, str] | None,
        Meta(
            description="The columns of `main` and their types; without it they are those of the rows the code makes."
        ),
    ] = None
    timeout: Annotated[Positive | None, Meta(description="Seconds after which the code is stopped.")] = None

    def __post_init__(self) -> None:
        if self.on_error == "reject" and self.mode != "row":
            raise ValueError("`on_error: reject` needs `mode: row`; there is no single row to blame otherwise")
        if self.frame != "rows" and self.mode != "frame":
            raise ValueError(f"`frame: {self.frame}` needs `mode: frame`")


class Python(Action[PythonParams]):
    """Run Python code over rows.

    It is plain Python: it may import what is installed, open files and call services. What it sees and what it sets depends
    on `mode`:

    - `once`: `inputs` is a mapping of input port to a list of rows, each a mapping. `output`, if it is set, holds the rows of
      `main`: a list of mappings or a data frame; or a mapping of output port to rows. No input is needed.
    - `row`: `row` is a mapping; `output` is set to a mapping, a list of them, or None to drop the row. Code that never names
      `output` passes every row on, with the changes it made to it. `reject = "reason"` sends the row as it came to `reject`.
    - `batch`: `rows` is a list of at most `batch_size` mappings; `output` is set as in `once`.
    - `frame`: `frame` holds all rows in the form that the parameter `frame` names; `output` is set to a frame or to rows.

    In every mode there are `context` (read-only), `globals` (read and write: what is written is there for later components
    when this one ends), `iteration` (in the body of an iterator), `log(text)` for a line in the run's log, `emit(port, row)`
    for one row on any output, and `inputs` with the rows of the ports `input_*`, for look-ups. `result` may be set to a value
    that JSON can say: the component's result. In the modes `row` and `batch` variables keep their values from row to row;
    imports, functions and classes at the start of the code are made once.

    What the code prints goes to the run's log. Modules beside the job can be imported; files that the code opens are relative
    to the working folder of the process. Rows on `reject` have the columns of the input, `error_code` and `error_message`.

    When there are no rows, the columns of `main` are those of the input unless `output_schema` or a schema of the component
    names them. Writing to `context` is an error, as is whatever the code raises: it names the line of the code, the line of
    the file, and in mode `row` the number of the row, counted from 1.
    """

    type = "python"
    family = "code"
    Params = PythonParams
    inputs: ClassVar[tuple[Port, ...]] = (
        Port("input", required=False, many=True, description="the rows the code runs over"),
        Port("input_*", required=False, many=True, description="more rows, in `inputs`"),
    )
    outputs: ClassVar[tuple[Port, ...]] = (
        Port("main"),
        Port("reject", reject=True, description="rows that the code refused"),
        Port("output_*"),
    )
    example = """\
components:
  - name: orders
    type: fixed_rows
    params:
      columns: [id, amount]
      rows: [[1, 250], [2, -5], [3, 75]]
  - name: price
    type: python
    params:
      mode: row
      code: |
        if row["amount"] < 0:
            reject = "the amount is negative"
        else:
            output = {**row, "vat": round(row["amount"] * 0.2, 2)}
  - name: show
    type: log_rows
connections:
  data:
    - orders.main -> price.input
    - price.main -> show.input
"""

    @classmethod
    def ports(cls, params: Mapping[str, Any]) -> Ports:
        if params.get("mode", "once") == "once":
            return Ports(cls.inputs, cls.outputs)
        first = Port("input", many=True, description=cls.inputs[0].description)
        return Ports((first, *cls.inputs[1:]), cls.outputs)

    def check(self, params: PythonParams, inputs: Mapping[str, Schema | None], call: PlanCall) -> list[Mistake]:
        from penstock.components.code.checking import mistakes

        return mistakes(params.output_schema)

    def schemas(
        self, params: PythonParams, inputs: Mapping[str, Schema | None], call: PlanCall
    ) -> dict[str, Schema | None]:
        from penstock.components.code.checking import columns
        from penstock.components.runner import ERRORS

        known: dict[str, Schema | None] = {}
        if params.output_schema:
            known["main"] = columns(params.output_schema)
        given = inputs.get("input")
        if params.mode == "row" and given is not None:
            known["reject"] = (*given, *ERRORS)
        return known

    async def run(self, params: PythonParams, call: Call) -> Any:
        from penstock.components.code.modes import perform
        from penstock.components.code.thread import CodeThread

        prefer(call.folder)
        thread = CodeThread(call)
        return await thread.run(lambda: perform(params, call, thread), params.timeout)
