"""Tests of the tools: each against real servers, files and processes."""
