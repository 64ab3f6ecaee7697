"""The law of this file: that evidence is incomplete is said where people look: in the log, once."""

from __future__ import annotations

import logging

__all__ = ["loud"]

_logger = logging.getLogger("surefoot")


def loud(message: str) -> None:
    """Say at ERROR on the ``surefoot`` logger that evidence is incomplete."""
    _logger.error("%s", message)
