"""Spark: the same SELECTs, on a cluster, through Spark Connect."""
