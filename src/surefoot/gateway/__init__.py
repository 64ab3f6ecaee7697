"""The law of this room: one noun, ``Gateway``, and its doors; it assembles and decides nothing."""

from __future__ import annotations

from ._answers import ToolAnswer
from ._gateway import Gateway, with_rules
from ._options import Answers, Mode
from ._session import GatewaySession

__all__ = ["Answers", "Gateway", "GatewaySession", "Mode", "ToolAnswer", "with_rules"]
