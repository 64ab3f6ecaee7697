"""The law of this room: evidence reaches its sinks; no call waits for one or fails by it."""

from ._json_lines import JsonLinesSink
from ._logging import LoggingSink
from ._reading import Unreadable, read_events
from ._record import ledger_for, record
from ._spans import OpenTelemetrySpans
from ._targets import FanOutSink, Target, spans_and_events

__all__ = [
    "FanOutSink",
    "JsonLinesSink",
    "LoggingSink",
    "OpenTelemetrySpans",
    "Target",
    "Unreadable",
    "ledger_for",
    "read_events",
    "record",
    "spans_and_events",
]
