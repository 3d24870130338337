"""Checks of a job that has been built: parameters, literals, names in expressions, and lint."""
