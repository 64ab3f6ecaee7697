"""The law of this file: the run that a request belongs to is the one open where it was begun (R22).

A run travels in a context variable, so it reaches whatever tasks and threads the caller's context
reaches, nests, and never mixes with a run that is open beside it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from ._ledger import Ledger

__all__ = ["Run", "bind", "current_ledger", "current_run"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Everything that one agent turn does, and where its evidence goes."""

    ledger: Ledger
    name: str | None = None
    parent: Run | None = None
    """The run that was open around it."""

    @property
    def id(self) -> str:
        """The run's id, as it stands in every event of it."""
        return self.ledger.run


_current: ContextVar[Run | None] = ContextVar("surefoot.run", default=None)


def current_run() -> Run | None:
    """The innermost run that is still open in this context, or ``None``."""
    run = _current.get()
    while run is not None and run.ledger.closed:
        run = run.parent
    return run


def current_ledger() -> Ledger | None:
    """The ledger of the innermost run that is still open in this context, or ``None``."""
    run = current_run()
    return None if run is None else run.ledger


@contextmanager
def bind(run: Run | None) -> Generator[Run | None]:
    """Make ``run`` the current one inside the ``with``; ``None`` stands for no run at all."""
    token = _current.set(run)
    try:
        yield run
    finally:
        # A generator that was closed from elsewhere leaves in another context than it entered;
        # that one never had this run.
        with suppress(ValueError):
            _current.reset(token)
