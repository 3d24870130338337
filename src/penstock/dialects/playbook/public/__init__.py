"""Words of playbooks that were written for other engines of the language, read as today's.

    table   what a word is: meaning, since when it is read, what replaces it
    door    the walk through a document that finds them, and the rewritten document
    steps, tasks, texts   the words themselves: of the document and its steps, of tools, and of expressions

Law: aliases end here. Whatever reads a document after the door, and the net, know today's words alone.
"""

from penstock.dialects.playbook.public.door import WORDS, Door, Rewrite, opened
from penstock.dialects.playbook.public.table import Alias, Treatment

__all__ = ["WORDS", "Alias", "Door", "Rewrite", "Treatment", "opened"]
