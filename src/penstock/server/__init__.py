"""The server side: it owns executions, decides what runs, and is the only one that starts steps."""
