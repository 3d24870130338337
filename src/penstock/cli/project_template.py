"""The project that `penstock init` writes: small, and all of it runs as its README says."""

from __future__ import annotations

README = """\
# {name}

Orders come as a file. A job cleans them and writes the good ones; a playbook runs the job and says what came of it.

| file | what it is |
|---|---|
| `daily.yaml` | the playbook: runs the job, then reports |
| `jobs/load_orders.yaml` | the job: reads `data/orders.csv`, cleans the rows, writes `out/orders.csv` |
| `jobs/joblets/clean.yaml` | the joblet that cleans: a part of a job that other jobs can use, too |
| `config/dev.json`, `config/prod.json` | inputs of the playbook in each environment; the job has the same as context groups |
| `tests/test_orders.py` | the tests |

## On this machine

```console
$ penstock validate daily.yaml jobs/load_orders.yaml
$ penstock run daily.yaml --payload @config/dev.json
$ penstock run jobs/load_orders.yaml --context prod
$ penstock preview jobs/load_orders.yaml cleaned
$ python -m pytest -q tests
```

## On a server

Start one. What documents write by relative paths goes to the folder `deployed`, which plays the production machine here:

```console
$ penstock serve --base deployed
```

In another terminal, put the folder into its catalog as a project, and run the playbook there. Documents are named by the project
and their path in it:

```console
$ export PENSTOCK_SERVER=http://127.0.0.1:8470
$ penstock catalog put {name} .
$ penstock run {name}/daily --payload @config/prod.json
$ penstock schedule add {name}-nightly '30 2 * * *' {name}/daily --payload @config/prod.json
$ penstock catalog versions {name}
```

`penstock catalog put` again makes a new version when something has changed; runs that have started go on with the files they
started with.
"""

DAILY = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: daily

# Inputs and their defaults. `--set least=20` or `--payload @config/prod.json` change them.
workload:
  environment: dev
  least: 0

workflow:
  - step: start
    tool:
      - name: load
        kind: job
        path: jobs/load_orders.yaml
        args:
          least: "{{ workload.least }}"
    next:
      arcs:
        - step: report

  - step: report
    tool:
      - name: summary
        kind: python
        args:
          environment: "{{ workload.environment }}"
          written: "{{ start.globals.written }}"
        code: |
          print(f"{written} orders written in {environment}")
          result = {"environment": environment, "written": written}
"""

JOB = """\
apiVersion: penstock/v1
kind: Job
metadata:
  name: load_orders

# `--context prod` lays a group over the defaults, `--set least=20` goes over that.
context:
  least: 0
  groups:
    dev:
      least: 0
    prod:
      least: 10

components:
  - name: orders
    type: read_csv
    params:
      path: ../data/orders.csv      # relative to this file
      types: { id: BIGINT, amount: "DECIMAL(12,2)" }
  - name: cleaned
    type: "@clean"                  # joblets/clean.yaml
    params:
      least: "{{ context.least }}"
  - name: written
    type: write_csv
    params:
      path: ../out/orders.csv
  - name: count
    type: set_global
    params:
      values:
        written: "{{ global.written.NB_LINE }}"

connections:
  data: |
    orders.main -> cleaned.rows
    cleaned.good -> written.input
  control: |
    written (ok) count
"""

JOBLET = """\
apiVersion: penstock/v1
kind: Joblet
metadata:
  name: clean
# What a job gives it with `params`.
params:
  least: 0
# The ports that a job sees, and where they lead to in here.
inputs:
  rows: tidy.input
outputs:
  good: large.main
components:
  - name: tidy
    type: derive
    params:
      columns:
        customer: trim(customer)
  - name: large
    type: filter
    params:
      where: "amount >= {{ params.least }} AND customer <> ''"
connections:
  data: |
    tidy.main -> large.input
"""

DATA = """\
id,customer,amount
1,Ada,12.50
2, Grace ,7.25
3,,99.00
4,Edsger,40.00
"""

TEST = '''\
"""Runs the documents of this project, in a copy of it, and looks at what they wrote."""

import csv
import shutil
from pathlib import Path

import penstock
import pytest

PROJECT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path):
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns(".penstock", "out")))


def orders(project):
    with (project / "out" / "orders.csv").open(newline="") as file:
        return [row["customer"] for row in csv.DictReader(file)]


def test_orders_without_a_customer_are_left_out(project):
    run = penstock.run(project / "jobs" / "load_orders.yaml")
    assert run.ok, run.error
    assert orders(project) == ["Ada", "Grace", "Edsger"]


def test_small_orders_are_left_out_in_production(project):
    run = penstock.run(project / "jobs" / "load_orders.yaml", context="prod")
    assert run.ok, run.error
    assert orders(project) == ["Ada", "Edsger"]


def test_the_playbook_says_how_many_orders_were_written(project):
    run = penstock.run(project / "daily.yaml", {"least": 20})
    assert run.ok, run.error
    assert run.result == {"environment": "dev", "written": 1}
'''

FILES = {
    "README.md": README,
    "daily.yaml": DAILY,
    "jobs/load_orders.yaml": JOB,
    "jobs/joblets/clean.yaml": JOBLET,
    "data/orders.csv": DATA,
    "config/dev.json": '{"environment": "dev", "least": 0}\n',
    "config/prod.json": '{"environment": "prod", "least": 10}\n',
    "tests/test_orders.py": TEST,
    ".gitignore": "# What runs leave behind.\n.penstock/\nout/\ndeployed/\n__pycache__/\n.pytest_cache/\n.venv/\n.env\n",
    ".penstockignore": "# What `penstock catalog put` leaves out, besides what .gitignore names.\nREADME.md\ntests/\n",
}
"""Path -> text. `{name}` stands for the project's in the README only."""
