"""The law of this file: one look at a gateway, through a Gateway, bounded, and told whatever comes.

Nothing is repeated on an assumption: a tool that is called on request is sent once, or again only
where it is proven that it never left. Whatever ends the check, it is told whether that tool may
have run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import anyio

from surefoot.credentials import CredentialProvider
from surefoot.errors import (
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
    SurefootError,
    ToolError,
    UnreadableAnswerError,
)
from surefoot.gateway import GatewaySession
from surefoot.policy import Replay
from surefoot.wire import SseDecoder, is_private, origin_of, strict_json

from ._check_answers import THROTTLE_HEADERS, Problem, Read, Unjudged, read_strictly, schemes_of
from ._check_tap import Exchange, TappedGateway
from ._show_fields import plain

__all__ = ["Called", "Look", "Plan", "ToolSeen", "look"]

Hint = Literal["readOnly", "destructive", "idempotent", "openWorld"]

_HINTS: Final[tuple[tuple[Hint, str, str], ...]] = (
    ("readOnly", "read_only_hint", "readOnlyHint"),
    ("destructive", "destructive_hint", "destructiveHint"),
    ("idempotent", "idempotent_hint", "idempotentHint"),
    ("openWorld", "open_world_hint", "openWorldHint"),
)
"""Each hint, and what mcp 2.x and 1.x call it."""

_WORDS: Final = 300
"""Characters of a text of the server's that are shown."""

_FAREWELL: Final = 2.0
"""Seconds for leaving, after a call that took all the time that there was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be looked at, and how. Its repr shows none of it."""

    url: str
    credentials: CredentialProvider | None = None
    credential_header: str = "authorization"
    timeout: float = 30.0
    call: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        """Show nothing: the URL and the arguments are the user's."""
        return "Plan(...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSeen:
    """One tool, as the server lists it."""

    name: str
    hints: Mapping[Hint, bool]
    """What the server says of it; a hint that it does not give is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What became of the one call that was asked for."""

    tool: str | None
    """Which; ``None`` where the server lists no such tool: then it is only the user's word."""
    answered: bool
    """The tool answered, and did not say that it failed."""
    words: str


@dataclass(slots=True, kw_only=True)
class Look:
    """What was found out."""

    origin: str
    encrypted: bool
    """Nobody on the way can read what is sent: https, or the same machine."""
    connected: bool = False
    failed: str | None = None
    """Why it ended before everything was seen."""
    protocol: str | None = None
    era: Literal["stateless", "sessions"] | None = None
    server: str | None = None
    demands: list[str] = field(default_factory=list[str])
    """The schemes of the credential that it asked for; ``unnamed`` where it named none we know."""
    metadata: bool = False
    """It says where its OAuth metadata is."""
    credential: Literal["none", "accepted", "rejected", "unused"] = "none"
    """What became of the credential that was given."""
    throttled: int = 0
    """How often it answered 429."""
    throttle_headers: list[str] = field(default_factory=list[str])
    tools: list[ToolSeen] | None = None
    called: Called | None = None
    strictly: Read | None = None
    """What the strict reading of all answers found."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with its answers."""
        return () if self.strictly is None else self.strictly.problems

    @property
    def unjudged(self) -> tuple[Unjudged, ...]:
        """What was not read of its answers."""
        return () if self.strictly is None else self.strictly.unjudged


async def look(plan: Plan) -> Look:
    """Connect, list the tools, make the call that was asked for, and say what was seen.

    Raises:
        TypeError, ValueError: the URL is none that can be sent to; it is not echoed.
    """
    gateway = TappedGateway(
        plan.url,
        credential_headers=frozenset({plan.credential_header.lower()}),
        credentials=plan.credentials,
        replay=Replay(policy="app-authorized"),
    )
    where = origin_of(plan.url) or ("", "", 0)
    seen = Look(origin=gateway.origin, encrypted=is_private(where[0], where[1]))
    with anyio.move_on_after(plan.timeout) as patience:
        try:
            async with gateway.session() as session:
                seen.connected = True
                seen.server = _named(getattr(session.client, "server_info", None))
                await _look_inside(session, plan, seen, patience)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told and not raised
            seen.failed = _words_of(error)
    if patience.cancelled_caught:
        seen.failed = f"not done after {plan.timeout:g} s"
    if plan.call is not None and seen.called is None:
        seen.called = _ended_before(plan.call, gateway)
    unreached = [one.unreached for one in gateway.sent.kept]
    if seen.failed is not None and not patience.cancelled_caught and unreached and all(unreached):
        seen.failed = f"it could not be reached: {unreached[-1]}"
    _sum_up(seen, gateway, given=plan.credentials is not None)
    seen.strictly = read_strictly(gateway.sent, where)
    return seen


async def _look_inside(
    session: GatewaySession, plan: Plan, seen: Look, patience: anyio.CancelScope
) -> None:
    seen.tools = [
        ToolSeen(name=str(tool.name), hints=_hints_of(tool)) for tool in await session.tools()
    ]
    if plan.call is None:
        return
    if plan.call not in {tool.name for tool in seen.tools}:
        words = "not called: the server lists no such tool"
        seen.called = Called(tool=None, answered=False, words=words)
        return
    # The session ends the call itself, because it knows whether the call has left by then.
    left = max(patience.deadline - anyio.current_time(), 0.001)
    patience.deadline += _FAREWELL
    answered = False
    try:
        answer = await session.call(plan.call, plan.arguments, timeout=left)
    except ToolError as error:
        words = f"it ran, and says that it failed: {plain(_text_in(error.result), most=_WORDS)}"
    except DeadlineExceededError:
        words = f"not called: the {plan.timeout:g} s were over before it was sent"
    except Exception as error:  # noqa: BLE001 - told, as above
        words = _words_of(error)
        if isinstance(error, MayHaveRunError) and error.cause == "deadline":
            words = f"no answer within the {plan.timeout:g} s of this check: {words}"
    else:
        answered = True
        words = f"it ran, and answered: {plain(answer.text, most=_WORDS)}"
    seen.called = Called(tool=plan.call, answered=answered, words=words)


def _ended_before(tool: str, gateway: TappedGateway) -> Called:
    """What is known of a call where the check ended before it was told: the wire alone knows."""
    calls = [one for one in gateway.sent.kept if one.method == "tools/call"]
    if any(one.ended != "unreached" for one in calls):
        words = "it may have run: the check ended before its answer came"
        return Called(tool=tool, answered=False, words=words)
    words = "not called: the check ended before that"
    return Called(tool=None, answered=False, words=words)


def _sum_up(seen: Look, gateway: TappedGateway, *, given: bool) -> None:
    """Say what the wire shows; from below come fixed words alone."""
    sent = gateway.sent.kept
    for exchange in reversed(sent):
        if exchange.version is not None and exchange.status is not None:
            seen.protocol = plain(exchange.version, most=40)
            break
    if seen.connected:
        stateless = any(one.outgoing is not None and one.outgoing.has_result_type for one in sent)
        seen.era = "stateless" if stateless and not _shook_hands(sent) else "sessions"
    if seen.server is None:
        seen.server = _server_in(gateway.read.kept)
    refused = [one for one in sent if one.status in (401, 403)]
    named = [scheme for one in refused for scheme in schemes_of(one)]
    seen.demands = list(dict.fromkeys(named)) or (["unnamed"] if refused else [])
    seen.metadata = any(
        b"resource_metadata" in value
        for one in refused
        for value in one.values(b"www-authenticate")
    )
    signed = [one for one in sent if one.signed and one.status is not None]
    if given:
        taken = any(one.status not in (401, 403) for one in signed)
        seen.credential = "accepted" if taken else "rejected" if signed else "unused"
    seen.throttled = sum(one.status == 429 for one in sent)
    names = {line.decode("latin-1").lower() for one in sent for line, _ in one.lines}
    seen.throttle_headers = [name for name in THROTTLE_HEADERS if name in names]


def _shook_hands(sent: list[Exchange]) -> bool:
    """Whether the client ended up in the era that opens with ``initialize``."""
    return any(one.method == "initialize" and one.status == 200 for one in sent)


def _hints_of(tool: Any) -> Mapping[Hint, bool]:
    listed = getattr(tool, "annotations", None)
    hints: dict[Hint, bool] = {}
    for hint, new, old in _HINTS:
        said = getattr(listed, new, getattr(listed, old, None))
        if isinstance(said, bool):
            hints[hint] = said
    return hints


def _server_in(read: list[Exchange]) -> str | None:
    """The server's name and version, from the answer to ``initialize`` as it was read above."""
    for exchange in read:
        if exchange.method != "initialize" or exchange.status != 200:
            continue
        for text in _messages_in(bytes(exchange.body)):
            try:
                message = cast("Any", strict_json.loads(text))
                return _named(message["result"]["serverInfo"])
            except (UnreadableAnswerError, KeyError, TypeError):
                continue
    return None


def _messages_in(body: bytes) -> list[bytes]:
    """The messages of a body that we wrote ourselves: one JSON text, or a stream of events."""
    if body[:1] == b"{":
        return [body]
    return [block.data for block in SseDecoder().feed(body) if block.data]


def _named(info: Any) -> str | None:
    """A server's own name for itself, as it may be shown."""
    if info is None:
        return None
    fields = cast("dict[str, Any]", info if isinstance(info, dict) else vars(info))
    parts = [fields.get(name) for name in ("name", "version")]
    return plain(" ".join(part for part in parts if isinstance(part, str)), most=80) or None


def _text_in(result: Any) -> str:
    texts = [getattr(part, "text", "") for part in getattr(result, "content", ())]
    return " ".join(text for text in texts if text)


def _words_of(error: Exception) -> str:
    """What happened: our own words, or the server's as they were checked; of others the type."""
    kind = type(error).__name__
    if isinstance(error, CredentialError):  # for which service is nothing that was asked
        return f"no credential: {error.reason} ({kind})"
    if isinstance(error, SurefootError):
        return f"{error} ({kind})"
    if hasattr(getattr(error, "error", None), "code"):
        return f"it answered with an error: {plain(str(error), most=_WORDS)}"
    return f"the SDK gave up: {kind}"
