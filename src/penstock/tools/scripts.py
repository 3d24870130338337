"""Scripts that a task names rather than holds: a file, text elsewhere in the document, what a web server gives.

Law: a script is read whole before anything of it runs. One that cannot be read, or has no end, does not run at all.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec

from penstock.kernel.values import JsonMap
from penstock.ports.meanings import READS_SCRIPT, WEB, only_when
from penstock.tools.base import Call, ToolFailure, is_only_at_caller, local_path
from penstock.tools.parameters import Positive, about

MAX_BYTES = 10 * 1024 * 1024


class ScriptSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a script comes from."""

    type: Annotated[
        Literal["file", "inline", "http"],
        about("`file` (the default), `inline` or `http`. What is in an object store, the tool `files` fetches first."),
    ] = "file"
    code: Annotated[str | None, about("The script itself, for `inline`.")] = None
    endpoint: Annotated[str | None, about("Its URL, for `http`; `uri` if left out.", schema=WEB)] = None
    method: Annotated[str, about("The request's method, for `http`.")] = "GET"
    headers: Annotated[dict[str, str], about("The request's headers, for `http`.")] = {}
    timeout: Annotated[Positive | None, about("Seconds the request may take, for `http`.")] = None


class Script(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A script by its name, and where it comes from."""

    uri: Annotated[
        str | None,
        about(
            "The file, relative to the document's folder; or the URL, for `http`.",
            schema=only_when(READS_SCRIPT, **{"source.type": ["file", None]}),
        ),
    ] = None
    code: Annotated[str | None, about("The script itself, for `inline`, where `source` has no `code`.")] = None
    source: Annotated[ScriptSource, about("Where it comes from.")] = msgspec.field(default_factory=ScriptSource)

    def __post_init__(self) -> None:
        source = self.source
        if source.type == "file" and self.uri is None:
            raise ValueError("a script of the type `file` needs its path in `uri`")
        if source.type == "inline" and self.text is None:
            raise ValueError("a script of the type `inline` needs its text in `source.code`")
        if source.type == "http" and self.url is None:
            raise ValueError("a script of the type `http` needs its URL in `source.endpoint`")

    @property
    def text(self) -> str | None:
        return self.code if self.source.code is None else self.source.code

    @property
    def url(self) -> str | None:
        return self.uri if self.source.endpoint is None else self.source.endpoint


@dataclass(frozen=True, slots=True)
class ScriptText:
    """`name`: what its author calls it. `place`: the path or URL where it was read; empty for text of the document."""

    text: str
    name: str
    place: str = ""


Decode = Callable[[bytes, str], str]
"""`decode(data, name)` gives the text of a script, or raises ToolFailure."""


def utf_8(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolFailure("encoding", f"the script `{name}` is not UTF-8: {error}") from None


async def text_of(script: str | Script, call: Call, decode: Decode = utf_8) -> ScriptText:
    """The script that a task names: as text, the path of its file.

    A file is looked for from the document's folder, then from the caller's; the log says when it is the caller's. Fails with
    `not_found`, with what `decode` raises, and for a web server with the kinds of failures of the tool `http`.
    """
    if isinstance(script, Script) and script.source.type == "inline":
        return ScriptText(script.text or "", "code")
    if isinstance(script, Script) and script.source.type == "http":
        return await _fetched(script, call, decode)
    name = script.uri if isinstance(script, Script) else script
    read: ScriptText = await call.threads.run(_of_file, name, call, decode)
    return read


def _of_file(name: str, call: Call, decode: Decode) -> ScriptText:
    path = local_path(name, call)
    if is_only_at_caller(name, call):
        assert call.caller is not None
        call.say(f"the script is read in `{call.caller}`: `{name}` is there, and not beside the document")
        path = call.caller / name
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        places = [path] if call.caller is None else [path, call.caller / name]
        looked_for = " and ".join(f"`{place}`" for place in dict.fromkeys(places))
        raise ToolFailure("not_found", f"there is no script `{name}` (looked for {looked_for})") from None
    except OSError as error:
        raise ToolFailure("not_found", f"the script `{name}` cannot be read: {error.strerror}") from None
    return ScriptText(decode(data, name), name, str(path))


async def _fetched(script: Script, call: Call, decode: Decode) -> ScriptText:
    from penstock.tools.http.tool import HttpParams, HttpTool  # Only scripts of web servers need it.

    source, url = script.source, script.url or ""
    params = HttpParams(
        url=url,
        method=source.method,
        headers={**source.headers},
        response="bytes",
        max_response_bytes=MAX_BYTES,
        ok_status="2xx",
    )
    spec: JsonMap = {"timeout": source.timeout} if source.timeout is not None else {}
    try:
        answer = (await HttpTool().run(params, replace(call, spec=spec))).result
    except ToolFailure as failure:
        why = f"it has more than {MAX_BYTES:,} bytes" if failure.kind == "too_large" else failure.message
        failure.message = f"the script cannot be fetched: {why}"
        raise
    assert isinstance(answer, dict)
    name = str(answer["url"])
    return ScriptText(decode(base64.b64decode(str(answer["data"] or "")), name), name, name)
