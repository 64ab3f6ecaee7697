"""The law of this file: steps that refuse or point elsewhere, in sound HTTP.

Each docstring says what goes over the wire, and whether the tool ran.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta

from surefoot.testing import _checks as check
from surefoot.testing._echo import Echo, escaped, quoted
from surefoot.testing._exchange import Exchange
from surefoot.testing._methods import error_message
from surefoot.testing._steps import Step
from surefoot.testing._wire import (
    HeaderLine,
    Headers,
    compact_json,
    header_line,
    http_date,
    lines_from,
)

__all__ = ["Redirect", "Status", "Throttle"]

StatedWait = int | float | str | bytes | timedelta | datetime
"""One Retry-After: a number of seconds as it stands, a text as it stands, or an HTTP date (a
`timedelta` counts from the moment of the answer)."""


@dataclass(frozen=True, slots=True)
class Throttle(Step):
    """A refusal: status 429, with the Retry-After that is given.

    The tool did not run, unless `ran=True`.
    """

    retry_after: StatedWait | tuple[StatedWait, ...] | None = None
    """`None` sends no header, a tuple one header line for each of its members."""
    _: KW_ONLY
    rpc_code: int | None = None
    """With a code, the body is a JSON-RPC error that carries it; else it is plain text."""
    body: str | bytes = "Too many requests\n"
    headers: Headers = ()
    ran: bool = False

    def __post_init__(self) -> None:
        check.a_bool("Throttle(ran)", self.ran)
        for wait in (
            self.retry_after if isinstance(self.retry_after, tuple) else (self.retry_after,)
        ):
            if wait is not None:
                _stated(wait, datetime.now(UTC))

    async def play(self, exchange: Exchange) -> None:
        """Refuse."""
        if self.ran:
            await exchange.run()
        waits = self.retry_after if isinstance(self.retry_after, tuple) else (self.retry_after,)
        stated = tuple(
            (b"retry-after", _stated(wait, datetime.now(UTC))) for wait in waits if wait is not None
        )
        lines = (*stated, *lines_from(self.headers))
        await _fail(
            exchange, 429, lines, self.body, content_type="text/plain", rpc_code=self.rpc_code
        )


@dataclass(frozen=True, slots=True)
class Status(Step):
    """An answer with any status. The tool did not run, unless `ran=True`.

    On the wire: the status, a `WWW-Authenticate: Bearer error="invalid_token"` line at 401 where
    the headers name none, the given headers and body.
    """

    code: int
    body: str | bytes = ""
    _: KW_ONLY
    headers: Headers = ()
    content_type: str = "text/plain"
    echo: bool | Echo = False
    """Put the received header lines into the body, as careless gateways do; `True` is `"plain"`."""
    rpc_code: int | None = None
    """With a code, the body is a JSON-RPC error with it, whose message is `body` or the echo."""
    ran: bool = False

    def __post_init__(self) -> None:
        check.a_status("Status(code)", self.code)
        check.a_bool("Status(ran)", self.ran)
        if not isinstance(self.echo, bool):
            check.one_of("Status(echo)", self.echo, ("plain", "json-escaped", "percent", "base64"))

    async def play(self, exchange: Exchange) -> None:
        """Answer with the status."""
        if self.ran:
            await exchange.run()
        lines = lines_from(self.headers)
        if self.code == 401 and not any(name.lower() == b"www-authenticate" for name, _ in lines):
            lines = (*lines, (b"www-authenticate", b'Bearer error="invalid_token"'))
        if self.echo is False:
            await _fail(
                exchange,
                self.code,
                lines,
                self.body,
                content_type=self.content_type,
                rpc_code=self.rpc_code,
            )
            return
        how = "plain" if self.echo is True else self.echo
        body = quoted(exchange.received, how)
        await _fail(
            exchange,
            self.code,
            lines,
            body,
            content_type=self.content_type,
            rpc_code=self.rpc_code,
            echo=how,
        )


@dataclass(frozen=True, slots=True)
class Redirect(Step):
    """A redirect: status `code` with a Location line and no body. The tool did not run.

    The gateway serves everything below its path as the same endpoint, so that `to="/mcp/moved"`
    leads to an answer; the request that follows takes the next step of the script.
    """

    code: int = 307
    _: KW_ONLY
    to: str = "/mcp/moved"
    """The Location, sent as it stands: a path, or a URL for another origin."""

    def __post_init__(self) -> None:
        check.a_status("Redirect(code)", self.code, allowed=range(300, 400))
        check.a_text("Redirect(to)", self.to)

    async def play(self, exchange: Exchange) -> None:
        """Point elsewhere."""
        await exchange.send(self.code, (header_line("location", self.to),), b"")


async def _fail(
    exchange: Exchange,
    status: int,
    lines: tuple[HeaderLine, ...],
    body: str | bytes,
    *,
    content_type: str,
    rpc_code: int | None,
    echo: Echo | None = None,
) -> None:
    data = body.encode() if isinstance(body, str) else body
    if rpc_code is not None:
        text = data.decode("utf-8", "replace").strip()
        error = error_message(exchange.received.rpc_id, rpc_code, text)
        content_type, data = "application/json", compact_json(error)
    elif echo is not None and content_type == "application/json":
        data = compact_json({"message": data.decode("utf-8", "replace")})
    if echo is not None:
        data = escaped(data, exchange.received, echo)
    named = (header_line("content-type", content_type),) if data else ()
    await exchange.send(status, (*named, *lines), data)


def _stated(wait: object, now: datetime) -> bytes:
    match wait:
        case bytes():
            return wait
        case str():
            return wait.encode()
        case timedelta():
            return http_date(now + wait).encode()
        case datetime():
            return http_date(wait).encode()
        case int() | float() if not isinstance(wait, bool):
            return str(wait).encode()
        case _:
            raise TypeError(
                "Throttle(retry_after) takes seconds, a text, a datetime, a timedelta, None, "
                "or a tuple of them, "
                f"not {type(wait).__name__}"
            )
