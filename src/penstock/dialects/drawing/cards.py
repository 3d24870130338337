"""What pictures of both languages are made of: a card for each step or component, and short lines of text."""

from __future__ import annotations

from dataclasses import dataclass

_WIDEST = 34
_SYNTAX = frozenset("\"'<>&#;[]{}()|`\\")


@dataclass(frozen=True, slots=True)
class Card:
    """One step or component: its name, badges such as a loop or a join, and what it runs."""

    title: str
    badges: tuple[str, ...]
    lines: tuple[str, ...]


def shortened(text: str, widest: int = _WIDEST) -> str:
    return text if len(text) <= widest else text[: widest - 1].rstrip() + "…"


def wrapped(text: str, widest: int = 26, most: int = 3) -> list[str]:
    """The text in lines, broken at blanks; what does not fit into `most` lines is left out."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= widest:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    lines = [shortened(line, widest) for line in lines]
    if len(lines) > most:
        lines = [*lines[: most - 1], shortened(f"{lines[most - 1]} …", widest)]
    return lines


def mermaid_text(text: str) -> str:
    """Mermaid writes characters that would be syntax as `#number;`."""
    return "".join(f"#{ord(sign)};" if sign in _SYNTAX else sign for sign in text)


def mermaid_label(shown: Card) -> str:
    head = [f"<b>{mermaid_text(shown.title)}</b>", *(mermaid_text(f"[{badge}]") for badge in shown.badges)]
    small = "<br/>".join(mermaid_text(line) for line in shown.lines)
    return "<br/>".join([*head, f"<small>{small}</small>"] if small else head)


def dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def dot_label(shown: Card) -> str:
    return dot_text("\n".join([shown.title, *(f"[{badge}]" for badge in shown.badges), *shown.lines]))
