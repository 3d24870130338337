"""The data plane: rows between components, on DuckDB. Queries are SQL, built and parsed with sqlglot."""
