"""The law of this file: an event becomes one log record that says what people want to know first.

The whole event hangs on the record as ``record.surefoot`` for handlers that write structured logs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

__all__ = ["LoggingSink"]


class LoggingSink:
    """Logs events.

    Args:
        logger: Where to; by default the logger ``surefoot.evidence``.
        level: At which level; what failed, or may have run, is logged at WARNING if that is higher.
    """

    def __init__(self, logger: logging.Logger | None = None, *, level: int = logging.INFO) -> None:
        self._logger = logging.getLogger("surefoot.evidence") if logger is None else logger
        self._level = level

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Log one event."""
        level = max(self._level, logging.WARNING) if _is_bad(event) else self._level
        if self._logger.isEnabledFor(level):
            words = {"type": event.get("type"), **_facts(event)}
            text = " ".join(f"{key}={_word(value)}" for key, value in words.items())
            self._logger.log(level, "%s", text, extra={"surefoot": dict(event)})


def _is_bad(event: Mapping[str, Any]) -> bool:
    return (
        event.get("may_have_run") is True
        or event.get("type") == "sink.failed"
        or bool(event.get("dropped"))
    )


def _facts(event: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that are plain values and tell something, and how many attempts there were."""
    facts = {
        key: value
        for key, value in event.items()
        if key not in {"v", "type", "time"} and isinstance(value, (str, int, float))
    }
    attempts = event.get("attempts")
    if isinstance(attempts, list):
        facts["attempts"] = len(attempts)  # pyright: ignore[reportUnknownArgumentType]
    return facts


def _word(value: object) -> str:
    """A value on one line: what has blanks, quotes or control characters is quoted."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    plain = text.isprintable() and not any(mark in text for mark in ' "=')
    return text if plain and text else ascii(text)
