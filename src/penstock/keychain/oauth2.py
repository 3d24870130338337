"""OAuth 2 client credentials: a token that is asked for before the run and again before it runs out (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import quote_plus

from penstock.kernel.errors import Refused
from penstock.keychain.errors import Unresolved
from penstock.keychain.exchange import Answer, ask, shown
from penstock.keychain.resolved import Content, Grant
from penstock.keychain.secret import Secret, reveal
from penstock.keychain.surroundings import Surroundings

CLIENT_AUTH = ("auto", "basic", "post")

_LONGEST_LEAD_S = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """`client_auth`: the secret in a header (`basic`), in the form (`post`), or first one, then the other (`auto`)."""

    name: str
    token_url: str
    client_id: str
    client_secret: Secret
    scope: str | None
    audience: str | None
    client_auth: str

    async def grant(self, where: Surroundings) -> Grant:
        """Raises Unavailable when the issuer cannot be reached, Unresolved when it says no."""
        ways = ("basic", "post") if self.client_auth == "auto" else (self.client_auth,)
        for way in ways:
            answer = await self._ask(way, where)
            if answer.status == 200:
                return self._read(answer, where)
            if answer.status not in (400, 401, 403):
                break
        raise Unresolved(
            f"`{shown(self.token_url)}` gives no token: {_reason(answer, where)}",
            "check `client_id`, `client_secret` and `scope`",
        )

    async def renewed(self, where: Surroundings) -> Grant:
        """The same in the middle of a run, where there is no list of problems to add to."""
        try:
            return await self.grant(where)
        except Unresolved as error:
            raise Refused(f"keychain entry `{self.name}`: {error.message}", error.hint) from error

    async def _ask(self, way: str, where: Surroundings) -> Answer:
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        if self.audience:
            form["audience"] = self.audience
        headers = {"Accept": "application/json"}
        secret = reveal(self.client_secret)
        if way == "post":
            form |= {"client_id": self.client_id, "client_secret": secret}
        else:
            both = f"{quote_plus(self.client_id)}:{quote_plus(secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
        return await ask("POST", self.token_url, clock=where.clock, headers=headers, form=form, allowed=where.allowed)

    def _read(self, answer: Answer, where: Surroundings) -> Grant:
        token = answer.body.get("access_token")
        if not isinstance(token, str) or not token.strip():
            raise Unresolved(f"the answer of `{shown(self.token_url)}` has no `access_token`")
        where.redaction.add(token)
        secret = Secret(token)
        content: dict[str, Content] = {"access_token": secret, "token": secret}
        content["token_type"] = str(answer.body.get("token_type") or "Bearer")
        scope = answer.body.get("scope") or self.scope
        if isinstance(scope, str):
            content["scope"] = scope
        lifetime = _seconds(answer.body.get("expires_in"))
        if lifetime is None:
            return Grant(content, None)
        # A tenth of a short life, a minute of a long one: enough for the task that starts now to be served.
        now = where.clock.now()
        content["expires_at"] = now + lifetime
        return Grant(content, now + lifetime - min(_LONGEST_LEAD_S, lifetime / 10))


def _seconds(value: object) -> float | None:
    try:
        seconds = float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 < seconds < float("inf") else None


def _reason(answer: Answer, where: Surroundings) -> str:
    said = [str(answer.body[name]) for name in ("error", "error_description") if answer.body.get(name)]
    return where.redaction.hide(f"status {answer.status}" + (f", {': '.join(said)}" if said else ""))
