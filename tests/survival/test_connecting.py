"""B1, B4, D2, R25. What is transient never moves a connection to an older protocol.

Measured on the bare SDK: one 429, 500, 503 or reset of `server/discover` and the connection falls
back to the handshake era and stays there; one failed notification costs it its writer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import pytest

from support.sessions import (
    KINDS,
    SDK_ON_TRIO,
    Kind,
    nothing_left,
    opened,
    told,
)
from surefoot import Gateway, Retry
from surefoot.testing import (
    BadJson,
    CutJson,
    FaultyGateway,
    RecordingSink,
    Reset,
    SessionLost,
    Slow,
    SseCut,
    Status,
    Step,
    Throttle,
)
from surefoot.wire import Outcome

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=2, base_delay=0.01)
HANDSHAKE: Final[list[Kind]] = [kind for kind in KINDS if kind != "modern"]
OPENER: Final = {"modern": "server/discover", "handshake": "initialize", "mcp1": "initialize"}

# Name, step, whether it meets every attempt, how often the opening request then goes out.
PASSING: Final[list[tuple[str, Step, int]]] = [
    ("429", Throttle(0), 2),
    ("reset before the headers", Reset(), 2),
    ("reset in the body", Reset("in-body"), 2),
    ("JSON cut", CutJson(), 2),
    ("slow", Slow(0.05), 1),
]

LASTING: Final[list[tuple[str, Step, int, Outcome]]] = [
    ("429", Throttle(0), 2, "rate-limited"),
    ("429 as JSON-RPC", Throttle(0, rpc_code=-32029), 2, "rate-limited"),
    ("429 that asks for too long", Throttle(60), 1, "rate-limited"),
    ("500", Status(500), 1, "server-failure"),
    ("502 with a page", Status(502, "<h1>bad</h1>", content_type="text/html"), 1, "server-failure"),
    ("503", Status(503, headers={"retry-after": "0"}), 1, "server-failure"),
    ("500 as JSON-RPC", Status(500, "broken", rpc_code=-32603), 1, "server-failure"),
    ("reset", Reset(), 2, "no-answer"),
    ("JSON cut", CutJson(), 2, "no-answer"),
    ("a stream cut", SseCut(), 1, "cut-stream"),
    ("a page for JSON", BadJson("html"), 1, "unreadable"),
    ("a name twice", BadJson("duplicate-keys"), 1, "unreadable"),
]


def _first(error: BaseException) -> Any:
    """The one error inside the groups that the SDK's task groups make of it."""
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return error  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "step", "sends"), PASSING, ids=[row[0] for row in PASSING])
async def test_what_passes_by_is_not_noticed(name: str, step: Step, sends: int, kind: Kind) -> None:
    """B4, D2. The session opens in its own era, after the wait or the repeat that is permitted."""
    del name
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        faulty.script(OPENER[kind], step)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            assert session.protocol == ("2026-07-28" if kind == "modern" else "2025-11-25")
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert len(faulty.requests(OPENER[kind])) == sends
        assert not (kind == "modern" and faulty.requests("initialize"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "step", "sends", "words"), LASTING, ids=[row[0] for row in LASTING]
)
async def test_what_lasts_ends_connecting_in_words_and_moves_it_to_no_older_protocol(
    name: str, step: Step, sends: int, words: Outcome, kind: Kind
) -> None:
    """B4, R25. The caller reads why; nothing else was posted, and nothing is left behind."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        faulty.script(OPENER[kind], step, repeat=True)
        async with nothing_left(faulty):
            with pytest.raises(Exception, match=r".") as caught:
                async with opened(gateway.transport(), kind):
                    pytest.fail("it connected")
        error = _first(caught.value).error
        assert error.code == (-32022 if kind == "modern" else -32603)
        if kind != "modern" and name == "500 as JSON-RPC":
            # Outside of discovery a JSON-RPC error is the server's own word (D20).
            assert error.message == "broken"
        else:
            assert error.data["surefoot/outcome"]["kind"] == words
        posts = faulty.requests("POST")
        assert [entry.method for entry in posts] == [OPENER[kind]] * sends


FAILING: Final[list[tuple[str, Step, str, int | None]]] = [
    ("401", Status(401), "answered", 401),
    ("403", Status(403), "answered", 403),
    ("404", Status(404), "answered", 404),
    ("429", Throttle(0), "refused", 429),
    ("500", Status(500), "answered", 500),
    ("503", Status(503), "answered", 503),
    ("reset", Reset(), "unanswered", None),
    ("a page", Status(200, "<html>", content_type="text/html"), "answered", 200),
]


@pytest.mark.filterwarnings("ignore:Client-to-server progress is deprecated")
@pytest.mark.parametrize("kind", HANDSHAKE)
@pytest.mark.parametrize(
    ("name", "step", "outcome", "status"), FAILING, ids=[row[0] for row in FAILING]
)
async def test_a_notification_that_fails_costs_the_session_nothing(
    name: str, step: Step, outcome: str, status: int | None, kind: Kind
) -> None:
    """B1. The one that opens the session, and one later; each is in the evidence as it was."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=sink)
        for method in ("notifications/initialized", "notifications/progress"):
            faulty.script(method, step, repeat=True)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            assert (await session.call("search", {"q": 1})).text == "found 1"
            await session.sdk.send_progress_notification("p-1", 0.5)
            assert (await session.call("search", {"q": 2})).text == "found 2"
        sends = 2 if name == "429" else 1
        for method in ("notifications/initialized", "notifications/progress"):
            (record,) = [
                event for event in sink.of("tool.request_attempts") if event["method"] == method
            ]
            assert len(faulty.requests(method)) == sends
            ends = {(attempt["outcome"], attempt["status"]) for attempt in _attempts(record)}
            assert ends == {(outcome, status)}


def _attempts(record: dict[str, object]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", record["attempts"])


@pytest.mark.parametrize("kind", HANDSHAKE)
@pytest.mark.parametrize("key", ["GET", "DELETE"])
@pytest.mark.parametrize(
    "step",
    [Status(405), Status(404), Status(500), Status(401), Throttle(0), Reset()],
    ids=["405", "404", "500", "401", "429", "reset"],
)
async def test_the_standing_stream_and_the_end_of_a_session_may_fail(
    step: Step, key: str, kind: Kind
) -> None:
    """B1. The calls do not notice, and the session closes cleanly."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        faulty.script(key, step, repeat=True)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            if key == "GET":
                await faulty.until(lambda: len(faulty.requests("GET")) > 0)
            assert (await session.call("search", {"q": 1})).text == "found 1"
            assert (await session.call("search", {"q": 2})).text == "found 2"
        assert faulty.requests(key)


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_lost_session_is_told_and_a_new_one_works(kind: Kind) -> None:
    """D35, R100. Nothing is replayed: the call that found out did not run, nor is it sent again."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
            faulty.script("charge", SessionLost())
            lost = await session.call("charge", {"amount": 1})
            assert lost.code in (-32600, 32600)
            again = await session.call("charge", {"amount": 1})
            assert again.code in (-32600, 32600)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert faulty.executions("charge") == 2
        assert len(faulty.requests("charge")) == 4


Asks = Callable[[Any], Any]

OTHERS: Final[list[tuple[str, str, Asks]]] = [
    ("tools/list", "tools/list", lambda sdk: sdk.list_tools()),
    ("prompts/get", "prompts/get", lambda sdk: sdk.get_prompt("greeting")),
    ("resources/read", "resources/read", lambda sdk: sdk.read_resource("note://one")),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "method", "ask"), OTHERS, ids=[row[0] for row in OTHERS])
async def test_a_request_that_is_no_call_is_told_as_an_error_and_repeated_if_it_reads(
    name: str, method: str, ask: Asks, kind: Kind
) -> None:
    """D2, D36, B1. A reset is repeated by the protocol's word, a 503 is told, a 429 waited out."""
    del name
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=sink)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            for step in (Reset(), Throttle(0)):
                faulty.script(method, step)
                assert (await told(ask(session.sdk))).code is None
            faulty.script(method, Status(503))
            failed = await told(ask(session.sdk))
            faulty.script(method, Reset(), repeat=True)
            silent = await told(ask(session.sdk))
            faulty.clear_scripts()
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (failed.code, failed.kind) == (-32603, "server-failure")
        assert (silent.code, silent.kind) == (-32603, "no-answer")
    records = [event for event in sink.of("tool.request_attempts") if event["method"] == method][:4]
    assert [len(_attempts(record)) for record in records] == [2, 2, 1, 2]
    assert [_attempts(record)[0]["permission"] for record in records] == [
        {"by": "protocol", "assumes": None},
        {"by": "protocol", "assumes": "refused-before-execution"},
        None,
        {"by": "protocol", "assumes": None},
    ]
