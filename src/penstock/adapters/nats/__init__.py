"""Dispatch and results over NATS JetStream, for workers that have no connection to the database."""
