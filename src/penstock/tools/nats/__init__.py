"""The `nats` tool: keys and values, messages, streams and objects of NATS."""
