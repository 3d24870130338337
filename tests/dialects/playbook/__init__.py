"""Tests of the playbook dialect."""
