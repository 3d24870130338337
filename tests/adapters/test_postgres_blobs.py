from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.adapters.postgres.blobs import PostgresBlobs
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.blobs import Missing
from tests.servers import postgres_server, postgres_url  # noqa: F401

MEGABYTE = 1024 * 1024


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> Iterator[PostgresBlobs]:  # noqa: F811
    store = PostgresBlobs(postgres_url, tmp_path / "cache", patience_s=20.0)
    yield store
    store.close()


def asked(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def test_a_result_lies_in_pieces_of_one_megabyte(store: PostgresBlobs, postgres_url: str) -> None:  # noqa: F811
    store.put([b"x" * (2 * MEGABYTE + 10)])
    sizes = asked(postgres_url, "SELECT octet_length(body) FROM result_piece ORDER BY number")
    assert sizes == [(MEGABYTE,), (MEGABYTE,), (10,)]


def test_equal_results_are_one_row(store: PostgresBlobs, postgres_url: str) -> None:  # noqa: F811
    for _ in range(3):
        store.put([b"content"])
    assert asked(postgres_url, "SELECT size FROM result_blob") == [(7,)]
    assert asked(postgres_url, "SELECT count(*) FROM result_piece") == [(1,)]


def test_pieces_go_with_their_result(store: PostgresBlobs, postgres_url: str) -> None:  # noqa: F811
    first, second = store.put([b"first"]), store.put([b"second"])
    store.delete(first)
    store.discard(second.key, 4e9)
    assert asked(postgres_url, "SELECT count(*) FROM result_piece") == [(0,)]


def test_a_result_that_lost_a_piece_is_damaged_and_healed_by_putting_it_again(
    store: PostgresBlobs,
    postgres_url: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    content = b"y" * (MEGABYTE + 10)
    ref = store.put([content])
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DELETE FROM result_piece WHERE number = 0")
    elsewhere = PostgresBlobs(postgres_url, tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="is damaged"):
        elsewhere.path(ref)
    store.put([content])
    assert elsewhere.get(ref) == content
    elsewhere.close()


def test_the_tables_are_made_once_by_many_that_start_together(postgres_url: str, tmp_path: Path) -> None:  # noqa: F811
    stores = [PostgresBlobs(postgres_url, tmp_path / str(number)) for number in range(6)]
    refs: list[object] = []
    threads = [threading.Thread(target=lambda one: refs.append(one.put([b"content"])), args=(one,)) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert len(refs) == 6
    assert len(set(refs)) == 1


def test_ending_its_sessions_in_the_middle_loses_nothing(postgres_url: str, tmp_path: Path) -> None:  # noqa: F811
    """The server ends every session of the store again and again, while it puts results and reads them back."""
    store = PostgresBlobs(f"{postgres_url}&application_name={tmp_path.name}", tmp_path / "cache")
    store.put([b"first"])
    is_over = threading.Event()

    def disturb() -> None:
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            while not is_over.wait(0.02):
                connection.execute(ending, (tmp_path.name,))

    disturbing = threading.Thread(target=disturb)
    disturbing.start()
    try:
        contents = [bytes([number]) * 300_000 for number in range(8)]
        refs = [store.put([content]) for content in contents]
        for ref in refs:
            assert store.seen(ref.key) is not None
    finally:
        is_over.set()
        disturbing.join()
    assert [store.get(ref) for ref in refs] == contents
    store.close()
    assert asked(postgres_url, "SELECT count(*), sum(size) FROM result_blob") == [(9, 8 * 300_000 + 5)]


def test_a_put_that_did_not_end_leaves_nothing(store: PostgresBlobs, postgres_url: str) -> None:  # noqa: F811
    store.put([b"first"])
    with psycopg.connect(postgres_url) as connection:
        connection.execute("LOCK TABLE result_blob IN ACCESS EXCLUSIVE MODE")
        putting = threading.Thread(target=lambda: store.put([b"second"]))
        putting.start()
        assert connection.execute("SELECT count(*) FROM result_blob").fetchone() == (1,)
    putting.join()
    assert asked(postgres_url, "SELECT count(*) FROM result_blob") == [(2,)]


def test_a_reader_sees_no_result_before_it_is_whole(store: PostgresBlobs, postgres_url: str, tmp_path: Path) -> None:  # noqa: F811
    """The pieces are there, in a transaction that is not over; for everybody else the result is not."""
    ref = store.put([b"content"])
    store.delete(ref)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO result_piece VALUES (999999, 0, 'content', sha256('content'))")
        connection.execute(
            "INSERT INTO result_blob (id, digest, size, seen) VALUES (999999, sha256('content'), 7, now())"
        )
        with pytest.raises(Missing):
            store.get(ref)
        connection.commit()
        assert store.get(ref) == b"content"


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    url = f"postgresql://me:hidden@/x?host={tmp_path}"
    store = PostgresBlobs(url, tmp_path / "cache", patience_s=3_600.0)
    with pytest.raises(Unavailable, match="cannot be reached") as error:
        store.put([b"content"])
    assert "hidden" not in error.value.message


def test_a_closed_store_is_refused(store: PostgresBlobs) -> None:
    store.put([b"content"])
    store.close()
    with pytest.raises(Refused, match="is closed here"):
        store.put([b"content"])
