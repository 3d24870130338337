"""Tools: what a task can call. Each is a plug-in of the same kind a user would write; see `penstock.tools.base`."""
