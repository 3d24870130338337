"""What every result store keeps to. An adapter's test class inherits this and says how its store is opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import BlobStore, ResultRef, is_ref


class BlobsContract(ABC):
    @abstractmethod
    def open_store(self) -> BlobStore:
        """The same store each time within a test."""

    def test_what_is_put_is_got_back(self) -> None:
        store = self.open_store()
        for content in (b"", b"x", bytes(range(256)) * 5_000):
            assert store.get(store.put([content])) == content

    def test_chunks_are_one_result(self) -> None:
        store = self.open_store()
        ref = store.put(str(number).encode() for number in range(1_000))
        assert store.get(ref) == b"".join(str(number).encode() for number in range(1_000))

    def test_a_reference_says_what_is_stored(self) -> None:
        ref = self.open_store().put([b"a,b\n", b"1,2\n"], media="text/csv", schema_hint={"columns": ["a", "b"]})
        assert (ref.size, ref.checksum) == (8, sha256(b"a,b\n1,2\n").hexdigest())
        assert (ref.media, ref.schema_hint) == ("text/csv", {"columns": ["a", "b"]})
        assert ref.checksum[2:] in ref.key

    def test_a_reference_survives_the_log(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"], schema_hint=[1, None])
        assert is_ref(ref.as_json())
        assert ResultRef.from_json(ref.as_json()) == ref
        assert self.open_store().get(ResultRef.from_json(ref.as_json())) == b"content"

    def test_equal_contents_have_one_key(self) -> None:
        store = self.open_store()
        assert store.put([b"ab", b"c"]) == store.put([b"a", b"bc"])
        assert store.put([b"abc"]).key != store.put([b"abd"]).key

    def test_the_path_leads_to_the_same_bytes(self) -> None:
        store = self.open_store()
        ref = store.put([b"to be streamed"])
        assert Path(store.path(ref)).read_bytes() == b"to be streamed"
        assert store.path(ref) == store.path(ref)

    def test_what_was_deleted_is_told_to_be_missing(self) -> None:
        store = self.open_store()
        kept, ref = store.put([b"kept"]), store.put([b"content"])
        store.path(ref)
        store.delete(ref)
        for look in (store.get, store.path):
            with pytest.raises(Unavailable, match=r"`sha256/.*` is not there"):
                look(ref)
        store.delete(ref)
        assert store.get(kept) == b"kept"
        assert store.get(store.put([b"content"])) == b"content"

    def test_a_reference_that_does_not_fit_the_content_is_told(self) -> None:
        store = self.open_store()
        ref = store.put([b"content"])
        with pytest.raises(Unavailable, match="is damaged"):
            store.get(replace(ref, size=8))
        with pytest.raises(Unavailable, match="is damaged"):
            store.get(replace(ref, checksum="0" * 64))

    def test_a_reference_into_another_store_is_refused(self) -> None:
        store = self.open_store()
        foreign = replace(store.put([b"content"]), store="elsewhere")
        for act in (store.get, store.path, store.delete):
            with pytest.raises(Refused, match="`elsewhere:sha256"):
                act(foreign)

    def test_an_error_of_whoever_makes_the_chunks_passes_through_and_nothing_is_stored(self) -> None:
        def chunks() -> Iterator[bytes]:
            yield b"half"
            raise ConnectionResetError("the source went away")

        store = self.open_store()
        with pytest.raises(ConnectionResetError, match="the source went away"):
            store.put(chunks())
        assert store.get(store.put([b"half"])) == b"half"
