"""The law of this file: switching repeats off loses no fact (R26, R75, B5)."""

from __future__ import annotations

import pytest

from surefoot import Gateway, RateLimitedError
from surefoot.testing import FaultyGateway, Throttle


async def test_with_repeats_off_the_stated_wait_still_reaches_the_caller() -> None:
    """B5. Nothing is sent again, and what the server asked for is told all the same."""
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(30))
        async with Gateway(gateway.url, retry=None).session() as session:
            with pytest.raises(RateLimitedError) as caught:
                await session.call("search", {"q": "W-7712"})
        assert caught.value.retry_after == 30.0
        assert caught.value.attempts == 1
        assert len(gateway.requests("search")) == 1
