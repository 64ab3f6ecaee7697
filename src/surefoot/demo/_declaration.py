"""The law of this file: what the demo declares about its server is what it prints to be copied.

A test reads the printed form and compares.
"""

from __future__ import annotations

from typing import Final

from surefoot.policy import Replay, Retry, ToolRule

__all__ = ["PRINTED", "REPLAY", "RETRY"]

RETRY: Final = Retry(max_attempts=5)
"""How often, in all, one call may be sent; it waits for 10 s at the most, as by default."""

REPLAY: Final = Replay(
    tools={
        "find_order": ToolRule(repeat_on={"throttle", "network"}),
        "refund": ToolRule(makes_changes=True),
        "charge": ToolRule(
            makes_changes=True,
            idempotency_key="arguments.request_id",
            repeat_on={"throttle", "network"},
        ),
    }
)
"""What may be repeated. The other tools are not declared: only a 429 of theirs is repeated."""

PRINTED: Final = """\
tools = {
    "find_order": ToolRule(repeat_on={"throttle", "network"}),
    "refund": ToolRule(makes_changes=True),
    "charge": ToolRule(
        makes_changes=True,
        idempotency_key="arguments.request_id",
        repeat_on={"throttle", "network"},
    ),
}
billing = Gateway(
    url,
    name="billing",
    credentials=vault,
    retry=Retry(max_attempts=5),
    replay=Replay(tools=tools),
    caller_timeout=4,
)"""
"""The same as a program says it."""
