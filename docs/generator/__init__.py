"""The reference pages, made from the code they describe: `python -m docs.generator docs/reference [--check]`.

Law: a page holds nothing that the code does not contain or that this package does not prove to be complete. The same code gives
the same pages, byte for byte, on any machine.
"""
