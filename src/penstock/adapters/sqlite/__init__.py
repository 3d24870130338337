"""Stores of one machine in SQLite files: the log (`penstock.db`) and the control store (`control.db`); statements in `sql/`."""
