"""The command line of the engine. It parses, calls and prints; it decides nothing."""
