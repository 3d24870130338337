"""The server side: owns executions, decides what runs, and alone starts steps."""
