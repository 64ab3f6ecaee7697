"""The stand-in's own check of AWS signatures: the published cases, and everything that must fail.

Beside each refusal stands the same request untouched, which is let in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.corpora import ABSENT, corpus
from support.sigv4 import Sent
from support.sigv4 import sign as sign_with
from surefoot.testing import (
    RewritingHop,
    SignatureRefusedError,
    SigV4Keys,
    SigV4Verifier,
)
from surefoot.testing._agentcore_sigv4 import (
    canonical_request,
    header_values,
    read_authorization,
    signature,
    string_to_sign,
)

SUITE = corpus("aws4_testsuite")
CASES = sorted(SUITE.rglob("*.req")) if SUITE is not None else []

PUBLISHED = SigV4Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
THEN = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)


def read_case(path: Path) -> Sent:
    """A request of the published suite; its lines end in LF, and it may be folded."""
    head, _, body = path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
    first, *rest = head.split(b"\n")
    method, _, target = first.rpartition(b" ")[0].partition(b" ")
    lines: list[tuple[bytes, bytes]] = []
    for line in rest:
        if line[:1] in {b" ", b"\t"}:
            name, value = lines[-1]
            lines[-1] = (name, value + b"\n" + line)
        elif line:
            name, _, value = line.partition(b":")
            lines.append((name, value))
    return Sent(
        method=method.decode(), target=target.decode("latin-1"), lines=tuple(lines), body=body
    )


@pytest.mark.skipif(not CASES, reason=ABSENT)
@pytest.mark.parametrize("request_file", CASES, ids=[path.stem for path in CASES])
def test_every_published_case_comes_out_as_published(request_file: Path) -> None:
    """Canonical request, string to sign and signature, byte for byte."""

    def said(kind: str) -> str:
        return request_file.with_suffix(f".{kind}").read_text("utf-8").replace("\r\n", "\n")

    asked = read_authorization(said("authz"))
    assert asked is not None
    # The token of this case is in the signed form of the request alone.
    with_token = "with-session-token" in request_file.stem
    sent = read_case(request_file.with_suffix(".sreq") if with_token else request_file)
    canonical = canonical_request(
        sent.method, sent.target, sent.lines, sent.body, signed_headers=asked.signed_headers
    )
    assert canonical == said("creq")
    to_sign = string_to_sign(canonical, "20150830T123600Z", asked.scope)
    assert to_sign == said("sts")
    assert signature(PUBLISHED.secret_access_key, to_sign, asked.scope) == asked.signature

    token = header_values(sent.lines, "x-amz-security-token")
    keys = replace(PUBLISHED, session_token=token[0].decode()) if token else PUBLISHED
    verifier = SigV4Verifier({keys.access_key_id: keys}, service="service", region="us-east-1")
    signed = sent.with_line("Authorization", said("authz"))
    made = verifier.verify(signed.method, signed.target, signed.lines, signed.body, now=THEN)
    assert made.signature == asked.signature
    assert made.with_token == bool(token)


@pytest.mark.skipif(SUITE is None, reason=ABSENT)
def test_all_thirty_four_published_cases_are_there() -> None:
    """A suite of nothing passes everything."""
    assert len(CASES) == 34


@pytest.mark.skipif(SUITE is None, reason=ABSENT)
def test_a_token_that_was_added_after_signing_is_refused() -> None:
    """AgentCore is not one of the services that take it so; the published case is the request."""
    assert SUITE is not None
    case = SUITE / "post-sts-token" / "post-sts-header-after" / "post-sts-header-after.sreq"
    sent = read_case(case)
    token = header_values(sent.lines, "x-amz-security-token")[0].decode()
    keys = replace(PUBLISHED, session_token=token)
    verifier = SigV4Verifier({keys.access_key_id: keys}, service="service", region="us-east-1")
    with pytest.raises(SignatureRefusedError) as caught:
        verifier.verify(sent.method, sent.target, sent.lines, sent.body, now=THEN)
    assert caught.value.fault == "unsigned-header"


NOW = datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)
KEYS = SigV4Keys("ASIATESTKEY", "secret-of-the-test", "token/of+the==test")
LASTING = SigV4Keys("AKIATESTKEY", "another-secret")
PATH = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-west-2%3A123456789012%3Aruntime%2Forders-Ab1"


PLAIN = Sent(
    method="POST",
    target=f"{PATH}/invocations?qualifier=DEFAULT",
    lines=(
        (b"host", b"127.0.0.1:8000"),
        (b"accept", b"application/json, text/event-stream"),
        (b"accept-encoding", b"gzip, deflate"),
        (b"connection", b"keep-alive"),
        (b"user-agent", b"test/1"),
        (b"content-length", b"2"),
        (b"content-type", b"application/json"),
        (b"mcp-session-id", b"s-1"),
    ),
    body=b"{}",
)


def sign(sent: Sent, keys: SigV4Keys = KEYS, *, at: datetime = NOW, names: str = "") -> Sent:
    """The request, signed with the keys of the test."""
    return sign_with(sent, keys, at=at, names=names)


def a_verifier(*, reuse_after: float | None = 1.5) -> SigV4Verifier:
    """A verifier that knows both keys."""
    known = {keys.access_key_id: keys for keys in (KEYS, LASTING)}
    return SigV4Verifier(known, reuse_after=reuse_after)


def check(verifier: SigV4Verifier, sent: Sent, *, now: datetime = NOW) -> str:
    """The fault that is found; empty where there is none."""
    try:
        verifier.verify(sent.method, sent.target, sent.lines, sent.body, now=now)
    except SignatureRefusedError as error:
        return error.fault
    return ""


def _scoped(part: str, other: str) -> Callable[[Sent], Sent]:
    def change(sent: Sent) -> Sent:
        text = header_values(sent.lines, "authorization")[0].decode()
        return sent.with_line("authorization", text.replace(part, other))

    return change


TAMPERED: list[tuple[str, Callable[[Sent], Sent], str]] = [
    ("body", lambda sent: replace(sent, body=b'{"x":1}'), "mismatch"),
    ("method", lambda sent: replace(sent, method="DELETE"), "mismatch"),
    ("path", lambda sent: replace(sent, target=sent.target.replace("Ab1", "Ab2")), "mismatch"),
    (
        "path decoded once",
        lambda sent: replace(sent, target=sent.target.replace("%2F", "/").replace("%3A", ":")),
        "mismatch",
    ),
    ("query", lambda sent: replace(sent, target=sent.target + "&x=1"), "mismatch"),
    ("signed header", lambda sent: sent.with_line("mcp-session-id", "s-2"), "mismatch"),
    ("signed header gone", lambda sent: sent.without("content-type"), "mismatch"),
    ("host", lambda sent: sent.with_line("host", "elsewhere.example"), "mismatch"),
    ("date moved", lambda sent: sent.with_line("x-amz-date", "20261130T120031Z"), "mismatch"),
    ("date gone", lambda sent: sent.without("x-amz-date"), "malformed"),
    ("date odd", lambda sent: sent.with_line("x-amz-date", "yesterday"), "malformed"),
    ("token gone", lambda sent: sent.without("x-amz-security-token"), "wrong-token"),
    ("token of another", lambda sent: sent.with_line("x-amz-security-token", "x"), "wrong-token"),
    ("token added", lambda sent: sent.with_line("x-amz-extra", "1"), "unsigned-header"),
    (
        "digest that lies",
        lambda sent: sent.with_line("x-amz-content-sha256", "0"),
        "unsigned-header",
    ),
    ("no authorization", lambda sent: sent.without("authorization"), "missing"),
    ("bearer", lambda sent: sent.with_line("authorization", "Bearer abc"), "not-sigv4"),
    ("cut", lambda sent: sent.with_line("authorization", "AWS4-HMAC-SHA256 Cred"), "malformed"),
    ("other key", _scoped("ASIATESTKEY", "ASIAOTHERKEY"), "unknown-key"),
    ("other region", _scoped("us-west-2", "us-east-1"), "wrong-scope"),
    ("other service", _scoped("bedrock-agentcore", "execute-api"), "wrong-scope"),
    ("other day", _scoped("20261130/", "20261129/"), "wrong-scope"),
    ("one bit of the signature", _scoped("Signature=", "Signature=0"), "malformed"),
    ("host not signed", _scoped(";host", ""), "unsigned-header"),
    ("names out of order", _scoped("content-type;host", "host;content-type"), "malformed"),
]


@pytest.mark.parametrize(
    ("change", "fault"), [row[1:] for row in TAMPERED], ids=[row[0] for row in TAMPERED]
)
def test_whatever_is_changed_after_signing_is_found(
    change: Callable[[Sent], Sent], fault: str
) -> None:
    """The control is the same request before the change."""
    sent = sign(PLAIN)
    assert check(a_verifier(), change(sent)) == fault
    assert check(a_verifier(), sent) == ""


def test_a_signature_with_one_other_digit_does_not_match() -> None:
    """And what is refused says what was wanted, which AWS sends back."""
    sent = sign(PLAIN)
    text = header_values(sent.lines, "authorization")[0].decode()
    other = text[:-1] + ("0" if text[-1] != "0" else "1")
    changed = sent.with_line("authorization", other)
    with pytest.raises(SignatureRefusedError) as caught:
        a_verifier().verify(changed.method, changed.target, changed.lines, changed.body, now=NOW)
    assert caught.value.fault == "mismatch"
    assert "%253A" in caught.value.canonical
    assert caught.value.to_sign.startswith("AWS4-HMAC-SHA256\n20261130T120030Z\n")
    assert "token/of" not in str(caught.value)


def test_a_path_that_was_signed_as_it_is_decoded_is_refused() -> None:
    """The trap of clients that sign `url.path`: the wire says %2F, they signed a slash."""
    decoded = replace(PLAIN, target=PLAIN.target.replace("%2F", "/").replace("%3A", ":"))
    once = replace(sign(decoded), target=PLAIN.target)
    assert check(a_verifier(), once) == "mismatch"
    assert check(a_verifier(), sign(decoded)) == ""


def test_a_token_of_earlier_keys_that_was_left_in_place_is_refused() -> None:
    """Keys that live long come without a token; an old one beside them is not theirs."""
    stale = sign(PLAIN.with_line("x-amz-security-token", "old"), LASTING)
    assert check(a_verifier(), stale) == "wrong-token"
    made = sign(PLAIN, LASTING)
    seen = a_verifier().verify(made.method, made.target, made.lines, made.body, now=NOW)
    assert not seen.with_token
    assert seen.access_key_id == "AKIATESTKEY"


@pytest.mark.parametrize(
    ("away", "fault"), [(-301, "too-old"), (-300, ""), (0, ""), (300, ""), (301, "too-new")]
)
def test_a_date_may_be_five_minutes_off(away: int, fault: str) -> None:
    """In either direction, to the second."""
    assert check(a_verifier(), sign(PLAIN, at=NOW + timedelta(seconds=away))) == fault


@pytest.mark.parametrize(
    ("reuse_after", "later", "fault"),
    [(1.5, 0.0, ""), (1.5, 2.0, "reused"), (0.0, 0.0, "reused"), (None, 200.0, "")],
)
def test_a_signature_is_good_for_one_request(
    reuse_after: float | None, later: float, fault: str
) -> None:
    """Within the second of its date, the same request signed again has the same signature."""
    verifier, sent = a_verifier(reuse_after=reuse_after), sign(PLAIN)
    now = NOW + timedelta(seconds=later)
    assert check(verifier, sent) == ""
    assert check(verifier, sent, now=now) == fault
    afresh = sign(PLAIN, at=now + timedelta(seconds=1))
    assert check(verifier, afresh, now=now + timedelta(seconds=1)) == ""


def test_what_a_hop_rewrites_may_change_and_what_it_may_not_is_found() -> None:
    """A signature over a line that the hop writes anew is refused; over none, it is let in."""
    hop = RewritingHop(adds={"X-Proxy": "1", "mcp-session-id": "s-9"})
    passed = replace(sign(PLAIN), lines=RewritingHop().rewrite(sign(PLAIN).lines))
    assert passed.lines != sign(PLAIN).lines
    assert header_values(passed.lines, "content-length") == []
    assert header_values(passed.lines, "accept-encoding") == [b"gzip, br"]
    assert header_values(passed.lines, "via") == [b"1.1 hop"]
    assert check(a_verifier(), passed) == ""

    for name in ("accept", "accept-encoding", "user-agent", "content-length", "connection"):
        named = sign(PLAIN, names=name)
        assert check(a_verifier(), named) == ""
        through = replace(named, lines=RewritingHop().rewrite(named.lines))
        assert check(a_verifier(), through) == "mismatch", name

    other_session = replace(sign(PLAIN), lines=hop.rewrite(sign(PLAIN).lines))
    assert check(a_verifier(), other_session) == "mismatch"


def test_a_hop_keeps_the_order_of_lines_of_one_name() -> None:
    """Their order is part of what they say."""
    lines = ((b"x-a", b"1"), (b"host", b"h"), (b"x-a", b"2"))
    assert header_values(RewritingHop().rewrite(lines), "x-a") == [b"1", b"2"]
    kept = RewritingHop(reorders=False).rewrite(lines)
    assert [name for name, _ in kept[:3]] == [b"X-A", b"Host", b"X-A"]


def test_keys_show_no_secret() -> None:
    """The id alone is in the repr; the environment holds all of it."""
    assert repr(KEYS) == "SigV4Keys(access_key_id='ASIATESTKEY')"
    assert KEYS.environ()["AWS_SESSION_TOKEN"] == KEYS.session_token
    assert "AWS_SESSION_TOKEN" not in LASTING.environ()


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: SigV4Keys("", "x"), ValueError, "access_key_id"),
        (lambda: SigV4Keys("x", "x", ""), ValueError, "session_token"),
        (lambda: SigV4Verifier({}, skew=-1), ValueError, "skew"),
        (lambda: SigV4Verifier({}, reuse_after=True), TypeError, "reuse_after"),
        (lambda: SigV4Verifier({}, region=""), ValueError, "region"),
        (lambda: RewritingHop(reorders=1), TypeError, "reorders"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_mean_anything_is_refused_when_it_is_built(
    build: Callable[[], object], error: type[Exception], says: str
) -> None:
    """By name."""
    with pytest.raises(error, match=says):
        build()
