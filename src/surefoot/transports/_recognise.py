"""The law of this file: rules see plain values of an answer, and no more of it than they ask for.

They are asked in order, the first verdict counts (R69), and the body is touched only for a rule
that reads one (R62, D16). A rule that raises recognises nothing: it cannot take the session down.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from surefoot.policy import AnswerView, Rule, ThrottleRule, Verdict

from ._body import peek
from ._family import lines_of
from ._note import note_of

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import Family, HTTPRequest, HTTPResponse
    from ._note import EventState

__all__ = ["Recogniser", "redirect_target"]

_logger = logging.getLogger("surefoot")

_TOO_MANY_REQUESTS: Final = 429
_MOST_READ: Final = 64 * 1024
"""Bytes of a body that a rule may look at (D16)."""

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class Recogniser:
    """Asks the rules of a series what an answer is."""

    __slots__ = ("_only_throttle", "_rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._only_throttle = all(type(rule.recognise) is ThrottleRule for rule in rules)

    def idle(self, status: int) -> bool:
        """Whether no rule can recognise an answer of this status, so that nobody need look."""
        return self._only_throttle and (status != _TOO_MANY_REQUESTS or not self._rules)

    async def look(
        self, response: HTTPResponse, family: Family, clock: Clock
    ) -> tuple[Verdict, int] | None:
        """The first verdict and the index of its rule, or ``None``."""
        note = note_of(response)
        if note is not None and note.kind == "result":
            return None  # it was read, and is no refusal (R59)
        lines = lines_of(response) if note is None or note.seen is None else note.seen()
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in lines]
        status: int = response.status_code
        now = clock.now()
        body = None if note is None else note.shown
        for index, rule in enumerate(self._rules):
            reads = _reads(rule)
            if reads and body is None:
                body = await _read(response, family, headers, None if note is None else note.events)
            view = AnswerView(status=status, headers=headers, now=now, body=(body or b"")[:reads])
            try:
                verdict: object = rule.recognise.recognise(view)
            except Exception as error:  # noqa: BLE001 - a rule of the app's is no reason to fail a call
                _logger.warning("a refusal rule raised %s", type(error).__name__)
                continue
            if isinstance(verdict, Verdict):
                return verdict, index
            if verdict is not None:
                _logger.warning("a refusal rule returned no Verdict")
        return None


def _reads(rule: Rule) -> int:
    """How many bytes of the body a rule looks at, as far as it can be believed."""
    try:
        return max(0, min(int(rule.recognise.reads), _MOST_READ))
    except Exception as error:  # noqa: BLE001 - a rule cannot fail a call
        _logger.warning("a refusal rule raised %s", type(error).__name__)
        return 0


async def _read(
    response: HTTPResponse,
    family: Family,
    headers: Sequence[tuple[str, str]],
    events: EventState | None,
) -> bytes:
    kinds = [
        value.partition(";")[0].strip().lower() for name, value in headers if name == "content-type"
    ]
    if kinds not in ([_JSON], [_EVENTS]):
        return b""
    if events is None:
        return await peek(response, family, _MOST_READ, events=kinds == [_EVENTS])
    if not events.asked:
        return b""  # a standing stream refuses nothing, and may say nothing for hours
    events.looked_at = True
    try:
        return await peek(response, family, _MOST_READ, events=True)
    finally:
        events.looked_at = False


def redirect_target(request: HTTPRequest, response: HTTPResponse) -> Any:
    """The URL of a redirect within the origin that brings no userinfo, or ``None`` (B11)."""
    places = [value for name, value in lines_of(response) if name == b"location"]
    if len(places) != 1:
        return None
    try:
        target = request.url.join(places[0].decode("ascii"))
    except Exception:  # noqa: BLE001 - InvalidURL of either family, UnicodeDecodeError: all mean "no"
        return None
    here: Any = request.url
    same = (target.scheme, target.host, target.port) == (here.scheme, here.host, here.port)
    return target if same and not target.userinfo and target.path else None
