"""Spec layering: kind defaults < executor < step < loop < task. Scalars and lists replace, mappings merge deeply.

`policy` takes no part: what a policy means depends on the scope it stands in, so each scope reads its own.
"""

from __future__ import annotations

from penstock.kernel.values import JsonMap


def merged(outer: JsonMap, inner: JsonMap) -> JsonMap:
    """`inner` laid over `outer`; neither is changed."""
    result: JsonMap = dict(outer)
    for key, value in inner.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def effective(*layers: JsonMap) -> JsonMap:
    """The spec a task runs with, from the outermost layer to the innermost."""
    result: JsonMap = {}
    for layer in layers:
        result = merged(result, without_policy(layer))
    return result


# Words of a spec that are the engine's and say nothing to a tool.
_ENGINE_WORDS = ("strict", "loop_mode", "fanout", "reducers", "shared", "concurrency", "inputs")


def without_engine_words(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key not in _ENGINE_WORDS and not key.startswith("fanout.")}


def without_policy(spec: JsonMap) -> JsonMap:
    return {key: value for key, value in spec.items() if key != "policy"}
