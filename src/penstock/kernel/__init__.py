"""The kernel: pure decisions over an immutable net.

Nothing here reads a clock, makes up an id, logs, awaits or parses. It imports the standard library
and itself, so every rule of the engine can be tested by feeding it facts and comparing lists.
"""
