"""Delivery of alerts: the mail and the webhook of the `notify` tool, with secrets from the keychain of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from penstock.adapters.memory.blobs import MemoryBlobs
from penstock.kernel.errors import Refused, Unavailable
from penstock.kernel.values import JsonMap
from penstock.keychain import LocalStore
from penstock.ports.ambient import SystemClock
from penstock.ports.control import Alert
from penstock.ports.results import encode
from penstock.server.hooks import sign
from penstock.tools.addresses import Addresses
from penstock.tools.base import Call, Settings, Source, ToolFailure
from penstock.tools.http.tool import HttpParams
from penstock.tools.notify import NotifyParams, NotifyTool, Webhook
from penstock.worker.services import SharedResources
from penstock.worker.threads import DaemonThreads

KEYCHAIN = "keychain:"


class Channels:
    def __init__(self, home: Path, addresses: Addresses) -> None:
        """`addresses`: what the operator lets alerts reach; clients of the API must not reach further."""
        self._home = home
        self._settings = Settings(addresses=addresses)
        self._threads = DaemonThreads()

    async def send(self, alert: Alert, event: JsonMap, key: str) -> None:
        """Raises Refused when a retry cannot help, and Unavailable otherwise; neither quotes a secret."""
        resources = SharedResources()
        call = self._call(key, resources)
        try:
            await (self._mail(alert, event, call) if alert.url is None else self._post(alert, event, call))
        except ToolFailure as failure:
            message = f"{failure.kind}: {failure.message}"
            raise (Unavailable(message) if failure.retryable else Refused(message)) from failure
        finally:
            await resources.close()

    async def _mail(self, alert: Alert, event: JsonMap, call: Call) -> None:
        params = NotifyParams(
            via="smtp",
            host=alert.smtp_host,
            port=alert.smtp_port,
            security=cast(Any, alert.smtp_security),
            from_=alert.mail_from,
            to=alert.mail_to or "",
            subject=f"[penstock] {event.get('on')}: {alert.name}",
            text=f"{event.get('text')}\n\n"
            + "\n".join(f"{key}: {value}" for key, value in event.items() if key != "text"),
            auth=alert.auth,
        )
        await NotifyTool().run(params, call)

    async def _post(self, alert: Alert, event: JsonMap, call: Call) -> None:
        url = alert.url or ""
        if url.startswith(KEYCHAIN):
            url = self._text(url.removeprefix(KEYCHAIN))
        body = encode(event)
        headers: dict[str, Any] = {"Content-Type": "application/json"}
        if alert.auth is not None:
            headers["X-Penstock-Signature"] = sign(self._text(alert.auth), body, call.clock.now())
        request = HttpParams(url=url, method="POST", body=body.decode(), headers=headers, idempotency_key=True)
        await Webhook().run(request, call)

    def _call(self, key: str, resources: SharedResources) -> Call:
        async def play(*_: Any, **__: Any) -> Any:
            raise ToolFailure("refused", "an alert runs nothing")

        return Call(
            task="alert",
            task_run_id=key,
            attempt=1,
            execution_id=key,
            idempotency_key=key,
            folder=self._home,
            spec={"timeout": {"connect": 10, "read": 30, "write": 30, "total": 45}},
            clock=SystemClock(),
            blobs=MemoryBlobs(),
            resources=resources,
            threads=self._threads,
            settings=self._settings,
            source=Source("alert"),
            credential=self._credential,
            say=lambda line: None,
            play=play,
            load=lambda ref: None,
        )

    def _credential(self, name: str) -> dict[str, Any]:
        value = LocalStore(self._home).get(name)
        if value is None:
            raise ToolFailure(
                "credential", f"there is no keychain entry `{name}` on this server: `penstock keychain set {name}`"
            )
        return dict(value) if isinstance(value, dict) else {"value": value}

    def _text(self, name: str) -> str:
        entry = self._credential(name)
        return str(entry.get("value") or entry.get("secret") or entry.get("url") or "")
