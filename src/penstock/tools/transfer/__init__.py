"""The `transfer` tool: rows from one database, file or HTTP resource into another, in chunks."""
