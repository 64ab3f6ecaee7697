"""What may be read, and in which words surefoot answers: pure functions, no clock, no network."""

from surefoot.wire import strict_json
from surefoot.wire._forms import (
    INTERNAL_ERROR,
    OUTCOME_KEY,
    PREFIX,
    UNSUPPORTED_PROTOCOL_VERSION,
    Effect,
    discover_failure,
    error,
    outcome_meta,
    tool_result,
)
from surefoot.wire._jsonrpc import (
    Message,
    MessageKind,
    RequestId,
    as_request_id,
    read_message,
    same_id,
)
from surefoot.wire._outgoing import Outgoing, OutgoingKind, read_request
from surefoot.wire._scrub import MARK, MIN_SECRET, Scrub
from surefoot.wire._sentences import MAY_HAVE_RUN, OUTCOMES, Outcome, sentence
from surefoot.wire._sse import KEEP_ALIVE, SseBlock, SseDecoder, encode_event
from surefoot.wire.strict_json import JsonLimits

__all__ = [
    "INTERNAL_ERROR",
    "KEEP_ALIVE",
    "MARK",
    "MAY_HAVE_RUN",
    "MIN_SECRET",
    "OUTCOMES",
    "OUTCOME_KEY",
    "PREFIX",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "Effect",
    "JsonLimits",
    "Message",
    "MessageKind",
    "Outcome",
    "Outgoing",
    "OutgoingKind",
    "RequestId",
    "Scrub",
    "SseBlock",
    "SseDecoder",
    "as_request_id",
    "discover_failure",
    "encode_event",
    "error",
    "outcome_meta",
    "read_message",
    "read_request",
    "same_id",
    "sentence",
    "strict_json",
    "tool_result",
]
