"""`penstock schema`: the JSON Schema of a playbook, for editors."""

from __future__ import annotations

from argparse import Namespace

from penstock.cli.output import put


def main(options: Namespace) -> int:
    import msgspec

    from penstock.dialects.playbook.schema import json_schema
    from penstock.ports.results import encode
    from penstock.tools.registry import Registry

    put(msgspec.json.format(encode(json_schema(Registry())), indent=2).decode())
    return 0
