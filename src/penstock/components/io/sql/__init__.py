"""Databases: rows out of tables and queries, rows into tables, statements, and transactions that components share."""
