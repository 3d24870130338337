"""The HTTP API of a server: requests come in, the server decides, and what the log says goes out. Nothing is decided here."""
