"""One module per command, or per small family of them. Each is imported only when it is called."""
