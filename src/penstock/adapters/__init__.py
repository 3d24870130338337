"""Adapters: implementations of the ports, each named after its technology. Only `penstock.app` picks one."""
