"""R18, R19, R107, R108, R113: what is signed, with which keys, and what is not to be seen of it."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
import pytest

from support.agentcore import ARN, KEYS, TOKEN_KEYS, keys, library
from surefoot.agentcore import SigV4Signer, runtime
from surefoot.credentials import TransientCredentialError
from surefoot.errors import CredentialError
from surefoot.testing import FakeClock, SecretAudit

pytestmark = pytest.mark.anyio

URL: Final = runtime(ARN, aws=KEYS).url
HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
    "mcp-session-id": "a-session",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "x-amzn-trace-id": "Root=1-6571e2f1-0123456789abcdef01234567",
    "x-amzn-bedrock-agentcore-runtime-user-id": "ana",
    "x-forwarded-for": "203.0.113.7",
}
NOW: Final = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)


def asked(family: Any, method: str = "POST", url: str = URL, **headers: str) -> Any:
    """A request as the client's stack hands it to a signer."""
    content = b'{"jsonrpc":"2.0"}' if method == "POST" else None
    return family.Request(method, url, headers={**HEADERS, **headers}, content=content)


def signer(aws: Any = TOKEN_KEYS, **options: Any) -> SigV4Signer:
    """A signer at a fixed moment."""
    given: dict[str, Any] = {"region": "us-west-2", "aws": aws, "clock": FakeClock(start=NOW)}
    return SigV4Signer(**given | options)


def named(request: Any) -> list[str]:
    """The headers that a request's signature names."""
    return request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")


def by_botocore(request: Any, held: Any, only: list[str]) -> str:
    """What botocore's own `add_auth` says of the same request, at the same moment."""
    auth = library("botocore.auth").SigV4Auth(held, "bedrock-agentcore", "us-west-2")
    twin = library("botocore.awsrequest").AWSRequest(
        request.method,
        str(request.url),
        {name: request.headers[name] for name in only if not name.startswith("x-amz-")},
        data=request.content,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library("botocore.auth"), "get_current_datetime", lambda: NOW)
        auth.add_auth(twin)
    return str(twin.headers["Authorization"])


@pytest.mark.parametrize("held", [KEYS, TOKEN_KEYS], ids=["long-lived", "with a token"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_the_signature_is_botocores_own(family: Any, method: str, held: Any) -> None:
    """R113. For every method, with and without a session token."""
    request = await signer(held)(asked(family, method))
    only = named(request)
    assert request.headers["authorization"] == by_botocore(request, held, only)
    assert request.headers["x-amz-date"] == "20261130T120005Z"
    assert request.headers.get("x-amz-security-token") == held.token


async def test_only_what_no_proxy_rewrites_is_signed(family: Any) -> None:
    """And all of MCP's own headers and AgentCore's are."""
    request = await signer()(asked(family))
    assert named(request) == [
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "x-amz-date",
        "x-amz-security-token",
        "x-amzn-bedrock-agentcore-runtime-user-id",
    ]


async def test_keys_without_a_token_leave_none_of_the_keys_before(family: Any) -> None:
    """The stale-token trap: a header of an earlier signature would be sent, and signed."""
    request = asked(family, authorization="Bearer stale", date="yesterday")
    request = await signer(TOKEN_KEYS)(request)
    first = request.headers["authorization"]
    assert "x-amz-security-token" in request.headers
    request = await signer(KEYS)(request)
    assert "x-amz-security-token" not in request.headers
    assert "date" not in request.headers
    assert request.headers.get_list("authorization") == [request.headers["authorization"]]
    assert request.headers["authorization"] != first
    assert "x-amz-security-token" not in named(request)
    assert request.headers["authorization"] == by_botocore(request, KEYS, named(request))


async def test_the_path_is_signed_as_it_goes_over_the_wire(family: Any) -> None:
    """The double-encoding trap: the decoded path, or one encoded once, has another signature."""
    sent = await signer(KEYS)(asked(family))
    assert sent.url.raw_path.startswith(b"/runtimes/arn%3Aaws%3Abedrock-agentcore%3A")
    right = sent.headers["authorization"]
    assert right == by_botocore(sent, KEYS, named(sent))
    decoded = URL.replace("%3A", ":").replace("%2F", "/")
    other = await signer(KEYS)(asked(family, url=decoded))
    assert other.headers["authorization"] != right


@pytest.mark.parametrize("value", ["a  b", "a\tb"])
async def test_a_value_with_blanks_is_signed_as_services_read_it(family: Any, value: str) -> None:
    """Blanks within a value are one blank in the canonical request."""
    request = await signer(KEYS)(asked(family, **{"mcp-name": value}))
    assert request.headers["authorization"] == by_botocore(request, KEYS, named(request))


async def test_plain_http_beyond_loopback_is_not_signed(family: Any) -> None:
    """R108. Whatever the Gateway was built with: the request decides."""
    with pytest.raises(CredentialError, match="over https"):
        await signer()(asked(family, url="http://gateway.example.com/mcp"))
    request = await signer()(asked(family, url="http://127.0.0.1:8080/mcp"))
    assert "authorization" in request.headers


async def test_a_body_that_is_not_whole_is_not_signed(family: Any) -> None:
    """D10. What cannot be read before it is sent cannot be signed."""

    async def parts() -> Any:
        yield b"part"

    with pytest.raises(CredentialError, match="not whole"):
        await signer()(family.Request("POST", URL, content=parts()))


async def test_a_long_body_is_signed_in_a_thread(family: Any) -> None:
    """Hashing a megabyte takes milliseconds, in which the loop would stand still."""
    told: list[int] = []

    class Heard(SigV4Signer):
        __slots__ = ()

        def _lines(self, request: Any, body: bytes, keys: Any) -> dict[str, str]:
            told.append(threading.get_ident())
            return super()._lines(request, body, keys)

    heard = Heard(region="us-west-2", aws=KEYS, clock=FakeClock(start=NOW))
    long = family.Request("POST", URL, headers=HEADERS, content=b"x" * (1 << 20 | 1))
    request = await heard(long)
    assert request.headers["authorization"] == by_botocore(request, KEYS, named(request))
    await heard(asked(family))
    assert [ident == threading.get_ident() for ident in told] == [False, True]


# ---- keys


class Refreshed:
    """What a botocore refresh asks: counts, and remembers in which thread."""

    def __init__(self, life: timedelta = timedelta(hours=1)) -> None:
        self.life = life
        self.threads: list[int] = []
        self.fails: Exception | None = None

    def __call__(self) -> dict[str, str]:
        """Other keys each time."""
        self.threads.append(threading.get_ident())
        if self.fails is not None:
            raise self.fails
        number = len(self.threads)
        ends = datetime.now(UTC) + self.life
        return {
            "access_key": f"ASIA{number}",
            "secret_key": "a-secret",
            "token": f"token-{number}",
            "expiry_time": ends.isoformat(),
        }


def refreshable(refresh: Refreshed) -> Any:
    """Keys that refresh themselves, none yet at hand."""
    kind = library("botocore.credentials").DeferredRefreshableCredentials
    return kind(refresh, "a-test")


async def test_keys_that_are_fresh_are_taken_where_they_lie(family: Any) -> None:
    """R18. Asked for every attempt; only a refresh is done in a thread."""
    refresh = Refreshed()
    one = signer(refreshable(refresh))
    for _ in range(3):
        request = await one(asked(family))
        assert request.headers["x-amz-security-token"] == "token-1"
    assert len(refresh.threads) == 1
    assert refresh.threads[0] != threading.get_ident()


async def test_keys_that_end_soon_are_renewed_for_the_next_attempt(family: Any) -> None:
    """R18. Within botocore's own window before their end."""
    refresh = Refreshed(timedelta(minutes=1))
    one = signer(refreshable(refresh))
    seen = [(await one(asked(family))).headers["x-amz-security-token"] for _ in range(2)]
    assert seen == ["token-1", "token-2"]
    assert threading.get_ident() not in refresh.threads


async def test_a_refresh_that_fails_is_named_by_its_class(family: Any) -> None:
    """R108. Its text quotes paths, profiles and answers."""
    refresh = Refreshed()
    refresh.fails = RuntimeError("canary-in-the-text")
    with pytest.raises(TransientCredentialError, match="RuntimeError") as caught:
        await signer(refreshable(refresh))(asked(family))
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_the_loop_goes_on_while_keys_are_fetched(family: Any) -> None:
    """A metadata service may take its time; a caller who leaves does not wait for it."""
    entered, go_on = threading.Event(), threading.Event()

    class Slow(Refreshed):
        def __call__(self) -> dict[str, str]:
            entered.set()
            go_on.wait(5)
            return super().__call__()

    try:
        with anyio.move_on_after(0.05) as scope:
            await signer(refreshable(Slow()))(asked(family))
        assert scope.cancelled_caught
        assert entered.is_set()
    finally:
        go_on.set()


class Session:
    """A session as botocore and boto3 have it."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked = 0

    def get_credentials(self) -> Any:
        """Load, in whatever way that takes."""
        self.asked += 1
        return self.found


async def test_a_session_is_asked_until_it_has_keys_and_then_no_more(family: Any) -> None:
    """R71. What it found refreshes itself."""
    session = Session(None)
    one = signer(session)
    with pytest.raises(CredentialError, match="no AWS credentials were found"):
        await one(asked(family))
    session.found = KEYS
    for _ in range(2):
        await one(asked(family))
    assert session.asked == 2


async def test_the_default_chain_finds_keys_in_the_environment(
    family: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No session, no keys: what every AWS program looks at."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    request = await signer(None)(asked(family))
    assert "Credential=AKIAENVIRONMENT/20261130/us-west-2/" in request.headers["authorization"]


async def test_frozen_keys_are_keys(family: Any) -> None:
    """A service other than AgentCore, with keys that somebody froze already."""
    frozen = TOKEN_KEYS.get_frozen_credentials()
    request = await signer(frozen, service="execute-api")(asked(family))
    assert "/us-west-2/execute-api/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amz-security-token"] == TOKEN_KEYS.token


async def test_nothing_of_the_keys_is_shown(family: Any, caplog: pytest.LogCaptureFixture) -> None:
    """R107, R109. Not by the signer, and not in botocore's log, which prints what it signs."""
    caplog.set_level(logging.DEBUG)
    held = keys("ASIAEXAMPLE", "canary-secret-key-1", "canary-session-token-1")
    with SecretAudit(
        ["canary-secret-key-1", "canary-session-token-1"], skip=("requests",)
    ) as audit:
        one, fetched = signer(held), signer(Session(held))
        await one(asked(family))
        await fetched(asked(family))
        await one(family.Request("POST", URL, headers=HEADERS, content=b"x" * (1 << 20 | 1)))
        audit.add("signer", repr(one))
        audit.check()
    assert audit.looked["objects"] > 0
    assert "CanonicalRequest" not in caplog.text
    library("botocore.auth").SigV4Auth(held, "s", "us-west-2").add_auth(
        library("botocore.awsrequest").AWSRequest("GET", URL, {})
    )
    assert "canary-session-token-1" in caplog.text, "the control: botocore's own way prints it"
