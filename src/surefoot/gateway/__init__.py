"""The law of this room: one noun, ``Gateway``, and its doors; it assembles and decides nothing."""

from __future__ import annotations

from ._answers import ToolAnswer
from ._gateway import Gateway, with_rules
from ._session import GatewaySession

__all__ = ["Gateway", "GatewaySession", "ToolAnswer", "with_rules"]
