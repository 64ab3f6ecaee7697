"""The law of this room: facts in, decisions out. No clock, no chance, no socket, no log.

Here it is decided whether a request is sent again, when, and on whose word; see ``Series``.
"""

from __future__ import annotations

from ._fence import Blocked, Fence, FenceFull, FenceKey, Passed, fence_key
from ._limits import JITTERS, Jitter, Limits, Retry, RetryNotice
from ._replay import (
    Call,
    Cause,
    CheckEffect,
    Permission,
    RepeatOn,
    Replay,
    ReplayPolicy,
    ToolRule,
    idempotency_value,
    permit,
)
from ._retry_after import parse_http_date, parse_retry_after
from ._rules import AnswerView, RefusalKind, RefusalRule, Rule, ThrottleRule, Verdict
from ._series import (
    Answered,
    Decision,
    Deliver,
    Fact,
    Fail,
    NotSent,
    Series,
    Unanswered,
    Wait,
    Why,
)
from ._waits import MAX_SPREAD, backoff, backoff_ceiling, stated_wait

__all__ = [
    "JITTERS",
    "MAX_SPREAD",
    "AnswerView",
    "Answered",
    "Blocked",
    "Call",
    "Cause",
    "CheckEffect",
    "Decision",
    "Deliver",
    "Fact",
    "Fail",
    "Fence",
    "FenceFull",
    "FenceKey",
    "Jitter",
    "Limits",
    "NotSent",
    "Passed",
    "Permission",
    "RefusalKind",
    "RefusalRule",
    "RepeatOn",
    "Replay",
    "ReplayPolicy",
    "Retry",
    "RetryNotice",
    "Rule",
    "Series",
    "ThrottleRule",
    "ToolRule",
    "Unanswered",
    "Verdict",
    "Wait",
    "Why",
    "backoff",
    "backoff_ceiling",
    "fence_key",
    "idempotency_value",
    "parse_http_date",
    "parse_retry_after",
    "permit",
    "stated_wait",
]
