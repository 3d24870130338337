"""Jobs: from YAML text to a net.

read (drafts, every value with its position) -> put together (a level per document: links with ports, bodies, sub-jobs, order)
-> expand (joblets) -> check (parameters, columns) -> lower (net, digest)
"""

from __future__ import annotations

from penstock.dialects.job.compile import CompiledJob, compile_file, compile_text
from penstock.dialects.job.document import is_job

__all__ = ["CompiledJob", "compile_file", "compile_text", "is_job"]
