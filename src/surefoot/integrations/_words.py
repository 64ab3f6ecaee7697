"""The law of this file: an error that a client raises is told in our words only if it is known.

Two are: an error whose text is one of our sentences, because the client raises what it was
answered; and the end of the client's own patience, after which the call may have run. Any other
error stays what it is.
"""

from __future__ import annotations

from typing import Final

from surefoot.wire import is_sentence, sentence

__all__ = ["words_for"]

_TIMED_OUT: Final = {-32001: "timed out", 408: "timed out"}
"""What the SDK calls it when a caller stops waiting: its code with 2.x and with 1.x, and its word.

A server may use these codes for something else, so that the word has to be there, too.
"""


def words_for(error: BaseException) -> str | None:
    """Return the sentence for an error of a tool call, or ``None`` where none of ours fits.

    Args:
        error: What the client raised; its own causes are looked at as well.
    """
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        text = str(current)
        if is_sentence(text):
            return text
        if _is_timeout(current, text):
            return sentence("deadline")
        current = current.__cause__
    return None


def _is_timeout(error: BaseException, text: str) -> bool:
    code: object = getattr(getattr(error, "error", None), "code", None)
    word = _TIMED_OUT.get(code) if isinstance(code, int) else None
    return word is not None and word in text.lower()
