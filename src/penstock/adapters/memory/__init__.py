"""Stores in memory, for tests, previews and runs that keep nothing."""
