"""The data plane: rows between components, on DuckDB. SQL is the language spoken here, built and read with sqlglot."""
