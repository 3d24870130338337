"""Stores in one PostgreSQL schema: the log, dispatch, control, results, captured lines and the shares of servers.

All of them connect, retry and report errors through `database`; the statements are in `sql/`.
"""
