"""DESIGN section 6, D3, R107: one transport serves both families, by what the request says it is.

The private facts that are relied on for speed are pinned here, for the versions that are installed;
where one of them is gone, the public way gives the same.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.sending import DONE, REFUSED, URL, lowest, message, post
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.testing import FakeClock, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport
from surefoot.transports._family import (
    copy_request,
    error_names,
    family_of,
    finished,
    lines_of,
    never_left,
    values_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.both_majors]

LINES = [("Accept", "a"), ("X-Two", "1"), ("x-two", "2"), ("X-Own", "own")]


def _request(family: Any) -> Any:
    client = family.AsyncClient()
    return client.build_request("POST", URL, content=message().body, headers=LINES)


def _seen(request: Any) -> Any:
    lines = [(name.lower(), value) for name, value in request.headers.raw]
    return lines, request.method, str(request.url), request.extensions


# ---------------------------------------------------------------------------- what is pinned


def test_a_request_keeps_all_that_it_is_in_its_dict(family: Any) -> None:
    """R107. So that a copy is one dict."""
    assert set(_request(family).__dict__) == {
        "method",
        "url",
        "headers",
        "extensions",
        "stream",
        "_content",
    }


def test_headers_keep_their_lines_in_one_list_of_three(family: Any) -> None:
    """R107. As it was given, in lower case, and the value; and beside it only the encoding."""
    headers = family.Headers(LINES)
    assert set(headers.__dict__) == {"_list", "_encoding"}
    assert headers._list[0] == (b"Accept", b"accept", b"a")
    assert [name for _, name, _ in headers._list] == [b"accept", b"x-two", b"x-two", b"x-own"]
    assert family.Headers([])._encoding is None


def test_a_client_keeps_its_transports_in_two_places(family: Any) -> None:
    """DESIGN section 6. ``protect()`` wraps them there, so that proxies stay as they are."""
    wire = ScriptedTransport()
    client = family.AsyncClient(transport=wire, mounts={"http://x": wire, "all://y": None})
    assert client._transport is wire
    assert list(client._mounts.values()).count(wire) == 1
    assert None in client._mounts.values()


def test_the_errors_of_both_families_have_the_same_names(family: Any) -> None:
    """D3. They are told apart by the names in their MRO."""
    for name in ("ConnectError", "ConnectTimeout", "PoolTimeout"):
        error = getattr(family, name)("no")
        assert "TransportError" in error_names(error)
        assert never_left(error, proven=True)
        assert not never_left(error, proven=False)
    for name in ("ReadError", "WriteError", "ReadTimeout", "ProxyError", "TransportError"):
        assert not never_left(getattr(family, name)("no"), proven=True)
    assert not never_left(ConnectionError("no"), proven=True)


LINES_OF_ANSWER = [(b"content-type", b"application/json"), (b"x-two", b"1"), (b"x-two", b"2")]


async def test_an_answer_of_ours_is_what_the_family_would_build(family: Any) -> None:
    """DESIGN section 6. Attribute by attribute, and to a client that reads it."""
    made = family_of(_request(family)).response(207, list(LINES_OF_ANSWER), b'{"a":1}')
    built = family.Response(207, headers=LINES_OF_ANSWER, stream=family.ByteStream(b'{"a":1}'))
    assert type(made) is type(built)
    assert made.__dict__.keys() == built.__dict__.keys()
    assert made.headers.raw == built.headers.raw
    assert made.headers.get_list("x-two") == ["1", "2"]
    client = family.AsyncClient(transport=ScriptedTransport(lambda _: made))
    read = await client.get(URL)
    assert (read.status_code, read.json(), read.text) == (207, {"a": 1}, '{"a":1}')
    assert read.reason_phrase == built.reason_phrase
    assert read.elapsed.total_seconds() >= 0
    assert pickle.loads(pickle.dumps(read)).content == b'{"a":1}'  # noqa: S301 - our own


def test_two_answers_of_ours_share_nothing_that_can_change(family: Any) -> None:
    """DESIGN section 6. What one client does to its answer is not seen by another."""
    family_ = family_of(_request(family))
    one, other = (family_.response(200, list(LINES_OF_ANSWER), b"") for _ in range(2))
    shared = [
        name
        for name, value in one.__dict__.items()
        if value is other.__dict__[name] and not isinstance(value, (int, str, bytes, type(None)))
    ]
    assert shared == []
    one.headers["x-own"] = "1"
    one.extensions["own"] = 1
    assert "x-own" not in other.headers
    assert "own" not in other.extensions


def test_where_answers_are_not_what_is_known_of_them_they_are_built_in_public(family: Any) -> None:
    """DESIGN section 6. Another version could keep them in another way."""
    from surefoot.transports._family import Family

    headers_kind: Any = family.Headers
    answer_kind: Any = family.Response

    class Renamed(headers_kind):
        def __init__(self, headers: Any = None, encoding: Any = None) -> None:
            headers_kind.__init__(self, headers, encoding)
            self._more = ()

    class Answer(answer_kind):
        def __init__(self, status: int, *, headers: Any, stream: Any) -> None:
            answer_kind.__init__(self, status, headers=headers, stream=stream)
            self.headers = Renamed(self.headers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(family, "Response", Answer)
        answer = Family(family).response(200, list(LINES_OF_ANSWER), b"{}")
    assert type(answer) is Answer
    assert type(answer.headers) is Renamed
    assert answer.headers.raw == LINES_OF_ANSWER


# ---------------------------------------------------------------------------------- the copy


def _without_list(request: Any, patch: pytest.MonkeyPatch) -> None:
    """Headers as another version could keep them: nothing of ours finds ``_list``."""
    kind: Any = request.headers.__class__

    class Renamed(kind):
        def __init__(self, lines: Any = None, encoding: Any = None) -> None:
            self.__dict__["_lines"] = kind(lines, encoding)

        @property
        def raw(self) -> Any:
            return self.__dict__["_lines"].raw

        def __getattr__(self, name: str) -> Any:
            if name in ("_list", "_encoding"):
                raise AttributeError(name)
            return getattr(self.__dict__["_lines"], name)

    patch.setattr(request, "headers", Renamed(request.headers.raw))


def _as_it_is(request: Any, patch: pytest.MonkeyPatch) -> None:
    """The installed version."""
    del request, patch


@pytest.mark.parametrize("version", [_as_it_is, _without_list])
def test_a_copy_is_the_same_request_with_other_lines(family: Any, version: Any) -> None:
    """R107, R112, R119. The original keeps its own; the same without the private facts."""
    request = _request(family)
    request.extensions["own"] = 1
    before = _seen(request)
    with pytest.MonkeyPatch.context() as patch:
        version(request, patch)
        copy = copy_request(request, put={b"x-two": b"new", b"x-added": b"3"})
        moved = copy_request(request, url=request.url.join("/b"))
    copy.extensions["copy"] = 1
    assert type(copy) is type(request)
    lines, method, url, extensions = _seen(copy)
    assert (method, url, extensions) == ("POST", URL, {**request.extensions, "copy": 1})
    assert lines == [
        *[line for line in before[0] if line[0] != b"x-two"],
        (b"x-two", b"new"),
        (b"x-added", b"3"),
    ]
    assert _seen(request) == before
    assert "copy" not in request.extensions
    assert copy.stream is request.stream
    assert str(moved.url) == "http://gateway.test/b"
    assert str(request.url) == URL


def test_a_request_that_takes_no_dict_is_copied_in_public(family: Any) -> None:
    """R107. By what its constructor promises."""
    kind: Any = family.Request

    class Slotted(kind):
        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise AttributeError("__dict__")

    request = Slotted("POST", URL, headers=LINES, content=b"body")
    copy = copy_request(request, put={b"x-own": b"new"})
    assert type(copy) is Slotted
    assert copy.headers["x-own"] == "new"
    assert request.headers["x-own"] == "own"


@pytest.mark.parametrize("version", [_as_it_is, _without_list])
def test_lines_are_read_with_lower_case_names_in_order(family: Any, version: Any) -> None:
    """R62. Of requests and responses."""
    request = _request(family)
    with pytest.MonkeyPatch.context() as patch:
        version(request, patch)
        lines = lines_of(request)
        values = values_of(request, {b"x-two", b"x-own"})
    assert [line for line in lines if line[0] == b"x-two"] == [(b"x-two", b"1"), (b"x-two", b"2")]
    assert values == [b"1", b"2", b"own"]
    assert lines_of(family.Response(200, headers=LINES))[-1] == (b"x-own", b"own")


@pytest.mark.parametrize("version", [_as_it_is, _without_list])
async def test_a_whole_call_works_without_the_private_facts(family: Any, version: Any) -> None:
    """R18, R107. The same bytes on the wire."""
    wire = ScriptedTransport(REFUSED, DONE)
    vending = VendingTransport(wire, credentials=StaticCredentials(Bearer("token-of-1")))
    transport = RetryingTransport(vending, clock=FakeClock(), draw=lowest)
    request = _request(family)
    with pytest.MonkeyPatch.context() as patch:
        version(request, patch)
        response = await transport.handle_async_request(request)
    assert response.status_code == 200
    for sent in wire.requests:
        assert sent.header_values("authorization") == (b"Bearer token-of-1",)
        assert sent.header_values("x-two") == (b"1", b"2")
        assert sent.body == message().body


# ------------------------------------------------------------------------ whose family it is


def test_the_family_is_taken_from_the_requests_own_type(family: Any) -> None:
    """DESIGN section 6. Never from what can be imported; a subclass in any module counts."""
    assert family_of(_request(family)).module is family
    subclass = type("Request", (family.Request,), {"__module__": "httpxyz.models"})
    assert family_of(subclass("GET", URL)).module is family
    with pytest.raises(TypeError, match="httpx"):
        family_of(object())


async def test_one_series_serves_both_families_at_once() -> None:
    """DESIGN section 6. What is answered belongs to the family that asked."""
    httpx2, httpx = pytest.importorskip("httpx2"), pytest.importorskip("httpx")
    wire = ScriptedTransport(REFUSED, DONE, REFUSED, DONE)
    transport = RetryingTransport(wire, clock=FakeClock(), draw=lowest)
    for family in (httpx, httpx2):
        response = await post(family, transport)
        assert isinstance(response, family.Response)
        assert response.status_code == 200


# --------------------------------------------------------------------------- ends of streams


async def test_an_iteration_that_is_left_is_ended_at_once() -> None:
    """R62. Twice does no harm, and neither does one that is no generator."""
    ended: list[str] = []

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield b"1"
            yield b"2"
        finally:
            ended.append("now")

    running = parts()
    assert await anext(running) == b"1"
    await finished(running)
    await finished(running)
    assert ended == ["now"]
    await finished(parts())
    await finished(object())  # type: ignore[arg-type]
    gc.collect()


async def test_an_iteration_that_somebody_is_inside_is_left_to_them() -> None:
    """R62. Closing a stream from within its own clean-up is no error."""
    errors: list[BaseException] = []

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield b"1"
        finally:
            try:
                await finished(itself[0])
            except RuntimeError as error:
                errors.append(error)

    itself: list[Any] = [parts()]
    await anext(itself[0])
    await itself[0].aclose()
    assert errors == []


async def test_a_generator_that_breaks_when_it_is_closed_says_so() -> None:
    """R62. A fault is not taken for somebody being inside."""

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield b"1"
        finally:
            raise RuntimeError("a fault")

    broken = parts()
    await anext(broken)
    with pytest.raises(RuntimeError, match="a fault"):
        await finished(broken)
