"""Stores in plain files: results, captured lines, unpacked projects, and the local cache of results."""
