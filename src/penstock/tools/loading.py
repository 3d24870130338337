"""How plug-ins are loaded, be they tools or components: one of ours from its table, another's from its entry point."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.kernel.errors import Refused

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def built_in(what: str, name: str, target: str) -> Any:
    """The class at `target`, written `module:Class`. `what` is what messages call it: a tool, a component."""
    module, _, found = target.partition(":")
    try:
        return getattr(import_module(module), found)
    except ImportError as error:
        hint = "install penstock again; a package is missing"
        raise Refused(f"the {what} `{name}` cannot be loaded: {error}", hint) from error


def plugged_in(offer: EntryPoint, what: str, word: str, check: Callable[[Any, str], None]) -> Any:
    """The class that an installed package offers. `word` is the attribute that must bear the name it is offered under."""
    package = f"the package `{offer.dist.name}`" if offer.dist is not None else f"`{offer.value}`"
    hint = "fix or uninstall that package"
    try:
        found = offer.load()
    except Exception as error:  # another author's module may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise Refused(f"the {what} `{offer.name}` of {package} cannot be loaded: {reason}", hint) from error
    check(found, f"`{offer.value}` of {package}")
    own = getattr(found, word)
    if own != offer.name:
        raise Refused(f"`{offer.value}` of {package} is offered as `{offer.name}`, and its {word} is `{own}`", hint)
    return found
