"""The law of this file: what the tools did is written down where they did it, on the server.

An agent was answered when the text that it holds is in these books; money was moved as often as it
stands here. No number of the summary rests on what a client believes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.testing import Tool

__all__ = ["Books", "Receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One time that a tool's body ran."""

    tool: str
    about: str
    text: str
    """What it gave back; no two are alike."""

    moved_money: bool = False


class Books:
    """The shop behind the gateway: five tools, and the books that they write. Safe from any thread.

    `charge` tells repeats by their `request_id` and charges once; `refund` does not, as many a tool
    in the wild: twice is twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._receipts: list[Receipt] = []
        self._charged: set[str] = set()

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Everything that ran so far, in order."""
        with self._lock:
            return tuple(self._receipts)

    def payments(self, tool: str, about: str | None = None) -> int:
        """How often a tool moved money, for one order where that is named."""
        return sum(
            one.moved_money
            for one in self.receipts
            if one.tool == tool and about in {None, one.about}
        )

    def tools(self) -> tuple[Tool, ...]:
        """The tools, for a gateway to offer."""
        return (
            Tool("find_order", answer=self._find_order, description="Looks an order up."),
            Tool("read_invoice", answer=self._read_invoice, description="Reads an invoice."),
            Tool("build_report", answer=self._build_report, description="Adds a month up."),
            Tool(
                "refund_status",
                answer=self._refund_status,
                description="Says how often an order was refunded.",
            ),
            Tool(
                "charge",
                answer=self._charge,
                makes_changes=True,
                description="Takes money; tells repeats by their request_id.",
            ),
            Tool(
                "refund",
                answer=self._refund,
                makes_changes=True,
                description="Gives money back; twice is twice.",
            ),
        )

    def _find_order(self, arguments: Mapping[str, object]) -> str:
        return self._write("find_order", _word(arguments, "order"), "is on its way")

    def _read_invoice(self, arguments: Mapping[str, object]) -> str:
        return self._write("read_invoice", _word(arguments, "invoice"), "is paid")

    def _build_report(self, arguments: Mapping[str, object]) -> str:
        return self._write("build_report", _word(arguments, "month"), "adds up")

    def _refund_status(self, arguments: Mapping[str, object]) -> str:
        order = _word(arguments, "order")
        with self._lock:
            often = sum(one.moved_money for one in self._receipts if one.about == order)
        return self._write("refund_status", order, f"was refunded {_times(often)}")

    def _charge(self, arguments: Mapping[str, object]) -> str:
        request_id = _word(arguments, "request_id")
        with self._lock:
            fresh = request_id not in self._charged
            self._charged.add(request_id)
        return self._write("charge", _word(arguments, "order"), "is charged", moved_money=fresh)

    def _refund(self, arguments: Mapping[str, object]) -> str:
        return self._write("refund", _word(arguments, "order"), "is refunded", moved_money=True)

    def _write(self, tool: str, about: str, says: str, *, moved_money: bool = False) -> str:
        with self._lock:
            text = f"{about} {says} (receipt {len(self._receipts) + 1})"
            self._receipts.append(
                Receipt(tool=tool, about=about, text=text, moved_money=moved_money)
            )
        return text


def _word(arguments: Mapping[str, object], name: str) -> str:
    return str(arguments.get(name, "?"))


def _times(often: int) -> str:
    return "once" if often == 1 else f"{often} times"
