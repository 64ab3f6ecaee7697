"""B8, D13, D23: where a URL leads, and whether anybody is on the way there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import surefoot
from surefoot.wire import is_private, origin_of

PACKAGE = Path(surefoot.__file__).parent


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://gateway.example.com/mcp?q=1", ("https", "gateway.example.com", 443)),
        ("HTTP://Gateway.Example.COM", ("http", "gateway.example.com", 80)),
        ("http://[::1]:8080/", ("http", "::1", 8080)),
        ("https://me@gateway.example.com/", None),
        ("https://me:pw@gateway.example.com/", None),
        ("ftp://gateway.example.com/", None),
        ("//gateway.example.com/", None),
        ("https:///mcp", None),
        ("http://gateway.example.com:8080", ("http", "gateway.example.com", 8080)),
        ("https://gateway.example.com:99999/", None),
        ("https://gateway.example.com:port", None),
        ("x", None),
        ("https://[gateway/", None),
        ("", None),
    ],
)
def test_a_url_has_one_origin_or_none(url: str, origin: tuple[str, str, int] | None) -> None:
    """D13. What carries user information is no address of ours."""
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"]
)
def test_nobody_is_on_the_way_to_this_machine(host: str) -> None:
    assert is_private("http", host)


@pytest.mark.parametrize(
    "host",
    [
        "127.example.com",
        "127.0.0.1.example.com",
        "127.0.0.999",
        "127.1",
        "localhost.example.com",
        "notlocalhost",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "::",
        "::ffff:10.0.0.1",
        "fe80::1",
        "gateway.example.com",
        "",
    ],
)
def test_a_host_that_only_looks_like_this_machine_is_another(host: str) -> None:
    """Whoever owns a name decides where it leads. The control: by https it is private there, too.

    R71: with plain http a signed request or a client's secret is not sent there.
    """
    assert not is_private("http", host)
    assert is_private("https", host)


def test_one_file_alone_knows_what_this_machine_is_called() -> None:
    """Two tests of the same thing would differ: one did, over ``127.example.com``."""
    knows = re.compile(r"""["']localhost["']|is_loopback\b|startswith\(["']127""")
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if knows.search(path.read_text("utf-8"))
    ]
    assert found == ["wire/_origin.py"]
