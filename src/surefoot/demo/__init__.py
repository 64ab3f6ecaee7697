"""The law of this room: it shows the same calls without surefoot and with it, and hides nothing.

Twelve tool calls of a small agent, against a difficult gateway that is embedded here. The table is
`_calls.py`, the agent `_agent.py`; every number is counted by the gateway.
"""

from __future__ import annotations

from ._calls import Call, twelve_calls
from ._counts import Counts, Sends
from ._demo import Performance, perform
from ._run import CLIENTS, Client, Run
from ._terminal import NARROWEST, WIDEST, Terminal

__all__ = [
    "CLIENTS",
    "NARROWEST",
    "WIDEST",
    "Call",
    "Client",
    "Counts",
    "Performance",
    "Run",
    "Sends",
    "Terminal",
    "perform",
    "twelve_calls",
]
