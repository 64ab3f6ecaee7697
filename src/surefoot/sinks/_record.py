"""The law of this file: a run is opened by a plain ``with``, and is on its sink when that ends.

Runs nest and run beside each other; each call belongs to the innermost run that is open where the
call is made (R22). Ids are random and ours. The end waits at most 2 s for a sink.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Final, get_args

from surefoot.evidence import (
    Content,
    Ledger,
    Run,
    RunStarted,
    bind,
    checked_label,
    current_run,
)

from ._loud import loud
from ._targets import Target, as_sink, let_go

__all__ = ["fresh_id", "ledger_for", "record"]

_CONTENTS: Final = get_args(Content)


def fresh_id() -> str:
    """Return an id that no other run or call has: 32 hexadecimal digits, random."""
    return os.urandom(16).hex()


def _utc_now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the shell's own clock, and a default only


@cache
def _library() -> str | None:
    """The version of surefoot; asking for it reads files, so it is asked once."""
    try:
        return version("surefoot")
    except PackageNotFoundError:
        return None


def ledger_for(
    target: Target,
    *,
    name: str | None = None,
    content: Content = "digests",
    now: Callable[[], datetime] = _utc_now,
    parent: str | None = None,
    option: str = "target",
) -> Ledger:
    """Return a new ledger, of a run of its own, whose events go to ``target``.

    The run begins with the first event that is filed and ends with ``close()``, which flushes, and
    closes what was opened here.

    Args:
        target: A path, to which JSON Lines are appended; a sink; or a function of one event.
        name: What people call the run: 1 to 128 characters, none a control character.
        content: ``"digests"``, or ``"full"`` to keep arguments and answers in clear as well.
        now: The time of day, aware, in UTC.
        parent: The id of the run around it.
        option: What the target is called where it was passed; an error names it so.

    Raises:
        OSError: a path cannot be opened for appending.
        TypeError: an option has the wrong type.
        ValueError: an option is out of range.
    """
    _check(name, content)
    sink = as_sink(target, option=option)
    return Ledger(
        sink,
        run=fresh_id(),
        now=now,
        start=RunStarted(name=name, parent=parent, library=_library(), content=content),
        alarm=loud,
        content=content,
        close=lambda: let_go(sink, target),
    )


class record:  # noqa: N801 - it reads as the verb that it is
    """Open a run: calls made inside the ``with`` file their evidence into it.

    ```python
    with record("run.jsonl"):
        result = await agent.run("...")
    ```

    A run reaches every task and thread that the caller's context reaches. Each is entered once; the
    ``with`` gives the ``Run``.

    Args:
        target: A path, to which JSON Lines are appended; a sink; or a function of one event.
        name: What people call the run: 1 to 128 characters, none a control character.
        content: ``"digests"``, or ``"full"`` to keep arguments and answers in clear as well,
            scrubbed and bounded.
        now: The time of day; for tests.

    Raises:
        OSError: a path cannot be opened for appending.
        TypeError: an option has the wrong type.
        ValueError: an option is out of range.
    """

    def __init__(
        self,
        target: Target,
        *,
        name: str | None = None,
        content: Content = "digests",
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        _check(name, content)
        self._target = target
        self._name = name
        self._content: Content = content
        self._now = now
        self._open: tuple[Run, AbstractContextManager[Run | None]] | None = None

    def __enter__(self) -> Run:
        """Begin the run and make it the current one."""
        if self._open is not None:
            msg = "record: a run is opened once; call record() again for another"
            raise RuntimeError(msg)
        parent = current_run()
        ledger = ledger_for(
            self._target,
            name=self._name,
            content=self._content,
            now=self._now,
            parent=None if parent is None else parent.id,
        )
        run = Run(ledger=ledger, name=self._name, parent=parent)
        self._open = run, bind(run)
        self._open[1].__enter__()
        ledger.begin()
        return run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run; wait at most 2 s until its sink has it."""
        if self._open is not None:
            run, bound = self._open
            bound.__exit__(None, None, None)
            run.ledger.close(None if kind is None else kind.__name__)


def _check(name: object, content: object) -> None:
    if name is not None:
        checked_label(name)
    if content not in _CONTENTS:
        msg = f"content: must be one of {', '.join(_CONTENTS)}"
        raise ValueError(msg)
