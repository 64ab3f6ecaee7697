"""D13, D31, R17, R36, R41, R52, R72: the endpoint that is ours, and a clock that is never early."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import anyio
import pytest

from support.sending import DONE, REFUSED, sent_through
from surefoot.errors import MayHaveRunError
from surefoot.testing import FakeClock, ScriptedTransport
from surefoot.transports import Endpoint, RetryingTransport, SystemClock, chance
from surefoot.transports._errors import bared, cleaned
from surefoot.transports._family import family_of
from surefoot.transports._seal import Seal

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway.test/mcp",
        "http://gateway.test:80/mcp",
        "HTTP://GATEWAY.test/mcp",
        "http://gateway.test/mcp?qualifier=PROD",
        "http://gateway.test/mcp?",
    ],
)
def test_a_request_to_the_endpoint_is_ours(family: Any, url: str) -> None:
    """D31, D13. Origin and path decide; a query may differ, because services put a word there."""
    endpoint = Endpoint("http://gateway.test/mcp?qualifier=DEFAULT")
    assert endpoint.owns(family.Request("POST", url))
    assert endpoint.owns(family.Request("GET", url))


@pytest.mark.parametrize(
    "url",
    [
        "http://gateway.test/",
        "http://gateway.test/mcp/",
        "http://gateway.test/mcp/x",
        "http://gateway.test/MCP",
        "http://gateway.test/.well-known/oauth-protected-resource",
        "http://gateway.test:8080/mcp",
        "https://gateway.test/mcp",
        "http://gateway.test./mcp",
        "http://issuer.test/mcp",
        "http://gateway.test.evil.test/mcp",
    ],
)
def test_every_other_request_is_not(family: Any, url: str) -> None:
    """D31. Metadata, token endpoints and other servers pass untouched."""
    assert not Endpoint("http://gateway.test/mcp").owns(family.Request("POST", url))


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://GATEWAY.test:80/a?b=c", "http://gateway.test"),
        ("https://gateway.test:443", "https://gateway.test"),
        ("https://gateway.test:8443/x", "https://gateway.test:8443"),
        ("http://[::1]:8080/x", "http://[::1]:8080"),
        ("http://münchen.test/", "http://xn--mnchen-3ya.test"),
    ],
)
def test_an_origin_is_scheme_host_and_port_and_no_more(url: str, origin: str) -> None:
    """D13, R41."""
    assert Endpoint(url).origin == origin


@pytest.mark.parametrize(
    ("url", "error", "way_out"),
    [
        (b"http://gateway.test/canary", TypeError, "must be a str"),
        (None, TypeError, "must be a str"),
        ("stdio:/canary", ValueError, "http or https"),
        ("ws://gateway.test/canary", ValueError, "http or https"),
        ("gateway.test/canary", ValueError, "http or https"),
        ("http:///canary", ValueError, "no host"),
        ("http://user:canary@gateway.test/", ValueError, "credentials=Basic"),
        ("http://gateway.test/#canary", ValueError, "fragment"),
        ("http://gateway.test/can ary", ValueError, "blank"),
        ("http://gateway.test/can\nary", ValueError, "control"),
        ("http://[::1/canary", ValueError, "not a URL"),
        ("http://gateway.test:canary/", ValueError, "not a URL"),
    ],
)
def test_a_url_that_cannot_be_an_endpoint_is_refused_without_being_shown(
    url: Any, error: type[Exception], way_out: str
) -> None:
    """R71, R72, D28. A secret is most often in the wrong place here."""
    with pytest.raises(error, match=r"^url: ") as caught:
        Endpoint(url)
    assert way_out in str(caught.value)
    assert "canary" not in str(caught.value).replace("can ary", "canary")


async def test_the_machines_clock_is_never_early() -> None:
    """R36. On either loop, for waits below a timer's own resolution, too."""
    clock = SystemClock()
    for seconds in (0.0, 0.0001, 0.001, 0.0035, 0.011):
        for _ in range(5):
            started = time.monotonic()
            await clock.sleep(seconds)
            assert time.monotonic() - started >= seconds
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic() == pytest.approx(time.monotonic(), abs=1)


async def test_a_sleep_is_cancellable() -> None:
    """B2. At once."""
    with anyio.fail_after(5), anyio.move_on_after(0.01) as scope:
        await SystemClock().sleep(30)
    assert scope.cancelled_caught


def test_chance_is_a_number_from_zero_to_below_one() -> None:
    """R49. And not always the same."""
    draws = [chance() for _ in range(100)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len(set(draws)) > 90


async def test_repeats_happen_below_the_client_where_the_raw_headers_are(family: Any) -> None:
    """R17. A client's own hooks see one exchange, whose answer is the last."""
    seen: list[int] = []

    async def hook(response: Any) -> None:
        seen.append(response.status_code)

    wire = ScriptedTransport(REFUSED, DONE)
    outcome = await sent_through(family, wire)
    assert outcome.sends == 2
    transport = RetryingTransport(ScriptedTransport(REFUSED, DONE), clock=FakeClock())
    client = family.AsyncClient(transport=transport, event_hooks={"response": [hook]})
    await client.post("http://gateway.test/", json={"id": 1})
    assert seen == [200]


# ------------------------------------------------------------------------------- errors, cleaned


def _clean(family: Any, error: Exception) -> Exception:
    request = family.Request("POST", "http://gateway.test/")
    return cleaned(error, family_of(request), Seal(lambda: (None, (b"canary-secret",))))


def test_a_harmless_text_is_kept_because_people_need_it(family: Any) -> None:
    """R108. Of the family's own classes, where it quotes nothing."""
    for name, text in (("ConnectError", "[Errno 111] refused"), ("ReadTimeout", "timed out")):
        error = _clean(family, getattr(family, name)(text))
        assert type(error) is getattr(family, name)
        assert str(error) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ReadError", "it had canary-secret in it"),
        ("LocalProtocolError", "Illegal header value"),
        ("RemoteProtocolError", "illegal status line"),
        ("DecodingError", "bad"),
        ("ReadError", "x" * 201),
    ],
)
def test_a_text_that_quotes_is_replaced_by_the_name_of_its_class(
    family: Any, name: str, text: str
) -> None:
    """R108. h11 prints headers and what the server sent; a long text quotes something."""
    error = _clean(family, getattr(family, name)(text))
    assert type(error) is getattr(family, name)
    assert str(error) == name


def test_what_is_not_the_familys_own_becomes_its_general_error(family: Any) -> None:
    """R108, D3. So that a client catches it; a subclass of somebody else's keeps its kind."""

    class Own(family.ConnectError):
        pass

    assert type(_clean(family, Own("no"))) is family.TransportError
    error = _clean(family, OSError("canary-secret"))
    assert type(error) is family.TransportError
    assert str(error) == "OSError below the HTTP client"


def test_one_of_our_own_errors_passes_bare(family: Any) -> None:
    """R108. It holds no secret by its law; its frames and causes may."""
    with pytest.raises(MayHaveRunError) as caught:
        raise MayHaveRunError(cause="deadline", attempts=1) from ValueError("canary-secret")
    raised = caught.value
    assert raised.__cause__ is not None
    assert _clean(family, raised) is raised
    assert (raised.__cause__, raised.__context__, raised.__traceback__) == (None, None, None)


def test_a_cancellation_keeps_the_cancellation_before_it() -> None:
    """D27. By that anyio tells whose it is; everything else lets go of what lies below."""

    class Cancelled(BaseException):
        pass

    first, second = Cancelled("of a scope"), Cancelled("native")
    second.__context__ = first
    first.__context__ = ValueError("canary-secret")
    second.add_note("canary-secret")
    group = BaseExceptionGroup("group", [second])
    assert bared(group) is group
    assert second.__context__ is first
    assert first.__context__ is None
    assert not hasattr(second, "__notes__")
