"""The law of this file: what is shown to programs is one JSON object a line, and says the same."""

from __future__ import annotations

import json
from typing import Any, TextIO

from surefoot.sinks import Unreadable

from ._show_calls import Call, Run, RunEnd, Step
from ._show_fields import fields_in, seconds, text
from ._show_totals import Totals
from ._show_words import call_words, endpoint_of, may_have_run, name_of, repeat_grants, waited

__all__ = ["JsonView"]


class JsonView:
    """Writes each step as one JSON object, and the totals as the last one."""

    def __init__(self, stream: TextIO, *, at_once: bool = False) -> None:
        self._stream = stream
        self._at_once = at_once

    def take(self, step: Step) -> None:
        """Write one step."""
        match step:
            case Run(id=run, started=started):
                self._write({"type": "run", "run": run, "started": started})
            case Call():
                self._write(_call(step))
            case RunEnd(run=run, ended=ended):
                found = run.found
                self._write(
                    {
                        "type": "run_end",
                        "run": run.id,
                        "ended": ended,
                        "complete": run.complete,
                        "missing": found.missing,
                        "dropped": found.dropped,
                    }
                )
            case Unreadable(line=line, why=why):
                self._write({"type": "unreadable", "line": line, "why": why})
            case _:
                self._write({"type": "event", "event": step})

    def close(self, totals: Totals) -> None:
        """Write the totals."""
        self._write(totals.as_json())
        self._stream.flush()

    def _write(self, value: dict[str, Any]) -> None:
        self._stream.write(json.dumps(value, separators=(",", ":")) + "\n")
        if self._at_once:
            self._stream.flush()


def _call(call: Call) -> dict[str, Any]:
    attempts = [one for request in call.requests for one in fields_in(request, "attempts")]
    return {
        "type": "call",
        "run": call.run.id,
        "call": call.id,
        "name": name_of(call),
        "endpoint": endpoint_of(call),
        "at_seconds": call.at,
        "duration_seconds": None if call.ended is None else seconds(call.ended, "duration_seconds"),
        "words": call_words(call)[1],
        "attempts": len(attempts),
        "throttled": any(text(one, "kind") == "throttle" for one in attempts),
        "waited_seconds": round(waited(call), 6),
        "permissions": [grant for one in attempts for grant in repeat_grants(one)],
        "may_have_run": may_have_run(call),
        "requests": call.requests,
        "ended": call.ended,
    }
