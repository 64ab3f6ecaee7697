"""R107 to R109, D27, invariant 11: whatever a transport below does, no credential is shown.

Errors that quote the request, bodies that break, cancellations whose frames hold it: what leaves
the layers holds nothing of it, and nothing of ours that is still alive does. Each test has its
control: the same fault through the transport that everybody writes first.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable
from typing import Any, Final

import anyio
import pytest

from support.hostile import BODIES, ERRORS, WAITS, HostileWire, Naive
from support.sending import ledger_into, message, post
from surefoot.credentials import ApiKey, Basic, Bearer, Headers, Issued, as_provider
from surefoot.policy import Replay, Retry, ToolRule
from surefoot.testing import FakeClock, RecordingSink, SecretAudit, SecretLeakError
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = [pytest.mark.unmeasured, pytest.mark.anyio]

CANARY: Final = "CANARY-8c1f/+e5'a"
"""With characters that a repr, a URL and base64 each write in another way."""

KINDS: Final[dict[str, Callable[[], Any]]] = {
    "bearer": lambda: Bearer(CANARY),
    "api-key": lambda: ApiKey(CANARY, header="authorization"),
    "basic": lambda: Basic("someone", CANARY),
    "headers": lambda: Headers({"authorization": CANARY, "x-other": CANARY}),
    "issued": lambda: Issued(Bearer(CANARY), expires_in=60),
}


def _layers(wire: Any, sink: RecordingSink, kind: str = "bearer", **settings: Any) -> Any:
    async def vend(_: object) -> Any:
        return KINDS[kind]()

    settings = {"retry": Retry(max_attempts=2, base_delay=0.0), "clock": FakeClock(), **settings}
    return RetryingTransport(
        VendingTransport(wire, credentials=as_provider(vend)),
        replay=Replay(tools={"search": ToolRule(repeat_on={"network"})}),
        ledger=ledger_into(sink),
        **settings,
    )


def _signed(wire: Any, sink: RecordingSink, **settings: Any) -> Any:
    async def sign(request: Any) -> Any:
        request.headers["authorization"] = f"SIG {CANARY}"
        return request

    return RetryingTransport(
        VendingTransport(wire, signer=sign), ledger=ledger_into(sink), clock=FakeClock(), **settings
    )


async def _raised_by(family: Any, transport: Any) -> BaseException | None:
    try:
        await post(family, transport, message())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is searched
        return error
    return None


@pytest.mark.parametrize("kind", ["ProxyError", "RemoteProtocolError", "DecodingError"])
async def test_an_error_in_the_words_of_a_server_or_a_proxy_has_none(
    family: Any, kind: str
) -> None:
    """R108. A reason is whatever somebody writes there; any other text stays: control."""

    def raises(name: str) -> Callable[[Any, Any], None]:
        def fault(httpx: Any, _: Any) -> None:
            raise getattr(httpx, name)("407 words of somebody")

        return fault

    said: list[str] = []
    for name in (kind, "ConnectError"):
        wire = HostileWire(family, raises=raises(name))
        error = await _raised_by(family, _layers(wire, RecordingSink()))
        assert type(error).__name__ == name
        said.append(str(error))
    assert said == [kind, "407 words of somebody"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ERRORS)
async def test_no_error_of_a_transport_shows_what_was_vended(
    family: Any, how: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R107, R108, R109. Text, cause, context, notes, attributes, frames, pickle, log, evidence."""
    caplog.set_level(logging.DEBUG)
    sink = RecordingSink()
    wire = HostileWire(family, raises=ERRORS[how])
    with SecretAudit(CANARY) as audit:
        error = await _raised_by(family, _layers(wire, sink, kind))
        assert error is not None
        audit.add("raised", error)
        audit.add("pickled", _pickled(error))
        audit.add("evidence", sink.events)
    assert isinstance(error, family.TransportError)
    assert wire.received == 2
    assert audit.looked["exceptions"] > 0


def _pickled(error: BaseException) -> bytes:
    try:
        return pickle.dumps(error)
    except Exception:  # noqa: BLE001 - an error of httpx that keeps its request may refuse
        return b""


@pytest.mark.parametrize("how", ERRORS)
async def test_nor_what_a_signer_put_on(family: Any, how: str) -> None:
    """R108, R113, R116."""
    sink = RecordingSink()
    wire = HostileWire(family, raises=ERRORS[how])
    with SecretAudit(CANARY) as audit:
        audit.add("raised", await _raised_by(family, _signed(wire, sink)))
        audit.add("evidence", sink.events)
    assert wire.received == 1


@pytest.mark.parametrize("how", ERRORS)
async def test_the_control_of_the_two_above(family: Any, how: str) -> None:
    """R109. Each of these errors shows the credential of a naive transport."""
    naive = Naive(HostileWire(family, raises=ERRORS[how]), f"Bearer {CANARY}")
    error = await _raised_by(family, naive)
    with pytest.raises(SecretLeakError):
        _audit(error)


def _audit(*artefacts: object) -> None:
    with SecretAudit(CANARY, skip=("objects", "requests", "tasks")) as audit:
        for artefact in artefacts:
            audit.add("artefact", artefact)


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_shows_no_more_than_the_headers_did(family: Any, body: str) -> None:
    """R108. The frames that read it hold the signed request; cancelled or broken, they go."""
    for layers in (_layers, _signed):
        sink = RecordingSink()
        wire = HostileWire(family, body=body)
        with SecretAudit(CANARY) as audit:
            audit.add("raised", await _left(family, layers(wire, sink)))
            audit.add("evidence", sink.events)
        assert wire.received == 1
    naive = Naive(HostileWire(family, body=body), f"Bearer {CANARY}")
    error = await _left(family, naive)
    with pytest.raises(SecretLeakError):
        _audit(error)


async def _left(family: Any, transport: Any) -> BaseException | None:
    """What left a call that is cancelled after a moment, if it has not ended by then."""
    caught: list[BaseException] = []

    async def call() -> None:
        try:
            await post(family, transport, message())
        except BaseException as error:
            caught.append(error)
            if not isinstance(error, Exception):
                raise

    with anyio.move_on_after(0.05):
        await call()
    return caught[0] if caught else None


@pytest.mark.parametrize("how", WAITS)
async def test_a_cancellation_holds_no_frame_that_knows_the_request(family: Any, how: str) -> None:
    """R108, D27. Crash reporters print the frames of a cancellation, too."""
    for layers in (_layers, _signed):
        sink = RecordingSink()
        wire = HostileWire(family, waits=WAITS[how])
        with SecretAudit(CANARY) as audit:
            error = await _left(family, layers(wire, sink))
            assert isinstance(error, anyio.get_cancelled_exc_class())
            audit.add("raised", error)
            audit.add("evidence", sink.events)
        assert wire.received == 1
    naive = Naive(HostileWire(family, waits=WAITS[how]), f"Bearer {CANARY}")
    error = await _left(family, naive)
    with pytest.raises(SecretLeakError):
        _audit(error)


async def test_nor_does_a_deadline_that_cuts_a_call(family: Any) -> None:
    """R108, R46."""
    sink = RecordingSink()
    wire = HostileWire(family, waits=WAITS["plainly"])
    with SecretAudit(CANARY) as audit:
        error = await _raised_by(family, _layers(wire, sink, retry=Retry(max_elapsed=0.05)))
        audit.add("raised", error)
        audit.add("evidence", sink.events)
    assert type(error).__name__ == "MayHaveRunError"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_finished_task_remembers_nothing(family: Any) -> None:
    """R108. Its repr prints its result or its exception, and debuggers keep it."""
    sink = RecordingSink()
    tasks: list[asyncio.Task[Any]] = [
        asyncio.ensure_future(_raised_by(family, _layers(HostileWire(family, raises=how), sink)))
        for how in ERRORS.values()
    ]
    with SecretAudit(CANARY) as audit:
        await asyncio.wait(tasks, timeout=5)
        for task in tasks:
            audit.add("task", task)
            audit.add("repr", repr(task))
    assert all(task.done() for task in tasks)


async def test_the_layers_keep_nothing_between_requests_nor_while_a_call_waits(
    family: Any,
) -> None:
    """R19, R107, R119. Drops: kept by no object once the attempt's response is closed."""
    from surefoot.testing import Replies, ScriptedTransport

    clock = FakeClock(auto=False)
    sink = RecordingSink()
    refusals = ScriptedTransport(Replies(429), Replies())
    transport = _layers(_Forgetful(refusals), sink, clock=clock, retry=Retry())
    with SecretAudit(CANARY) as audit:
        async with anyio.create_task_group() as group:
            group.start_soon(post, family, transport, message())
            await clock.until_sleeping()
            audit.add("transport", transport)
            audit.check()
            await clock.advance(1)
        audit.add("transport", transport)
        audit.add("settings", transport.__dict__)
        audit.add("settings below", transport.wrapped.__dict__)
    assert len(refusals.requests) == 2


class _Forgetful:
    """A wire that hands on a request without what is secret, so that its double remembers none."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    async def handle_async_request(self, request: Any) -> Any:
        assert CANARY in request.headers["authorization"]
        bare = request.__class__(request.method, request.url, stream=request.stream)
        return await self._wrapped.handle_async_request(bare)

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_seal_shows_nothing_and_is_gone_where_nobody_opens_it(family: Any) -> None:
    """R107, B7. It hangs on the response between two layers of ours, and on no other."""
    from surefoot.testing import Replies, ScriptedTransport
    from surefoot.transports._seal import SEAL

    async def vend(_: object) -> Any:
        return Bearer(CANARY)

    vending = VendingTransport(
        _Forgetful(ScriptedTransport(Replies(), Replies())), credentials=as_provider(vend)
    )
    response = await post(family, vending)
    seal = response.extensions[SEAL]
    assert seal.secrets() == (CANARY.encode(),)
    assert CANARY not in f"{seal!r}{seal!s}"
    with pytest.raises(TypeError):
        pickle.dumps(seal)
    response = await post(family, RetryingTransport(vending))
    assert SEAL not in response.extensions
