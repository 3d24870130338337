"""Orchestration: what starts, waits, tells, counts and repeats. Few rows pass through here."""
