"""The `python` tool: code in a thread of the worker, or isolated in a process of its own."""
