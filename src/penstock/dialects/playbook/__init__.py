"""Playbooks: from YAML text to a net.

read (drafts, every value with its position) -> expand (sugar, workbook) -> check (tools, names, flow) -> lower (net, digest)
"""

from __future__ import annotations

from penstock.dialects.playbook.compile import Compiled, compile_file, compile_text
from penstock.dialects.source.positions import SourceMap

__all__ = ["Compiled", "SourceMap", "compile_file", "compile_text"]
