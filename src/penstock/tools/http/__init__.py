"""The `http` tool: its parameters, the exchange with a server, and what becomes of the response."""
