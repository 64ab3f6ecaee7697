"""What may be read, and in which words surefoot answers: pure functions, no clock, no network."""

from surefoot.wire import strict_json
from surefoot.wire._answers import (
    AnswerKind,
    CheckedAnswer,
    RawAnswer,
    refused_answer,
    safe_answer,
)
from surefoot.wire._events import CheckedEvent, EventKind, safe_event
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
from surefoot.wire._head import AnswerPolicy, Head, HeaderLine, Media, read_head
from surefoot.wire._jsonrpc import (
    Message,
    MessageKind,
    RequestId,
    as_request_id,
    read_message,
    same_id,
)
from surefoot.wire._known import (
    KNOWN_ERROR_MESSAGES,
    aws_error_type,
    failure_sentence,
    is_auth_failure,
    outcome_of_code,
    outcome_of_status,
)
from surefoot.wire._origin import is_private, origin_of, url_parts
from surefoot.wire._outgoing import Outgoing, OutgoingKind, could_name, read_request
from surefoot.wire._scrub import MARK, MIN_SECRET, Scrub
from surefoot.wire._sentences import MAY_HAVE_RUN, OUTCOMES, Outcome, is_sentence, sentence
from surefoot.wire._sse import SseDecoder
from surefoot.wire._sse_block import KEEP_ALIVE, SseBlock, encode_event
from surefoot.wire.strict_json import JsonLimits

__all__ = [
    "INTERNAL_ERROR",
    "KEEP_ALIVE",
    "KNOWN_ERROR_MESSAGES",
    "MARK",
    "MAY_HAVE_RUN",
    "MIN_SECRET",
    "OUTCOMES",
    "OUTCOME_KEY",
    "PREFIX",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "AnswerKind",
    "AnswerPolicy",
    "CheckedAnswer",
    "CheckedEvent",
    "Effect",
    "EventKind",
    "Head",
    "HeaderLine",
    "JsonLimits",
    "Media",
    "Message",
    "MessageKind",
    "Outcome",
    "Outgoing",
    "OutgoingKind",
    "RawAnswer",
    "RequestId",
    "Scrub",
    "SseBlock",
    "SseDecoder",
    "as_request_id",
    "aws_error_type",
    "could_name",
    "discover_failure",
    "encode_event",
    "error",
    "failure_sentence",
    "is_auth_failure",
    "is_private",
    "is_sentence",
    "origin_of",
    "outcome_meta",
    "outcome_of_code",
    "outcome_of_status",
    "read_head",
    "read_message",
    "read_request",
    "refused_answer",
    "safe_answer",
    "safe_event",
    "same_id",
    "sentence",
    "strict_json",
    "tool_result",
    "url_parts",
]
