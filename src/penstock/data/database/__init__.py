"""The database that holds the tables: the same SELECTs, inside it."""
