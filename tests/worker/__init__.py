"""Tests of the worker side."""
