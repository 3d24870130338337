"""YAML for people: how a rewrite is shown beside the problem it cures."""

from __future__ import annotations

import re

import yaml

from penstock.kernel.values import Json


class _Dumper(yaml.SafeDumper):
    """Two spaces before list dashes, quotes as people write them around templates, blocks for texts of several lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif "{{" in text and '"' not in text and "\\" not in text:
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_nothing(dumper: yaml.SafeDumper, _: None) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(type(None), _represent_nothing)


def yaml_text(value: Json) -> str:
    """The value as block YAML, keys in the order given, without a final line break."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=False)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n")
