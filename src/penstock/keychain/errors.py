"""Everything that can be wrong with a keychain.

Law: a message here may name entries, fields, variables, files and addresses. It never holds a value that was resolved.

    Refused
    ├── KeychainError      entries that cannot be resolved, all of them at once
    ├── UnknownEntry       a name that no entry has
    └── SecretAltered      a template changed a secret instead of inserting it
    NotAsked               only a service could say, and none is to be asked
    Unresolved             raised by a provider or a kind; `resolve` collects these into one KeychainError
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.kernel.errors import Refused


@dataclass(frozen=True, slots=True)
class KeychainProblem:
    entry: str
    message: str
    hint: str = ""
    where: str = ""
    """File and line of the entry, and how its document came to be called."""
    declared: str = ""
    """The name as the document has it, where that is a template."""

    def __str__(self) -> str:
        return f"keychain entry `{self.entry}`{f' ({self.where})' if self.where else ''}: {self.message}"


class KeychainError(Refused):
    def __init__(self, problems: Sequence[KeychainProblem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            super().__init__(str(self.problems[0]), self.problems[0].hint or None)
            return
        lines = [f"{len(self.problems)} problems with the keychain:"]
        for problem in self.problems:
            lines.append(f"  {problem}")
            if problem.hint:
                lines.append(f"    hint: {problem.hint}")
        super().__init__("\n".join(lines))


class UnknownEntry(Refused):
    """`reason`: why it cannot be had where undeclared names are looked up."""

    def __init__(self, name: str, known: Iterable[str], reason: Unresolved | None = None) -> None:
        there = sorted(known)
        meant = did_you_mean(name, there)
        if reason is not None:
            super().__init__(f"the keychain has no entry `{name}`: {reason.message}", meant or reason.hint)
            return
        has = f"it has {', '.join(f'`{each}`' for each in there)}" if there else "it has no entries"
        super().__init__(f"the keychain has no entry `{name}`", meant or has)


class SecretAltered(Refused):
    def __init__(self) -> None:
        super().__init__(
            "a template changes a secret: a secret is inserted whole, or through `urlencode`, `tojson`, `quote` or `b64encode`",
            "take the filter away, or store the changed text as a keychain entry of its own",
        )


class Unresolved(Exception):
    """Why one entry cannot be had. Providers raise it; its message is shown to people as it is."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.also: list[Unresolved] = []
        """What else is wrong with the same entry."""

    @staticmethod
    def together(several: list[Unresolved]) -> Unresolved:
        first, *rest = several
        first.also = rest
        return first


class NotAsked(Exception):
    """Only a service outside of this machine knows, and it is not to be asked."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    import difflib  # Only a mistake needs it.

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean `{near[0]}`?" if near else ""
