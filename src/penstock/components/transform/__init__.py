"""Rows in, rows out: each component here is one SELECT per output port."""
