"""B7. A secret may be in the query: put there by a signer, or by whoever wrote the URL."""

from __future__ import annotations

from typing import Any

import pytest

from support.sending import message
from surefoot import Gateway
from surefoot.testing import Replies, ScriptedTransport
from surefoot.wire import MARK

pytestmark = pytest.mark.anyio

URL = "http://gateway.test/mcp"
SIGNED = "3f1e9c0a55b7d2e4c6a8f0b1d3e5f7091b2d4f6a"


async def _read(family: Any, said: str, query: str = "", signer: Any = None) -> str:
    """What the client reads of a result that says this."""
    wire = ScriptedTransport(Replies(result={"content": [{"type": "text", "text": said}]}))
    client = Gateway(URL + query, signer=signer).protect(family.AsyncClient(transport=wire))
    asked = message()
    headers = dict(asked.headers)
    response = await client.post(URL + query, content=asked.body, headers=headers)
    return str(response.json()["result"]["content"][0]["text"])


@pytest.mark.parametrize(
    ("query", "stays"),
    [
        (f"?api_key={SIGNED}", False),
        (f"?a=b&access_token={SIGNED}", False),
        (f"?project={SIGNED}", True),
        ("", True),
    ],
)
async def test_a_secret_of_the_url_is_known_by_its_name(
    family: Any, query: str, stays: bool
) -> None:
    """B7. And what is called anything else stays: tools name projects."""
    assert await _read(family, f"bad: {SIGNED}", query) == f"bad: {SIGNED if stays else MARK}"


async def test_what_a_signer_adds_to_the_query_is_secret(family: Any) -> None:
    """B7, R113. Whatever its name, but for those that say how it was signed."""

    async def sign(request: Any) -> Any:
        added = {"X-Signed": SIGNED, "X-Amz-Date": "20261130T000000Z"}
        request.url = request.url.copy_merge_params(added)
        return request

    said = f"bad: {SIGNED}, 20261130T000000Z"
    assert await _read(family, said, signer=sign) == f"bad: {MARK}, 20261130T000000Z"
