from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from cryptography.fernet import Fernet

from penstock.adapters.postgres.control import PostgresControl
from penstock.adapters.sqlite.control import MemoryControl, MemoryControlStore, SqliteControl
from penstock.kernel.errors import Refused, Unavailable
from penstock.ports.control import HIDDEN, ControlStore, Scope
from tests.contracts.control_contract import ControlContract
from tests.contracts.control_scenes import PUSHED, ControlScenes
from tests.servers import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

NOW = 1_700_000_000.0

# The tables' one clock is moved by the test.
STAND_STILL = """
CREATE TABLE test_clock AS SELECT 1700000000::float8 AS at;
CREATE OR REPLACE FUNCTION control_now() RETURNS float8 LANGUAGE sql VOLATILE AS $$ SELECT at FROM test_clock $$;
"""


class KeptContract(ControlScenes):
    """What those keep to that outlive their process."""

    environ: Mapping[str, str]

    def at_rest(self) -> str:
        """All that is kept, as somebody sees it who has a copy of it."""
        raise NotImplementedError

    def test_the_secret_of_a_token_is_not_at_rest(self) -> None:
        with self.opened() as control:
            token, secret = control.add_token("ann", Scope.RUN)
            assert token.id in self.at_rest()
            assert secret not in self.at_rest()
            assert secret.removeprefix("pk_") not in self.at_rest()

    def test_without_a_key_the_secret_of_a_hook_lies_in_clear_text(self) -> None:
        with self.opened() as control:
            control.put_hook(replace(PUSHED, secret="s3cret-s3cret"))
            assert "s3cret-s3cret" in self.at_rest()

    def test_with_a_key_the_secret_of_a_hook_is_encrypted(self) -> None:
        self.environ = {"PENSTOCK_SECRET_KEY": Fernet.generate_key().decode()}
        with self.opened() as control:
            control.put_hook(replace(PUSHED, secret="s3cret-s3cret"))
            assert "s3cret" not in self.at_rest()
            assert control.hook("pushed") == replace(PUSHED, secret="s3cret-s3cret")

    def test_what_was_kept_before_there_was_a_key_is_encrypted_when_it_is_put_again(self) -> None:
        with self.opened() as control:
            control.put_hook(replace(PUSHED, secret="s3cret-s3cret"))
        self.environ = {"PENSTOCK_SECRET_KEY": Fernet.generate_key().decode()}
        with self.opened() as control:
            hook = control.hook("pushed")
            assert hook == replace(PUSHED, secret="s3cret-s3cret")
            assert hook is not None
            control.put_hook(hook)
        assert "s3cret" not in self.at_rest()

    def test_keys_can_be_changed(self) -> None:
        old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
        self.environ = {"PENSTOCK_SECRET_KEY": old}
        with self.opened() as control:
            control.put_hook(replace(PUSHED, secret="one"))
        self.environ = {"PENSTOCK_SECRET_KEY": f"{new}, {old}"}
        with self.opened() as control:
            hook = control.hook("pushed")
            assert hook is not None
            control.put_hook(hook)
        self.environ = {"PENSTOCK_SECRET_KEY": new}
        with self.opened() as control:
            assert control.hook("pushed") == hook

    @pytest.mark.parametrize("later", ["", Fernet.generate_key().decode()], ids=["no key", "another key"])
    def test_without_its_key_a_secret_is_unavailable_and_all_else_is_not(self, later: str) -> None:
        self.environ = {"PENSTOCK_SECRET_KEY": Fernet.generate_key().decode()}
        with self.opened() as control:
            control.put_hook(replace(PUSHED, secret="s3cret-s3cret"))
        self.environ = {"PENSTOCK_SECRET_KEY": later}
        with self.opened() as control:
            with pytest.raises(Unavailable, match="`pushed`") as raised:
                control.hook("pushed")
            assert "PENSTOCK_SECRET_KEY" in (raised.value.hint or "")
            assert control.hooks() == [replace(PUSHED, secret=HIDDEN)]
            control.put_hook(replace(PUSHED, secret="new"))
            assert control.hook("pushed") == replace(PUSHED, secret="new")

    def test_what_is_no_key_is_refused_and_not_repeated(self) -> None:
        key = Fernet.generate_key().decode()[:-5]
        self.environ = {"PENSTOCK_SECRET_KEY": key}
        with pytest.raises(Refused, match="not a key") as raised:
            self.open_control()
        assert key not in f"{raised.value.message}{raised.value.hint}"


class TestMemoryControl(ControlContract):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self.now = NOW
        self.store = MemoryControlStore()

    def open_control(self) -> ControlStore:
        return MemoryControl(self.store, now=lambda: self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


class TestSqliteControl(ControlContract, KeptContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.now = NOW
        self.environ = {}
        self.home = tmp_path / "state"

    def open_control(self) -> ControlStore:
        return SqliteControl(self.home, now=lambda: self.now, environ=self.environ)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def at_rest(self) -> str:
        files = sorted(self.home.glob("control.db*"))
        return "".join(file.read_bytes().decode("latin-1") for file in files)


class TestPostgresControl(ControlContract, KeptContract):
    @pytest.fixture(autouse=True)
    def _url(self, postgres_url: str) -> None:
        self.environ = {}
        self.url = postgres_url
        with self.opened():
            self.execute(STAND_STILL)

    def open_control(self) -> ControlStore:
        return PostgresControl(self.url, environ=self.environ)

    def pass_time(self, seconds: float) -> None:
        self.execute("UPDATE test_clock SET at = at + %s", seconds)

    def at_rest(self) -> str:
        tables = ("path", "document", "token", "schedule", "slot", "hook", "alert", "delivery")
        with psycopg.connect(self.url, autocommit=True) as connection:
            return "\n".join(str(row) for table in tables for row in connection.execute(f"TABLE control_{table}"))

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values or None)
