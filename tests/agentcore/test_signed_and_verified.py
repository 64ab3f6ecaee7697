"""R18, R113, invariant 11: whatever is signed verifies, also behind a proxy that rewrites it.

A property over methods, paths, queries, headers, bodies and keys, with a verifier that shares no
code with the signer, and with botocore none either.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.agentcore import keys
from surefoot.agentcore import SigV4Signer
from surefoot.testing import FakeClock, RewritingHop, SigV4Keys, SigV4Verifier

NOW: Final = datetime(2026, 11, 30, 12, 0, 5, tzinfo=UTC)
CLOCK: Final = FakeClock(start=NOW)

LONG_LIVED: Final = SigV4Keys("AKIDEXAMPLE", "a-secret/with+odd=letters")
WITH_TOKEN: Final = SigV4Keys("ASIAEXAMPLE", "another-secret", "a/session+token==" * 20)
KNOWN: Final = {one.access_key_id: one for one in (LONG_LIVED, WITH_TOKEN)}

TEXTS: Final = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
).filter(lambda text: set(text) != {"."})
VALUES: Final = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=30
).filter(lambda text: text.strip() != "")
NAMES: Final = st.sampled_from(
    ["mcp-name", "mcp-method", "mcp-session-id", "x-amzn-bedrock-agentcore-runtime-user-id",
     "accept", "user-agent", "x-forwarded-for", "traceparent", "x-amzn-trace-id"]
)  # fmt: skip


def signed(held: SigV4Keys, request: Any) -> Any:
    """Sign without an event loop: keys in memory are taken where they lie."""
    aws = keys(held.access_key_id, held.secret_access_key, held.session_token)
    steps: Any = SigV4Signer(region="us-west-2", aws=aws, clock=CLOCK)(request)
    with pytest.raises(StopIteration) as done:
        steps.send(None)
    return done.value.value


@given(
    method=st.sampled_from(["POST", "GET", "DELETE"]),
    path=st.lists(TEXTS, min_size=1, max_size=4),
    query=st.lists(st.tuples(TEXTS, TEXTS), max_size=4),
    headers=st.dictionaries(NAMES, VALUES, max_size=5),
    body=st.binary(max_size=200),
    held=st.sampled_from([LONG_LIVED, WITH_TOKEN]),
    hop=st.sampled_from([None, RewritingHop()]),
    name=st.sampled_from(["httpx2", "httpx"]),
)
def test_whatever_is_signed_verifies(  # noqa: PLR0917 - what is drawn
    method: str,
    path: list[str],
    query: list[tuple[str, str]],
    headers: dict[str, str],
    body: bytes,
    held: SigV4Keys,
    hop: RewritingHop | None,
    name: str,
) -> None:
    """The request as it goes over the wire, with its header lines as a hop leaves them."""
    family = pytest.importorskip(name)
    where = "/".join(quote(part, safe="") for part in path)
    asked = "&".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in query)
    url = f"https://gateway.example.com/{where}{'?' if asked else ''}{asked}"
    request = family.Request(method, url, headers=headers, content=body or None)
    request = signed(held, request)
    lines = list(request.headers.raw)
    verified = SigV4Verifier(KNOWN, region="us-west-2").verify(
        method,
        request.url.raw_path.decode("ascii"),
        lines if hop is None else hop.rewrite(lines),
        body,
        now=NOW,
    )
    assert verified.with_token is (held is WITH_TOKEN)
    assert {"host", "x-amz-date"} <= set(verified.signed_headers)
    assert not {"accept", "user-agent", "x-forwarded-for", "traceparent", "x-amzn-trace-id",
                "content-length"} & set(verified.signed_headers)  # fmt: skip
