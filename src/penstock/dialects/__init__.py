"""Dialects: from YAML text to a net, with every problem reported at its position in the file."""
