"""Tests of converters."""
