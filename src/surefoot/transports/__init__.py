"""The law of this room: it is the shell; whatever sends, sleeps, reads a clock or logs is here.

The layers serve httpx and httpx2, asyncio and trio, and hold nothing that belongs to an event loop.
``_stack`` fixes their order.
"""

from __future__ import annotations

from ._answering import AnsweringTransport
from ._calls import CallContext, CallTable, WatchedWriter, calling
from ._clock import Clock, SystemClock, chance
from ._endpoint import Endpoint
from ._family import never_left
from ._learned import Learned
from ._quiet import quiet_loggers
from ._reading import ReadingTransport
from ._retrying import RetryingTransport
from ._stack import StackPlan, build_stack, is_stack_for, retrying
from ._vending import CREDENTIAL_HEADERS, Signer, VendingTransport

__all__ = [
    "CREDENTIAL_HEADERS",
    "AnsweringTransport",
    "CallContext",
    "CallTable",
    "Clock",
    "Endpoint",
    "Learned",
    "ReadingTransport",
    "RetryingTransport",
    "Signer",
    "StackPlan",
    "SystemClock",
    "VendingTransport",
    "WatchedWriter",
    "build_stack",
    "calling",
    "chance",
    "is_stack_for",
    "never_left",
    "quiet_loggers",
    "retrying",
]
