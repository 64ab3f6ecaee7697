"""R89 to R92, R107 to R109, B7, B8, B14, D23, D24. Kind f of the bug reports: who prints a token.

An HTTP library prints the value that it cannot send; loggers print whole URLs; servers quote what
they were sent. What the app, its logs, its spans and its model get to see is searched whole; beside
each search stands one that finds something, because the same was done without surefoot.
"""

from __future__ import annotations

import json
import logging
import traceback
from base64 import b64encode
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import attempts_of, record_of, say
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import ApiKey, Basic, Bearer, Gateway, Headers, Retry, quiet_loggers, record
from surefoot.errors import CredentialError
from surefoot.testing import (
    Answer,
    FaultyGateway,
    Raw,
    RecordingSink,
    Redirect,
    RpcError,
    SecretAudit,
    Status,
    Step,
    tool_call,
)

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY: Final = "CANARY-77/+tok=en"
"""With characters that JSON, a URL and base64 each write in another way."""

UNSENDABLE: Final[dict[str, str]] = {
    "a line end": f"{CANARY}\n",
    "a line end of Windows": f"{CANARY}\r\n",
    "a blank before": f" {CANARY}",
    "a blank after": f"{CANARY} ",
    "a tab after": f"{CANARY}\t",
    "a NUL": f"{CANARY}\x00",
    "a NUL inside": f"{CANARY}\x00{CANARY}",
    "a letter with an accent": f"{CANARY}\xe9",
    "a letter of no Latin": f"{CANARY}\u4e2d",
    "half of a pair": f"{CANARY}\ud800",
    "DEL": f"{CANARY}\x7f",
    "an escape": f"\x1b{CANARY}",
    "a header of its own": f"{CANARY}\r\nx-more: {CANARY}",
}


def _of_a_tenant(value: str) -> Headers:
    return Headers({"x-tenant-key": value})


@pytest.mark.parametrize(
    ("family", "build"),
    [
        *((family, Bearer) for family in FAMILIES),
        *((FAMILIES[0], build) for build in (ApiKey, _of_a_tenant)),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_value_that_no_header_can_hold_reaches_no_http_library(
    family: str, build: Callable[[str], Any]
) -> None:
    """B8, R108, C25 of the bug reports. The rule is named, the value is not, the chain is empty.

    A later call with a value that can be sent works: one call's failure is that call's failure.
    """
    given = [""]

    async def vend(_: object) -> Any:
        return build(given[0])

    with FaultyGateway() as faulty, SecretAudit(CANARY, trusted=[__file__]) as audit:
        async with Gateway(faulty.url, credentials=vend).protect(client_of(family)) as client:
            for name, value in UNSENDABLE.items():
                given[0] = value
                said = await say(client, faulty.url)
                told = (said.kind, said.outcome["effect"])
                assert told == ("credentials-failed", "not_sent"), name
                audit.add(name, said.message)
            assert faulty.journal == ()
            given[0] = "an-ordinary-token"
            assert (await say(client, faulty.url)).text == "charged 1"


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=list(UNSENDABLE))
async def test_our_own_client_raises_the_rule_and_not_the_value(value: str) -> None:
    """B8, R108, C25 of the bug reports. Typed, and with nothing behind it."""
    given = ["an-ordinary-token"]

    async def vend(_: object) -> Any:
        return Bearer(given[0])

    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=vend)
        async with gateway.session() as session:
            await session.tools()
            given[0] = value
            with pytest.raises(CredentialError) as caught:
                await session.call("charge", {"amount": 1})
            given[0] = "an-ordinary-token"
    assert "must not" in str(caught.value)
    for shown in (traceback.format_exception(caught.value), repr(caught.value), caught.value.args):
        assert "CANARY" not in str(shown)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("family", FAMILIES)
async def test_without_it_the_library_prints_such_a_value(family: str) -> None:
    """C25 of the bug reports. The control: the error of the HTTP library holds the token."""
    with FaultyGateway() as faulty:
        async with client_of(family) as client:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - of either family
                await client.get(
                    faulty.url, headers={"authorization": f"Bearer {UNSENDABLE['a line end']}"}
                )
    assert CANARY in str(caught.value)


@pytest.fixture
def _loggers_put_back() -> Generator[None]:
    """`quiet_loggers` holds for the process; afterwards every logger is as it was."""
    loggers = [
        one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)
    ]
    before = [(one, one.level, list(one.filters)) for one in loggers]
    yield
    for one in logging.root.manager.loggerDict.values():
        if isinstance(one, logging.Logger):
            one.filters.clear()
            one.setLevel(logging.NOTSET)
    for one, level, filters in before:
        one.setLevel(level)
        one.filters.extend(filters)


IN_THE_QUERY: Final = "CANARY-in-the-query"


@pytest.mark.usefixtures("_loggers_put_back")
@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_of_a_url_only_its_origin_is_ever_said(
    kind: Kind, quiet: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R41, R109, B14, C27 of the bug reports. At DEBUG; in events, files, spans and answers.

    What the libraries print themselves is theirs, until `quiet_loggers()`: the second row.
    """
    file, sink = tmp_path / "run.jsonl", RecordingSink()
    if quiet:
        quiet_loggers()
    caplog.set_level(logging.DEBUG)
    with FaultyGateway() as faulty:
        # The declaration itself holds the URL, and the audit hears loggers whatever is set.
        with (
            SecretAudit(
                IN_THE_QUERY,
                files=[tmp_path],
                trusted=[__file__],
                skip=["objects"],
                without_loggers=["httpx", "httpx2", "httpcore", "httpcore2", "mcp"],
            ) as audit,
            record(file),
        ):
            gateway = Gateway(
                f"{faulty.url}?api_key={IN_THE_QUERY}",
                retry=Retry(max_attempts=2, base_delay=0.01),
                evidence=sink,
            )
            async with opened(gateway.transport(), kind) as session:
                for step in (Status(500), Status(429), Redirect(to="/mcp/moved"), Answer()):
                    faulty.script("charge", step)
                    audit.add(repr(step), await session.call("charge", {"amount": 1}))
            audit.add("events", sink.events)
        assert faulty.received(IN_THE_QUERY)
    assert (IN_THE_QUERY in caplog.text) is not quiet
    assert "surefoot" in {entry.name for entry in caplog.records}
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert {event["endpoint"] for event in events if "endpoint" in event} == {faulty.origin}


@pytest.mark.parametrize("user", ["user:CANARY@", "CANARY@", ":CANARY@", "us%65r:CANARY@"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_url_with_a_user_in_it_is_refused(scheme: str, user: str) -> None:
    """R72, C27 of the bug reports. When it is declared, with the way out, without the URL."""
    with pytest.raises(ValueError, match="credentials=Basic") as caught:
        Gateway(f"{scheme}://{user}127.0.0.1/mcp?api_key=CANARY")
    assert "CANARY" not in f"{caught.value!r}{caught.value.__context__}"


JSON: Final = "application/json"


def _head(status: int, length: int, *lines: str, kind: str = JSON) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {length}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n"


def _http(status: int, body: bytes, *lines: str, kind: str = JSON) -> Raw:
    return Raw(_head(status, len(body), *lines, kind=kind) + body, close=False)


def _result(text: str) -> Raw:
    """A sound answer whose text is written into its JSON as it stands."""

    def body(rpc_id: bytes) -> bytes:
        data = (
            f'{{"jsonrpc":"2.0","id":{rpc_id.decode()},"result":{{"content":[{{"type":"text",'
            f'"text":"{text}"}}],"isError":false,"resultType":"complete"}}}}'
        ).encode()
        return _head(200, len(data)) + data

    return Raw(body, ran=True, close=False)


def _split(at: int) -> Raw:
    """An event whose JSON goes on in a second `data:` line, in the middle of a quoted token."""

    def body(rpc_id: bytes) -> bytes:
        # A line end between two lines of data is part of the JSON, where blanks may stand.
        head = b'data: {"jsonrpc":"2.0","id":' + rpc_id + b',"error":{"code":-32050,\n'
        text = f'data: "message":"no: Bearer {CANARY}","data":["{CANARY[:at]}",\n'
        rest = f'data: "{CANARY[at:]}","{CANARY}"]}}}}\n\n'
        data = head + text.encode() + rest.encode()
        return _head(200, len(data), kind="text/event-stream") + data

    return Raw(body)


SAID_BY_AWS: Final = (
    f"'{CANARY}' not a valid key=value pair (missing equal-sign) in Authorization header: "
    f"'Bearer {CANARY}'."
)
ESCAPED: Final = "".join(f"\\u{ord(character):04x}" for character in CANARY)
BASE64: Final = b64encode(CANARY.encode()).decode()

QUOTES: Final[dict[str, Step]] = {
    "403 of AWS": _http(403, json.dumps({"message": SAID_BY_AWS}).encode()),
    "403 of AWS, canonical request": _http(
        403,
        json.dumps({"message": f"The Canonical String\nauthorization:Bearer {CANARY}"}).encode(),
    ),
    "400 in percent": _http(400, quote(CANARY, safe="").encode(), kind="text/plain"),
    "400 in lower percent": _http(
        400, quote(CANARY, safe="").replace("%2F", "%2f").encode(), kind="text/plain"
    ),
    "500 escaped": _http(500, f'{{"message":"{ESCAPED}"}}'.encode()),
    "502 in base64": _http(502, f"<p>{BASE64}</p>".encode(), kind="text/html"),
    "401 in the challenge": _http(
        401, b"", f'WWW-Authenticate: Bearer error="invalid", error_description="{CANARY}"'
    ),
    "403 in the challenge": _http(403, b"", f'WWW-Authenticate: Bearer realm="{CANARY}"'),
    "307 in the place": _http(307, b"", f"Location: /mcp?token={quote(CANARY, safe='')}"),
    "307 elsewhere": _http(307, b"", f"Location: http://elsewhere.invalid/?t={CANARY}"),
    "302 in the place": _http(302, b"", f"Location: /{CANARY}"),
    "in a header of nobody's": _http(503, b"", f"x-debug: {CANARY}", f"set-cookie: s={CANARY}"),
    "200 as it stands": _result(SAID_BY_AWS.replace("'", "")),
    "200 escaped": _result(ESCAPED),
    "200 half escaped": _result(f"{CANARY[:3]}{ESCAPED[18:]}"),
    "200 in percent": _result(quote(CANARY, safe="")),
    "200 in base64": _result(f"sent: {BASE64}"),
    "200 in base64 with more": _result(b64encode(f"Bearer {CANARY} and more".encode()).decode()),
    "200 as a JSON text in a text": _result(json.dumps(json.dumps(CANARY))[1:-1]),
    "an error in two data lines": _split(6),
    "an error at 200": RpcError(-32050, SAID_BY_AWS, data={CANARY: [CANARY]}, status=200),
}


@pytest.mark.parametrize(
    ("kind", "answers"), [*((kind, "checked") for kind in KINDS), (KINDS[0], "strict")]
)
async def test_a_token_that_a_server_quotes_is_read_by_nobody(
    kind: Kind, answers: Any, tmp_path: Path
) -> None:
    """R89 to R92, B7, D23, C29 of the bug reports. At any status, in every form, in any place."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        without = ("httpcore", "httpcore2")  # at DEBUG they print each header that a server sends
        with SecretAudit(
            CANARY, files=[tmp_path], trusted=[__file__], without_loggers=without
        ) as audit:
            gateway = Gateway(
                faulty.url,
                credentials=Bearer(CANARY),
                retry=Retry(max_attempts=2, base_delay=0.01),
                answers=answers,
                evidence=sink,
            )
            async with opened(gateway.transport(), kind) as session:
                for name, step in QUOTES.items():
                    faulty.script("charge", step)
                    told = await session.call("charge", {"amount": 1})
                    audit.add(name, told)
                    audit.add(f"{name}: raw", told.raw)
                    assert CANARY[:10] not in told.text, name
                assert (await session.call("search", {"q": "it"})).text == "found it"
            audit.add("events", sink.events)
            assert audit.looked["artefacts"] > 2 * len(QUOTES)
    hits: Any = sum(
        attempt["scrubbed_hits"]
        for event in sink.of("tool.request_attempts")
        for attempt in event["attempts"]  # type: ignore[attr-defined]
    )
    assert hits >= 7, "the quotes were not there to be found"


SHOWN_WITHOUT: Final = (
    "403 of AWS",
    "200 as it stands",
    "200 escaped",
    "an error in two data lines",
)


@pytest.mark.parametrize("name", SHOWN_WITHOUT)
@pytest.mark.parametrize("family", FAMILIES)
async def test_without_it_the_quote_is_read(name: str, family: str) -> None:
    """C29 of the bug reports. The control: the bare client hands the token to whoever reads."""
    with FaultyGateway() as faulty:
        faulty.script("charge", QUOTES[name])
        asked = tool_call("charge")
        async with client_of(family) as client:
            answer = await client.post(faulty.url, headers=dict(asked.headers), content=asked.body)
        seen = answer.text
        with suppress(ValueError):
            seen += json.dumps(answer.json(), ensure_ascii=False)
    assert CANARY in seen


@pytest.mark.parametrize("answers", ["checked", "strict"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_of_a_failure_only_its_code_and_our_own_words_pass(family: str, answers: Any) -> None:
    """R90, R91, D20, D24, C29 of the bug reports. Whether or not a secret of ours is in it."""
    body = b'{"__type":"x#AccessDeniedException","message":"sent by somebody-elses-secret"}'
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script(
            "charge", _http(403, body, "x-amzn-errortype: AccessDeniedException:http://x")
        )
        gateway = Gateway(
            faulty.url, credentials=Basic("u", CANARY), answers=answers, evidence=sink
        )
        async with gateway.protect(client_of(family)) as client:
            said = await say(client, faulty.url)
    assert "somebody" not in said.response.text
    assert (said.kind, said.outcome["status"]) == ("forbidden", 403)
    assert "AccessDeniedException" in said.text
    assert attempts_of(sink)[0]["status"] == 403
    assert record_of(sink)["may_have_run"] is False
