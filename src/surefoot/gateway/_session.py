"""The law of this file: our own client says with a type what other clients are told in words.

A call returns the tool's answer or raises what happened: refused, may have run, not run, lost. It
re-initialises after a lost session and never replays anything (D35); its timeout is the caller's
own patience, which no wait outlasts (B6), and after it the caller is told whether the call may have
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from surefoot.errors import DeadlineExceededError, MayHaveRunError, SessionLostError, ToolError
from surefoot.transports import CallContext, calling

from ._answers import ToolAnswer, error_in, raise_for_outcome
from ._sdk import call_settings, connect

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from surefoot.errors import AuthorizationRequiredError
    from surefoot.policy import Replay
    from surefoot.transports import Clock

__all__ = ["GatewaySession"]

_METHOD_NOT_FOUND: Final = -32601


class GatewaySession:
    """An MCP session over a Gateway, with typed errors. Open it with ``gateway.session()``.

    Safe for concurrent calls of one event loop.
    """

    def __init__(
        self,
        open_streams: Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]],
        *,
        replay: Replay,
        clock: Clock,
        report: Callable[[str], None],
        consents: Callable[[], AuthorizationRequiredError | None],
    ) -> None:
        self._open_streams = open_streams
        self._replay = replay
        self._clock = clock
        self._report = report
        self._consents = consents
        self._client: Any = None
        self._tools: list[Any] | None = None
        self._lost = False
        # Made when the session is entered: they belong to the loop that it lives on.
        self._tasks: Any = None
        self._opening: Any = None
        self._closing: Any = None

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            SurefootError: the server could not be connected to; typed as a call's would be.
        """
        self._opening = anyio.Lock()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        try:
            await self._connect()
        except BaseException:
            self._tasks.cancel_scope.cancel()
            await self._tasks.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(self, *exc: object) -> Any:
        """Disconnect."""
        self._closing.set()
        # What the body raised goes on as it is, and not inside a group that is an affair of ours.
        await self._tasks.__aexit__(None, None, None)

    @property
    def client(self) -> Any:
        """The SDK's own client: ``mcp.Client`` on 2.x, ``mcp.ClientSession`` on 1.x."""
        return self._client

    async def tools(self) -> list[Any]:
        """The server's tools, as the SDK's own objects; asked for once and kept."""
        if self._tools is None:
            await self.refresh()
        return list(self._tools or ())

    async def refresh(self) -> None:
        """Ask for the tools again, every page; a declared tool that is not there is reported (D29).

        Raises:
            SurefootError: they could not be had; what was known before stays known.
        """
        client = await self._ready()
        found: list[Any] = []
        cursor: str | None = None
        while True:
            try:
                page = await client.list_tools(cursor=cursor)
            except Exception as error:
                raise_for_outcome(error_in(error), tool=None, consent=self._consents())
                raise
            found.extend(page.tools)
            cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
            if not cursor:
                break
        self._tools = found
        listed = {tool.name for tool in found}
        for name in self._replay.tools:
            if name not in listed:
                self._report(name)

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
            SessionLostError: the server no longer knew this session; it did not run.
        """
        client = await self._ready()
        ends = None if timeout is None else self._clock.monotonic() + timeout
        context = CallContext(ends=ends)
        result: Any = None
        failure: Exception | None = None
        with calling(context), anyio.move_on_after(timeout) as patience:
            try:
                result = await client.call_tool(name, dict(arguments or {}), **call_settings(meta))
            except Exception as error:  # noqa: BLE001 - told apart below
                failure = error
            except BaseException:
                # mcp 1.x tells nobody that its caller is gone; the wait would go on, and then run.
                context.abandon()
                raise
        if patience.cancelled_caught and result is None and failure is None:
            raise _timed_out(context, name, timeout or 0.0)
        if failure is not None and _session_is_lost(context):
            self._lost = True
            raise SessionLostError(tool=name) from None
        return self._read(result, failure, name)

    def _read(self, result: Any, failure: Exception | None, name: str) -> ToolAnswer:
        """An answer, or what happened instead."""
        if failure is not None:
            outcome = error_in(failure)
            raise_for_outcome(outcome, tool=name, consent=self._consents())
            raise failure
        answer = ToolAnswer(result)
        raise_for_outcome(answer.outcome, tool=name, consent=self._consents())
        if answer.is_error:
            raise ToolError(result=result, tool=name)
        return answer

    async def _ready(self) -> Any:
        """The client, connected anew where its session was lost."""
        if self._lost:
            async with self._opening:
                if self._lost:
                    self._closing.set()
                    await self._connect()
        return self._client

    async def _connect(self) -> None:
        """Start a connection in a task of its own, which is also the one that will end it."""
        self._closing = anyio.Event()
        try:
            self._client = await self._tasks.start(self._hold, self._closing)
        except Exception as error:
            raise_for_outcome(error_in(error), tool=None, consent=self._consents())
            raise
        self._lost = False
        self._tools = None

    async def _hold(self, closing: anyio.Event, *, task_status: Any) -> None:
        """Hold one connection open until it is no longer wanted.

        The SDK's client is a task group: it has to be left by the task that entered it, and a
        caller who finds the session lost is not that task.
        """
        opened = False
        try:
            async with AsyncExitStack() as stack:
                client = await connect(stack, self._open_streams())
                opened = True
                task_status.started(client)
                await closing.wait()
        except Exception:
            if not opened:
                raise
            # It broke later: calls under way were told, and the next one connects anew.
        if not closing.is_set():
            self._lost = True


def _timed_out(
    context: CallContext, tool: str, timeout: float
) -> MayHaveRunError | DeadlineExceededError:
    """What a caller who stopped listening is told: whether anything had left by then."""
    record = context.record
    left = record is not None and any(sent.effect != "not_sent" for sent in record.sent)
    if record is None or not left:
        return DeadlineExceededError(max_elapsed=timeout)
    error = MayHaveRunError(
        cause="deadline", attempts=len(record.sent), tool=tool, call_id=record.call_id
    )
    error.__cause__ = DeadlineExceededError(max_elapsed=timeout)
    return error


def _session_is_lost(context: CallContext) -> bool:
    """Whether the call was answered 404 in an era that has sessions (D35).

    A 404 that says "unknown method" is about the method, and not about the session.
    """
    record = context.record
    if record is None or not record.sent or record.sent[-1].status != 404:
        return False
    outgoing = record.outgoing
    in_session = outgoing is not None and outgoing.protocol_version is None
    return in_session and record.code != _METHOD_NOT_FOUND
