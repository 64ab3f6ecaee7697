"""The law of this file: our own client says with a type what other clients are told in words.

A call returns the tool's answer or raises what happened: refused, may have run, not run, lost. It
re-initialises after a lost session and never replays anything (D35); its timeout is the caller's
own patience, which no wait outlasts (B6), and after it the caller is told whether the call may have
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from surefoot.errors import (
    DeadlineExceededError,
    MayHaveRunError,
    RateLimitedError,
    SessionLostError,
    ToolError,
)
from surefoot.transports import CallContext, calling

from ._answers import ToolAnswer, error_in, is_the_servers, raise_for_outcome, the_one_in
from ._connection import Connection
from ._options import checked_members, checked_tool, seconds
from ._sdk import call_settings

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from surefoot.errors import AuthorizationRequiredError, SurefootError
    from surefoot.transports import Clock

__all__ = ["GatewaySession"]

_METHOD_NOT_FOUND: Final = -32601


class GatewaySession:
    """An MCP session over a Gateway, with typed errors. Open it with ``gateway.session()``.

    Safe for concurrent calls of one event loop. To be entered once.
    """

    def __init__(
        self,
        open_streams: Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]],
        *,
        clock: Clock,
        consents: Callable[[], AuthorizationRequiredError | None],
    ) -> None:
        self._open_streams = open_streams
        self._clock = clock
        self._consents = consents
        self._tools: list[Any] | None = None
        # Made when the session is entered: they belong to the loop that it lives on.
        self._tasks: Any = None
        self._opening: Any = None
        self._listing: Any = None
        self._connection: Connection | None = None
        self._lost: list[Connection] = []

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            SurefootError: the server could not be connected to; typed as a call's would be.
        """
        if self._tasks is not None:
            raise RuntimeError("a session is entered once; ask the Gateway for another")
        self._opening = anyio.Lock()
        self._listing = anyio.Lock()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            self._connection = await self._connected()
        except BaseException:
            self._tasks.cancel_scope.cancel()
            await self._tasks.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Disconnect: the server's session is ended, also where the app is cancelled."""
        connection, self._connection = self._connection, None
        for one in (*self._lost, connection):
            if one is not None:
                await one.close()
        # What the body raised goes on as it is, and not inside a group that is an affair of ours.
        await self._tasks.__aexit__(None, None, None)

    @property
    def client(self) -> Any:
        """The SDK's own client: ``mcp.Client`` on 2.x, ``mcp.ClientSession`` on 1.x.

        Another one after a lost session. Its errors are the SDK's own.
        """
        return None if self._connection is None else self._connection.client

    async def tools(self) -> list[Any]:
        """The server's tools, as the SDK's own objects; asked for once and kept.

        Raises:
            SurefootError: they could not be had.
        """
        if self._tools is None:
            await self.refresh()
        return list(self._tools or ())

    async def refresh(self) -> None:
        """Ask for the tools again, every page; a declared tool that is not there is reported (D29).

        Raises:
            SurefootError: they could not be had; what was known before stays known.
        """
        connection = await self._ready()
        found: list[Any] = []
        cursor: str | None = None
        context = CallContext()
        with anyio.CancelScope() as scope, connection.in_use(scope):
            while True:
                try:
                    with calling(context):
                        page = await connection.client.list_tools(cursor=cursor)
                except Exception as error:  # noqa: BLE001 - told apart there
                    raise self._failed(error, context, connection, None) from None
                found.extend(page.tools)
                cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
                if not cursor:
                    break
        if scope.cancelled_caught:
            raise SessionLostError
        self._tools = found

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the caller's patience is part of the call
        meta: Mapping[str, Any] | None = None,
    ) -> ToolAnswer:
        """Call a tool.

        Args:
            name: The tool.
            arguments: Its arguments.
            timeout: Seconds after which the caller stops listening; nothing is sent after them.
            meta: Members of the request's ``_meta``, such as an idempotency key.

        Returns:
            The answer's text, its structured content, and the SDK's own result.

        Raises:
            ToolError: the tool answered that it failed.
            RateLimitedError: the server refused until the budget was spent.
            MayHaveRunError: there is no answer, and it may have run.
            NotSentError: it did not run.
            CredentialError: no valid credential could be had; it did not run.
            AuthorizationRequiredError: a person must consent first; it did not run.
            DeadlineExceededError: the timeout passed before anything was sent.
            SessionLostError: the server no longer knew this session, or the session was left before
                anything was sent; it did not run.
            TypeError: ``name`` is no str, ``arguments`` or ``meta`` are not JSON, or ``timeout`` is
                no number.
            ValueError: ``name`` is empty, or ``timeout`` is not above 0.
            mcp.MCPError: (``McpError`` on 1.x) the server answered with an error of its own.
        """
        name = checked_tool(name)
        given = checked_members("arguments", arguments)
        beside = call_settings(None if meta is None else checked_members("meta", meta))
        patient = seconds("timeout", timeout)
        context = CallContext(ends=None if patient is None else self._clock.monotonic() + patient)
        result: Any = None
        connection: Connection | None = None
        with anyio.move_on_after(patient) as patience:
            connection = await self._ready()
            if self._tools is None:
                connection = await self._listed(connection)
            try:
                with connection.in_use(patience), calling(context):
                    result = await connection.client.call_tool(name, given, **beside)
            except Exception as error:  # noqa: BLE001 - told apart there
                raise self._failed(error, context, connection, name) from None
            except BaseException:
                # mcp 1.x tells nobody that its caller is gone; the wait would go on, and then run.
                context.abandon()
                raise
        if result is None and patience.cancelled_caught:
            if connection is not None and connection.closed:
                raise _cut_off(context, name)
            raise _timed_out(context, name, patient or 0.0)
        answer = ToolAnswer(result)
        self._raise_told(answer.outcome, context, name)
        if answer.is_error:
            raise ToolError(result=result, tool=name)
        return answer

    async def _listed(self, connection: Connection) -> Connection:
        """Ask for the tools before the first call, and not after it as the SDK would.

        A list that fails then would cost the answer of a call that ran; here it costs nothing.

        Raises:
            SessionLostError: the server no longer knew this session; the call was not sent.
        """
        async with self._listing:
            if self._tools is None:
                try:
                    await self.refresh()
                except Exception:
                    if connection.lost:
                        raise
        return await self._ready()

    def _failed(
        self, error: Exception, context: CallContext, connection: Connection, tool: str | None
    ) -> Exception:
        """What the SDK's error stands for; the error itself where it is the server's own answer."""
        if _session_is_lost(context):
            connection.lose()
            return SessionLostError(tool=tool)
        self._raise_told(error_in(error), context, tool)
        record = context.record
        answered = record is not None and record.code is not None
        if is_the_servers(error) and not connection.broken and (answered or not connection.closing):
            return error
        # The SDK's client is at its end, whatever became of this request.
        connection.lose()
        return _cut_off(context, tool)

    def _raise_told(
        self, facts: Mapping[str, Any] | None, context: CallContext, tool: str | None
    ) -> None:
        """Raise what became of a request that was given up on; return where none was.

        Why no credential could be had is the provider's own phrase, and no secret. A call that was
        refused before that is told as refused, which proves nothing (R3), and that is its cause.
        """
        record = context.record
        found = None if record is None or record.may_have_run else record.credential_error
        why = None if found is None else type(found)(found.reason, service=found.service)
        if why is not None and record is not None and all(one.kind is None for one in record.sent):
            raise why from None
        try:
            raise_for_outcome(facts, tool=tool, consent=self._consents())
        except RateLimitedError as refused:
            raise refused from why

    async def _ready(self) -> Connection:
        """The connection, or a new one where it was lost: one for all who wait for it (D35)."""
        if self._connection is None:
            raise RuntimeError("the session is not open: use it inside its own async with")
        if self._connection.lost:
            async with self._opening:
                old: Any = self._connection
                if old.lost:
                    self._connection = await self._connected()
                    self._tools = None
                    old.retire()
                    self._lost = [one for one in (*self._lost, old) if not one.closed]
        return self._connection

    async def _connected(self) -> Connection:
        """Start a connection in a task of its own, which is also the one that will end it."""
        connection = Connection(self._open_streams)
        context = CallContext()
        try:
            with calling(context):
                await self._tasks.start(connection.hold)
        except Exception as error:  # noqa: BLE001 - it is raised, or what it stands for
            self._raise_told(error_in(error), context, None)
            raise the_one_in(error) from None
        return connection


def _left(context: CallContext) -> bool:
    """Whether anything of the call may have reached the server and was not refused there."""
    record = context.record
    if record is None:
        return False
    return record.unanswered or any(
        sent.outcome not in ("refused", "not_sent") and sent.effect != "not_sent"
        for sent in record.sent
    )


def _cut_off(context: CallContext, tool: str | None) -> SurefootError:
    """What a caller is told whose connection ended before the answer came."""
    known = None if tool is None else _so_far(context, tool, "no-answer")
    return known or SessionLostError(tool=tool)


def _timed_out(context: CallContext, tool: str, timeout: float) -> SurefootError:
    """What a caller who stopped listening is told: whether anything had left by then."""
    late = DeadlineExceededError(max_elapsed=timeout)
    known = _so_far(context, tool, "deadline")
    if known is None:
        return late
    known.__cause__ = late
    return known


def _so_far(context: CallContext, tool: str, cause: str) -> SurefootError | None:
    """What is known of a call that nobody waits for any more; ``None`` where nothing had left."""
    record = context.record
    if record is None or all(sent.effect == "not_sent" for sent in record.sent):
        return None
    if _left(context):
        return MayHaveRunError(
            cause=cause, attempts=len(record.sent), tool=tool, call_id=record.call_id
        )
    last = record.sent[-1]
    return RateLimitedError(
        attempts=len(record.sent), waited=record.waited, retry_after=last.retry_after_seconds
    )


def _session_is_lost(context: CallContext) -> bool:
    """Whether the request was answered 404 in an era that has sessions (D35).

    A 404 that says "unknown method" is about the method, and not about the session.
    """
    record = context.record
    if record is None or not record.sent or record.sent[-1].status != 404:
        return False
    outgoing = record.outgoing
    in_session = outgoing is not None and outgoing.protocol_version is None
    return in_session and record.code != _METHOD_NOT_FOUND
