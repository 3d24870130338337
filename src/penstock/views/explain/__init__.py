"""Why: the causes of what happened to a step, a task or an iteration, read from the log.

target   which node was meant              chain    how it came to that, from the start of the run
values   what conditions saw               arcs     why an arc fired or did not
work     what tasks did                    step, part, never    the answers; `answer` chooses among them
"""

from penstock.views.explain.answer import explain
from penstock.views.explain.book import Book
from penstock.views.explain.explanation import Explanation, Log, Section

__all__ = ["Book", "Explanation", "Log", "Section", "explain"]
