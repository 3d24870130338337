"""`penstock plan FILE`: the lowered form, which is what really runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from penstock.cli.output import put, put_json
from penstock.cli.remote import server_of


def main(options: Namespace) -> int:
    url = server_of(options)
    if url is not None:
        return _asked(url, options)
    from penstock.app.library import Library
    from penstock.dialects.job import CompiledJob

    compiled = Library().valid(Path(options.file))
    assert compiled.net is not None
    if isinstance(compiled, CompiledJob):
        from penstock.dialects.job.plan import plan as job_plan
        from penstock.dialects.job.plan import plan_text

        if options.json:
            put_json(job_plan(compiled))
        else:
            put(plan_text(compiled))
        return 0
    from penstock.dialects.playbook.plan import plan

    lowered = plan(compiled.net)
    if options.json:
        put_json(lowered)
    else:
        put(_yaml(lowered))
    return 0


def _asked(url: str, options: Namespace) -> int:
    from penstock.cli.remote_documents import planned, planned_text

    lowered = planned(url, options.file)
    if options.json:
        put_json(lowered)
    else:
        put(_yaml(lowered) if "workload" in lowered else planned_text(url, options.file))
    return 0


def _yaml(value: Any) -> str:
    """As YAML, which is what the author reads; code and other long texts as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
