"""Adapters: the ports answered with a technology each, and named after it. Only `penstock.app` picks one."""
