"""Documents to start from. Each runs as it is, or is called by one that does."""

from __future__ import annotations

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: {name}

# Defaults of the input. Other values come from `--set who=you` or `--payload '{{"who": "you"}}'`.
workload:
  who: world
  numbers: [3, 1, 2]

workflow:
  # The run begins with the step named `start`. A step runs its tasks one after another.
  - step: start
    tool:
      - name: greet
        kind: python
        args:
          who: "{{{{ workload.who }}}}"
        code: |
          print("about to greet", who)
          result = {{"text": f"Hello, {{who}}!"}}
    # Where to go next. An arc with `when` is taken when that is true; the first one that matches wins.
    next:
      arcs:
        - step: squares

  # A loop runs its tasks once for each element, here two at a time.
  - step: squares
    loop:
      in: "{{{{ workload.numbers }}}}"
      iterator: number
      spec:
        mode: parallel
        max_in_flight: 2
    tool:
      - name: square
        kind: python
        args:
          number: "{{{{ iter.number }}}}"
        code: |
          result = number * number
    next:
      arcs:
        - step: finish

  # The result of a step can be read by its name: `start`, `squares`.
  - step: finish
    tool:
      - name: report
        kind: python
        args:
          text: "{{{{ start.text }}}}"
          squares: "{{{{ squares.results }}}}"
        code: |
          result = {{"text": text, "squares": squares, "sum": sum(squares)}}
"""

JOB = """\
apiVersion: penstock/v1
kind: Job
metadata:
  name: {name}

# Variables that stay as they are during a run. `--set least=20` changes one, `--context strict` lays a group over them.
context:
  least: 10
  groups:
    strict:
      least: 30

# A component reads, changes or writes rows, or steers the run. `penstock components` lists the types.
components:
  - name: orders
    type: fixed_rows
    params:
      columns: [customer, amount]
      rows:
        - [anna, 12]
        - [ben, 7]
        - [anna, 31]
        - [carl, 25]

  # Rows for which the condition is not true go to the port `reject`. Row expressions are SQL.
  - name: large
    type: filter
    params:
      where: "amount >= {{{{ context.least }}}}"

  - name: totals
    type: aggregate
    params:
      by: [customer]
      measures:
        orders: count(*)
        total: sum(amount)

  - name: show
    type: log_rows

  - name: small
    type: log_rows
    params:
      title: too small

  # Runs when all of the above has ended without an unhandled error.
  - name: done
    type: set_global
    params:
      values:
        customers: "{{{{ global.totals.NB_LINE_OUT_main }}}}"

connections:
  # Rows travel on data links: from an output port to an input port.
  data: |
    orders.main -> large.input
    large.main -> totals.input
    totals.main -> show.input
    large.reject -> small.input
  # Control links say what runs when: ok, error, if, parallelise, synchronise, subjob_ok, subjob_error …
  control: |
    totals (subjob_ok) done
"""

JOBLET = """\
apiVersion: penstock/v1
kind: Joblet
metadata:
  name: {name}

# What the caller may set, with its defaults: `params: {{least: 20}}` beside `type: "@{name}"`.
params:
  least: 10

# The ports that the caller sees, and where they lead to in here.
inputs:
  rows: keep.input
outputs:
  kept: number.main
  left: keep.reject

components:
  - name: keep
    type: filter
    params:
      where: "amount >= {{{{ params.least }}}}"
  - name: number
    type: sequence
    params:
      name: number

connections:
  data: |
    keep.main -> number.input
"""

TEMPLATES = {"playbook": PLAYBOOK, "job": JOB, "joblet": JOBLET}
