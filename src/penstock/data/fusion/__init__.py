"""Fusing: the stages of a group as few statements, their run, and the row counts of every link in it."""
