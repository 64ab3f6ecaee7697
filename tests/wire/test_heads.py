"""R91, R93, D23, D25, B7. Of an answer's head only what is listed passes, each checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.wire import AnswerPolicy, Scrub, origin_of, read_head

JSON = (b"content-type", b"application/json")
ORIGIN = origin_of("https://gateway.example.com/mcp")
UUID = b"0b6d1c4e-1111-2222-3333-444455556666"


CONTENT_TYPES: list[tuple[bytes, str, str]] = [
    (b"application/json", "json", "json"),
    (b"APPLICATION/Json", "json", "json"),
    (b" application/json ", "json", "json"),
    (b"application/json;", "json", "json"),
    (b"application/json; charset=utf-8", "json", "json"),
    (b'application/json;charset="UTF-8"', "json", "json"),
    (b"application/json; charset=UTF8", "content-type-parameter", "json"),
    (b'application/json; charset="utf-8', "content-type-parameter", "json"),
    (b"text/event-stream", "events", "events"),
    (b"Text/Event-Stream; charset=utf-8", "events", "events"),
    (b"application/json; charset=utf-16", "content-type-parameter", "json"),
    (b"application/json; profile=x", "content-type-parameter", "json"),
    (b"text/event-stream; charset=utf-7", "content-type-parameter", "events"),
    (b"application/json-seq", "content-type", "content-type"),
    (b"application/jsonx", "content-type", "content-type"),
    (b"application/problem+json", "content-type", "content-type"),
    (b"application/x-amz-json-1.1", "content-type", "content-type"),
    (b"text/json", "content-type", "content-type"),
    (b"text/html", "content-type", "content-type"),
    (b"", "content-type", "content-type"),
    (b"application/json, text/html", "content-type", "content-type"),
]


@pytest.mark.parametrize(("value", "strict", "checked"), CONTENT_TYPES)
def test_one_rule_says_what_a_body_may_be_read_as(value: bytes, strict: str, checked: str) -> None:
    """R93, D25."""
    policies: list[tuple[AnswerPolicy, str]] = [("strict", strict), ("checked", checked)]
    for policy, expected in policies:
        head = read_head(200, [(b"Content-Type", value)], policy=policy)
        assert expected == (head.media if head.rule is None else head.rule)


@pytest.mark.parametrize("second", [b"application/json", b"text/html"])
def test_two_content_types_are_refused(second: bytes) -> None:
    """D25."""
    head = read_head(200, [JSON, (b"Content-Type", second)])
    assert (head.media, head.rule) == ("other", "two-content-types")


def test_no_content_type_is_none() -> None:
    """R93."""
    head = read_head(200, [])
    assert (head.media, head.rule, head.headers) == ("none", None, ())


PASSES: list[tuple[bytes, bytes]] = [
    (b"mcp-session-id", b"1868a90c-6fbd"),
    (b"mcp-session-id", b"!~"),
    (b"mcp-session-id", b"x" * 1024),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"retry-after", b"30"),
    (b"retry-after", b"0"),
    (b"retry-after", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    (b"retry-after", b"Sunday, 06-Nov-94 08:49:37 GMT"),
    (b"retry-after", b"Sun Nov  6 08:49:37 1994"),
    (b"x-amzn-requestid", UUID),
    (b"x-amzn-requestid", UUID.upper()),
]

STOPS: list[tuple[bytes, bytes]] = [
    (b"mcp-session-id", b"a b"),
    (b"mcp-session-id", b""),
    (b"mcp-session-id", b"x" * 1025),
    (b"mcp-session-id", "\u2026".encode()),
    (b"mcp-session-id", b"a\x7f"),
    (b"mcp-protocol-version", b"2026\t07"),
    (b"retry-after", b"soon"),
    (b"retry-after", b"-1"),
    (b"retry-after", b"1.5"),
    (b"retry-after", b"30, 60"),
    (b"retry-after", b"1" * 33),
    (b"retry-after", b"Sun, 06 Nov 1994 08:49:37 UTC"),
    (b"x-amzn-requestid", b"CANARY"),
    (b"x-amzn-requestid", UUID + b"0"),
    (b"set-cookie", b"a=b"),
    (b"location", b"https://elsewhere.example"),
    (b"server", b"x"),
    (b"x-amzn-remapped-authorization", b"Bearer x"),
    (b"x-amzn-bedrock-agentcore-runtime-session-endpoint-url", b"https://x"),
    (b"content-encoding", b"gzip"),
    (b"transfer-encoding", b"chunked"),
    (b"content-length", b"12"),
    (b"www-authenticate", b"Bearer"),
]


@pytest.mark.parametrize("line", PASSES)
def test_what_is_listed_and_well_formed_passes(line: tuple[bytes, bytes]) -> None:
    """D23."""
    name, value = line
    assert read_head(200, [(name.title(), b" " + value + b"\t")]).headers == (line,)


@pytest.mark.parametrize("line", STOPS)
def test_what_is_not_listed_or_not_well_formed_does_not_pass(line: tuple[bytes, bytes]) -> None:
    """R91, D23."""
    assert read_head(200, [line, JSON]).headers == ()


@pytest.mark.parametrize("line", PASSES)
def test_a_line_that_occurs_twice_says_nothing(line: tuple[bytes, bytes]) -> None:
    """D23, D14. Not even where both say the same."""
    assert read_head(200, [line, line]).headers == ()
    assert read_head(200, [line, line, line]).headers == ()


def test_a_line_that_holds_a_secret_does_not_pass() -> None:
    """B7."""
    secret = b"s3cr3t-CANARY-value"
    line = (b"mcp-session-id", b"x-" + secret)
    assert read_head(200, [line], scrub=Scrub([secret])).headers == ()
    assert read_head(200, [line], scrub=Scrub([b"another-secret"])).headers == (line,)


META = b'Bearer resource_metadata="%b"'

CHALLENGES: list[tuple[str, list[bytes], bytes | None]] = [
    ("bare", [b"Bearer"], b"Bearer"),
    ("case", [b"bEARER"], b"Bearer"),
    ("error", [b'Bearer error="invalid_token"'], b'Bearer error="invalid_token"'),
    ("token form", [b"Bearer error=invalid_token"], b'Bearer error="invalid_token"'),
    (
        "metadata on the origin",
        [b'Bearer resource_metadata="https://gateway.example.com/.well-known/x?y=%2F"'],
        b'Bearer resource_metadata="https://gateway.example.com/.well-known/x?y=%2F"',
    ),
    (
        "the default port is the origin",
        [b'Bearer resource_metadata="https://Gateway.Example.com:443/x"'],
        b'Bearer resource_metadata="https://Gateway.Example.com:443/x"',
    ),
    (
        "step up",
        [b'Bearer error="insufficient_scope", scope="a:read b:write"'],
        b'Bearer error="insufficient_scope", scope="a:read b:write"',
    ),
    (
        "free text is left out",
        [b'Bearer realm="CANARY", error="invalid_token", error_description="CANARY"'],
        b'Bearer error="invalid_token"',
    ),
    (
        "a scope that looks like a URL is a name",
        [b'Bearer scope="https://apis.example.org/auth/mail.read"'],
        b'Bearer scope="https://apis.example.org/auth/mail.read"',
    ),
    (
        "a URL on the origin that no flow reads is left out",
        [b'Bearer realm="https://gateway.example.com/", scope="a"'],
        b'Bearer scope="a"',
    ),
    ("a scope that is none is left out", [b'Bearer scope="a\\"b", error="x"'], b'Bearer error="x"'),
    ("after another scheme", [b'Basic realm="x", Bearer scope="a"'], b'Bearer scope="a"'),
    ("before another scheme", [b'Bearer scope="a", DPoP algs="ES256"'], b'Bearer scope="a"'),
    ("in a second line", [b'Basic realm="x"', b'Bearer scope="a"'], b'Bearer scope="a"'),
    ("a quoted comma", [b'Bearer realm="a, Bearer x", scope="b"'], b'Bearer scope="b"'),
    ("another origin", [b'Bearer resource_metadata="https://evil.example/x"'], None),
    ("another scheme of URL", [b'Bearer resource_metadata="http://gateway.example.com/x"'], None),
    ("another port", [b'Bearer resource_metadata="https://gateway.example.com:8443/x"'], None),
    ("a host that begins alike", [META % b"https://gateway.example.com.evil.example/"], None),
    ("user information", [META % b"https://gateway.example.com@evil.example/"], None),
    ("user information on the origin", [META % b"https://u:p@gateway.example.com/"], None),
    ("no URL", [b'Bearer resource_metadata="/x"'], None),
    ("a URL elsewhere in it", [b'Bearer scope="a", x_uri="https://evil.example/"'], None),
    ("an escaped URL", [b'Bearer resource_metadata="https:\\//evil.example/"'], None),
    ("a URL in the realm", [b'Bearer realm="https://evil.example", scope="a"'], None),
    ("a parameter twice", [b'Bearer scope="a", scope="b"'], None),
    ("another scheme alone", [b'Basic realm="x"'], None),
    ("no scheme", [b'error="x"'], None),
    ("unfinished", [b'Bearer scope="a'], None),
    ("empty", [b""], None),
    ("far too long", [b'Bearer scope="' + b"a" * 5_000 + b'"'], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "passes"), [c[1:] for c in CHALLENGES], ids=[c[0] for c in CHALLENGES]
)
@pytest.mark.parametrize("status", [401, 403])
def test_a_challenge_passes_only_where_it_leads_to_the_endpoints_own_origin(
    status: int, lines: list[bytes], passes: bytes | None
) -> None:
    """D23."""
    head = read_head(status, [(b"WWW-Authenticate", line) for line in lines], origin=ORIGIN)
    assert head.headers == (() if passes is None else ((b"www-authenticate", passes),))


@pytest.mark.parametrize("status", [200, 400, 404, 407, 429, 500])
def test_a_challenge_passes_only_at_401_and_403(status: int) -> None:
    """D23."""
    lines = [(b"www-authenticate", b'Bearer error="invalid_token"')]
    assert read_head(status, lines, origin=ORIGIN).headers == ()


def test_without_an_origin_no_url_passes() -> None:
    """D23."""
    url = b'Bearer resource_metadata="https://gateway.example.com/x"'
    assert read_head(401, [(b"www-authenticate", url)]).headers == ()


def test_a_challenge_that_holds_a_secret_does_not_pass() -> None:
    """B7."""
    line = (b"www-authenticate", b'Bearer scope="s3cr3t-CANARY-value"')
    assert read_head(401, [line], scrub=Scrub([b"s3cr3t-CANARY-value"])).headers == ()
    assert read_head(401, [line]).headers == (line,)


names = st.sampled_from([b"www-authenticate", b"content-type", b"retry-after", b"mcp-session-id"])


@given(
    st.lists(st.tuples(names, st.binary(max_size=40))),
    st.sampled_from([200, 401, 429]),
)
def test_no_bytes_in_a_head_raise(lines: list[tuple[bytes, bytes]], status: int) -> None:
    """R98, D23. Whatever passes is visible ASCII."""
    for _, value in read_head(status, lines, origin=ORIGIN).headers:
        assert value.isascii()
        assert value.decode().isprintable()
