"""Checks of a playbook that has been read: the flow of tokens, names in expressions, and tasks against their tools."""
