"""The type of an error says whose fault it is.

    PenstockError
    ├── Refused        the caller asked for something that cannot be done now (resume a completed run, a second owner …)
    ├── Unavailable    the world: a full disk, a locked database; trying again later may work, and nothing is lost
    │   └── Damaged    stored data is not what was written: trying again does not help
    └── Bug            ours: a decision that breaks the kernel's own rules

The author's mistakes are `Problem`s (penstock.dialects.problems), reported all at once; a task's failure is data (`Outcome`).
"""

from __future__ import annotations


class PenstockError(Exception):
    """`hint` says what would help; it is printed on a line of its own."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Refused(PenstockError):
    pass


class Unavailable(PenstockError):
    pass


class Damaged(Unavailable):
    pass


class Bug(PenstockError):
    pass
