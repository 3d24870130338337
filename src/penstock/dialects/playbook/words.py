"""The words of a playbook: every key, in every scope, with what it means.

This is the one table. Unknown keys and their did-you-mean, the JSON Schema that editors read and the reference page all come
from it, so none of them can know a word the others do not.
"""

from __future__ import annotations

from penstock.dialects.playbook.loop_words import LOOP
from penstock.dialects.playbook.step_words import STEP
from penstock.dialects.playbook.words_run import EXECUTOR, ROOT
from penstock.dialects.playbook.words_task import TASK
from penstock.dialects.words import Scope

SCOPES: dict[str, Scope] = {"root": ROOT, **EXECUTOR, **STEP, **LOOP, **TASK}
