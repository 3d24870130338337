"""Ports: what the engine asks of the world, as small protocols. Adapters answer them; `penstock.app` picks which."""
