"""The composition root: the embedded engine, the server and worker processes, and their stores.

Nothing else outside `adapters` picks adapters.
"""
