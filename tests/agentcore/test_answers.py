"""D19, D20, D26, R62, R90: what of an answer passes at these doors, and how long one may take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import anyio
import pytest

from support.agentcore import gateway_of, runtime_of
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot.agentcore import DEFAULT_RETRY
from surefoot.testing import AgentCoreStandIn, HeldStream, Sse
from surefoot.wire import sentence

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

HALF: Final = replace(DEFAULT_RETRY, max_elapsed=0.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answers", [None, "strict", "checked"])
async def test_an_errors_own_text_passes_where_the_app_says_so(
    kind: Kind, answers: Literal["strict", "checked"] | None
) -> None:
    """D20, R90, B7. By default none that is not known; else without what the request carried.

    The control: the row quotes the signed request, and a text that passes shows the mark in its
    place.
    """
    options: dict[str, Any] = {} if answers is None else {"answers": answers}
    with AgentCoreStandIn() as stand_in:
        async with opened(runtime_of(stand_in, **options).transport(), kind) as session:
            stand_in.script("search", "unknown-message")
            told = await session.call("search", {"q": "it"})
        signed = stand_in.requests("search")[-1].header("authorization")
        token = stand_in.keys.session_token
    assert signed is not None
    assert token is not None
    assert told.code == -32099
    assert signed.decode("ascii") not in told.text
    assert token not in told.text
    if answers == "checked":
        assert told.text.startswith(f"Refused: {stand_in.canary} ")
    else:
        assert told.text == sentence("server-error")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("through", [runtime_of, gateway_of])
async def test_a_deadline_covers_a_stream_up_to_its_first_event(kind: Kind, through: Any) -> None:
    """D26, R62. A busy session may be said there. The control: one whose event came goes on."""
    with AgentCoreStandIn() as stand_in:
        tool = "search" if through is runtime_of else "orders___search"
        async with opened(through(stand_in, retry=HALF).transport(), kind) as session:
            with anyio.fail_after(5):
                stand_in.script(tool, HeldStream())
                held = await session.call(tool, {"q": "it"})
                stand_in.script(tool, Sse(before=1, interval=1.0))
                late = await session.call(tool, {"q": "it"})
        assert stand_in.executions(tool) == 2
    assert (held.kind, held.facts["may_have_run"]) == ("deadline", True)
    assert (late.kind, late.text) == (None, "found it")
