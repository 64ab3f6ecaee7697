"""tmp minimal"""

from __future__ import annotations

from surefoot.wire import read_message, strict_json

from ._family import family_of, lines_of
from ._note import NOTE, EventState, Note
from ._recorder import mark_of
from ._seal import SEAL


class ReadingTransport:
    def __init__(self, wrapped, **kw):
        self.wrapped = wrapped
        self.kw = kw

    proves_not_sent = property(lambda self: getattr(self.wrapped, "proves_not_sent", None))

    def rewrapped(self, wrapped):
        return ReadingTransport(wrapped, **self.kw)

    async def aclose(self):
        await self.wrapped.aclose()

    async def handle_async_request(self, request):
        response = await self.wrapped.handle_async_request(request)
        family = family_of(request)
        response.extensions.pop(SEAL, None)
        kind = response.headers.get("content-type", "").partition(";")[0]
        if kind == "text/event-stream":
            response.extensions[NOTE] = Note(kind="stream", events=EventState())
            return response
        try:
            body = b"".join([p async for p in response.stream])
        finally:
            await response.aclose()
        note = Note(kind="failure")
        if not body:
            note = Note(kind="empty")
        else:
            try:
                m = read_message(strict_json.loads(body))
                if not isinstance(m, str):
                    note = Note(kind="result" if m.kind == "response" else "error")
            except Exception as e:
                note = Note(
                    kind="unreadable" if response.status_code < 300 else "failure",
                    rule=getattr(e, "rule", "x"),
                )
        record = mark_of(request)
        if note.kind == "result" and record is not None:
            record.completed = True
            record.sent[-1].effect = "ran"
        out = family.response(
            response.status_code,
            [
                l
                for l in lines_of(response)
                if l[0] in (b"content-type", b"mcp-session-id", b"retry-after", b"www-authenticate")
            ]
            + [(b"content-length", b"%d" % len(body))],
            body,
        )
        out.extensions[NOTE] = note
        return out
