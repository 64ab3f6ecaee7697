"""The law of this file: a script is checked when declared, and each step answers one attempt.

Safe to declare from any thread while the gateway serves.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surefoot.testing._answers import Answer
from surefoot.testing._breaks import Reset
from surefoot.testing._methods import METHODS, NOTIFICATIONS
from surefoot.testing._steps import Step

if TYPE_CHECKING:
    from collections.abc import Collection

    from surefoot.testing._request import Kind, Received

__all__ = ["Scripts"]

_HTTP: dict[str, Kind] = {"GET": "get", "DELETE": "delete", "token": "token", "connect": "connect"}
"""Keys that are neither a tool nor a method, and the kind of request each stands for."""


@dataclass(slots=True)
class _Script:
    steps: list[Step]
    repeat: bool

    def take(self) -> Step | None:
        if len(self.steps) == 1 and self.repeat:
            return self.steps[0]
        return self.steps.pop(0) if self.steps else None


class Scripts:
    """What is declared for each key."""

    def __init__(self, tools: Collection[str], *, token_endpoint: bool) -> None:
        self._tools = tools
        self._token_endpoint = token_endpoint
        self._lock = threading.Lock()
        self._scripts: dict[str, _Script] = {}

    def declare(self, key: str, steps: tuple[Step, ...], *, repeat: bool) -> None:
        """Put a script in the place of what was left of an earlier one.

        Raises:
            TypeError: something in it is not a step.
            ValueError: nothing has that key, there are no steps, or a step does not fit.
        """
        kind = self._kind(key)
        if not steps:
            raise ValueError(
                f"the script for {key!r} has no steps; clear_scripts() takes scripts away"
            )
        for step in steps:
            self._check(key, kind, step)
        with self._lock:
            self._scripts[key] = _Script(list(steps), repeat)

    def take(self, received: Received) -> Step | None:
        """The step for a request, used up by this; `None` where nothing is declared for it."""
        tool = received.tool
        keys = {"get": ("GET",), "delete": ("DELETE",), "token": ("token",)}.get(received.kind)
        if keys is None:
            keys = tuple(key for key in (tool, received.method) if key is not None)
        with self._lock:
            for key in keys:
                script = self._scripts.get(key)
                if script is not None and (step := script.take()) is not None:
                    return step
        return None

    def take_for_connection(self) -> Step | None:
        """The step for a connection that was just accepted."""
        with self._lock:
            script = self._scripts.get("connect")
            return None if script is None else script.take()

    def remaining(self, key: str) -> int:
        """How many steps of a key's script have not been used; a repeated last step counts as one.

        Raises:
            ValueError: nothing has that key.
        """
        self._kind(key)
        with self._lock:
            script = self._scripts.get(key)
            return 0 if script is None else len(script.steps)

    def clear(self) -> None:
        """Take every script away."""
        with self._lock:
            self._scripts.clear()

    def _kind(self, key: object) -> Kind:
        if not isinstance(key, str):
            raise TypeError(
                f"a script's key is a tool or a method as a str, not {type(key).__name__}"
            )
        if key == "token" and key not in self._tools and not self._token_endpoint:
            raise ValueError(
                'a script for "token" needs tokens=ExpiringTokens(..., endpoint="/token")'
            )
        if key in self._tools or key == "tools/call":
            return "call"
        if key in METHODS:
            return "request"
        if key in NOTIFICATIONS:
            return "notification"
        if key in _HTTP:
            return _HTTP[key]
        known = ", ".join(sorted({*self._tools, *METHODS, *NOTIFICATIONS, *_HTTP}))
        raise ValueError(
            f"no tool, method or HTTP method is called {key!r}; a script takes one of: {known}"
        )

    def _check(self, key: str, kind: Kind, step: object) -> None:
        if not isinstance(step, Step):
            hint = ", with brackets" if isinstance(step, type) else ""
            raise TypeError(
                f"a script takes steps such as Throttle(){hint}, not {type(step).__name__}"
            )
        on_accept = isinstance(step, Reset) and step.when == "on-accept"
        fits = kind in step.fits and on_accept == (kind == "connect" and isinstance(step, Reset))
        if kind == "connect" and not isinstance(step, Answer | Reset):
            fits = False
        if not fits:
            hint = '; a reset on accept is declared for "connect"' if on_accept else ""
            raise ValueError(f"{type(step).__name__} cannot answer {key!r}{hint}")
        inner: object = getattr(step, "then", None)
        if isinstance(inner, Step):
            self._check(key, kind, inner)
