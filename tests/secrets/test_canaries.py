"""P2.6: a secret never appears in an event, a log, an error or a result, whatever was done with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.app.embedded import Embedded, embedded
from penstock.ports.results import decode
from penstock.ports.wire import envelope
from penstock.server.documents import Pinned
from penstock.server.runs import RunSummary
from tests.replaying import assert_replays
from tests.secrets.leaky import RAISES, child, failing, leaky
from tests.secrets.scan import Scanner, assert_clean
from tests.secrets.vault_of import Canaries, echo_server, entries, environment, furnish


@dataclass
class House:
    folder: Path
    canaries: Canaries
    server: str
    environ: dict[str, str]

    @property
    def home(self) -> Path:
        return self.folder / "book" / ".penstock"

    def write(self, name: str, book: dict[str, Any]) -> Path:
        path = self.folder / "book" / name
        path.write_text(yaml.safe_dump(book, sort_keys=False, allow_unicode=True), encoding="utf-8")
        return path

    def run(self, path: Path, execution_id: str = "run-1", payload: dict[str, Any] | None = None) -> Heard:
        """Run it, and keep all that anybody could hear of it."""
        return asyncio.run(self._run(path, execution_id, payload or {}))

    async def _run(self, path: Path, execution_id: str, payload: dict[str, Any]) -> Heard:
        heard: list[str] = []
        engine = embedded(self.home, environ=self.environ)
        engine.observers.append(lambda entry: heard.append(f"{entry}"))
        engine.line_observers.append(lambda *said: heard.append(f"{said}"))
        try:
            pinned = Pinned(str(path), path.read_text(encoding="utf-8"))
            summary = await engine.run(execution_id).start(pinned, payload, label=None, trace_id="t")
            return Heard(summary, "\n".join([*heard, json.dumps(summary.as_json()), *_events(engine, execution_id)]))
        finally:
            await engine.close()

    def scanner(self) -> Scanner:
        return Scanner(self.canaries.texts.values())


@dataclass
class Heard:
    summary: RunSummary
    text: str


def _events(engine: Embedded, execution_id: str) -> list[str]:
    header = engine.log.header(execution_id)
    assert header is not None
    return [json.dumps(envelope(entry, header)) for entry in engine.log.read(execution_id)]


@contextmanager
def furnished(folder: Path, seed: int) -> Iterator[House]:
    canaries = Canaries(seed)
    with echo_server(canaries) as server:
        environ = environment(canaries, server.url)
        (folder / "book").mkdir()
        one = House(folder, canaries, server.url, environ)
        furnish(folder / "book", one.home, canaries, environ)
        one.write("child.yaml", child([{"name": "own", "kind": "env", "var": "C_MYSQL"}]))
        yield one


SEEDS = {"awkward": 1, "plain": 2}


@pytest.fixture(params=SEEDS.values(), ids=SEEDS)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    with furnished(tmp_path, request.param) as one:
        yield one


@pytest.fixture(scope="module", params=SEEDS.values(), ids=SEEDS)
def leaked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Heard]]:
    """A run that did everything with its secrets that may not be done."""
    with furnished(tmp_path_factory.mktemp("leaky"), request.param) as one:
        file = one.write("leaky.yaml", leaky(entries(one.canaries, one.server), one.server))
        yield one, one.run(file, payload={"given": one.canaries["env"]})


@pytest.mark.clause("P2.6")
def test_no_secret_of_any_kind_gets_out_of_any_tool(leaked: tuple[House, Heard]) -> None:
    house, heard = leaked
    assert heard.summary.status == "completed", heard.summary.error
    scanner = house.scanner()
    assert_clean(scanner.in_text(heard.text, "what was heard"))
    assert_clean(scanner.in_folder(house.home))
    assert_replays(house.home)


@pytest.mark.clause("P2.6")
def test_the_tools_did_get_the_secrets(leaked: tuple[House, Heard]) -> None:
    """A test that finds nothing proves nothing unless there was something to find."""
    house, _ = leaked
    outside = (house.folder / "outside.txt").read_text(encoding="utf-8")
    assert outside == f"password={house.canaries['env']}\n"
    found = house.scanner().in_text(outside, "outside")
    assert found


CODES = [RAISES, "raise SystemExit(s)", "assert False, s", "int(s)", "{}[s]", "open(s)", "exec('x = ' + repr(s) + '!')"]


@pytest.mark.clause("P2.6")
def test_a_run_that_fails_because_of_a_secret_does_not_say_it(house: House) -> None:
    for number, code in enumerate(CODES):
        file = house.write("failing.yaml", failing(entries(house.canaries, house.server), code))
        heard = house.run(file, f"run-{number}")
        assert heard.summary.status == "failed", code
        assert_clean(house.scanner().in_text(heard.text, f"what was heard of {code}"))
    assert_clean(house.scanner().in_folder(house.home))


@pytest.mark.clause("P2.6")
def test_a_secret_that_cannot_be_had_stops_the_run_before_there_is_one_and_says_none(house: House) -> None:
    keychain = entries(house.canaries, house.server)
    del house.environ["C_BEARER"]
    house.environ["C_POSTGRES_URL"] = f"nonsense {house.canaries['postgres']}"
    file = house.write("leaky.yaml", leaky(keychain, house.server))
    with pytest.raises(Exception, match="C_BEARER") as caught:
        house.run(file)
    said = f"{caught.value!r} {caught.value} {getattr(caught.value, 'hint', '')}"
    assert_clean(house.scanner().in_text(said, "the error"))
    assert_clean(house.scanner().in_folder(house.home))


def test_decoding_what_the_log_holds_finds_no_secret_either(leaked: tuple[House, Heard]) -> None:
    """A secret must not hide behind an escape that this scan does not know: texts are looked at as readers get them."""
    house, _ = leaked
    engine = embedded(house.home)
    try:
        texts = [text for entry in engine.log.read("run-1") for text in _texts(decode(entry.payload))]
    finally:
        asyncio.run(engine.close())
    for name, secret in house.canaries.texts.items():
        assert not [text for text in texts if secret in text], name


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
