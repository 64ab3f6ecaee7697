"""An endpoint is named by its label or its origin, and by nothing more. R41, R52, D12, D13, R72."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.evidence import checked_label, origin


@pytest.mark.parametrize(
    ("scheme", "host", "port", "expected"),
    [
        ("https", "gateway.example.com", None, "https://gateway.example.com"),
        ("https", "gateway.example.com", 443, "https://gateway.example.com"),
        ("http", "gateway.example.com", 80, "http://gateway.example.com"),
        ("http", "gateway.example.com", 443, "http://gateway.example.com:443"),
        ("https", "gateway.example.com", 8443, "https://gateway.example.com:8443"),
        ("HTTPS", "GateWay.Example.COM", None, "https://gateway.example.com"),
        (b"https", b"gateway.example.com", 443, "https://gateway.example.com"),
        ("https", "127.0.0.1", 9, "https://127.0.0.1:9"),
        ("https", "::1", 443, "https://[::1]"),
        ("https", "[::1]", 8443, "https://[::1]:8443"),
        ("https", "2001:DB8::A", None, "https://[2001:db8::a]"),
        ("https", "fe80::1%eth0", None, "https://[fe80::1%eth0]"),
        ("https", "bücher.example", None, "https://xn--bcher-kva.example"),
        ("https", "xn--bcher-kva.example", None, "https://xn--bcher-kva.example"),
        # Where there is no origin.
        ("", "gateway.example.com", None, ""),
        ("https", "", None, ""),
        ("file", "", None, ""),
        ("1https", "gateway.example.com", None, ""),
        ("ht tp", "gateway.example.com", None, ""),
        # What is no plain host is shown as nothing rather than in part.
        ("https", "user@gateway.example.com", None, ""),
        ("https", "user:secret@gateway.example.com", None, ""),
        ("https", "gateway.example.com/path", None, ""),
        ("https", "gateway.example.com?q=1", None, ""),
        ("https", "gateway.example.com#part", None, ""),
        ("https", "gate way", None, ""),
        ("https", "gateway\n", None, ""),
        ("https", "[::1", None, ""),
        ("https", "::1/secret", None, ""),
        ("https", "a" * 70 + "ü.example", None, ""),
        ("https", b"\xff", None, ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(
    scheme: str | bytes, host: str | bytes, port: int | None, expected: str
) -> None:
    """R41, D13. Lower case, ASCII, no default port, brackets around IPv6; else empty."""
    assert origin(scheme, host, port) == expected


@given(
    scheme=st.text(max_size=12) | st.sampled_from(["http", "https"]),
    host=st.text(max_size=40),
    port=st.none() | st.integers(0, 65535),
)
def test_an_origin_holds_no_path_no_user_no_query_whatever_it_is_made_of(
    scheme: str, host: str, port: int | None
) -> None:
    """R41, D13. For any text: empty, or exactly an origin in ASCII."""
    found = origin(scheme, host, port)
    if not found:
        return
    assert found.isascii()
    assert found == found.lower()
    parts = urlsplit(found)
    assert (parts.path, parts.query, parts.fragment, parts.username) == ("", "", "", None)
    assert parts.hostname


@pytest.mark.parametrize("label", ["b", "billing", "Zahlung €", "x" * 128, " ", "\U0001d505" * 128])
def test_a_label_of_1_to_128_characters_is_taken_as_it_is(label: str) -> None:
    """R52, D12. Code points count, not bytes."""
    assert checked_label(label) == label


@pytest.mark.parametrize(
    "label", ["", "x" * 129, "a\nb", "a\x00", "\x7f", "\x80", "\x9f", "a\tb", "\ud800"]
)
def test_a_label_with_a_control_character_or_out_of_range_is_refused_without_echo(
    label: str,
) -> None:
    """R52, D12, R72. C0, DEL and C1; the message names the option only."""
    with pytest.raises(ValueError, match=r"^endpoint: must ") as caught:
        checked_label(label, option="endpoint")
    assert not label or label not in str(caught.value)


@pytest.mark.parametrize("label", [None, 7, b"billing", ["billing"]])
def test_a_label_that_is_no_text_is_a_type_error(label: object) -> None:
    """R71, R72. The type is wrong, and is said so by name."""
    with pytest.raises(TypeError, match=r"^name: must be a str"):
        checked_label(label)


@given(st.text(min_size=1, max_size=128))
def test_a_label_is_taken_exactly_when_it_has_no_control_character(label: str) -> None:
    """D12. The one rule, for any text."""
    control = any(ord(c) < 32 or 127 <= ord(c) < 160 for c in label)
    lone = any(0xD800 <= ord(c) < 0xE000 for c in label)
    if control or lone:
        with pytest.raises(ValueError, match=r"^name: "):
            checked_label(label)
    else:
        assert checked_label(label) == label
