"""The law of this file: a helper program is started from a list, and is bounded in time and output.

No shell sees the list, so nothing in it is interpreted. What it writes to its standard error goes
nowhere, because helpers print secrets when they fail. What it prints is read from a pipe of ours:
asyncio's own hands it from callback to callback, whose arguments its debug mode prints. When time
or output is spent, or the caller is cancelled, the program and what it started are killed, and the
program is waited for.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE
from typing import Any, ClassVar, Final, cast

import anyio
from anyio.abc import Process

from surefoot.credentials._blind import sealed
from surefoot.credentials._failures import TransientCredentialError
from surefoot.credentials._flight import asyncio_loop
from surefoot.credentials._kinds import Bearer
from surefoot.credentials._options import count, seconds
from surefoot.credentials._port import CredentialRequest, Issued
from surefoot.credentials._reading import CredentialOf, checked_kind, read_credential
from surefoot.errors import CredentialError

__all__ = ["CommandCredentials"]

_TRY_AGAIN: Final = getattr(os, "EX_TEMPFAIL", 75)
"""The exit code by which a program says that trying again may help (sysexits, EX_TEMPFAIL)."""

_PART: Final = 65536
_POSIX: Final = os.name == "posix"


class CommandCredentials:
    """Runs a helper program that prints a credential, once for each vend.

    One line break at the end of what it prints is dropped. Put ``SharedCredentials`` around it,
    with a ``lifetime``, to run it once for many attempts.

    Args:
        argv: The program and its arguments: a list, never one string.
        kind: What the printed text is.
        timeout: Seconds that it may take.
        max_bytes: How much it may print.
        env: Its environment; this process's own by default.
        cwd: Where it runs; this process's own place by default.

    Raises:
        TypeError: an option has the wrong type. ``argv`` is not shown.
        ValueError: an option is out of its range.
    """

    __slots__ = ("_argv", "_cwd", "_env", "_kind", "_max_bytes", "_timeout")

    refreshable: ClassVar[bool] = True
    """Running it again may print a fresh one."""

    steps_up: ClassVar[bool] = False
    """The program is not told which scopes are asked for."""

    def __init__(
        self,
        argv: Sequence[str | os.PathLike[str]],
        /,
        *,
        kind: CredentialOf = Bearer,
        timeout: float = 10.0,
        max_bytes: int = 64 * 1024,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        broken = _broken_argv(argv)
        if broken is None:
            self._argv = sealed([os.fspath(part) for part in argv])
        del argv
        if broken is not None:
            raise broken
        self._env = sealed(None if env is None else dict(env))
        del env
        self._cwd = cwd
        self._kind = checked_kind(kind)
        self._timeout = seconds("timeout", timeout)
        self._max_bytes = count("max_bytes", max_bytes)

    def __repr__(self) -> str:
        return "CommandCredentials(...)"

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """Run the program and return what it printed.

        Raises:
            TransientCredentialError: it took too long, or exited with 75 (EX_TEMPFAIL).
            CredentialError: it could not be started, failed, or printed too much.
            InvalidCredentialError: what it printed may not stand in a header (B8).
        """
        read = await self._run(request.service)
        if isinstance(read, CredentialError):
            raise read
        return read

    async def _run(self, service: str) -> Issued | CredentialError:
        """Everything that happens while the text is at hand; returns an error, raises none."""
        try:
            pipe, its_end = os.pipe() if _POSIX else (-1, PIPE)
        except OSError as error:
            return _not_started(error, service)
        try:
            return await self._run_into(pipe, its_end, service)
        finally:
            if _POSIX:
                os.close(pipe)

    async def _run_into(self, pipe: int, its_end: int, service: str) -> Issued | CredentialError:
        try:
            process = await _started(lambda: self._start(its_end))
        except (OSError, ValueError) as error:
            return _not_started(error, service)
        finally:
            if _POSIX:
                os.close(its_end)
        printed: bytes | None = None
        done = False
        try:
            with anyio.move_on_after(self._timeout) as bound:
                printed = await _printed(process, pipe, self._max_bytes)
                if printed is not None:
                    await process.wait()
                    done = True
        finally:
            await _ended(process, kill=not done)
        if bound.cancelled_caught:
            return TransientCredentialError("the helper program took too long", service=service)
        if printed is None:
            return CredentialError("the helper program printed too much", service=service)
        if process.returncode == _TRY_AGAIN:
            reason = "the helper program said to try again"
            return TransientCredentialError(reason, service=service)
        if process.returncode != 0:
            reason = f"the helper program failed with exit code {process.returncode}"
            return CredentialError(reason, service=service)
        return read_credential(printed, self._kind, service=service)

    async def _start(self, its_end: int) -> Process:
        return await anyio.open_process(
            self._argv(),
            stdin=DEVNULL,
            stdout=its_end,
            stderr=DEVNULL,
            env=self._env(),
            cwd=self._cwd,
            start_new_session=_POSIX,
        )


async def _started(start: Callable[[], Coroutine[Any, Any, Process]]) -> Process:
    """Start the program. Who is cancelled meanwhile leaves when it has been ended again.

    asyncio would kill the program alone, and what it has started by then would live on.
    """
    if asyncio_loop() is None:
        with anyio.CancelScope(shield=True):
            return await start()
    task, cut = asyncio.ensure_future(start()), None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as cancelled:  # a plain one goes through every shield
                cut = cancelled
    if cut is None:
        return task.result()
    try:
        if not task.cancelled() and task.exception() is None:
            await _ended(task.result(), kill=True)
        raise cut
    finally:
        del cut


def _not_started(error: Exception, service: str) -> CredentialError:
    reason = f"the helper program could not be started: {type(error).__name__}"
    return CredentialError(reason, service=service)


async def _printed(process: Process, pipe: int, limit: int) -> bytes | None:
    """Everything that it prints, or ``None`` when it is more than ``limit`` bytes."""
    parts: list[bytes] = []
    size = 0
    while part := await _part(process, pipe):
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


async def _part(process: Process, pipe: int) -> bytes:
    """The next part; an empty one when nobody holds the pipe's other end any more."""
    if process.stdout is None:
        await anyio.wait_readable(pipe)
        return os.read(pipe, _PART)
    try:
        return await process.stdout.receive(_PART)
    except anyio.EndOfStream:
        return b""


async def _ended(process: Process, *, kill: bool) -> None:
    """Wait for the program and close its pipe, even while we are being cancelled.

    Its whole group is killed, because a child that holds the pipe outlives the program itself.
    """
    with anyio.CancelScope(shield=True):
        if kill:
            with suppress(ProcessLookupError, PermissionError):
                if _POSIX:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
        await process.aclose()


def _broken_argv(argv: object) -> Exception | None:
    """Check the list without echoing a part of it."""
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence):
        return TypeError("argv: must be a list of program and arguments; no shell splits a string")
    parts = cast("Sequence[object]", argv)
    if not parts:
        return ValueError("argv: must not be empty")
    if all(isinstance(part, (str, os.PathLike)) for part in parts):
        return None
    return TypeError("argv: must hold nothing but str and paths")
