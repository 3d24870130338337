"""Penstock from Python: check a job, run it, keep the rows of a link, resume after a failure, replay.

python examples/from_python.py          # needs pandas: pip install 'penstock[frames]'
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import penstock

JOB = """
apiVersion: penstock/v1
kind: Job
metadata: { name: litres }
context: { file: readings.csv }
components:
  - name: readings
    type: read_csv
    params: { path: "{{ file }}" }
  - name: per_pump
    type: aggregate
    params: { by: [pump], measures: { litres: sum(litres) } }
  - name: show
    type: log_rows
connections:
  data: |
    readings.main -> per_pump.input
    per_pump.main -> show.input
"""


def main(folder: Path) -> None:
    job, readings = folder / "litres.yaml", folder / "readings.csv"
    readings.write_text("pump,litres\nnorth,500\nsouth,700\nnorth,200\n", encoding="utf-8")
    job.write_text(JOB.replace("sum(litres)", "sum(litre)"), encoding="utf-8")
    print(penstock.validate(job).errors[0].message)

    job.write_text(JOB, encoding="utf-8")
    data = readings.read_text(encoding="utf-8")
    readings.unlink()
    run = penstock.run(job, keep=["per_pump"])
    print(run.status, "-", run.error["kind"] if isinstance(run.error, dict) else "")

    readings.write_text(data, encoding="utf-8")
    run = penstock.resume(run)
    print(run.status)
    print(run.rows("per_pump").pandas().sort_values("pump").to_string(index=False))
    print("replay:", "the same" if penstock.replay(run).ok else "different")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
