"""Commands that a server carries out, or the in-process API when there is no server."""
