"""The law of this file: whoever can show a page to a person is told its URL, and nobody else is.

The URL of a consent is a capability: who has it can go on with the flow (R117). An app that gave
``on_authorization`` is told there, and only there, so that a person is asked once. Without one a
client gets the URL if it has said that it opens pages for people: it declared
``elicitation.url`` when it connected, and speaks 2025-11-25, the one protocol version that has the
error -32042 for this (the next one retired it). It is data of that error, for the application;
every text is a sentence of ours, and evidence and logs hold none of it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from inspect import isawaitable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from surefoot.errors import AuthorizationRequiredError, CredentialError
from surefoot.wire import OUTCOME_KEY, error, sentence

from ._giveup import GiveUp, facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.wire import Outgoing

    from ._family import HTTPRequest, HTTPResponse
    from ._recorder import Record

__all__ = ["Consent", "without_url"]

_logger = logging.getLogger("surefoot")

_URL_ELICITATION_REQUIRED: Final = -32042
_VERSION: Final = "2025-11-25"
_SESSION: Final = "mcp-session-id"
_MOST_SESSIONS: Final = 10_000


class Consent:
    """Who is told that a person must consent first.

    Args:
        hook: The app's ``on_authorization``.
    """

    __slots__ = ("_hook", "_lock", "_sessions")

    def __init__(self, hook: Callable[[AuthorizationRequiredError], object] | None) -> None:
        self._hook = hook
        self._sessions: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def connected(self, asked: Outgoing | None, response: HTTPResponse) -> None:
        """Remember a session whose client opens pages; its later requests do not say so again."""
        if asked is None or asked.method != "initialize" or self._hook is not None:
            return
        session: str | None = response.headers.get(_SESSION)
        if session is None or response.status_code >= 300 or not _opens_pages(asked):
            return
        with self._lock:
            self._sessions[session] = None
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    async def ask(
        self, needed: AuthorizationRequiredError, request: HTTPRequest, record: Record
    ) -> bytes | None:
        """Tell the app, or write the answer that tells the client; ``None`` where words must do.

        Streams, notifications and goodbyes, which the SDK sends by itself, ask no person. What the
        app's hook does changes nothing.
        """
        asked = record.outgoing
        if asked is None or asked.kind != "request":
            return None
        if self._hook is None:
            return self._written(needed, asked, request, record)
        try:
            told = self._hook(needed)
            if isawaitable(told):
                await told
        except Exception as raised:  # noqa: BLE001 - a hook's failure is its own
            _logger.warning("on_authorization raised %s", type(raised).__name__)
        return None

    def _written(
        self,
        needed: AuthorizationRequiredError,
        asked: Outgoing,
        request: HTTPRequest,
        record: Record,
    ) -> bytes | None:
        """The error -32042, where the client can make something of it."""
        if asked.method != "initialize":
            version: str | None = request.headers.get("mcp-protocol-version")
            if version != _VERSION or request.headers.get(_SESSION) not in self._sessions:
                return None
        elif not _opens_pages(asked):
            return None
        if not needed.authorization_url.startswith("https://"):
            return None
        what = "call" if asked.is_tool_call else "request"
        text = sentence("consent-needed", what=what)
        elicitation = {
            "mode": "url",
            "elicitationId": str(uuid4()),
            "url": needed.authorization_url,
            "message": text,
        }
        data = {
            "elicitations": [elicitation],
            OUTCOME_KEY: facts(GiveUp(outcome="consent-needed"), record),
        }
        return error(asked.id, _URL_ELICITATION_REQUIRED, text, data)


def without_url(error: Exception) -> Exception:
    """What is raised where no request waits for an answer: the SDK logs it, its fields included."""
    if isinstance(error, AuthorizationRequiredError):
        return CredentialError("a person must authorize first", service=error.service)
    return error


def _opens_pages(asked: Outgoing) -> bool:
    """Whether this ``initialize`` names the right version, and declares ``elicitation.url``."""
    if asked.params.get("protocolVersion") != _VERSION:
        return False
    elicitation = _object(_object(asked.params.get("capabilities")).get("elicitation"))
    return isinstance(elicitation.get("url"), dict)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
