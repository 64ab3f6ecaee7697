"""B7. What is a secret by itself is found by itself, wherever in a header it was sent."""

from __future__ import annotations

from base64 import b64encode

import pytest

from surefoot.wire import MARK, Scrub
from surefoot.wire.strict_json import dumps, loads

SIGNED = "3f1e9c0a55b7d2e4c6a8f0b1d3e5f7091b2d4f6a8c0e1f3a5b7c9d1e3f50718a"
SIGV4 = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/x/aws4_request, "
    f"SignedHeaders=host;x-amz-content-sha256, Signature={SIGNED}"
)


@pytest.mark.parametrize(
    "header",
    [
        SIGV4,
        f"session={SIGNED}; theme=dark",
        f"a=b; session={SIGNED}",
        f"Token token={SIGNED}",
        f'Digest username="u", response="{SIGNED}"',
        "Basic " + b64encode(f"user:{SIGNED}".encode()).decode(),
    ],
)
def test_a_part_of_a_header_is_found_alone(header: str) -> None:
    """B7. As servers quote it."""
    clean, hits = Scrub([header.encode()])(dumps([f"no match: {SIGNED}", "user"]))
    assert (loads(clean), hits) == ([f"no match: {MARK}", "user"], 1)


@pytest.mark.parametrize("text", ["x-amz-content-sha256", "theme=dark", "AWS4-HMAC-SHA256", "host"])
def test_what_is_no_secret_in_such_a_header_stays(text: str) -> None:
    """B7. The negative rows: names, and what is too short to be told from a word."""
    answer = dumps([text])
    scrub = Scrub([SIGV4.encode(), f"session={SIGNED}; theme=dark".encode()])
    assert scrub(answer) == (answer, 0)


@pytest.mark.parametrize("token", ["abcdefgh" * 4, "YWJjZGVmZ2hpamtsbW5vcA==", "a" * 31 + "="])
def test_a_token_of_one_part_is_searched_for_once(token: str) -> None:
    """B7. Padding divides nothing, and base64 of anything but a pair is a token."""
    assert Scrub([f"Bearer {token}".encode()])(dumps([token[:-2]]))[1] == 0


def test_parts_do_not_count_as_what_is_too_short() -> None:
    """B7. The record says how many secrets were too short, however many parts the others have."""
    scrub = Scrub([b"session=a-value-of-twenty-bytes; other=one-more-of-twenty-b", b"short"])
    assert (scrub.searched, scrub.too_short) == (1, 1)
