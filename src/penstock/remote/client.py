"""The client of a server. What the server refuses is refused here in the same words, and what cannot be reached is retried.

Any server of a fleet will do: when one does not answer, the next one is asked.

Law: nothing is done twice. A request that may have arrived is sent again only if that is safe: when it only reads, or carries an
idempotency key.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from os.path import dirname, normpath, relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from msgspec import DecodeError

from penstock.kernel.errors import Damaged, PenstockError, Refused, Unavailable
from penstock.ports.results import decode, encode

if TYPE_CHECKING:
    import ssl

    import httpx2

    from penstock.app.library import Library
    from penstock.dialects.job import CompiledJob
    from penstock.dialects.playbook import Compiled
    from penstock.dialects.problems import Problem
    from penstock.kernel.net import Net


SERVER, TOKEN = "PENSTOCK_SERVER", "PENSTOCK_TOKEN"
CONNECT_S, READ_S = 5.0, 60.0
PAUSES_S = (0.2, 0.5, 1.0)
"""Between tries."""
START = "is it running? `penstock serve` or `penstock up` starts one"
ENDED_BY = b'{"error":'
"""How the last line begins of an answer that a server could not complete."""


def error_of(status: int, body: Any, url: str) -> PenstockError:
    """The error that a server answered with."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return Unavailable(f"`{url}` answers {status}, and not as a Penstock server does", "is it the right URL?")
    message, hint = str(error.get("message")), error.get("hint")
    if error.get("code") == "damaged":
        return Damaged(message, hint)
    if status >= 500:
        return Unavailable(message, hint)
    if error.get("code") == "document_invalid":
        return _invalid(error)
    if status == 401 and not os.environ.get(TOKEN):
        return Refused(message, f"set `{TOKEN}` to a token of the server; `penstock token add NAME` makes one there")
    return Refused(message, hint)


def problems_of(found: Any) -> list[Any]:
    from penstock.dialects.problems import Position, Problem, Severity  # Only an answer with problems needs it.

    return [
        Problem(
            str(one.get("code")),
            Severity(one.get("severity", "error")),
            str(one.get("message")),
            Position(
                str(one.get("file")), int(one["line"]), int(one["column"]), int(one.get("end_column") or one["column"])
            ),
            label=str(one.get("label") or ""),
            hint=str(one.get("hint") or ""),
            rewrite=str(one.get("rewrite") or ""),
            path=str(one.get("path") or ""),
            calls=str(one.get("calls") or ""),
        )
        for one in found
    ]


def _invalid(error: Mapping[str, Any]) -> PenstockError:
    from penstock.server.documents import DocumentInvalid  # Loads the compilers.

    problems = problems_of(error.get("problems") or ())
    return DocumentInvalid(problems[0].position.file if problems else "", problems, "")


class Client:
    def __init__(self, url: str, token: str | None = None, patience_s: float = 0.0) -> None:
        """`url`: of a server, or of several of one fleet, with commas between them.

        `patience_s`: the minimum time for which safe requests are retried once a server has answered; a server that never
        answered is not waited for.
        """
        self.given = url
        self.urls = [_checked(one.strip()) for one in url.split(",") if one.strip()]
        if not self.urls:
            raise _no_url(url)
        self.note: Callable[[str], None] = lambda text: None
        """Called with a line when no server answers any more, and when one does again."""
        self.patience_s = patience_s
        self._token = token if token is not None else os.environ.get(TOKEN)
        self._turn = 0
        self._was_there = False
        self._lost_at: float | None = None

    @property
    def url(self) -> str:
        """The server that the next request goes to."""
        return self.urls[self._turn % len(self.urls)]

    def turn(self) -> None:
        """Switches to the next server."""
        self._turn += 1

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    # ---- whether a server answers

    def lost(self, error: PenstockError) -> bool:
        """No server answers. Returns whether to go on trying."""
        if not self.patience_s or not self._was_there:
            return False
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            self.note(f"{error.message}; trying for {self.patience_s:g} s to hear of the run again")
        return time.monotonic() - self._lost_at < self.patience_s

    def found(self) -> None:
        self._was_there = True
        if self._lost_at is not None:
            self._lost_at = None
            self.note(f"following the run again at {self.url}")

    # ---- one answer

    def get(self, path: str, **params: Any) -> Any:
        return self.ask("GET", path, params=params, is_safe=True)

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """With a `key`, the server recognises a repeated request."""
        headers = {"Idempotency-Key": key} if key is not None else {}
        return self.ask("POST", path, body=body, headers=headers, is_safe=key is not None)

    def ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        is_safe: bool = False,
    ) -> Any:
        data = self.raw(method, path, params=params, body=body, headers=headers, is_safe=is_safe)
        return decoded(data) if data else None

    def raw(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        is_safe: bool = False,
    ) -> bytes:
        """`is_safe`: the request may be repeated."""
        sent: dict[str, Any] = {"headers": {**self.headers, **(headers or {})}, "params": _given(params)}
        if body is not None:
            sent["content"] = encode(body)
            sent["headers"]["Content-Type"] = "application/json"
        for pause, is_enough in self._pauses():
            try:
                data = self._once(method, path, sent, is_safe=is_safe)
            except _Again as again:
                self.turn()
                is_waited_for = pause > 0 and self.lost(again.error)
                if is_enough and not is_waited_for:
                    raise again.error from again
                time.sleep(pause)
            else:
                self.found()
                return data
        raise AssertionError("there is always another pause")

    def _pauses(self) -> Iterator[tuple[float, bool]]:
        """The pause after each try, none between one server and the next; and whether the tries so far are enough."""
        pauses = iter(PAUSES_S)
        while True:
            yield from ((0.0, False) for _ in self.urls[1:])
            pause = next(pauses, None)
            yield (PAUSES_S[-1], True) if pause is None else (pause, False)

    def _once(self, method: str, path: str, sent: Mapping[str, Any], *, is_safe: bool) -> bytes:
        import httpx2  # Only a remote command needs it: it takes 0.1 s to import.

        try:
            with self._opened() as client:
                response = client.request(method, path, **sent)
        except httpx2.ConnectError as error:
            raise _Again(self._unreachable(error)) from error
        except httpx2.TransportError as error:
            self._was_there = True  # It may have accepted the request.
            failed = Unavailable(f"the server at `{self.url}` did not answer: {_message(error)}", START)
            raise (_Again(failed) if is_safe else failed) from error
        if response.is_success:
            return bytes(response.content)
        failed = error_of(response.status_code, decoded(response.content), self.url)  # type: ignore[assignment]
        raise _Again(failed) if response.status_code == 503 and is_safe else failed

    # ---- answers without end

    @contextmanager
    def streamed(self, path: str, **params: Any) -> Iterator[Iterator[bytes]]:
        """The chunks of an answer as they arrive."""
        import httpx2  # Only a remote command needs it: it takes 0.1 s to import.

        with ExitStack() as stack:
            response = self._begun(stack, path, params)
            try:
                if not response.is_success:
                    raise error_of(response.status_code, decoded(response.read()), self.url)
                yield response.iter_bytes()
            except httpx2.TransportError as error:
                raise Unavailable(
                    f"the connection to `{self.url}` broke off: {_message(error)}", "try again"
                ) from error

    def _begun(self, stack: ExitStack, path: str, params: Mapping[str, Any]) -> httpx2.Response:
        """The response of the first server that answers."""
        import httpx2  # Only a remote command needs it: it takes 0.1 s to import.

        for left in reversed(range(len(self.urls))):
            try:
                client = stack.enter_context(self._opened())
                asked = client.stream("GET", path, params=_given(params), headers=self.headers)
                return stack.enter_context(asked)
            except httpx2.TransportError as error:
                failed = self._unreachable(error)
                self.turn()
                if not left:
                    raise failed from error
        raise AssertionError("there is a server at the least")

    def lines(self, path: str, **params: Any) -> Iterator[bytes]:
        """Lines of JSON."""
        for page in self.pages(path, **params):
            yield from page

    def pages(self, path: str, **params: Any) -> Iterator[list[bytes]]:
        """The same lines as they arrive, without the empty ones that a server sends as heartbeats."""
        with self.streamed(path, **params) as pieces:
            rest = b""
            for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                lines = [line for line in whole if line]
                if lines and lines[-1].startswith(ENDED_BY):
                    yield lines[:-1]
                    raise error_of(500, decoded(lines[-1]), self.url)
                yield lines
            if rest:
                raise Unavailable(f"the answer of `{self.url}` was cut off", "try again")

    def _opened(self) -> httpx2.Client:
        import httpx2  # Only a remote command needs it: it takes 0.1 s to import.

        timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
        return httpx2.Client(base_url=self.url, timeout=timeout, verify=tls_for(self.url))

    def _unreachable(self, error: Exception) -> Unavailable:
        return Unavailable(f"no server answers at `{self.url}`: {_message(error)}", START)


def tls_for(url: str) -> ssl.SSLContext:
    """Loading the certificate authorities of the machine takes longer than a request: it is done once, and only for HTTPS."""
    return _usual_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _usual_context() -> ssl.SSLContext:
    import httpx2  # As above.

    return httpx2.create_ssl_context()


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise _no_url(url)
    return url.rstrip("/")


def _no_url(text: str) -> Refused:
    return Refused(f"`{text}` is not the URL of a server", f"such as `http://127.0.0.1:8470`; `--server` or `{SERVER}`")


class _Again(Exception):
    """The request may be tried again."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(error.message)
        self.error = error


def decoded(data: bytes) -> Any:
    """None if it is not JSON: another program may have answered."""
    try:
        return decode(data)
    except DecodeError:
        return None


def at(*parts: str) -> str:
    """A path of the API; the parts are quoted."""
    return "/api/" + "/".join(quote(part, safe="@") for part in parts)


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    shown = {True: "true", False: "false"}
    return {
        name: shown[value] if isinstance(value, bool) else value
        for name, value in (params or {}).items()
        if value is not None
    }


def _message(error: Exception) -> str:
    return (str(error) or type(error).__name__).lower()


# ---- A document as it is sent to a server: with all files of this machine that it includes or calls.

MOST = 200
"""The most documents that are sent along."""


class Sent:
    """`body` is what the API takes for a document; `net` is None when it cannot be compiled here: the server will report why."""

    def __init__(self, library: Library, given: str) -> None:
        self.given = given
        self.file = ""
        self.text = ""
        self.net: Net | None = None
        self.compiled: Any = None
        self.taken_in: dict[str, str] = {}
        """The joblets that a job includes: file -> text."""
        path = Path(given)
        if not path.exists() and (not path.suffix or (len(path.parts) > 1 and not path.parent.exists())):
            self.body: dict[str, Any] = {"path": given}
            return
        self.compiled = library.compiled(path, looks=False)
        if not self.compiled.text:  # It cannot be read, or is empty: the server could do no better.
            from penstock.server.documents import DocumentInvalid  # Loads the compilers.

            raise DocumentInvalid(self.compiled.file, self.compiled.problems, "")
        self.net = self.compiled.net
        self.file, self.text = str(path.resolve()), self.compiled.text
        self.taken_in = {**_as_called(self.compiled, path, Path(self.file).parent), **_sources(self.compiled)}
        sources = dict(self.taken_in)
        _gather(library, self.compiled, Path(self.file).parent, sources)
        self.body = {"file": self.file, "text": self.text, "sources": sources}

    @property
    def is_here(self) -> bool:
        """Whether it is a file of this machine, not a name in the catalog."""
        return bool(self.file)


def _sources(compiled: Any) -> dict[str, str]:
    return {str(file): text for file, text in getattr(compiled, "sources", {}).items()}


def _as_called(compiled: Any, given: Path, folder: Path) -> dict[str, str]:
    """The joblets of a job under the names by which it finds them. If a folder is a symbolic link these differ from the names of
    the files, and the server, which cannot follow links of this machine, looks for these."""
    texts: dict[str, str] = getattr(compiled, "texts", {})
    called = {file: text for file, text in texts.items() if file != compiled.file}
    return {normpath(folder / relpath(file, given.parent)): text for file, text in called.items()}


def _gather(library: Library, compiled: Compiled | CompiledJob, folder: Path, sources: dict[str, str]) -> None:
    """The documents that a document calls by literal paths, and those that they call. What is not on this machine is in the
    catalog, on the server's disk, or missing: the server will report it."""
    given = dirname(compiled.file)
    for call in compiled.calls:
        # Folders are relative to the document as it was given; the server knows its absolute path.
        base = folder if call.folder is None else folder / relpath(call.folder, given)
        for file in _called(base, call.path):
            if str(file) in sources:
                continue
            if len(sources) >= MOST:
                raise Refused(f"the document calls more than {MOST} others", "keep them in the catalog instead")
            try:
                found = library.compiled(file, looks=False)
            except PenstockError:
                continue
            sources[str(file)] = found.text
            sources.update({**_as_called(found, file, file.parent), **_sources(found)})
            _gather(library, found, file.parent, sources)


def _called(folder: Path, path: str) -> list[Path]:
    """The file of a called document; else all that bear the name, of which the server takes the only one or refuses them."""
    from penstock.server.named_documents import all_below  # Most commands call no document by its name.

    for name in (path, f"{path}.yaml", f"{path}.yml"):
        file = Path(normpath((folder / name).expanduser()))
        if file.is_file():
            return [file]
    try:
        return [Path(file) for file in all_below(folder, path)]
    except Refused:  # The folder is too large to be searched. The catalog may have the document.
        return []


def as_seen_here(error: Refused, sent: Sent) -> Refused:
    """The problems of a document, under the name and with the text that it has on this machine."""
    from penstock.server.documents import DocumentInvalid  # Loads the compilers.

    if not isinstance(error, DocumentInvalid) or not sent.is_here:
        return error
    return DocumentInvalid(sent.given, seen_here(error.problems, sent), sent.text)


def seen_here(problems: Iterable[Problem], sent: Sent) -> list[Problem]:
    return [
        replace(one, position=replace(one.position, file=sent.given)) if one.position.file == sent.file else one
        for one in problems
    ]
