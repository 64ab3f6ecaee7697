"""The law of this room: what happened is written down as plain values, complete or saying so.

Events, the ledger that numbers them, the run that they belong to, and the protocols through which
they leave. Nothing here waits, keeps time, or knows a network.
"""

from ._attempts import (
    AnswerForm,
    Attempt,
    Effect,
    Ended,
    Grant,
    Outcome,
    Reason,
    RefusalKind,
    RequestAttempts,
    Why,
)
from ._completeness import Completeness
from ._delivery import Alarm, Delivery, Losses
from ._events import (
    VERSION,
    CallEnded,
    CallStarted,
    Content,
    CredentialVended,
    Entry,
    Event,
    EventSink,
    Filed,
    Pending,
    RunEnded,
    RunStarted,
    event_schema_text,
    sink_failed,
)
from ._ledger import Ledger
from ._redaction import checked_label, origin
from ._run import Run, bind, current_ledger, current_run
from ._spans import AttemptFacts, AttemptSpan, SpanSource
from ._text import MAX_CONTENT

__all__ = [
    "MAX_CONTENT",
    "VERSION",
    "Alarm",
    "AnswerForm",
    "Attempt",
    "AttemptFacts",
    "AttemptSpan",
    "CallEnded",
    "CallStarted",
    "Completeness",
    "Content",
    "CredentialVended",
    "Delivery",
    "Effect",
    "Ended",
    "Entry",
    "Event",
    "EventSink",
    "Filed",
    "Grant",
    "Ledger",
    "Losses",
    "Outcome",
    "Pending",
    "Reason",
    "RefusalKind",
    "RequestAttempts",
    "Run",
    "RunEnded",
    "RunStarted",
    "SpanSource",
    "Why",
    "bind",
    "checked_label",
    "current_ledger",
    "current_run",
    "event_schema_text",
    "origin",
    "sink_failed",
]
