"""Small documents that tests of several folders run, without the lines at the top by which they differ."""

from __future__ import annotations

GREETING = """\
workflow:
  - step: start
    tool:
      - name: greet
        kind: python
        args: {who: "{{ workload.who }}"}
        code: |
          print("greeting", who)
          result = {"text": f"hello {who}"}
    next: {arcs: [{step: fin}]}
  - step: fin
    tool: [{name: n, kind: noop, value: "{{ start.text }}"}]
"""
"""A playbook with the input `who`."""

ORDERS = """\
context:
  least: 10
  groups: {strict: {least: 30}}
components:
  - name: orders
    type: fixed_rows
    params: {columns: [customer, amount], rows: [[anna, 12], [ben, 7], [anna, 31], [carl, 25]]}
  - name: large
    type: filter
    params: {where: "amount >= {{ context.least }}"}
  - name: totals
    type: aggregate
    params: {by: [customer], measures: {total: sum(amount)}}
  - {name: show, type: log_rows}
  - {name: small, type: log_rows}
  - name: done
    type: set_global
    params: {values: {customers: "{{ global.totals.NB_LINE_OUT_main }}"}}
connections:
  data: |
    orders.main -> large.input
    large.main -> totals.input
    totals.main -> show.input
    large.reject -> small.input
  control: |
    totals (subjob_ok) done
"""
"""A job in which rows are rejected, counted and summed up."""
