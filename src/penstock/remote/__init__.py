"""A server seen from outside, over its HTTP API: for the command line and for Python."""
