"""What tools stream into the store passes the redaction, wherever the pieces are cut."""

from __future__ import annotations

import random

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.keychain import Keychain, Redaction
from penstock.worker.services import VeiledBlobs


def test_a_secret_that_pieces_cut_in_two_is_still_hidden() -> None:
    secret = "a-rather-long-secret-0123456789"
    store = MemoryBlobs()
    veiled = VeiledBlobs(store, Redaction([secret]).hide_bytes)
    chance = random.Random(5)
    for _ in range(60):
        data = b"".join(
            bytes(chance.randrange(65, 90) for _ in range(chance.randrange(9000))) + secret.encode() for _ in range(4)
        )
        cuts = sorted(chance.randrange(len(data)) for _ in range(chance.randrange(12)))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        kept = store.get(veiled.put(pieces, "text/plain"))
        assert kept == data.replace(secret.encode(), b"***")


def test_nothing_else_is_changed() -> None:
    store = MemoryBlobs()
    ref = VeiledBlobs(store, Redaction(["secret-secret"]).hide_bytes).put([b"plain ", b"", b"text"], "text/plain")
    assert store.get(ref) == b"plain text"


def test_a_secret_that_becomes_known_in_the_middle_of_the_run_is_hidden_from_then_on() -> None:
    store, keys = MemoryBlobs(), Keychain()
    veiled = VeiledBlobs.of(store, keys)
    assert store.get(veiled.put([b"late-secret-1"], "text/plain")) == b"late-secret-1"
    keys.redaction.add("late-secret-1")
    assert store.get(veiled.put([b"a late-sec", b"ret-1"], "text/plain")) == b"a ***"
