"""The command line: a face on the engine. It parses, calls, and tells; it decides nothing."""
